//! What has to hold of every ended Run, whatever happened to it.

use crate::scripts::{DEDUP_FOR, Effect};
use crate::stage::Stage;
use loopd_kernel::entry::Kind;
use loopd_kernel::outcome::Outcome;
use loopd_kernel::projection::Target;
use loopd_kernel::question::Resolution;
use loopd_kernel::record::{ChildEnded, Record, Settlement};
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::{CallId, Digest, EffectClass, EffectKey, ErasedLoop, MicroUsd, Projection, RunId, Seq};
use loopd_store::{RunRow, Store};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What the Journal says of one Call.
#[derive(Default, Debug)]
struct Told {
    class: Option<EffectClass>,
    key: Option<EffectKey>,
    intents: Vec<Seq>,
    settled: Vec<Settlement>,
    resolved: Option<Resolution>,
    /// How often it was heard that the child ended.
    ended: usize,
}

impl Told {
    /// Whether the effect happened, as far as the Journal says.
    fn landed(&self) -> Option<bool> {
        match (self.settled.first()?, &self.resolved) {
            (Settlement::Landed, _) | (Settlement::Unknown, Some(Resolution::Landed { .. })) => Some(true),
            (Settlement::Failed | Settlement::Denied | Settlement::Cancelled, _)
            | (Settlement::Unknown, Some(Resolution::Failed { .. })) => Some(false),
            // A new Call speaks for the effect.
            (Settlement::Unknown, Some(Resolution::Retry | Resolution::Unknown { .. }) | None) => None,
        }
    }
}

