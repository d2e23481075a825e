//! The outside world of the stories: targets with a ledger of what landed, tools that send to them, and a model that is
//! rate limited, cut off, or answers.

use crate::chance::Chance;
use crate::world::VirtualClock;
use crate::world::port::Gate;
use loopd_kernel::machine::{ModelTerms, ToolTerms};
use loopd_kernel::model::{ModelReply, ToolOffer};
use loopd_kernel::units::Price;
use loopd_kernel::{CallId, Digest, EffectClass, EffectKey, RunId, Seq, TimeMs, Usage};
use loopd_runtime::{CallContext, Clock, Model, ModelAnswer, ModelError, ModelRequest, ProbeAnswer, Tool, ToolError};
use loopd_store::{MemoryStore, Store};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long an attempt may take.
const TIMEOUT_MS: u64 = 20_000;
/// How late an attempt of a probed tool may land after it was given up.
pub const LANDING_BOUND: Duration = Duration::from_secs(15);
/// How long the target of a keyed tool knows a key.
pub const DEDUP_FOR: Duration = Duration::from_secs(60);

/// Something that was sent to a target, and what stood in the Journal at that moment.
#[derive(Debug, Clone)]
pub struct Effect {
    pub run: RunId,
    pub call: CallId,
    pub key: EffectKey,
    pub tool: String,
    pub args: String,
    pub class: EffectClass,
    /// The Run's head when it was sent.
    pub head: Seq,
    pub at: TimeMs,
    /// When it changes the world, whatever became of its sender.
    pub lands_at: TimeMs,
    /// Until when the store knew the sender to be alive.
    pub lease: TimeMs,
}

/// Everything that was sent and lands, sooner or later.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<Sent>>);

#[derive(Default)]
struct Sent {
    effects: Vec<Effect>,
    tries: BTreeMap<Digest, u64>,
}

impl Effects {
    pub fn all(&self) -> Vec<Effect> {
        self.0.lock().unwrap().effects.clone()
    }

    /// What somebody sees who asks the target at `now`.
    pub fn has(&self, run: RunId, tool: &str, args: &str, now: TimeMs) -> bool {
        let this = |effect: &Effect| (effect.run, &*effect.tool, &*effect.args) == (run, tool, args);
        let there = |effect: &Effect| this(effect) && effect.lands_at <= now;
        self.0.lock().unwrap().effects.iter().any(there)
    }

    /// Which try of this effect it is, from 1.
    fn try_again(&self, key: EffectKey) -> u64 {
        let mut sent = self.0.lock().unwrap();
        let tries = sent.tries.entry(key.0).or_default();
        *tries += 1;
        *tries
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
    bound: Option<Duration>,
    side: Side,
}

impl ScriptedTool {
    pub fn named(name: &str, class: EffectClass, side: &Side) -> Arc<dyn Tool> {
        Self::bounded(name, class, None, side)
    }

    /// A tool that says how late it may land.
    pub fn bounded(name: &str, class: EffectClass, bound: Option<Duration>, side: &Side) -> Arc<dyn Tool> {
        let offer = ToolOffer { name: name.into(), description: String::new(), parameters: "{}".into() };
        Arc::new(Self { offer, class, bound, side: side.clone() })
    }

    /// Sends it. It lands late once in a while, but never later than the tool declares.
    async fn send(&self, args: &str, context: &CallContext, chance: &mut Chance) -> TimeMs {
        let head = self.side.store.run(context.run).await.unwrap().unwrap().head;
        let at = self.side.clock.now();
        // Without a word about it, nothing lands after the attempt was given up.
        let latest = context.timeout + self.bound.unwrap_or_default();
        let delay = match chance.below(4) {
            0 => chance.below(latest.as_millis() as u64 + 1),
            1 => chance.below(1_000),
            _ => 0,
        };
        let lands_at = at.after(delay.min(latest.as_millis() as u64));
        self.side.effects.0.lock().unwrap().effects.push(Effect {
            run: context.run,
            call: context.call,
            key: context.key,
            tool: self.offer.name.clone(),
            args: args.to_owned(),
            class: self.class,
            head,
            at,
            lands_at,
            lease: TimeMs(self.side.lease.load(Ordering::Relaxed)),
        });
        lands_at
    }
}

pub fn stream(key: EffectKey, purpose: u64) -> u64 {
    key.0.0.iter().take(8).fold(0_u64, |all, byte| all << 8 | u64::from(*byte)) ^ purpose << 32
}

#[async_trait::async_trait]
impl Tool for ScriptedTool {
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        ToolTerms { class: self.class, timeout_ms: TIMEOUT_MS }
    }

    fn dedup_for(&self) -> Option<Duration> {
        (self.class == EffectClass::Keyed).then_some(DEDUP_FOR)
    }

    fn landing_bound(&self) -> Option<Duration> {
        self.bound
    }

    async fn probe(&self, args: &str, context: &CallContext) -> ProbeAnswer {
        let asked = self.side.effects.try_again(context.key);
        let mut chance = Chance::new(self.side.seed, stream(context.key, 1_000 + asked));
        tokio::time::sleep(Duration::from_millis(chance.below(2_000))).await;
        let there = self.side.effects.has(context.run, &self.offer.name, args, self.side.clock.now());
        self.side.gate.pass().await;
        match (chance.below(6), there) {
            (0, _) => ProbeAnswer::Unclear("the target is busy".into()),
            (_, true) => ProbeAnswer::Landed(format!("{args} found")),
            (_, false) => ProbeAnswer::NotLanded,
        }
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let sent = self.side.effects.try_again(context.key);
        let mut chance = Chance::new(self.side.seed, stream(context.key, sent));
        let fate = chance.below(10);
        if fate == 0 {
            return Err(ToolError::did_not_happen("tool.refused", "not today"));
        }
        let lands_at = if fate > 1 { self.send(args, context, &mut chance).await } else { TimeMs(0) };
        // Some calls take longer than their timeout, and some longer than a lease.
        let longest = match chance.below(8) {
            0 => 30_000,
            1..4 => 3_000,
            _ => 200,
        };
        let answer = Duration::from_millis(chance.below(longest));
        if fate <= 2 {
            tokio::time::sleep(answer).await;
            self.side.gate.pass().await;
            return Err(ToolError::in_doubt("tool.cut", "the answer was cut"));
        }
        tokio::time::sleep(answer.max(Duration::from_millis(lands_at.since(self.side.clock.now())))).await;
        self.side.gate.pass().await;
        Ok(format!("{args} done"))
    }
}

pub struct ScriptedModel(pub Side);

#[async_trait::async_trait]
impl Model for ScriptedModel {
    fn terms(&self) -> ModelTerms {
        let price = Price { input: 1_000_000, output: 1_000_000, ..Price::default() };
        ModelTerms { price: Some(price), timeout_ms: TIMEOUT_MS, max_attempts: 3 }
    }

    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        let mut chance = Chance::new(self.0.seed, stream(context.key, u64::from(context.attempt)));
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
