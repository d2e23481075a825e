//! Targets and models of the bare workers: what becomes of a request, decided when it is sent.

use super::loops::Offers;
use crate::chance::Chance;
use crate::scripts::{Effect, LANDING_BOUND, stream};
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Dispatch, Input, Probe, ProbeAnswer, Settling};
use loopd_kernel::model::ModelReply;
use loopd_kernel::projection::{Call, Target};
use loopd_kernel::record::Setback;
use loopd_kernel::{CallId, Digest, EffectClass, Failure, MicroUsd, RunId, TimeMs, Usage};
use std::collections::BTreeMap;

/// Everything that was sent and lands, sooner or later.
pub struct Outside {
    seed: u64,
    effects: BTreeMap<RunId, Vec<Effect>>,
    /// By the key of the effect: when the first of it lands.
    lands: BTreeMap<Digest, TimeMs>,
    tries: BTreeMap<Digest, u64>,
}

/// How a request ends for whoever sent it.
pub struct Answer {
    pub after_ms: u64,
    pub input: Input,
}

impl Outside {
    pub fn new(seed: u64) -> Self {
        Self { seed, effects: BTreeMap::new(), lands: BTreeMap::new(), tries: BTreeMap::new() }
    }

    pub fn of(&self, run: RunId) -> &[Effect] {
        self.effects.get(&run).map_or(&[], Vec::as_slice)
    }

    /// What somebody sees who asks the target at `now`.
    pub fn has(&self, key: Digest, now: TimeMs) -> bool {
        self.lands.get(&key).is_some_and(|at| *at <= now)
    }

    fn chance(&mut self, key: Digest, purpose: u64) -> Chance {
        let tries = self.tries.entry(key).or_default();
        *tries += 1;
        Chance::new(self.seed, stream(loopd_kernel::EffectKey(key), purpose + *tries))
    }

    /// The request is sent by a worker whose lease is `lease`, and given up `left` ms later. `sending` is what its
    /// sender knows.
    pub fn call(&mut self, dispatch: &Dispatch, sending: Sending) -> Answer {
        let mut chance = self.chance(dispatch.key.0, 0);
        let answer = match &dispatch.call.target {
            Target::Model(_) => model(&dispatch.call, &mut chance, sending.wall),
            Target::Tool { tool, args, .. } => self.tool(dispatch, (tool, args), &sending, &mut chance),
            Target::Child(_) => unreachable!("nobody performs a child"),
        };
        if answer.after_ms < sending.left {
            return answer;
        }
        // What is given up may have happened.
        let failure = Failure::new("tool.timeout", "no result in time");
        let input = match &dispatch.call.target {
            Target::Model(_) => retry(&dispatch.call, "model.interrupted", None, sending.wall.after(sending.left)),
            Target::Tool { .. } | Target::Child(_) => {
                settle(dispatch.call.id, Settling::Failed(failure, Disposition::InDoubt), None)
            }
        };
        Answer { after_ms: sending.left, input }
    }

    fn tool(
        &mut self,
        dispatch: &Dispatch,
        (tool, args): (&str, &str),
        sending: &Sending,
        chance: &mut Chance,
    ) -> Answer {
        let (call, fate) = (dispatch.call.id, chance.below(24));
        if fate == 0 {
            let failure = Failure::new("tool.refused", "not today");
            let input = settle(call, Settling::Failed(failure, Disposition::DidNotHappen), None);
            return Answer { after_ms: chance.below(100), input };
        }
        let mut lands_after = 0;
        if fate > 1 {
            let bound = if tool == "transfer" { LANDING_BOUND.as_millis() as u64 } else { 0 };
            // Without a word about it, nothing lands after the attempt was given up.
            let latest = sending.left + bound;
            lands_after = match chance.below(8) {
                0 => chance.below(latest + 1),
                1 => chance.below(1_000).min(latest),
                _ => 0,
            };
            self.land(dispatch, (tool, args), sending, lands_after);
        }
        let longest = match chance.below(16) {
            0 => 30_000,
            1..4 => 3_000,
            _ => 200,
        };
        let after_ms = chance.below(longest);
        if fate <= 2 {
            let failure = Failure::new("tool.cut", "the answer was cut");
            let input = settle(call, Settling::Failed(failure, Disposition::InDoubt), None);
            return Answer { after_ms, input };
        }
        let input = settle(call, Settling::Landed(format!("{args} done")), None);
        Answer { after_ms: after_ms.max(lands_after), input }
    }

