//! What a Journal means: the fold of its Entries. Live and recovered Runs share this one fold, so a
//! recovered Run is the Run.

mod children;
mod event;
mod fold;
mod joins;

use crate::budget::{Ledger, Limits, Reservation};
use crate::child::{Child, Parent};
use crate::digest::Digest;
use crate::effect::{EffectClass, EffectKey};
use crate::entry::Kind;
use crate::event::Event;
use crate::ids::{CallId, Epoch, QuestionId, RunId, Seq, TimerId};
use crate::model::ModelCall;
use crate::outcome::{Finality, Outcome};
use crate::question::{Ask, OpenQuestion};
use crate::record::{Joins, RecordError};
use crate::transcript;
use crate::units::TimeMs;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
pub use joins::Joined;
use serde::{Deserialize, Serialize};

/// The last Entry of a Journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    /// Its Seq; 0 before the first.
    pub seq: Seq,
    /// The chain hash.
    pub hash: Digest,
    /// Its time.
    pub at: TimeMs,
}

/// What a Call calls.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// A model.
    Model(ModelCall),
    /// A tool.
    Tool {
        /// Its name.
        tool: String,
        /// The arguments.
        args: String,
        /// The model's tool use that the result replies to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
        /// Bytes of the result that join the Transcript.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<u64>,
    },
    /// A child Run.
    Child(Child),
}

impl Target {
    /// The name of the model, tool or child.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Model(call) => &call.model,
            Self::Tool { tool, .. } => tool,
            Self::Child(child) => &child.name,
        }
    }

    /// The child Run, when it is one.
    #[must_use]
    pub const fn child(&self) -> Option<&Child> {
        match self {
            Self::Child(child) => Some(child),
            Self::Model(_) | Self::Tool { .. } => None,
        }
    }

    /// How the settlement joins the Transcript.
    #[must_use]
    pub fn joins(&self) -> Option<Joins> {
        match self {
            Self::Model(call) => (call.transcript && !call.aside).then_some(Joins::Assistant),
            Self::Tool { reply_to, cap, .. } | Self::Child(Child { reply_to, cap, .. }) => {
                Joins::reply(reply_to.as_ref(), *cap)
            }
        }
    }
}

/// A Call from its decision to its settlement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Call {
    /// Its identity.
    pub id: CallId,
    /// The decision that wanted it.
    pub decided: Seq,
    /// Its place in that decision.
    pub ordinal: u32,
    /// What it calls.
    pub target: Target,
    /// Attempts that failed.
    pub attempts: u32,
    /// Attempts that were lost with their worker.
    #[serde(default)]
    pub lost: u32,
    /// Until when the target of a keyed Call certainly knows the key of its first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resend_until: Option<TimeMs>,
    /// The last moment at which an attempt that was sent can still land, as far as anybody declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lands_until: Option<TimeMs>,
    /// An attempt of a probed Call may have happened: its target is asked before anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// Not sent before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<TimeMs>,
    /// Its intent, once durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
}

/// What is known of a probed Call whose attempt may have happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Doubt {
    /// The tool declares how late an attempt may land: after that "not landed" is believed.
    pub bounded: bool,
    /// Times that the target could not say.
    pub unclear: u32,
}

impl Call {
    /// A Call that was just decided.
    pub(crate) const fn wanted(id: CallId, decided: Seq, ordinal: u32, target: Target) -> Self {
        Self {
            id,
            decided,
            ordinal,
            target,
            attempts: 0,
            lost: 0,
            resend_until: None,
            lands_until: None,
            doubt: None,
            not_before: None,
            intent: None,
        }
    }

    /// The stable identity of this effect.
    #[must_use]
    pub fn effect_key(&self, run: RunId) -> EffectKey {
        let args = match &self.target {
            Target::Tool { args, .. } => Digest::sha256(&[args.as_bytes()]),
            Target::Model(_) => self.intent.as_ref().and_then(|intent| intent.request).unwrap_or_default(),
            Target::Child(child) => Digest::sha256(&[child.input.as_bytes()]),
        };
        EffectKey::derive(run, self.decided, self.ordinal, self.target.name(), &args)
    }

