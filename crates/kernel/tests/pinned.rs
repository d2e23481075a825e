//! Pins the bytes of format 0: one record of every kind that this build writes, the header, the chain.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use expect_test::expect;
use loopd_kernel::budget::{Breach, Dimension, Ledger, Limits, Reservation};
use loopd_kernel::chain::{self, ChainError, Verifier};
use loopd_kernel::child::{ClosePolicy, Parent, Recipient, Spent};
use loopd_kernel::entry::{FORMAT, Span};
use loopd_kernel::ids::TimerId;
use loopd_kernel::model::ModelCall;
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::patch::StatePatch;
use loopd_kernel::question::{Ask, QuestionEnd, Resolution};
use loopd_kernel::record::*;
use loopd_kernel::{CallId, Digest, EffectClass, Entry, Epoch, Kind, MicroUsd, Outcome, QuestionId, RunId, Seq};
use loopd_kernel::{Salt, TimeMs, Usage};
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn one_of_every_kind() -> Vec<Record> {
    let digest = Digest::sha256(&[b"pinned"]);
    vec![
        Record::Started(Started {
            tenant: "default".into(),
            loop_name: "refund".into(),
            version: "1".into(),
            definition: digest,
            input: Span(0, 5),
            state: Span(5, 2),
            limits: Limits { iterations: Some(3), micro_usd: Some(MicroUsd(250_000)), ..Limits::default() },
            projection: 1,
            admission: Some("order-7".into()),
            state_version: 2,
            parent: Some(Parent { run: RunId([3; 16]), call: CallId(4), depth: 1 }),
        }),
        Record::IterationStarted(IterationStarted { iteration: 1 }),
        Record::Decided(Decided {
            consumed: 2,
            actions: vec![
                ActionRecord::Model { id: CallId(1), call: ModelCall::transcript("demo"), messages: Some(Span(0, 9)) },
                ActionRecord::Tool {
                    id: CallId(2),
                    tool: "pay".into(),
                    args: Span(9, 2),
                    reply_to: Some("t1".into()),
                    cap: None,
                },
                ActionRecord::Join { calls: 2, ok: Some(1) },
                ActionRecord::Spawn {
                    id: CallId(3),
                    name: "first".into(),
                    loop_name: "refund".into(),
                    definition: Some(digest),
                    input: Span(0, 2),
                    limits: Limits { tokens: Some(9), ..Limits::default() },
                    close: ClosePolicy::Abandon,
                    reply_to: Some("t2".into()),
                    cap: Some(64),
                },
                ActionRecord::Signal { to: Recipient::Parent, name: "go".into(), body: Span(0, 1) },
                ActionRecord::RaiseChild { child: "first".into(), by: Limits { tokens: Some(1), ..Limits::default() } },
                ActionRecord::CancelChild { child: "first".into(), reason: "enough".into() },
                ActionRecord::Speak(Span(0, 1)),
                ActionRecord::Ask {
                    id: QuestionId(1),
                    ask: Ask::Confirm { prompt: "pay?".into(), expires_in_ms: Some(1000) },
                },
                ActionRecord::Wait { signals: vec!["go".into()], timeout: Some((TimerId(1), 5)) },
                ActionRecord::Sleep { id: TimerId(2), ms: 7 },
                ActionRecord::Note(Span(0, 2)),
                ActionRecord::Compact { summary: Span(0, 2), after: Seq(1) },
                ActionRecord::CancelCalls,
                ActionRecord::Label("k".into(), "v".into()),
                ActionRecord::Finish(Span(0, 4)),
            ],
            patch: StatePatch::Splice(3, 1, "x".into()),
            state: Some(digest),
        }),
        Record::DefinitionChanged(DefinitionChanged {
            version: "1.1".into(),
            definition: digest,
            state_version: 2,
            patch: StatePatch::Set("{}".into()),
            state: Some(digest),
        }),
        Record::Recovered(Recovered { epoch: Epoch(2), again: vec![CallId(1)] }),
        Record::Parked(Parked {
            outcome: Outcome::BudgetExceeded {
                breach: Breach { dimension: Dimension::Tokens, limit: 10, used: 9, needed: 2 },
            },
        }),
        Record::Reopened(Reopened { by: "ann".into(), raise: Limits { tokens: Some(20), ..Limits::default() } }),
        Record::Ended(Ended {
            outcome: Outcome::Completed { output: String::new() },
            totals: Ledger::default(),
            head: digest,
        }),
        Record::Intended(Intended {
            call: CallId(1),
            class: EffectClass::Billable,
            request: Some(digest),
            epoch: Epoch(1),
            send_ms: 10,
            abort_ms: 20,
            dedup_ms: None,
            landing_ms: Some(30),
            max_output: Some(64),
            reserve: Reservation { tokens: 100, micro_usd: MicroUsd(7) },
            price_from: Some("genai-prices 0.2.1".into()),
            slice: Some(Limits { tokens: Some(100), ..Limits::default() }),
        }),
        Record::Attempted(Attempted {
            call: CallId(1),
            n: 1,
            setback: Setback::Stopped,
            code: "model.rate_limited".into(),
            message: Span(0, 3),
            usage: Some(Usage::default()),
            cost: Some(MicroUsd(0)),
            retry_at: TimeMs(99),
        }),
        Record::Settled(Settled {
            call: CallId(1),
            how: Settlement::Landed,
            code: None,
            usage: Some(Usage { input: 10, output: 5, ..Usage::default() }),
            cost: Some(MicroUsd(3)),
            joins: Some(Joins::Assistant),
            exchange: Some(Exchanged { request: digest, response: digest }),
        }),
        Record::Probed(Probed {
            call: CallId(2),
            found: Found::NotLanded,
            asked_at: TimeMs(98),
            again_at: Some(TimeMs(99)),
        }),
        Record::LateResult(LateResult { call: CallId(2), epoch: Epoch(1) }),
        Record::Resolved(Resolved {
            call: CallId(2),
            by: "ann".into(),
            resolution: Resolution::Failed { evidence: "no booking".into() },
            joins: Some(Joins::Tool("t1".into())),
        }),
        Record::Signal(Signal { name: "go".into() }),
        Record::QuestionEnded(QuestionEnded {
            question: QuestionId(1),
            end: QuestionEnd::Answered,
            actor: "ann".into(),
            joins: None,
        }),
        Record::TimerFired(TimerFired { timer: TimerId(1) }),
        Record::ChildEnded(ChildEnded {
            call: CallId(3),
            child: RunId([4; 16]),
            outcome: Outcome::Completed { output: String::new() },
            spent: Spent { usage: Usage::default(), charged_tokens: 5, money: MicroUsd(6) },
            joins: Some(Joins::Capped { id: "t2".into(), cap: 64 }),
        }),
        Record::ChildParked(ChildParked {
            call: CallId(3),
            child: RunId([4; 16]),
            outcome: Outcome::Interrupted { interrupt: Interrupt::Shutdown },
        }),
        Record::CancelRequested(CancelRequested { actor: "ann".into(), reason: "enough".into() }),
        Record::BudgetChanged(BudgetChanged { by: "ann".into(), raise: Limits::default() }),
    ]
}

