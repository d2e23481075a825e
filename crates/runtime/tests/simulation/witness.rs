//! Watches one Journal Entry by Entry, as it grows or afterwards: the chain, the strict replay, what it says of each
//! Call, and at its end what it says against what happened.

use crate::scripts::{DEDUP_FOR, Effect};
use loopd_kernel::entry::Kind;
use loopd_kernel::outcome::Outcome;
use loopd_kernel::projection::Target;
use loopd_kernel::question::Resolution;
use loopd_kernel::record::{ChildEnded, Record, Settlement};
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::{
    CallId, Digest, EffectClass, EffectKey, Entry, Epoch, ErasedLoop, MicroUsd, Projection, RunId, Seq,
};
use loopd_store::RunRow;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What the Journal says of one Call.
#[derive(Default, Debug)]
pub struct Told {
    class: Option<EffectClass>,
    pub key: Option<EffectKey>,
    /// Where it was intended, and for whom.
    pub intents: Vec<(Seq, Epoch)>,
    settled: Vec<Settlement>,
    resolved: Option<Resolution>,
    /// How often it was heard that the child ended.
    ended: usize,
}

impl Told {
    /// Whether it may have changed the world.
    pub fn is_effect(&self) -> bool {
        self.class.is_some_and(|class| !class.may_be_cut())
    }

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

/// Numbers of kinds are below this.
const KINDS: usize = 64;

thread_local! {
    static MET: RefCell<[u64; KINDS]> = const { RefCell::new([0; KINDS]) };
}

/// Says how many Entries of each kind the stories of this thread have come to. Many seeds that never met what they are
/// there for prove nothing.
pub fn met_what_is_seldom() {
    let met = |kind: &Kind| (kind.name(), MET.with_borrow(|met| met[usize::from(kind.number())]));
    let met: BTreeMap<_, _> = Kind::ALL.iter().map(met).filter(|(_, count)| *count > 0).collect();
    println!("sim met {met:?}");
    if met.get("started").is_some_and(|runs| *runs > 500) {
        for kind in ["attempted", "child_ended", "child_parked", "late_result", "probed", "recovered", "resolved"] {
            assert!(met.contains_key(kind), "no seed met {kind}");
        }
    }
}

type Calls = BTreeMap<CallId, Told>;

pub struct Witness<'a> {
    run: RunId,
    replayer: Replayer<'a>,
    calls: Calls,
    /// The children that it has given birth to.
    children: BTreeMap<CallId, RunId>,
    heard: BTreeMap<CallId, ChildEnded>,
}

impl<'a> Witness<'a> {
    pub fn of(run: RunId, definition: &'a dyn ErasedLoop) -> Self {
        let replayer = Replayer::new(run, Some(definition), Strictness::Strict);
        Self { run, replayer, calls: Calls::new(), children: BTreeMap::new(), heard: BTreeMap::new() }
    }

    /// What the Journal means so far, folded by nobody who drives it.
    pub fn projection(&self) -> &Projection {
        self.replayer.projection()
    }

    /// What it says of a Call.
    pub fn told(&self, call: CallId) -> Option<&Told> {
        self.calls.get(&call)
    }

    /// The next Entry: it continues the chain, folds, and is what the Loop decides today.
    pub fn take(&mut self, entry: &Entry) {
        let record = self.replayer.read(entry).unwrap();
        within_budget(self.replayer.projection());
        MET.with_borrow_mut(|met| met[usize::from(entry.kind.number())] += 1);
        match record {
            Record::Intended(intended) => {
                let call = self.replayer.projection().call(intended.call).unwrap();
                let told = self.calls.entry(intended.call).or_default();
                told.class = Some(intended.class).filter(|_| matches!(call.target, Target::Tool { .. }));
                told.key = Some(call.effect_key(self.run));
                told.intents.push((entry.seq, intended.epoch));
                self.children.extend(call.target.child().map(|child| (intended.call, child.run)));
            }
            Record::Settled(settled) => self.calls.entry(settled.call).or_default().settled.push(settled.how),
            Record::Resolved(resolved) => {
                let before = self.calls.entry(resolved.call).or_default().resolved.replace(resolved.resolution);
                assert_eq!(before, None, "{} was resolved twice", resolved.call);
            }
            Record::ChildEnded(ended) => {
                self.calls.entry(ended.call).or_default().ended += 1;
                self.heard.insert(ended.call, ended);
            }
            _ => {}
        }
    }