    /// True when an earlier attempt of a keyed or probed Call may have happened: it is then neither failed nor
    /// cancelled before somebody knows.
    #[must_use]
    pub const fn may_have_happened(&self) -> bool {
        self.doubt.is_some() || (self.resend_until.is_some() && self.lost > 0)
    }

    /// Its effect class, once it is intended.
    #[must_use]
    pub fn class(&self) -> Option<EffectClass> {
        self.intent.as_ref().map(|intent| intent.class)
    }

    /// What its intent reserved.
    #[must_use]
    pub fn reserved(&self) -> Reservation {
        self.intent.as_ref().map(|intent| intent.reserve).unwrap_or_default()
    }
}

/// The durable permission to send a Call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// The Entry.
    pub seq: Seq,
    /// The effect class.
    pub class: EffectClass,
    /// The digest of a model request.
    pub request: Option<Digest>,
    /// Who may send.
    pub epoch: Epoch,
    /// Not sent after this.
    pub send_by: TimeMs,
    /// Given up at this.
    pub abort_by: TimeMs,
    /// What was sent lands before this, as the tool of a probed Call declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lands_by: Option<TimeMs>,
    /// The output bound of a model call, where what is left clamps it.
    pub max_output: Option<u64>,
    /// What it may consume.
    pub reserve: Reservation,
}

/// A timer that has not fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Timer {
    /// Its identity.
    pub id: TimerId,
    /// When it is due.
    pub at: TimeMs,
}

/// A wait for a signal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// The names.
    pub signals: Vec<String>,
    /// The timer that ends it.
    pub timer: Option<TimerId>,
}

/// An Event that waits for its decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pending {
    /// The Entry that it was derived from.
    pub seq: Seq,
    /// The time of that Entry.
    pub at: TimeMs,
    /// The Event.
    pub event: Event,
}

/// Whether a Run moves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It moves, or waits for a person, a signal or a timer.
    Open,
    /// It stopped at a reopenable outcome.
    Parked(Outcome),
    /// It is sealed.
    Ended(Outcome),
}

/// Who asked to cancel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Cancel {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// The folded Journal of one Run. Its JSON is what a snapshot keeps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Projection {
    /// The Run.
    pub run: RunId,
    /// The last Entry.
    pub head: Head,
    /// The outermost scope.
    pub tenant: String,
    /// The Run that started this one.
    pub parent: Option<Parent>,
    /// The Loop's name.
    pub loop_name: String,
    /// Its declared version.
    pub version: String,
    /// The digest of its definition's bytes.
    pub definition: Digest,
    /// The version of State's schema.
    pub state_version: u32,
    /// When the Run started.
    pub started_at: TimeMs,
    /// The serialised State.
    pub state: String,
    /// The limits in force.
    pub limits: Limits,
    /// What was consumed.
    pub ledger: Ledger,
    /// The current iteration.
    pub iteration: u64,
    /// The epoch that last recovered or intended.
    pub epoch: Epoch,
    /// Decided Calls without a durable intent, in order.
    pub wanted: Vec<Call>,
    /// Intended Calls without a settlement.
    pub open: Vec<Call>,
    /// Calls settled as unknown that no person has resolved.
    pub in_doubt: Vec<Call>,
    /// Calls whose Events wait for each other.
    pub joins: Vec<Joined>,
    /// Open Questions.
    pub questions: Vec<OpenQuestion>,
    /// Timers that have not fired.
    pub timers: Vec<Timer>,
    /// The current wait.
    pub waiting: Option<Waiting>,
    /// Events that no decision has consumed: none between two commits, unless a transition panicked.
    pub events: Vec<Pending>,
    /// The outcome that was decided and waits for the seal.
    pub finishing: Option<Outcome>,
    /// Who asked to cancel.
    pub cancel: Option<Cancel>,
    /// Whether it moves.
    pub status: Status,
    /// The Transcript.
    pub transcript: transcript::Head,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Constants that this Run has stored by content.
    pub constants: Vec<Digest>,
    /// Crash recoveries in a row without progress.
    pub recoveries: u32,
    /// The identity of the last Call.
    pub last_call: CallId,
    /// The identity of the last Question.
    pub last_question: QuestionId,
    /// The identity of the last timer.
    pub last_timer: TimerId,
}

