//! The machine: how a Journal grows. It consumes one input and says which Entries must be committed and
//! which Calls may be performed once they are. It does no IO and knows no clock.

mod admit;
mod answer;
mod decide;
mod family;
mod input;
mod probe;

use crate::child::{Birth, Letter};
use crate::definition::ErasedLoop;
use crate::digest::Digest;
use crate::effect::{EffectClass, EffectKey};
use crate::entry::{Entry, FORMAT, Salt};
use crate::failure::Failure;
use crate::ids::{CallId, Epoch, QuestionId, RunId, Seq, TimerId};
use crate::model::Constants;
use crate::projection::{Call, FoldProblem, Projection};
use crate::record::{Record, RecordError};
use crate::units::{Price, TimeMs};
use crate::upgrade::Unfit;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use answer::accepts;
pub(crate) use decide::transition;
pub use input::{Admission, Input, Settling};
pub use probe::{Probe, ProbeAnswer};

/// Iterations that one commit may start; a Loop that decides nothing goes on in the next commit, so
/// that its worker stays able to stop.
const ITERATIONS_PER_COMMIT: u32 = 64;

/// The largest serialised State in bytes; a larger one fails the Run.
pub const STATE_LIMIT: usize = 1024 * 1024;

/// How long a tool may take and what recovery may do with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToolTerms {
    /// The effect class.
    pub class: EffectClass,
    /// Milliseconds until a Call is given up.
    pub timeout_ms: u64,
}

/// How a model may be called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelTerms {
    /// Its price; `None` is unknown, which is refused under a money limit and never zero.
    pub price: Option<Price>,
    /// Milliseconds until a Call is given up.
    pub timeout_ms: u64,
    /// Lost or failed attempts before a Call settles as failed.
    pub max_attempts: u32,
}

/// What a worker can run. Pure look-ups: the answers are recorded with the intent.
pub trait Catalog: Send + Sync {
    /// The terms of a tool, when there is one of this name.
    fn tool(&self, name: &str) -> Option<ToolTerms>;
    /// How long the target of a keyed tool knows a key, in milliseconds; without it a keyed tool recovers like
    /// `Once`.
    fn dedup_for_ms(&self, _tool: &str) -> Option<u64> {
        None
    }
    /// How long after it was given up an attempt of a probed tool may still land, in milliseconds. Without it "not
    /// landed" is never believed.
    fn landing_bound_ms(&self, _tool: &str) -> Option<u64> {
        None
    }
    /// The terms of a model, when there is one of this name.
    fn model(&self, name: &str) -> Option<ModelTerms>;
    /// Where the price of a model is from, in a few words that name a version or a digest; it is recorded with each
    /// of its Calls.
    fn price_source(&self, _model: &str) -> Option<String> {
        None
    }
    /// The most tokens that a model takes in one call, prompt and reply together. `None` is unknown, and no bound.
    fn context_window(&self, _model: &str) -> Option<u64> {
        None
    }
}

/// How far one step goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pace {
    /// Until the Run waits, is parked or has ended.
    #[default]
    Full,
    /// Inputs and decisions are recorded, but nothing new is intended: the worker is about to stop.
    Drain,
}

/// What the machine may know of the world while it takes one input.
pub struct Env<'a> {
    /// Now, by the store's clock.
    pub now: TimeMs,
    /// The epoch under which the Run is driven.
    pub epoch: Epoch,
    /// Milliseconds after `now` in which an intended Call must be sent.
    pub dispatch_window_ms: u64,
    /// How far the clocks of two workers may differ, in milliseconds.
    pub skew_ms: u64,
    /// How far to go.
    pub pace: Pace,
    /// What this worker can run.
    pub catalog: &'a dyn Catalog,
    /// The Loop.
    pub definition: &'a dyn ErasedLoop,
    /// 32 fresh random bytes at each call.
    pub salt: &'a mut dyn FnMut() -> [u8; 32],
}

impl fmt::Debug for Env<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("now", &self.now).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// The permission to perform one Call once: neither forged, copied nor kept.
///
/// # Guarantees
/// It exists only after [`Step::committed`], so its intent is durable. It is not `Clone`, and
/// [`Permit::send`] consumes it.
#[derive(Debug)]
pub struct Permit {
    run: RunId,
    call: Call,
    key: EffectKey,
    send_by: TimeMs,
    abort_by: TimeMs,
}

impl Permit {
    /// The Call's identity.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.call.id
    }

    /// Takes the permission to send at `now`.
    ///
    /// # Errors
    /// [`Expired`] when the dispatch window has closed: the Call was not sent, and is decided anew.
    pub fn send(self, now: TimeMs) -> Result<Dispatch, Expired> {
        if now > self.send_by {
            return Err(Expired { call: self.call.id });
        }
        Ok(Dispatch { run: self.run, key: self.key, abort_by: self.abort_by, call: self.call })
    }
}

/// A Call that is being sent now.
#[derive(Debug)]
pub struct Dispatch {
    /// The Run.
    pub run: RunId,
    /// The Call.
    pub call: Call,
    /// The stable identity of the effect.
    pub key: EffectKey,
    /// Given up at this moment.
    pub abort_by: TimeMs,
}

/// The dispatch window closed before the Call was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    /// The Call.
    pub call: CallId,
}

