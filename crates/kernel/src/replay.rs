//! Replay: running the transitions again over recorded Entries, without effects, and comparing.
//! Recovery never does this; it is verification.

use crate::chain::{ChainError, Verifier};
use crate::definition::ErasedLoop;
use crate::digest::Digest;
use crate::entry::{Entry, Span};
use crate::ids::Seq;
use crate::machine::transition;
use crate::projection::{FoldError, Projection, Target};
use crate::record::{ActionRecord, Decided, Intended, Record};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// How much has to agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strictness {
    /// Every decision, State, argument and request.
    Strict,
    /// The same Calls of the same tools and models in the same order; texts may differ.
    Structure,
}

/// The first place where the code of today decides otherwise than the recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The Entry.
    pub seq: Seq,
    /// What differs: `decision`, `state`, `arguments` or `request`.
    pub what: &'static str,
    /// What the recording says.
    pub recorded: String,
    /// What the code says now.
    pub replayed: String,
}

/// Why a recording does not replay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayError {
    /// The chain is broken.
    Chain(ChainError),
    /// The Journal does not fold.
    Fold(FoldError),
    /// The code decides otherwise.
    Divergence(alloc::boxed::Box<Divergence>),
    /// A decision consumes an Entry that no transition sees.
    NoEvent {
        /// The decision.
        seq: Seq,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(error) => write!(f, "{error}"),
            Self::Fold(error) => write!(f, "{error}"),
            Self::Divergence(at) if at.what == "arguments" => write!(f, "entry {}: the arguments differ", at.seq),
            Self::Divergence(at) => write!(f, "entry {}: the {} differs", at.seq, at.what),
            Self::NoEvent { seq } => write!(f, "entry {seq}: the decision consumes an entry that is no event"),
        }
    }
}

impl core::error::Error for ReplayError {}

/// Replays a Journal Entry by Entry.
///
/// Where a Journal says that its definition changed, only the decisions of the given definition are run again: another
/// build's decisions are facts here, and are folded.
pub struct Replayer<'a> {
    definition: Option<&'a dyn ErasedLoop>,
    strictness: Strictness,
    verifier: Verifier,
    projection: Projection,
    decisions: u64,
    /// The Journal changes its definition somewhere.
    changes: bool,
    /// Decisions that another definition made.
    foreign: u64,
}

impl fmt::Debug for Replayer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replayer").field("head", &self.projection.head).finish_non_exhaustive()
    }
}

impl<'a> Replayer<'a> {
    /// Starts before the first Entry of `run`. Without a definition only chain and fold are verified.
    #[must_use]
    pub fn new(run: crate::ids::RunId, definition: Option<&'a dyn ErasedLoop>, strictness: Strictness) -> Self {
        Self {
            definition,
            strictness,
            verifier: Verifier::new(run),
            projection: Projection::new(run),
            decisions: 0,
            changes: false,
            foreign: 0,
        }
    }

    /// Says whether the Journal holds an Entry of kind `definition_changed`, which cannot be known before it is met.
    #[must_use]
    pub fn changing(mut self, changes: bool) -> Self {
        self.changes = changes;
        self
    }

    /// Decisions of other definitions, which were folded and not run again.
    #[must_use]
    pub const fn foreign(&self) -> u64 {
        self.foreign
    }

    /// What the Entries so far mean.
    #[must_use]
    pub const fn projection(&self) -> &Projection {
        &self.projection
    }

    /// Decisions that were run again and agreed.
    #[must_use]
    pub const fn decisions(&self) -> u64 {
        self.decisions
    }

    /// The chain so far.
    #[must_use]
    pub const fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Takes the next Entry.
    ///
    /// # Errors
    /// [`ReplayError`], naming the first Entry at which the recording is broken or the code differs.
    pub fn take(&mut self, entry: &Entry) -> Result<(), ReplayError> {
        self.read(entry).map(drop)
    }