    fn land(&mut self, dispatch: &Dispatch, (tool, args): (&str, &str), sending: &Sending, after_ms: u64) {
        let lands_at = sending.at.after(after_ms);
        let first = self.lands.entry(dispatch.key.0).or_insert(lands_at);
        *first = (*first).min(lands_at);
        self.effects.entry(dispatch.run).or_default().push(Effect {
            run: dispatch.run,
            call: dispatch.call.id,
            key: dispatch.key,
            tool: tool.to_owned(),
            args: args.to_owned(),
            class: dispatch.call.class().unwrap_or(EffectClass::Once),
            head: sending.head,
            at: sending.at,
            lands_at,
            lease: sending.lease,
        });
    }

    /// The target is asked at `at` whether it happened.
    pub fn probe(&mut self, probe: &Probe, at: TimeMs, asked_at: TimeMs) -> Answer {
        let mut chance = self.chance(probe.key.0, 1_000);
        let after_ms = chance.below(2_000);
        let there = self.has(probe.key.0, at.after(after_ms));
        let answer = match (chance.below(6), there) {
            (0, _) => ProbeAnswer::Unclear("the target is busy".into()),
            (_, true) => ProbeAnswer::Landed("found".into()),
            (_, false) => ProbeAnswer::NotLanded,
        };
        Answer { after_ms, input: Input::Probed { call: probe.call.id, asked_at, answer } }
    }
}

/// What the sender of a request knows.
pub struct Sending {
    pub at: TimeMs,
    /// The same by the sender's clock.
    pub wall: TimeMs,
    pub lease: TimeMs,
    pub head: loopd_kernel::Seq,
    /// Milliseconds until it is given up.
    pub left: u64,
}

fn model(call: &Call, chance: &mut Chance, wall: TimeMs) -> Answer {
    let after_ms = chance.below(1_000);
    let most = call.intent.as_ref().and_then(|intent| intent.max_output).unwrap_or(64);
    let usage = Usage { input: 3, output: most.min(7), ..Usage::default() };
    let known = chance.one_in(2).then_some(usage);
    let at = wall.after(after_ms);
    let landed = |text: &str| Settling::Landed(serde_json::to_string(&ModelReply::text(text)).expect("a reply"));
    let input = match chance.below(12) {
        0 => retry(call, "model.rate_limited", Some(Usage::default()), at),
        1 => retry(call, "model.interrupted", known, at),
        2 => {
            let failure = Failure::new("model.rejected", "as scripted");
            settle(call.id, Settling::Failed(failure, Disposition::DidNotHappen), Some(Usage::default()))
        }
        3 => settle(call.id, landed("no bill"), None),
        _ => settle(call.id, landed("yes"), Some(usage)),
    };
    Answer { after_ms, input }
}

/// It is tried again, as often as a model is.
fn retry(call: &Call, code: &str, usage: Option<Usage>, at: TimeMs) -> Input {
    let failure = Failure::new(code, "as scripted");
    if call.attempts + 1 >= 3 {
        return settle(call.id, Settling::Failed(failure, Disposition::DidNotHappen), usage);
    }
    let (call, retry_at) = (call.id, at.after(500 << call.attempts));
    Input::Retry { call, failure, setback: Setback::Failed, usage, cost: cost(usage), retry_at }
}

fn settle(call: CallId, settling: Settling, usage: Option<Usage>) -> Input {
    Input::Settle { call, settling, usage, cost: cost(usage) }
}

fn cost(usage: Option<Usage>) -> Option<MicroUsd> {
    usage.map(|usage| Offers::PRICE.cost(&usage))
}