    /// The Journal has ended: `row` is what the store says of it, `effects` is what was sent for it.
    pub fn finish(&self, row: &RunRow, effects: &[Effect]) {
        self.replayer.verifier().finish(row.head, &row.hash).unwrap();
        let projection = self.projection();
        assert!(projection.open.is_empty() && projection.in_doubt.is_empty(), "ended over {projection:?}");
        assert_eq!(row.worker, None, "ended, and still held");
        for (call, told) in &self.calls {
            assert_eq!(told.settled.len() + told.ended, 1, "{call} has other than one settlement: {told:?}");
        }
        let sent = self.effects_fit(effects);
        self.verdicts_fit(&sent);
    }

    /// How many effects other than reads the Journal calls landed.
    pub fn landed(&self) -> usize {
        let counts = |told: &&Told| told.is_effect() && told.landed() == Some(true);
        self.calls.values().filter(counts).count()
    }

    fn effects_fit<'e>(&self, effects: &'e [Effect]) -> BTreeMap<Digest, Vec<&'e Effect>> {
        let mut sent: BTreeMap<Digest, Vec<&Effect>> = BTreeMap::new();
        for effect in effects {
            let told = self.calls.get(&effect.call).unwrap_or_else(|| panic!("nobody wanted {effect:?}"));
            assert_eq!(told.key, Some(effect.key), "{effect:?} has another key");
            let before = |(seq, _): &(Seq, Epoch)| *seq <= effect.head;
            assert!(told.intents.iter().any(before), "no durable intent before {effect:?}");
            assert!(effect.at < effect.lease, "sent by a worker whose lease had lapsed: {effect:?}");
            sent.entry(effect.key.0).or_default().push(effect);
        }
        for (key, sent) in &mut sent {
            sent.sort_by_key(|effect| effect.lands_at);
            let times = match sent[0].class {
                EffectClass::Once | EffectClass::Probed => sent.len(),
                EffectClass::Keyed => {
                    let first = sent[0].lands_at;
                    let forgotten = |late: &&&Effect| late.lands_at.since(first) > DEDUP_FOR.as_millis() as u64;
                    1 + sent.iter().filter(forgotten).count()
                }
                EffectClass::Pure | EffectClass::Read | EffectClass::Billable | EffectClass::Transactional => 1,
            };
            assert!(times == 1, "{key:?} happened {times} times: {sent:?}");
        }
        sent
    }

    /// What the Journal calls landed did happen; what it calls failed or cancelled did not.
    fn verdicts_fit(&self, sent: &BTreeMap<Digest, Vec<&Effect>>) {
        for (call, told) in &self.calls {
            let (Some(class), Some(landed)) = (told.class, told.landed()) else { continue };
            let there = told.key.and_then(|key| sent.get(&key.0));
            match landed {
                true => assert!(there.is_some(), "{call} is said to have landed and did not: {told:?}"),
                // Whether something was read does not matter.
                false if class.may_be_cut() => {}
                false => assert!(there.is_none(), "{call} is said not to have happened: {told:?}, {there:?}"),
            }
        }
    }
}

/// Reserve before spending: never more than the limit, as long as the provider keeps to its bound.
fn within_budget(projection: &Projection) {
    let ledger = &projection.ledger;
    let cap = projection.limits.micro_usd.unwrap();
    assert!(ledger.spent.plus(ledger.reserved) <= cap, "{ledger:?} passes {cap:?}");
    assert_eq!(ledger.overshoot, MicroUsd(0), "{ledger:?}");
}

/// A child is born once, and its parent hears once how it ended, and what it consumed.
pub fn family(watched: &[(RunRow, Witness)]) {
    for (row, witness) in watched {
        let children = watched.iter().filter(|(child, _)| child.parent == Some(row.run)).count();
        if row.parent.is_some() {
            assert_eq!(children, 0, "the children of this story have none");
            continue;
        }
        let wanted = &witness.children;
        assert_eq!(children, wanted.len(), "{} has other children than it wanted: {wanted:?}", row.run);
        for (call, run) in wanted {
            let (child, grew) = watched.iter().find(|(child, _)| child.run == *run).unwrap();
            let parent = grew.projection().parent.unwrap();
            assert_eq!((parent.run, parent.call), (row.run, *call), "{run} has another parent");
            if let Some(ended) = witness.heard.get(call) {
                assert_eq!((ended.child, ended.spent.money), (*run, child.spent));
                assert_eq!(Some(ended.outcome.name()), child.outcome.as_deref());
                assert!(!matches!(ended.outcome, Outcome::BudgetExceeded { .. }), "a parked child has not ended");
            }
        }
    }
}
