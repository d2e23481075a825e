//! The outside world of the rivals: a ledger of effects, tools that land, fail or stay in doubt, and a model that is
//! rate limited, cut off, or answers.

use crate::chance::Chance;
use crate::world::VirtualClock;
use crate::world::port::Gate;
use loopd_kernel::machine::{ModelTerms, ToolTerms};
use loopd_kernel::model::{ModelReply, ToolOffer};
use loopd_kernel::units::Price;
use loopd_kernel::{CallId, EffectClass, EffectKey, Seq, TimeMs, Usage};
use loopd_runtime::{CallContext, Clock, Model, ModelAnswer, ModelError, ModelRequest, Tool, ToolError};
use loopd_store::{MemoryStore, Store};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One effect on the world, and what stood in the Journal at that moment.
#[derive(Debug, Clone)]
pub struct Effect {
    pub call: CallId,
    pub key: EffectKey,
    pub tool: String,
    pub class: EffectClass,
    /// The Run's head when it happened.
    pub head: Seq,
    pub at: TimeMs,
    /// Until when the store knew the sender to be alive.
    pub lease: TimeMs,
}

/// Everything that has happened to the world.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<Vec<Effect>>>);

impl Effects {
    pub fn all(&self) -> Vec<Effect> {
        self.0.lock().unwrap().clone()
    }

    /// How often `tool` has changed the world.
    pub fn count(&self, tool: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|effect| effect.tool == tool).count()
    }
}

/// What surrounds the tools and the model of one worker.
#[derive(Clone)]
pub struct Side {
    pub seed: u64,
    pub store: MemoryStore,
    pub effects: Effects,
    pub gate: Gate,
    pub lease: Arc<AtomicI64>,
    pub clock: Arc<VirtualClock>,
}

pub struct ScriptedTool {
    offer: ToolOffer,
    class: EffectClass,
    side: Side,
}

impl ScriptedTool {
    pub fn named(name: &str, class: EffectClass, side: &Side) -> Arc<dyn Tool> {
        let offer = ToolOffer { name: name.into(), description: String::new(), parameters: "{}".into() };
        Arc::new(Self { offer, class, side: side.clone() })
    }
}

#[async_trait::async_trait]
impl Tool for ScriptedTool {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: self.class, timeout_ms: 20_000 }
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let mut chance = Chance::new(self.side.seed, 1_000 + context.call.0);
        let fate = chance.below(10);
        if fate == 0 {
            return Err(ToolError::did_not_happen("tool.refused", "not today"));
        }
        if fate > 1 {
            let head = self.side.store.run(context.run).await.unwrap().unwrap().head;
            self.side.effects.0.lock().unwrap().push(Effect {
                call: context.call,
                key: context.key,
                tool: self.offer.name.clone(),
                class: self.class,
                head,
                at: self.side.clock.now(),
                lease: TimeMs(self.side.lease.load(Ordering::Relaxed)),
            });
        }
        // Some calls take longer than their timeout, and some longer than a lease.
        let longest = if chance.one_in(8) { 30_000 } else { 3_000 };
        tokio::time::sleep(Duration::from_millis(chance.below(longest))).await;
        self.side.gate.pass().await;
        if fate <= 2 {
            return Err(ToolError::in_doubt("tool.cut", "the answer was cut"));
        }
        Ok(format!("{args} done"))
    }
}

pub struct ScriptedModel(pub Side);

#[async_trait::async_trait]
impl Model for ScriptedModel {
    fn terms(&self) -> ModelTerms {
        let price = Price { input: 1_000_000, output: 1_000_000, ..Price::default() };
        ModelTerms { price: Some(price), timeout_ms: 20_000, max_attempts: 3 }
    }

    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        let mut chance = Chance::new(self.0.seed, 100_000 + context.call.0 * 100 + u64::from(context.attempt));
        tokio::time::sleep(Duration::from_millis(chance.below(2_000))).await;
        self.0.gate.pass().await;
        let usage = Usage { input: 3, output: request.max_output_tokens.min(7), ..Usage::default() };
        let known = chance.one_in(2).then_some(usage);
        let message = || "as scripted".to_owned();
        let retry_after = chance.one_in(2).then_some(Duration::from_millis(chance.below(4_000)));
        match chance.below(12) {
            0 | 1 => Err(ModelError::RateLimited { message: message(), retry_after }),
            2 => Err(ModelError::Interrupted { message: message(), usage: known }),
            3 => Err(ModelError::Malformed { message: message(), usage: known }),
            4 => Err(ModelError::Unavailable { message: message(), retry_after }),
            5 => Err(ModelError::Rejected(message())),
            6 => Ok(ModelAnswer { reply: ModelReply::text("no bill"), usage: None }),
            _ => Ok(ModelAnswer { reply: ModelReply::text("yes"), usage: Some(usage) }),
        }
    }
}