    /// Takes the next Entry, and returns what it says.
    ///
    /// # Errors
    /// See [`Replayer::take`].
    pub fn read(&mut self, entry: &Entry) -> Result<Record, ReplayError> {
        self.verifier.take(entry).map_err(ReplayError::Chain)?;
        let fold_error = |why| ReplayError::Fold(FoldError { seq: entry.seq, kind: entry.kind, why });
        let record = Record::decode(entry.kind, &entry.record)
            .map_err(|error| fold_error(crate::projection::FoldProblem::Record(error)))?;
        if let Record::Started(_) = &record {
            self.check_started(entry, &record)?;
        }
        match &record {
            Record::Decided(decided) => self.check_decided(entry, decided)?,
            Record::Intended(intended) => self.check_intended(entry.seq, intended)?,
            Record::Started(_)
            | Record::IterationStarted(_)
            | Record::Recovered(_)
            | Record::Parked(_)
            | Record::Reopened(_)
            | Record::Ended(_)
            | Record::Attempted(_)
            | Record::Settled(_)
            | Record::DefinitionChanged(_)
            | Record::Probed(_)
            | Record::LateResult(_)
            | Record::ChildEnded(_)
            | Record::ChildParked(_)
            | Record::Resolved(_)
            | Record::Signal(_)
            | Record::QuestionEnded(_)
            | Record::TimerFired(_)
            | Record::CancelRequested(_)
            | Record::BudgetChanged(_) => {}
        }
        self.projection.fold_record(entry, &record).map_err(fold_error)?;
        Ok(record)
    }

    fn check_started(&self, entry: &Entry, record: &Record) -> Result<(), ReplayError> {
        let (Some(definition), Record::Started(started)) = (self.definition, record) else { return Ok(()) };
        let same = started.version == definition.version() && started.state_version == definition.state_version();
        let digest = Digest::sha256(&[definition.definition()]);
        if self.changes && !(same && started.definition == digest) {
            return Ok(());
        }
        let ours = Digest::sha256(&[definition.definition()]);
        if self.strictness == Strictness::Strict && started.definition != ours {
            return Err(divergence(entry.seq, "definition", started.definition.text(), ours.text()));
        }
        let (input, state) = (started.input.text(&entry.payload), started.state.text(&entry.payload));
        let state = state.unwrap_or_default();
        if state.is_empty() && started.parent.is_some() {
            // A child whose input was refused has no State.
            return Ok(());
        }
        let ours = definition.init(input.unwrap_or_default()).unwrap_or_else(|failure| alloc::format!("{failure}"));
        if ours == state || self.strictness == Strictness::Structure {
            return Ok(());
        }
        Err(divergence(entry.seq, "state", state.into(), ours))
    }

    fn check_decided(&mut self, entry: &Entry, decided: &Decided) -> Result<(), ReplayError> {
        let consumed = Seq(decided.consumed);
        let pending = self.projection.events.iter().find(|pending| pending.seq == consumed);
        let pending = pending.cloned().ok_or(ReplayError::NoEvent { seq: entry.seq })?;
        let Some(definition) = self.definition else { return Ok(()) };
        if self.changes && !decides(definition, &self.projection) {
            self.foreign += 1;
            return Ok(());
        }
        let ours = transition(definition, &self.projection, pending);
        self.decisions += 1;
        if self.strictness == Strictness::Structure {
            let (theirs, ours) = (shape(decided), shape(&ours.record));
            return if theirs == ours { Ok(()) } else { Err(divergence(entry.seq, "decision", theirs, ours)) };
        }
        let state = |patch: &crate::patch::StatePatch| {
            let mut state = self.projection.state.clone();
            patch.apply(&mut state).map(|()| state).unwrap_or_default()
        };
        if ours.record.actions != decided.actions || ours.payload != entry.payload {
            // The same Actions that say something else differ in their arguments.
            let what = if shape(decided) == shape(&ours.record) { "arguments" } else { "decision" };
            let (theirs, ours) = (told(decided, &entry.payload), told(&ours.record, &ours.payload));
            return Err(divergence(entry.seq, what, theirs, ours));
        }
        if ours.record.patch == decided.patch {
            return Ok(());
        }
        let (theirs, ours) = (state(&decided.patch), state(&ours.record.patch));
        if theirs == ours { Ok(()) } else { Err(divergence(entry.seq, "state", theirs, ours)) }
    }

