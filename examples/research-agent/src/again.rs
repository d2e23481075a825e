//! What a Run performed more than once, by its Journal, and whether it may have.
//!
//! Every intent to send a Call is an Entry that was durable before the Call was sent. So an Entry for each sending is
//! there, whatever died; a Call with two intents was sent twice, or may have been.

use loopd_kernel::effect::Recovery;
use loopd_kernel::record::{ActionRecord, Record, RecordError, Setback};
use loopd_kernel::{CallId, EffectClass, Entry, Seq};
use std::collections::BTreeMap;

/// One Call and how often it was performed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Performed {
    /// The Call.
    pub call: CallId,
    /// The tool or the model.
    pub target: String,
    /// Its effect class; `None` when it was never intended.
    pub class: Option<EffectClass>,
    /// The intents to send it.
    pub intents: Vec<Seq>,
    /// Its settlements: one, or none while it was open.
    pub settled: Vec<Seq>,
    /// Why it was intended again, in order.
    pub because: Vec<Because>,
    /// The Run ended before it settled.
    pub lost: bool,
}

/// Why a Call was intended again: what happened to it before, and the Entry that says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Because {
    /// Its worker died while it was open.
    WorkerDied(Seq),
    /// Its worker was asked to stop, and it took longer than it was given.
    WorkerStopped(Seq),
    /// The attempt failed, with this code.
    AttemptFailed(Seq, String),
    /// It was never sent: its dispatch window closed first.
    NotSent(Seq),
    /// Nothing says why.
    Nothing,
}

impl Performed {
    fn new(call: CallId, target: &str) -> Self {
        Self {
            call,
            target: target.into(),
            class: None,
            intents: Vec::new(),
            settled: Vec::new(),
            because: Vec::new(),
            lost: false,
        }
    }

    /// True when it was intended more than once.
    #[must_use]
    pub const fn ran_again(&self) -> bool {
        self.intents.len() > 1
    }

    /// What happened to it that may not happen, in words.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.lost {
            faults.push("the run ended, and it never settled".into());
        }
        if let [first, second, ..] = self.settled.as_slice() {
            faults.push(format!("it settled twice, in entries {first} and {second}"));
        }
        if let (Some(settled), Some(intent)) = (self.settled.first(), self.intents.last())
            && intent > settled
        {
            faults.push(format!("it was intended in entry {intent}, after it had settled in entry {settled}"));
        }
        let class = self.class.unwrap_or(EffectClass::Once);
        faults.extend(self.because.iter().filter_map(|because| because.fault(class)));
        faults
    }

    /// Why it ran again, for people.
    #[must_use]
    pub fn why(&self) -> String {
        let class = self.class.unwrap_or(EffectClass::Once);
        let reasons: Vec<String> = self.because.iter().map(|because| because.text(class)).collect();
        reasons.join("; ")
    }
}

impl Because {
    /// Why a Call of this class may not be sent again for that.
    fn fault(&self, class: EffectClass) -> Option<String> {
        let asks = matches!(class.recovery(), Recovery::AskPerson | Recovery::Keep);
        let again = |seq: &Seq| format!("it is of class {}, and was sent again after entry {seq}", class.name());
        match self {
            Self::WorkerDied(seq) | Self::WorkerStopped(seq) | Self::AttemptFailed(seq, _) => asks.then(|| again(seq)),
            Self::NotSent(_) => None,
            Self::Nothing => Some("it was sent again, and nothing says why".into()),
        }
    }

    fn text(&self, class: EffectClass) -> String {
        let rule = match class.recovery() {
            Recovery::RunAgain => "it changes nothing, so it is run again",
            Recovery::SendAgainWithKey => "its target knows the key, so it is sent again with it",
            Recovery::ChargeAndRunAgain => "the lost attempt is charged, then it is sent again",
            Recovery::AskTarget => "its target was asked, and it had not happened",
            Recovery::AskPerson | Recovery::Keep => "IT MAY NOT BE SENT AGAIN",
        };
        match self {
            Self::WorkerDied(seq) => format!("its worker died (entry {seq}): {rule}"),
            Self::WorkerStopped(seq) => format!("its worker was stopped (entry {seq}): {rule}"),
            Self::AttemptFailed(seq, code) => format!("the attempt failed (entry {seq}): {code}"),
            Self::NotSent(seq) => format!("it was never sent (entry {seq})"),
            Self::Nothing => "NOTHING SAYS WHY".into(),
        }
    }
}

