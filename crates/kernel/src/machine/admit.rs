//! Admission: what stands between a wanted Call and its durable intent.

use super::input::{EARLIER, MAX_LOST_ATTEMPTS, is_model};
use super::{MachineError, Work};
use crate::budget::{Breach, Reservation};
use crate::effect::EffectClass;
use crate::model::ModelCall;
use crate::outcome::Outcome;
use crate::projection::{Call, Target};
use crate::record::{Intended, Record, Settlement};
use crate::units::{MicroUsd, Price, TimeMs, Usage};
use alloc::string::String;

/// Bytes of text that hold at least one token: the bound behind a reservation. Text of most languages
/// has three to five bytes a token; what passes the bound is recorded as overshoot.
const BYTES_PER_TOKEN: u64 = 2;

/// Tokens that a provider's chat template may add to one message.
const TOKENS_PER_MESSAGE: u64 = 16;

/// Why a wanted Call is not intended now.
pub(super) enum Ruling {
    Intend(Intended),
    Settle(&'static str, String),
    Doubt(&'static str),
    Breach(Breach),
}

impl Work<'_, '_, '_> {
    /// Admits the next wanted Call. False: there is none, or those that are left back off or have to wait for
    /// a Call in flight.
    pub(super) fn admit_next(&mut self) -> Result<bool, MachineError> {
        let now = self.now();
        let ready = |call: &&Call| call.not_before.is_none_or(|at| at <= now) && !self.can_be_probed(call);
        let Some(call) = self.projection.wanted.iter().find(ready) else { return Ok(false) };
        let (id, is_model) = (call.id, is_model(&call.target));
        match self.rule(call) {
            Ruling::Intend(intended) => {
                self.push(&Record::Intended(intended), alloc::vec::Vec::new())?;
                self.born(id);
            }
            Ruling::Settle(code, message) => {
                let free = is_model.then_some(MicroUsd(0));
                let usage = free.map(|_| Usage::default());
                self.settled(id, Settlement::Failed, Some(code), message, usage, free)?;
            }
            Ruling::Doubt(reason) => self.settled(id, Settlement::Unknown, None, reason.into(), None, None)?,
            // What is in flight may settle below its reservation and make room.
            Ruling::Breach(_) if !self.projection.open.is_empty() => {
                self.step.blocked = true;
                return Ok(false);
            }
            Ruling::Breach(breach) => self.park(Outcome::BudgetExceeded { breach })?,
        }
        Ok(true)
    }

    fn rule(&self, call: &Call) -> Ruling {
        if let Some(breach) = self.wall_breach() {
            return Ruling::Breach(breach);
        }
        match &call.target {
            Target::Tool { tool, .. } => {
                let Some(terms) = self.env.catalog.tool(tool) else {
                    if call.may_have_happened() {
                        return Ruling::Doubt(EARLIER);
                    }
                    return Ruling::Settle("tool.unknown", alloc::format!("there is no tool named `{tool}`"));
                };
                if !terms.class.may_be_cut() && self.races(call) {
                    let message = alloc::format!("`{tool}` is {}: it cannot lose a race", terms.class.name());
                    return Ruling::Settle("call.not_cuttable", message);
                }
                // It was probed, or had a key, when it was sent. Now nobody can ask, or the target knows no key.
                if call.doubt.is_some() || (call.may_have_happened() && terms.class != EffectClass::Keyed) {
                    return Ruling::Doubt(EARLIER);
                }
                if terms.class == EffectClass::Probed && call.lost >= MAX_LOST_ATTEMPTS {
                    return Ruling::Settle(
                        "call.lost",
                        "it was lost with its worker too often; it did not happen".into(),
                    );
                }
                let mut intended = self.intent(call, terms.class, terms.timeout_ms);
                if terms.class == EffectClass::Probed {
                    intended.landing_ms = self.env.catalog.landing_bound_ms(tool);
                }
                if let Some(until) = call.resend_until {
                    // An attempt that landed after the target forgot the key would be a second effect.
                    intended.abort_ms = intended.abort_ms.min(until.since(self.now()));
                    if intended.abort_ms == 0 {
                        return Ruling::Doubt(
                            "an attempt may have happened, and the target may have forgotten its key",
                        );
                    }
                }
                intended.dedup_ms = self.env.catalog.dedup_for_ms(tool).filter(|_| terms.class == EffectClass::Keyed);
                Ruling::Intend(intended)
            }
            Target::Model(model) => self.rule_model(call, model),
            Target::Child(child) => self.rule_child(call, child),
        }
    }

    fn rule_model(&self, call: &Call, model: &ModelCall) -> Ruling {
        let Some(terms) = self.env.catalog.model(&model.model) else {
            return Ruling::Settle("model.unknown", alloc::format!("there is no model named `{}`", model.model));
        };
        if call.attempts >= terms.max_attempts {
            let message = alloc::format!("gave up after {} attempts", call.attempts);
            return Ruling::Settle("model.attempts", message);
        }
        let limits = &self.projection.limits;
        if limits.micro_usd.is_some() && terms.price.is_none() {
            let message = alloc::format!("the price of `{}` is unknown and the run has a money limit", model.model);
            return Ruling::Settle("model.unpriced", message);
        }
        let input = self.input_bound(model);
        let ledger = &self.projection.ledger;
        let wanted = model.max_output_tokens;
        let output = ledger.affordable_output(limits, input, wanted, terms.price.as_ref());
        // At least one token of output must fit, or the call cannot say anything.
        let reserve = reservation(input, output.max(1), terms.price.as_ref());
        if let Some(breach) = ledger.breach(limits, &reserve) {
            return Ruling::Breach(breach);
        }
        let mut intended = self.intent(call, EffectClass::Billable, terms.timeout_ms);
        intended.request = Some(self.projection.request_digest(model));
        intended.reserve = reserve;
        intended.max_output = Some(output.max(1)).filter(|clamped| *clamped != wanted);
        Ruling::Intend(intended)
    }

    /// A bound of the input tokens of `model`.
    fn input_bound(&self, model: &ModelCall) -> u64 {
        let said = if model.transcript { self.projection.transcript } else { crate::transcript::Head::default() };
        let explicit: u64 = model.messages.iter().map(|m| serde_json::to_vec(m).map_or(0, |v| v.len() as u64)).sum();
        let constants = model.constants.map_or(0, |name| name.bytes);
        let bytes = said.bytes.saturating_add(explicit).saturating_add(constants);
        let messages = said.items + model.messages.len() as u64 + 2;
        bytes.div_ceil(BYTES_PER_TOKEN).saturating_add(messages * TOKENS_PER_MESSAGE)
    }

    /// The time that the next Entry will have.
    pub(super) fn now(&self) -> TimeMs {
        self.env.now.max(self.projection.head.at)
    }

    /// True when the Call is one of several of which only the first counts.
    fn races(&self, call: &Call) -> bool {
        self.projection.joins.iter().any(|join| join.ok.is_some() && join.left.contains(&call.id))
    }

    pub(super) fn intent(&self, call: &Call, class: EffectClass, timeout_ms: u64) -> Intended {
        let now = self.now();
        let mut abort_by = now.after(timeout_ms);
        if let Some(wall) = self.projection.limits.wall_ms {
            abort_by = abort_by.min(self.projection.started_at.after(wall));
        }
        Intended {
            call: call.id,
            class,
            request: None,
            dedup_ms: None,
            landing_ms: None,
            epoch: self.env.epoch,
            send_ms: self.env.dispatch_window_ms,
            abort_ms: abort_by.since(now),
            max_output: None,
            reserve: Reservation::default(),
            slice: None,
        }
    }
}

fn reservation(input: u64, output: u64, price: Option<&Price>) -> Reservation {
    let dearest_input = |price: &Price| price.input.max(price.cache_write).max(price.cache_read);
    let micro_usd = price.map_or(MicroUsd(0), |price| {
        let input =
            Price { input: dearest_input(price), ..Price::default() }.cost(&Usage { input, ..Usage::default() });
        let dearest = Price { output: price.output.max(price.reasoning), ..Price::default() };
        input.plus(dearest.cost(&Usage { output, ..Usage::default() }))
    });
    Reservation { tokens: input.saturating_add(output), micro_usd }
}