    /// The recorded digest of what was sent must be that of what the projection would send.
    fn check_intended(&self, seq: Seq, intended: &Intended) -> Result<(), ReplayError> {
        let call = self.projection.call(intended.call);
        let (Some(recorded), Some(Target::Model(model))) = (intended.request, call.map(|call| &call.target)) else {
            return Ok(());
        };
        let ours = self.projection.request_digest(model);
        if ours == recorded || self.strictness == Strictness::Structure {
            return Ok(());
        }
        Err(divergence(seq, "request", recorded.text(), ours.text()))
    }
}

/// True when this definition is the one that decides at this point of the Journal.
fn decides(definition: &dyn ErasedLoop, projection: &Projection) -> bool {
    definition.version() == projection.version
        && definition.state_version() == projection.state_version
        && Digest::sha256(&[definition.definition()]) == projection.definition
}

/// The Calls and endings of a decision without their texts, one a line.
fn shape(decided: &Decided) -> String {
    decided.actions.iter().fold(String::new(), |mut out, action| {
        let (name, detail, _) = parts(action, &[]);
        out.push_str(name);
        out.push(' ');
        out.push_str(detail);
        out.push('\n');
        out
    })
}

/// A decision with its texts, one Action a line: what a person compares.
fn told(decided: &Decided, payload: &[u8]) -> String {
    decided.actions.iter().fold(String::new(), |mut out, action| {
        let (name, detail, text) = parts(action, payload);
        let parts = [name, detail, text.as_str()];
        out.push_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "));
        out.push('\n');
        out
    })
}

/// An Action's kind, what it names, and what it says.
fn parts<'a>(action: &'a ActionRecord, payload: &[u8]) -> (&'static str, &'a str, String) {
    let text = |span: &Span| String::from(span.text(payload).unwrap_or_default());
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    match action {
        ActionRecord::Model { id, call, messages } => {
            let said = messages.as_ref().map(|span| alloc::format!(" {}", text(span))).unwrap_or_default();
            ("model", &call.model, alloc::format!("{}{said} as {id}", json(serde_json::to_string(call))))
        }
        ActionRecord::Tool { id, tool, args, reply_to } => {
            let reply_to = reply_to.as_ref().map(|name| alloc::format!(" for {name}")).unwrap_or_default();
            ("tool", tool, alloc::format!("{} as {id}{reply_to}", text(args)))
        }
        ActionRecord::Join { calls, ok } => {
            let ok = ok.map_or_else(|| String::from("all"), |ok| alloc::format!("the first {ok}"));
            ("join", "", alloc::format!("{ok} of {calls}"))
        }
        ActionRecord::Spawn { id, name, loop_name, definition, input, limits, close, reply_to } => {
            let terms = json(serde_json::to_string(&(definition, limits, close, reply_to)));
            ("spawn", loop_name, alloc::format!("{name} {} {terms} as {id}", text(input)))
        }
        ActionRecord::Signal { to, name, body } => {
            let to = json(serde_json::to_string(to));
            ("signal", name, alloc::format!("{to} {}", text(body)))
        }
        ActionRecord::RaiseChild { child, by } => ("raise", child, json(serde_json::to_string(by))),
        ActionRecord::CancelChild { child, reason } => ("cancel", child, reason.clone()),
        ActionRecord::Speak(span) => ("speak", "", text(span)),
        ActionRecord::Ask { ask, .. } => ("ask", "", json(serde_json::to_string(ask))),
        ActionRecord::Wait { signals, timeout } => {
            let most = timeout.map(|(_, ms)| alloc::format!(" {ms} ms")).unwrap_or_default();
            ("wait", "", alloc::format!("{}{most}", signals.join(", ")))
        }
        ActionRecord::Sleep { ms, .. } => ("sleep", "", alloc::format!("{ms} ms")),
        ActionRecord::Note(span) => ("note", "", text(span)),
        ActionRecord::Label(key, value) => ("label", key, value.clone()),
        ActionRecord::Finish(span) => ("finish", "", text(span)),
        ActionRecord::Fail(failure) => ("fail", &failure.code, failure.message.clone()),
    }
}

fn divergence(seq: Seq, what: &'static str, recorded: String, replayed: String) -> ReplayError {
    ReplayError::Divergence(alloc::boxed::Box::new(Divergence { seq, what, recorded, replayed }))
}