/// What one input led to: Entries to commit in one transaction, and what may be done once they are.
#[must_use = "a step changes nothing until its entries are committed"]
#[derive(Debug, Default)]
pub struct Step {
    /// The Entries, in order.
    pub entries: Vec<Entry>,
    /// Constants that the Entries name for the first time.
    pub constants: Vec<Constants>,
    /// Child Runs that start with this commit.
    pub births: Vec<Birth>,
    /// What other Runs are told by this commit.
    pub letters: Vec<Letter>,
    /// Calls whose target is to be asked whether they happened. One that is being asked is named again.
    pub probes: Vec<Probe>,
    /// Calls in flight that settled here: their work is to be aborted.
    pub aborted: Vec<CallId>,
    /// Questions that were opened or ended here.
    pub questions_changed: bool,
    /// True: the machine stopped only to keep the commit small; give it [`Input::Continue`].
    pub more: bool,
    /// Another definition decides from here on.
    pub definition_changed: bool,
    /// A wanted Call waits until something that is open gives room under a limit.
    pub blocked: bool,
    permits: Vec<Permit>,
}

impl Step {
    /// The permits, once every Entry of this step is durable. Calling this before the commit was
    /// acknowledged breaks the first invariant.
    #[must_use]
    pub fn committed(self) -> Vec<Permit> {
        self.permits
    }
}

/// The input does not apply. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// The Run has ended.
    Ended,
    /// The Run is parked; only reopening or cancelling applies.
    Parked,
    /// The Run is not parked.
    NotParked,
    /// The Call is not open: it was settled already.
    NotOpen(CallId),
    /// The Question is not open: it ended already.
    NoSuchQuestion(QuestionId),
    /// The answer does not fit the Question.
    BadAnswer(QuestionId, String),
    /// The timer is not set.
    NoSuchTimer(TimerId),
    /// The Loop refused the input.
    Input(Failure),
    /// The definition cannot take the Run over.
    Unfit(Unfit),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the run has ended"),
            Self::Parked => f.write_str("the run is parked"),
            Self::NotParked => f.write_str("the run is not parked"),
            Self::NotOpen(id) => write!(f, "{id} has settled already"),
            Self::NoSuchQuestion(id) => write!(f, "question {id} is not open"),
            Self::BadAnswer(id, why) => write!(f, "the answer does not fit question {id}: {why}"),
            Self::NoSuchTimer(id) => write!(f, "{id} is not set"),
            Self::Input(failure) => write!(f, "{failure}"),
            Self::Unfit(unfit) => write!(f, "{unfit}"),
        }
    }
}

/// Why the machine cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MachineError {
    /// The input does not apply; the machine is unchanged.
    Refused(Refused),
    /// The machine contradicted itself; the Run stops, nothing is committed.
    Broken {
        /// The Entry that it could not fold.
        seq: Seq,
        /// Why.
        why: FoldProblem,
    },
    /// A record did not encode.
    Record(RecordError),
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => write!(f, "{refused}"),
            Self::Broken { seq, why } => write!(f, "the machine contradicts itself at entry {seq}: {why:?}"),
            Self::Record(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for MachineError {}

impl From<Refused> for MachineError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// One Run in memory. After an input was applied the machine is ahead of the store by one [`Step`]; a
/// step whose commit fails takes its machine with it, and the Run is recovered from the store.
#[derive(Clone, Debug)]
pub struct Machine {
    projection: Projection,
}

impl Machine {
    /// A machine over a folded Journal.
    #[must_use]
    pub const fn new(projection: Projection) -> Self {
        Self { projection }
    }

    /// What the Journal means so far.
    #[must_use]
    pub const fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Takes one input.
    ///
    /// # Errors
    /// [`MachineError::Refused`] leaves the machine unchanged; after any other error it is not to be used.
    pub fn apply(&mut self, input: Input, env: &mut Env<'_>) -> Result<Step, MachineError> {
        input::check(&self.projection, &input, env)?;
        let takes_over = matches!(input, Input::Recover | Input::ChangeDefinition | Input::Born { .. });
        let mut work = Work { projection: &mut self.projection, env, step: Step::default() };
        work.take(input)?;
        if takes_over {
            // It is durable before any transition runs: one that kills its process is counted.
            work.step.more = true;
        } else {
            work.run_to_rest()?;
        }
        Ok(work.finish())
    }
}

/// One step in the making.
struct Work<'m, 'e, 'c> {
    projection: &'m mut Projection,
    env: &'e mut Env<'c>,
    step: Step,
}

impl Work<'_, '_, '_> {
    /// Appends one Entry and folds it.
    fn push(&mut self, record: &Record, payload: Vec<u8>) -> Result<(), MachineError> {
        let head = self.projection.head;
        let mut entry = Entry {
            run: self.projection.run,
            seq: head.seq.next(),
            kind: record.kind(),
            format: FORMAT,
            at: self.env.now.max(head.at),
            salt: Salt::from_random((self.env.salt)()),
            record: record.encode().map_err(MachineError::Record)?,
            payload,
            hash: Digest::default(),
        };
        entry.hash = entry.hash_after(&head.hash);
        let broken = |why| MachineError::Broken { seq: entry.seq, why };
        let questions = self.projection.questions.len();
        self.projection.fold_record(&entry, record).map_err(broken)?;
        self.step.questions_changed |= questions != self.projection.questions.len();
        self.step.entries.push(entry);
        Ok(())
    }

    fn finish(mut self) -> Step {
        let epoch = self.env.epoch;
        let first = self.step.entries.first().map_or(Seq(u64::MAX), |entry| entry.seq);
        // Permits are for intents of this very step: an older intent was performed when it was committed.
        for call in &self.projection.open {
            if call.target.child().is_some() {
                continue;
            }
            if let Some(intent) = call.intent.as_ref().filter(|intent| intent.seq >= first && intent.epoch == epoch) {
                self.step.permits.push(Permit {
                    run: self.projection.run,
                    key: call.effect_key(self.projection.run),
                    send_by: intent.send_by,
                    abort_by: intent.abort_by,
                    call: call.clone(),
                });
            }
        }
        self.step.probes = self.due_probes();
        self.step
    }
}
