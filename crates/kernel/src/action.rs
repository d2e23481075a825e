//! What a transition asks for.

use crate::budget::Limits;
use crate::child::{Recipient, Spawn};
use crate::failure::Failure;
use crate::model::{Constants, ModelCall};
use crate::question::Ask;
use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

/// A wish to call a tool: native, remote or anything else that has a name and takes JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolCall {
    /// The tool's name.
    pub tool: String,
    /// The arguments as JSON text, exactly as they arrived or were written.
    pub args: String,
    /// The model's tool use that the result replies to; such a result joins the Transcript.
    pub reply_to: Option<String>,
    /// Bytes of the result that join the Transcript; the middle of a longer one is left out there, and all of it
    /// stays in the Journal.
    pub cap: Option<u64>,
}

impl ToolCall {
    /// A call with typed arguments that replies to no tool use.
    ///
    /// # Errors
    /// A [`Failure`] with code `loop.decode` when the arguments do not serialise.
    pub fn new(tool: impl Into<String>, args: &impl Serialize) -> Result<Self, Failure> {
        Ok(Self { tool: tool.into(), args: serde_json::to_string(args)?, reply_to: None, cap: None })
    }
}

/// One thing that a transition asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Call a model.
    CallModel(ModelCall),
    /// Call a tool. Several calls of one decision run at the same time.
    CallTool(ToolCall),
    /// Call several models and tools, and hear of them together.
    Parallel {
        /// The Calls.
        calls: Vec<ParallelCall>,
        /// What their Events wait for.
        join: Join,
    },
    /// Start a child Run; [`crate::Event::ChildEnded`] says how it ended.
    Spawn(Spawn),
    /// Send a signal to another Run. It is part of the commit; a receiver that is sealed or unknown gets nothing.
    Signal {
        /// Whom.
        to: Recipient,
        /// The signal's name.
        name: String,
        /// Its body.
        body: String,
    },
    /// Give a parked child more room, and let it go on. What is asked for is clamped to what is left here; a child for
    /// which nothing of it is left stays parked.
    RaiseChild {
        /// The parent's name for it.
        child: String,
        /// How much more than it has now. Without any limit it only goes on.
        by: Limits,
    },
    /// Ask an open child to cancel.
    CancelChild {
        /// The parent's name for it.
        child: String,
        /// Why.
        reason: String,
    },
    /// Publish text to the Conversation, or to whoever reads the Run.
    Speak(String),
    /// Ask a person.
    Ask(Ask),
    /// Wait for a signal of one of these names, at most `timeout_ms`.
    Wait {
        /// The names.
        signals: Vec<String>,
        /// Milliseconds until the wait ends by itself.
        timeout_ms: Option<u64>,
    },
    /// Wait for a time.
    Sleep {
        /// Milliseconds.
        ms: u64,
    },
    /// Add a message to the Transcript that no Call produced, for example a typed error for a tool use
    /// that cannot run.
    Note(crate::model::Message),
    /// Let the Transcript begin anew with the Run's input and this summary of what was said since. User messages behind
    /// the last reply of a model stay behind the summary, word for word: nobody has answered them. It comes first and
    /// once in a decision; otherwise, or while a Call or Question still has to reply to the Transcript, the Run fails as
    /// `loop.compact`.
    Compact(String),
    /// Give up what is in flight and may be cut (`pure`, `read`, `billable`), what was not sent yet, and the Loop's own
    /// questions to people. No Event tells of a Call; a question ends as withdrawn; a tool use reads that it was
    /// interrupted.
    CancelCalls,
    /// Attach a label to the Run.
    Label {
        /// Its key.
        key: String,
        /// Its value.
        value: String,
    },
    /// End as Completed; the output is JSON text.
    Finish(String),
    /// End as Failed.
    Fail(Failure),
}

/// One of several Calls that run at the same time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParallelCall {
    /// Of a model.
    Model(ModelCall),
    /// Of a tool.
    Tool(ToolCall),
}

impl From<ModelCall> for ParallelCall {
    fn from(call: ModelCall) -> Self {
        Self::Model(call)
    }
}

impl From<ToolCall> for ParallelCall {
    fn from(call: ToolCall) -> Self {
        Self::Tool(call)
    }
}