/// What the Run waits for; empty lists mean that it moves by itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// Open Questions.
    pub questions: Vec<OpenQuestion>,
    /// Signal names.
    pub signals: Vec<String>,
    /// Open child Runs.
    pub children: Vec<RunId>,
    /// The earliest timer or expiry.
    pub wake_at: Option<TimeMs>,
}

impl Projection {
    /// Before the first Entry.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Self {
            run,
            head: Head { seq: Seq(0), hash: crate::chain::genesis(run), at: TimeMs(0) },
            tenant: String::new(),
            parent: None,
            loop_name: String::new(),
            version: String::new(),
            definition: Digest::default(),
            state_version: 1,
            started_at: TimeMs(0),
            state: String::new(),
            limits: Limits::default(),
            ledger: Ledger::default(),
            iteration: 0,
            epoch: Epoch(0),
            wanted: Vec::new(),
            open: Vec::new(),
            in_doubt: Vec::new(),
            joins: Vec::new(),
            questions: Vec::new(),
            timers: Vec::new(),
            waiting: None,
            events: Vec::new(),
            finishing: None,
            cancel: None,
            status: Status::Open,
            transcript: transcript::Head::default(),
            labels: BTreeMap::new(),
            constants: Vec::new(),
            recoveries: 0,
            last_call: CallId(0),
            last_question: QuestionId(0),
            last_timer: TimerId(0),
        }
    }

    /// True when nothing is in flight and nothing is waited for: the next iteration may start.
    #[must_use]
    pub fn at_rest(&self) -> bool {
        self.events.is_empty()
            && self.in_doubt.is_empty()
            && self.wanted.is_empty()
            && self.open.is_empty()
            && self.questions.is_empty()
            && self.timers.is_empty()
            && self.waiting.is_none()
    }

    /// True when only a person, a signal, a child or a time can move the Run: nothing is in flight, and every wanted
    /// Call backs off until after the last Entry.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        let backs_off = |call: &Call| call.not_before.is_some_and(|at| at > self.head.at);
        let still = self.events.is_empty() && !self.is_in_flight() && self.wanted.iter().all(backs_off);
        self.status == Status::Open && still && !self.at_rest()
    }

    /// True while a Call is open that a worker performs: children perform themselves.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.open.iter().any(|call| call.target.child().is_none())
    }

    /// True when nothing is under way but children.
    #[must_use]
    pub fn only_children(&self) -> bool {
        self.events.is_empty() && !self.is_in_flight() && self.children().next().is_some()
    }

    /// Open Calls that are child Runs.
    pub fn children(&self) -> impl Iterator<Item = (CallId, &Child)> {
        self.open.iter().filter_map(|call| call.target.child().map(|child| (call.id, child)))
    }

    /// What the Run waits for.
    #[must_use]
    pub fn waits(&self) -> Waits {
        Waits {
            questions: self.questions.clone(),
            signals: self.waiting.as_ref().map(|wait| wait.signals.clone()).unwrap_or_default(),
            children: self.children().map(|(_, child)| child.run).collect(),
            wake_at: self.wake_at(),
        }
    }

    /// The earliest timer, expiry or end of a back-off; none unless the Run is open.
    #[must_use]
    pub fn wake_at(&self) -> Option<TimeMs> {
        self.wake_after(TimeMs(i64::MIN))
    }

    /// The same for somebody who looked at `looked`: a back-off that was over then moves nothing any more.
    #[must_use]
    pub fn wake_after(&self, looked: TimeMs) -> Option<TimeMs> {
        let expiries = self.questions.iter().filter_map(|question| question.expires_at);
        let back_offs = self.wanted.iter().filter_map(|call| call.not_before).filter(|at| *at > looked);
        let times = self.timers.iter().map(|timer| timer.at).chain(expiries).chain(back_offs);
        times.min().filter(|_| self.status == Status::Open)
    }

    /// The outcome, once there is one, and whether it is sealed.
    #[must_use]
    pub const fn outcome(&self) -> Option<(&Outcome, Finality)> {
        match &self.status {
            Status::Open => None,
            Status::Parked(outcome) => Some((outcome, Finality::Parked)),
            Status::Ended(outcome) => Some((outcome, Finality::Ended)),
        }
    }

    /// True while something that is open will reply to a message of the Transcript.
    pub(crate) fn owes_a_reply(&self) -> bool {
        let mut calls = self.open.iter().chain(&self.wanted).chain(&self.in_doubt);
        let asked = |question: &OpenQuestion| matches!(question.ask, Ask::Ask { reply_to: Some(_), .. });
        calls.any(|call| call.target.joins().is_some()) || self.questions.iter().any(asked)
    }

    /// The Call with this identity, wherever it stands.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.open.iter().chain(&self.wanted).chain(&self.in_doubt).find(|call| call.id == id)
    }

    /// The digest of the request that `call` makes now: its parameters over the Transcript's digest.
    #[must_use]
    pub fn request_digest(&self, call: &ModelCall) -> Digest {
        let parameters = serde_json::to_vec(call).unwrap_or_default();
        let said = if call.transcript { self.transcript.digest } else { Digest::default() };
        Digest::of("loopd-request/1", &[&parameters, &said.0])
    }
}

