//! What has to hold of every ended Run, whatever happened to it.

use crate::scripts::Effect;
use loopd_kernel::projection::Target;
use loopd_kernel::record::{Record, Settlement};
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::{CallId, Digest, EffectClass, EffectKey, ErasedLoop, MicroUsd, Projection, RunId, Seq};
use loopd_store::{MemoryStore, Store};
use std::collections::BTreeMap;

/// What the Journal says of one Call.
#[derive(Default, Debug)]
struct Told {
    is_tool: bool,
    key: Option<EffectKey>,
    intents: Vec<Seq>,
    settled: Vec<Settlement>,
}

/// Replays the Journal strictly and compares it with what happened. Returns the hash of its head.
pub async fn check(store: &MemoryStore, run: RunId, definition: &dyn ErasedLoop, effects: &[Effect]) -> Digest {
    let row = store.run(run).await.unwrap().unwrap();
    let mut replayer = Replayer::new(run, Some(definition), Strictness::Strict);
    let mut calls: BTreeMap<CallId, Told> = BTreeMap::new();
    for entry in store.entries(run, Seq(0), 10_000).await.unwrap() {
        replayer.take(&entry).unwrap();
        within_budget(replayer.projection());
        match Record::decode(entry.kind, &entry.record).unwrap() {
            Record::Intended(intended) => {
                let told = calls.entry(intended.call).or_default();
                let call = replayer.projection().call(intended.call).unwrap();
                told.is_tool = matches!(call.target, Target::Tool { .. });
                told.key = Some(call.effect_key(run));
                told.intents.push(entry.seq);
            }
            Record::Settled(settled) => calls.entry(settled.call).or_default().settled.push(settled.how),
            _ => {}
        }
    }
    replayer.verifier().finish(row.head, &row.hash).unwrap();
    let projection = replayer.projection();
    assert!(projection.open.is_empty() && projection.in_doubt.is_empty(), "ended over {projection:?}");
    assert_eq!(store.questions(Some(run), 9).await.unwrap(), [], "ended with questions");
    assert_eq!(row.worker, None, "ended, and still held");
    for (call, told) in &calls {
        assert_eq!(told.settled.len(), 1, "{call} has other than one settlement: {told:?}");
    }
    effects_fit(&calls, effects);
    row.hash
}

/// Reserve before spending: never more than the limit, as long as the provider keeps to its bound.
fn within_budget(projection: &Projection) {
    let ledger = &projection.ledger;
    let cap = projection.limits.micro_usd.unwrap();
    assert!(ledger.spent.plus(ledger.reserved) <= cap, "{ledger:?} passes {cap:?}");
    assert_eq!(ledger.overshoot, MicroUsd(0));
}

fn effects_fit(calls: &BTreeMap<CallId, Told>, effects: &[Effect]) {
    let mut once: BTreeMap<Digest, Vec<&Effect>> = BTreeMap::new();
    for effect in effects {
        let told = calls.get(&effect.call).unwrap_or_else(|| panic!("nobody wanted {effect:?}"));
        assert_eq!(told.key, Some(effect.key), "{effect:?} has another key");
        assert!(told.intents.iter().any(|seq| *seq <= effect.head), "no durable intent before {effect:?}");
        assert!(effect.at < effect.lease, "sent by a worker whose lease had lapsed: {effect:?}");
        if effect.class == EffectClass::Once {
            once.entry(effect.key.0).or_default().push(effect);
        }
    }
    for (key, effects) in once {
        assert!(effects.len() == 1, "{key} happened {} times: {effects:?}", effects.len());
    }
    // What the Journal calls landed did happen.
    for (call, _) in calls.iter().filter(|(_, told)| told.is_tool && told.settled == [Settlement::Landed]) {
        assert!(effects.iter().any(|effect| effect.call == *call), "{call} is said to have landed and did not");
    }
}