#[test]
fn every_record_has_these_bytes_and_reads_back() {
    let mut text = String::new();
    for record in one_of_every_kind() {
        let json = record.encode().unwrap();
        assert_eq!(Record::decode(record.kind(), &json).unwrap(), record);
        writeln!(text, "{} {} {json}", record.kind().number(), record.kind()).unwrap();
    }
    expect![[r#"
        1 started {"tenant":"default","loop":"refund","version":"1","definition":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8","input":[0,5],"state":[5,2],"limits":{"iterations":3,"micro_usd":250000},"projection":1,"admission":"order-7","state_version":2,"parent":{"run":"run_03030303030303030303030303030303","call":4,"depth":1}}
        2 iteration_started {"iteration":1}
        3 decided {"consumed":2,"actions":[{"model":{"id":1,"call":{"model":"demo","transcript":true,"max_output_tokens":4096},"messages":[0,9]}},{"tool":{"id":2,"tool":"pay","args":[9,2],"reply_to":"t1"}},{"join":{"calls":2,"ok":1}},{"spawn":{"id":3,"name":"first","loop":"refund","definition":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8","input":[0,2],"limits":{"tokens":9},"close":"abandon","reply_to":"t2","cap":64}},{"signal":{"to":"parent","name":"go","body":[0,1]}},{"raise_child":{"child":"first","by":{"tokens":1}}},{"cancel_child":{"child":"first","reason":"enough"}},{"speak":[0,1]},{"ask":{"id":1,"ask":{"kind":"confirm","prompt":"pay?","expires_in_ms":1000}}},{"wait":{"signals":["go"],"timeout":[1,5]}},{"sleep":{"id":2,"ms":7}},{"note":[0,2]},{"compact":{"summary":[0,2],"after":1}},"cancel_calls",{"label":["k","v"]},{"finish":[0,4]}],"patch":{"splice":[3,1,"x"]},"state":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8"}
        4 definition_changed {"version":"1.1","definition":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8","state_version":2,"patch":{"set":"{}"},"state":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8"}
        5 recovered {"epoch":2,"again":[1]}
        6 parked {"outcome":{"outcome":"budget_exceeded","breach":{"dimension":"tokens","limit":10,"used":9,"needed":2}}}
        7 reopened {"by":"ann","raise":{"tokens":20}}
        10 ended {"outcome":{"outcome":"completed","output":""},"totals":{"iterations":0,"model_calls":0,"tool_calls":0,"usage":{},"charged_tokens":0,"spent":0,"reserved_tokens":0,"reserved":0,"overshoot":0,"overshoot_tokens":0},"head":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8"}
        20 intended {"call":1,"class":"billable","request":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8","epoch":1,"send_ms":10,"abort_ms":20,"landing_ms":30,"max_output":64,"reserve":{"tokens":100,"micro_usd":7},"price_from":"genai-prices 0.2.1","slice":{"tokens":100}}
        21 attempted {"call":1,"n":1,"setback":"stopped","code":"model.rate_limited","message":[0,3],"usage":{},"cost":0,"retry_at":99}
        22 settled {"call":1,"as":"landed","usage":{"input":10,"output":5},"cost":3,"joins":"assistant","exchange":{"request":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8","response":"P6tcGBvSigm2Q5ffdq4r-vHqwYKXm1_bejQoWABPNq8"}}
        23 probed {"call":2,"found":"not_landed","asked_at":98,"again_at":99}
        24 late_result {"call":2,"epoch":1}
        25 resolved {"call":2,"by":"ann","resolution":{"call":"failed","evidence":"no booking"},"joins":{"tool":"t1"}}
        40 signal {"name":"go"}
        41 question_ended {"question":1,"end":"answered","actor":"ann"}
        42 timer_fired {"timer":1}
        43 child_ended {"call":3,"child":"run_04040404040404040404040404040404","outcome":{"outcome":"completed","output":""},"spent":{"usage":{},"charged_tokens":5,"money":6},"joins":{"capped":{"id":"t2","cap":64}}}
        44 child_parked {"call":3,"child":"run_04040404040404040404040404040404","outcome":{"outcome":"interrupted","interrupt":{"by":"shutdown"}}}
        46 cancel_requested {"actor":"ann","reason":"enough"}
        47 budget_changed {"by":"ann","raise":{}}
    "#]].assert_eq(&text);
}

#[test]
fn every_kind_is_either_written_or_refused_by_name() {
    let written: BTreeSet<Kind> = one_of_every_kind().iter().map(Record::kind).collect();
    for kind in Kind::ALL {
        assert_eq!(Kind::from_number(kind.number()), Some(*kind));
        assert_eq!(Kind::from_name(kind.name()), Some(*kind));
        let refused = matches!(Record::decode(*kind, "{}"), Err(RecordError::Unsupported { .. }));
        assert_eq!(refused, !written.contains(kind), "{kind}");
    }
    assert_eq!(Kind::from_number(999), None);
}

#[test]
fn a_field_that_a_later_build_added_does_not_stop_this_one() {
    let signal = Record::decode(Kind::Signal, r#"{"name":"go","later":1}"#).unwrap();
    assert_eq!(signal, Record::Signal(Signal { name: "go".into() }));
}

#[test]
fn an_intent_of_a_build_that_named_no_price_source_reads_and_stays_as_it_was() {
    let text =
        r#"{"call":1,"class":"billable","epoch":1,"send_ms":10,"abort_ms":20,"reserve":{"tokens":100,"micro_usd":7}}"#;
    let record = Record::decode(Kind::Intended, text).unwrap();
    assert!(matches!(&record, Record::Intended(intended) if intended.price_from.is_none()));
    assert_eq!(record.encode().unwrap(), text);
}

fn journal(run: RunId, count: u64) -> Vec<Entry> {
    let mut hash = chain::genesis(run);
    (1..=count)
        .map(|seq| {
            let mut entry = Entry {
                run,
                seq: Seq(seq),
                kind: Kind::Signal,
                format: FORMAT,
                at: TimeMs(seq as i64),
                salt: Salt([seq as u8; 16]),
                record: r#"{"name":"go"}"#.into(),
                payload: b"a\0b\xff".to_vec(),
                hash: Digest::default(),
            };
            entry.hash = entry.hash_after(&hash);
            hash = entry.hash;
            entry
        })
        .collect()
}

#[test]
fn header_and_chain_have_these_bytes() {
    let entries = journal(RunId([7; 16]), 2);
    let hex = entries[1].header().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    expect!["070707070707070707070707070707070000000000000002002800000000000000000002"].assert_eq(&hex[..72]);
    assert_eq!(&hex[72..], "0000000d00000004");
    expect![[r#"
        5OlolY70lyEx3_OZ8amUK4nkPmoDl9VnQWb2iXLq1ik
        bA0zkCTszrDPY9KUfhFbA_UmEbNP3MVnWUyPLfdHrKc
    "#]]
    .assert_eq(&format!("{}\n{}\n", chain::genesis(RunId([7; 16])), entries[1].hash.text()));
}

fn check(edit: impl FnOnce(&mut Vec<Entry>), expected: Result<(), ChainError>) {
    let whole = journal(RunId([7; 16]), 5);
    let head = whole[4].hash;
    let mut edited = whole;
    edit(&mut edited);
    let mut verifier = Verifier::new(RunId([7; 16]));
    let result = edited.iter().try_for_each(|entry| verifier.take(entry));
    assert_eq!(result.and_then(|()| verifier.finish(Seq(5), &head)), expected);
}

#[test]
fn verification_names_what_is_wrong_and_where() {
    check(|_| {}, Ok(()));
    check(|e| e[2].payload[0] = b'x', Err(ChainError::Mismatch { seq: Seq(3) }));
    check(|e| e[2].record = r#"{"name":"no"}"#.into(), Err(ChainError::Mismatch { seq: Seq(3) }));
    check(|e| e[2].salt.0[0] ^= 1, Err(ChainError::Mismatch { seq: Seq(3) }));
    check(|e| e[2].at = TimeMs(9), Err(ChainError::Mismatch { seq: Seq(3) }));
    check(|e| e[2].kind = Kind::TimerFired, Err(ChainError::Mismatch { seq: Seq(3) }));
    check(|e| drop(e.remove(1)), Err(ChainError::Missing { expected: Seq(2), found: Seq(3) }));
    check(|e| e.swap(1, 2), Err(ChainError::Missing { expected: Seq(2), found: Seq(3) }));
    check(|e| e.insert(2, e[1].clone()), Err(ChainError::Forked { seq: Seq(2) }));
    check(|e| e.truncate(3), Err(ChainError::Truncated { last: Seq(3), head: Seq(5) }));
    check(|e| e[3].run = RunId([8; 16]), Err(ChainError::WrongRun { seq: Seq(4) }));
    check(|e| e[3].format = 9, Err(ChainError::UnknownFormat { seq: Seq(4), format: 9 }));
    // A consistent chain over other bytes still misses the head that the row or footer names.
    check(
        |e| {
            *e = {
                let mut other = journal(RunId([7; 16]), 5);
                other[4].payload.clear();
                let h = other[3].hash;
                other[4].hash = other[4].hash_after(&h);
                other
            }
        },
        Err(ChainError::Mismatch { seq: Seq(5) }),
    );
}