/// A Journal that does not fold. The Run is refused as it is; nothing is skipped or guessed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoldError {
    /// The Entry.
    pub seq: Seq,
    /// Its kind.
    pub kind: Kind,
    /// What is wrong with it.
    pub why: FoldProblem,
}

/// What does not fold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FoldProblem {
    /// The record does not read.
    Record(RecordError),
    /// The Entry is not the next one.
    OutOfOrder,
    /// The Run has ended; nothing may follow.
    AfterEnd,
    /// It speaks of a Call that is not in the needed state.
    NoSuchCall(CallId),
    /// It speaks of a Question that is not open.
    NoSuchQuestion(QuestionId),
    /// It speaks of a timer that is not set.
    NoSuchTimer(TimerId),
    /// A span leaves the payload, or is not text.
    BadPayload,
    /// It joins more Calls than the decision has.
    BadJoin,
    /// The state patch does not fit.
    PatchDoesNotFit,
    /// The State after the patch is not the one that was recorded.
    StateDigest,
    /// The seal names another head, other totals or another outcome than the Journal before it.
    WrongSeal,
    /// The first Entry is not `started`, or a later one is.
    NotStarted,
}

impl fmt::Display for FoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} ({}): ", self.seq, self.kind)?;
        match &self.why {
            FoldProblem::Record(error) => write!(f, "{error}"),
            FoldProblem::OutOfOrder => f.write_str("it is not the next entry"),
            FoldProblem::AfterEnd => f.write_str("the run has ended already"),
            FoldProblem::NoSuchCall(id) => write!(f, "there is no {id} in the needed state"),
            FoldProblem::NoSuchQuestion(id) => write!(f, "question {id} is not open"),
            FoldProblem::NoSuchTimer(id) => write!(f, "{id} is not set"),
            FoldProblem::BadPayload => f.write_str("a span leaves the payload or is not text"),
            FoldProblem::BadJoin => f.write_str("it joins more calls than it has"),
            FoldProblem::PatchDoesNotFit => f.write_str("the state patch does not fit"),
            FoldProblem::StateDigest => f.write_str("the state after the patch is not the recorded one"),
            FoldProblem::WrongSeal => f.write_str("the seal contradicts the entries before it"),
            FoldProblem::NotStarted => f.write_str("a journal begins with exactly one started entry"),
        }
    }
}

impl core::error::Error for FoldError {}
