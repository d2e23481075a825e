//! What ran again: the Journal of a Run that was killed, and Journals that must not exist.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_kernel::entry::Salt;
use loopd_kernel::{CallId, Digest, EffectClass, Entry, Kind, RunId, Seq, TimeMs};
use research_agent::again::{Because, Performed, performed};

/// A Journal of these records; hashes do not matter here.
fn journal(records: &[(Kind, &str)]) -> Vec<Entry> {
    let entry = |(seq, (kind, record)): (u64, &(Kind, &str))| Entry {
        run: RunId([7; 16]),
        seq: Seq(seq),
        kind: *kind,
        format: 0,
        at: TimeMs(0),
        salt: Salt([0; 16]),
        record: (*record).into(),
        payload: Vec::new(),
        hash: Digest::default(),
    };
    (1..).zip(records).map(entry).collect()
}

fn calls(records: &[(Kind, &str)]) -> Vec<Performed> {
    performed(&journal(records)).expect("the records read")
}

const WANTED: (Kind, &str) =
    (Kind::Decided, r#"{"consumed":0,"actions":[{"tool":{"id":1,"tool":"search","args":[0,0]}}]}"#);
const READ: (Kind, &str) = (Kind::Intended, r#"{"call":1,"class":"read","epoch":1,"send_ms":0,"abort_ms":0}"#);
const ONCE: (Kind, &str) = (Kind::Intended, r#"{"call":1,"class":"once","epoch":1,"send_ms":0,"abort_ms":0}"#);
const RECOVERED: (Kind, &str) = (Kind::Recovered, r#"{"epoch":2,"again":[1]}"#);
const LANDED: (Kind, &str) = (Kind::Settled, r#"{"call":1,"as":"landed"}"#);
const ATTEMPTED: &str = r#"{"call":1,"n":0,"setback":"not_sent","code":"call.not_sent","message":[0,0],"retry_at":0}"#;

#[test]
fn a_read_that_was_open_may_run_again() {
    let found = calls(&[WANTED, READ, RECOVERED, READ, LANDED]);
    let expected = Performed {
        call: CallId(1),
        target: "search".into(),
        class: Some(EffectClass::Read),
        intents: vec![Seq(2), Seq(4)],
        settled: vec![Seq(5)],
        because: vec![Because::WorkerDied(Seq(3))],
        lost: false,
    };
    assert_eq!(found, [expected]);
    assert!(found[0].ran_again());
    assert_eq!(found[0].faults(), [""; 0]);
    assert_eq!(found[0].why(), "its worker died (entry 3): it changes nothing, so it is run again");
}

#[test]
fn a_call_that_was_never_sent_may_be_sent_whatever_its_class() {
    let not_sent = (Kind::Attempted, ATTEMPTED);
    let found = calls(&[WANTED, ONCE, not_sent, ONCE, LANDED]);
    assert_eq!(found[0].because, [Because::NotSent(Seq(3))]);
    assert_eq!(found[0].faults(), [""; 0]);
    let failed = ATTEMPTED.replace("not_sent", "failed");
    let stopped = ATTEMPTED.replace("not_sent", "stopped");
    for setback in [failed, stopped] {
        let again = [WANTED, ONCE, (Kind::Attempted, setback.as_str()), ONCE, LANDED];
        check_fault(&again, "it is of class once, and was sent again after entry 3");
    }
}

#[test]
fn a_call_that_ran_once_did_not_run_again() {
    let found = calls(&[WANTED, ONCE, LANDED]);
    assert!(!found[0].ran_again());
    assert_eq!(found[0].faults(), [""; 0]);
}

#[track_caller]
fn check_fault(records: &[(Kind, &str)], fault: &str) {
    let faults: Vec<String> = calls(records).iter().flat_map(Performed::faults).collect();
    assert_eq!(faults, [fault]);
}

#[test]
fn what_may_not_happen_is_found() {
    check_fault(&[WANTED, ONCE, RECOVERED, ONCE, LANDED], "it is of class once, and was sent again after entry 3");
    check_fault(&[WANTED, READ, READ, LANDED], "it was sent again, and nothing says why");
    check_fault(&[WANTED, READ, LANDED, LANDED], "it settled twice, in entries 3 and 4");
    check_fault(
        &[WANTED, READ, LANDED, RECOVERED, READ],
        "it was intended in entry 5, after it had settled in entry 3",
    );
}

#[test]
fn a_recording_that_does_not_read_is_no_proof() {
    assert!(performed(&journal(&[(Kind::Intended, "{}")])).is_err());
    assert!(performed(&journal(&[(Kind::Compacted, "{}")])).is_err());
}