/// What the Events of parallel Calls wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// Until all have settled; the Events then come in the order of the Calls, whichever was the fastest.
    All,
    /// Until so many have landed: only their Events come, and the other Calls are cancelled in the same commit, charged
    /// at their reservation. When so many cannot land any more, every failure comes. Joins only Calls that may be cut
    /// (`pure`, `read`, `billable`); another one is refused as `call.not_cuttable`.
    FirstOk(u32),
}

/// What one transition decided: Actions, and constants that they name by digest.
///
/// An empty decision with nothing in flight and nothing to wait for starts the next iteration.
#[must_use = "a decision does nothing until a transition returns it"]
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Decision {
    /// The Actions, in order.
    pub actions: Vec<Action>,
    /// Content-addressed constants that the Actions name.
    pub constants: Vec<Constants>,
}

impl Decision {
    /// No Action: wait for what is in flight, or start the next iteration.
    pub const fn none() -> Self {
        Self { actions: Vec::new(), constants: Vec::new() }
    }

    /// Adds an Action.
    pub fn and(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Calls a tool with typed arguments.
    pub fn tool(name: impl Into<String>, args: &impl Serialize) -> Self {
        Self::none().and_tool(name, args)
    }

    /// Calls one more tool at the same time.
    pub fn and_tool(self, name: impl Into<String>, args: &impl Serialize) -> Self {
        match serde_json::to_string(args) {
            Ok(args) => self.and(Action::CallTool(ToolCall { tool: name.into(), args, reply_to: None, cap: None })),
            Err(error) => self.and(Action::Fail(error.into())),
        }
    }

    /// Calls tools and models at the same time and hears of all of them together, in this order.
    pub fn all(calls: impl IntoIterator<Item = impl Into<ParallelCall>>) -> Self {
        Self::parallel(calls, Join::All)
    }

    /// Calls tools and models at the same time and goes on with the first one that lands.
    pub fn first_ok(calls: impl IntoIterator<Item = impl Into<ParallelCall>>) -> Self {
        Self::parallel(calls, Join::FirstOk(1))
    }

    fn parallel(calls: impl IntoIterator<Item = impl Into<ParallelCall>>, join: Join) -> Self {
        Self::none().and(Action::Parallel { calls: calls.into_iter().map(Into::into).collect(), join })
    }

    /// Starts a child Run with a typed input.
    pub fn spawn(name: impl Into<String>, loop_name: impl Into<String>, input: &impl Serialize) -> Self {
        match serde_json::to_string(input) {
            Ok(input) => Self::none().and(Action::Spawn(Spawn::new(name, loop_name, input))),
            Err(error) => Self::none().and(Action::Fail(error.into())),
        }
    }

    /// Calls a model.
    pub fn model(call: ModelCall) -> Self {
        Self::none().and(Action::CallModel(call))
    }

    /// Calls a model with constants, which are stored once by content.
    pub fn model_with(mut call: ModelCall, constants: &Constants) -> Self {
        call.constants = Some(constants.name);
        Self { actions: alloc::vec![Action::CallModel(call)], constants: alloc::vec![constants.clone()] }
    }

    /// Asks a person a question; the answer arrives as [`crate::Event::Answered`].
    pub fn ask(prompt: impl Into<String>) -> Self {
        let ask = Ask::Ask { prompt: prompt.into(), schema: None, expires_in_ms: None, reply_to: None };
        Self::none().and(Action::Ask(ask))
    }

    /// Asks a person yes or no.
    pub fn confirm(prompt: impl Into<String>) -> Self {
        Self::none().and(Action::Ask(Ask::Confirm { prompt: prompt.into(), expires_in_ms: None }))
    }

    /// Waits for a signal.
    pub fn wait(signal: impl Into<String>) -> Self {
        Self::none().and(Action::Wait { signals: alloc::vec![signal.into()], timeout_ms: None })
    }

    /// Sleeps.
    pub fn sleep(ms: u64) -> Self {
        Self::none().and(Action::Sleep { ms })
    }

    /// Finishes with a typed output.
    pub fn finish(output: &impl Serialize) -> Self {
        match serde_json::to_string(output) {
            Ok(output) => Self::none().and(Action::Finish(output)),
            Err(error) => Self::none().and(Action::Fail(error.into())),
        }
    }

    /// Fails.
    pub fn fail(failure: Failure) -> Self {
        Self::none().and(Action::Fail(failure))
    }
}