thread_local! {
    static MET: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Says how many Entries of each kind the stories of this thread have come to. Many seeds that never met what they are
/// there for prove nothing.
pub fn met_what_is_seldom() {
    let met = MET.with_borrow(Clone::clone);
    println!("sim met {met:?}");
    if met.get("started").is_some_and(|runs| *runs > 500) {
        for kind in ["attempted", "child_ended", "child_parked", "late_result", "probed", "recovered", "resolved"] {
            assert!(met.contains_key(kind), "no seed met {kind}");
        }
    }
}

type Calls = BTreeMap<CallId, Told>;

/// Replays the Journal strictly and compares it with what happened.
pub async fn check(stage: &Stage, run: RunId, definition: &dyn ErasedLoop) {
    let row = stage.store.run(run).await.unwrap().unwrap();
    let mut replayer = Replayer::new(run, Some(definition), Strictness::Strict);
    let mut calls = Calls::new();
    for entry in stage.store.entries(run, Seq(0), 10_000).await.unwrap() {
        replayer.take(&entry).unwrap();
        within_budget(replayer.projection());
        MET.with_borrow_mut(|met| *met.entry(entry.kind.name()).or_default() += 1);
        let tells = [Kind::Intended, Kind::Settled, Kind::Resolved, Kind::ChildEnded].contains(&entry.kind);
        if !tells {
            continue;
        }
        match Record::decode(entry.kind, &entry.record).unwrap() {
            Record::Intended(intended) => {
                let told = calls.entry(intended.call).or_default();
                let call = replayer.projection().call(intended.call).unwrap();
                told.class = Some(intended.class).filter(|_| matches!(call.target, Target::Tool { .. }));
                told.key = Some(call.effect_key(run));
                told.intents.push(entry.seq);
            }
            Record::Settled(settled) => calls.entry(settled.call).or_default().settled.push(settled.how),
            Record::Resolved(resolved) => {
                let before = calls.entry(resolved.call).or_default().resolved.replace(resolved.resolution);
                assert_eq!(before, None, "{} was resolved twice", resolved.call);
            }
            Record::ChildEnded(ended) => calls.entry(ended.call).or_default().ended += 1,
            _ => {}
        }
    }
    replayer.verifier().finish(row.head, &row.hash).unwrap();
    let projection = replayer.projection();
    assert!(projection.open.is_empty() && projection.in_doubt.is_empty(), "ended over {projection:?}");
    assert_eq!(stage.store.questions(Some(run), 9).await.unwrap(), [], "ended with questions");
    assert_eq!(row.worker, None, "ended, and still held");
    for (call, told) in &calls {
        assert_eq!(told.settled.len() + told.ended, 1, "{call} has other than one settlement: {told:?}");
    }
    let effects: Vec<Effect> = stage.effects.all().into_iter().filter(|effect| effect.run == run).collect();
    effects_fit(&calls, &effects);
    verdicts_fit(&calls, &effects);
}

/// Reserve before spending: never more than the limit, as long as the provider keeps to its bound.
fn within_budget(projection: &Projection) {
    let ledger = &projection.ledger;
    let cap = projection.limits.micro_usd.unwrap();
    assert!(ledger.spent.plus(ledger.reserved) <= cap, "{ledger:?} passes {cap:?}");
    assert_eq!(ledger.overshoot, MicroUsd(0), "{ledger:?}");
}

fn effects_fit(calls: &Calls, effects: &[Effect]) {
    let mut sent: BTreeMap<Digest, Vec<&Effect>> = BTreeMap::new();
    for effect in effects {
        let told = calls.get(&effect.call).unwrap_or_else(|| panic!("nobody wanted {effect:?}"));
        assert_eq!(told.key, Some(effect.key), "{effect:?} has another key");
        assert!(told.intents.iter().any(|seq| *seq <= effect.head), "no durable intent before {effect:?}");
        assert!(effect.at < effect.lease, "sent by a worker whose lease had lapsed: {effect:?}");
        sent.entry(effect.key.0).or_default().push(effect);
    }
    for (key, mut sent) in sent {
        sent.sort_by_key(|effect| effect.lands_at);
        let times = match sent[0].class {
            EffectClass::Once | EffectClass::Probed => sent.len(),
            EffectClass::Keyed => {
                let forgotten = |late: &&&Effect| late.lands_at.since(sent[0].lands_at) > DEDUP_FOR.as_millis() as u64;
                1 + sent.iter().filter(forgotten).count()
            }
            EffectClass::Pure | EffectClass::Read | EffectClass::Billable | EffectClass::Transactional => 1,
        };
        assert!(times == 1, "{key:?} happened {times} times: {sent:?}");
    }
}

/// What the Journal calls landed did happen; what it calls failed or cancelled did not.
fn verdicts_fit(calls: &Calls, effects: &[Effect]) {
    for (call, told) in calls {
        let (Some(class), Some(landed)) = (told.class, told.landed()) else { continue };
        let there = effects.iter().find(|effect| Some(effect.key) == told.key);
        match landed {
            true => assert!(there.is_some(), "{call} is said to have landed and did not: {told:?}"),
            // Whether something was read does not matter.
            false if class.may_be_cut() => {}
            false => assert!(there.is_none(), "{call} is said not to have happened: {told:?}, {there:?}"),
        }
    }
}

/// A child is born once, and its parent hears once how it ended, and what it consumed.
pub async fn family(stage: &Stage, rows: &[RunRow]) {
    for row in rows {
        let children = rows.iter().filter(|child| child.parent == Some(row.run)).count();
        if row.parent.is_some() {
            assert_eq!(children, 0, "the children of this story have none");
            continue;
        }
        let mut projection = Projection::new(row.run);
        let (mut wanted, mut heard): (BTreeMap<CallId, RunId>, BTreeMap<CallId, ChildEnded>) = Default::default();
        for entry in stage.store.entries(row.run, Seq(0), 10_000).await.unwrap() {
            projection.fold(&entry).unwrap();
            wanted.extend(projection.children().map(|(call, child)| (call, child.run)));
            if entry.kind == Kind::ChildEnded {
                let Record::ChildEnded(ended) = Record::decode(entry.kind, &entry.record).unwrap() else { panic!() };
                heard.insert(ended.call, ended);
            }
        }
        assert_eq!(children, wanted.len(), "{} has other children than it wanted: {wanted:?}", row.run);
        for (call, run) in wanted {
            let child = rows.iter().find(|child| child.run == run).unwrap();
            let first = stage.store.entries(run, Seq(0), 1).await.unwrap();
            let Record::Started(started) = Record::decode(first[0].kind, &first[0].record).unwrap() else { panic!() };
            let parent = started.parent.unwrap();
            assert_eq!((parent.run, parent.call), (row.run, call), "{run} has another parent");
            if let Some(ended) = heard.get(&call) {
                assert_eq!((ended.child, ended.spent.money), (run, child.spent));
                assert_eq!(Some(ended.outcome.name()), child.outcome.as_deref());
                assert!(!matches!(ended.outcome, Outcome::BudgetExceeded { .. }), "a parked child has not ended");
            }
        }
    }
}