/// Every Call of a Journal, in the order in which they were decided.
///
/// # Errors
/// [`RecordError`] when an Entry does not read.
pub fn performed(entries: &[Entry]) -> Result<Vec<Performed>, RecordError> {
    let mut calls: BTreeMap<CallId, Performed> = BTreeMap::new();
    let mut reasons: BTreeMap<CallId, Because> = BTreeMap::new();
    for entry in entries {
        let seq = entry.seq;
        match Record::decode(entry.kind, &entry.record)? {
            Record::Decided(decided) => {
                for (call, target) in decided.actions.iter().filter_map(wanted) {
                    calls.insert(call, Performed::new(call, target));
                }
            }
            Record::Intended(intended) => {
                // A retry that a person ordered is a Call of its own, which no decision names.
                let fresh = || Performed::new(intended.call, "a retry that a person ordered");
                let call = calls.entry(intended.call).or_insert_with(fresh);
                if !call.intents.is_empty() {
                    call.because.push(reasons.remove(&intended.call).unwrap_or(Because::Nothing));
                }
                call.class = Some(intended.class);
                call.intents.push(seq);
            }
            Record::Attempted(attempted) => {
                let because = match attempted.setback {
                    Setback::Failed => Because::AttemptFailed(seq, attempted.code),
                    Setback::Stopped => Because::WorkerStopped(seq),
                    Setback::NotSent => Because::NotSent(seq),
                };
                reasons.insert(attempted.call, because);
            }
            Record::Recovered(recovered) => {
                reasons.extend(recovered.again.into_iter().map(|call| (call, Because::WorkerDied(seq))));
            }
            Record::Settled(settled) => {
                if let Some(call) = calls.get_mut(&settled.call) {
                    call.settled.push(seq);
                }
            }
            Record::ChildEnded(ended) => {
                if let Some(call) = calls.get_mut(&ended.call) {
                    call.settled.push(seq);
                }
            }
            Record::Ended(_) => {
                calls.values_mut().for_each(|call| call.lost = call.settled.is_empty());
            }
            Record::Started(_)
            | Record::IterationStarted(_)
            | Record::DefinitionChanged(_)
            | Record::Probed(_)
            | Record::LateResult(_)
            | Record::ChildParked(_)
            | Record::Parked(_)
            | Record::Reopened(_)
            | Record::Resolved(_)
            | Record::Signal(_)
            | Record::QuestionEnded(_)
            | Record::TimerFired(_)
            | Record::CancelRequested(_)
            | Record::BudgetChanged(_) => {}
        }
    }
    Ok(calls.into_values().collect())
}

/// The Call that an Action wants.
fn wanted(action: &ActionRecord) -> Option<(CallId, &str)> {
    match action {
        ActionRecord::Model { id, call, .. } => Some((*id, &call.model)),
        ActionRecord::Tool { id, tool, .. } => Some((*id, tool)),
        ActionRecord::Spawn { id, name, .. } => Some((*id, name)),
        ActionRecord::Speak(_)
        | ActionRecord::Join { .. }
        | ActionRecord::Signal { .. }
        | ActionRecord::RaiseChild { .. }
        | ActionRecord::CancelChild { .. }
        | ActionRecord::Ask { .. }
        | ActionRecord::Wait { .. }
        | ActionRecord::Sleep { .. }
        | ActionRecord::Note(_)
        | ActionRecord::Compact { .. }
        | ActionRecord::CancelCalls
        | ActionRecord::Label(..)
        | ActionRecord::Finish(_)
        | ActionRecord::Fail(_) => None,
    }
}
