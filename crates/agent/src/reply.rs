//! What a model's reply leads to.

use crate::agent::Agent;
use crate::manifest::Trouble;
use crate::state::{Phase, State};
use crate::text::bounded;
use crate::toolset::ToolUse;
use loopd_kernel::model::{Message, ModelReply, StopReason};
use loopd_kernel::transcript::MESSAGE_SIGNAL;
use loopd_kernel::{Action, Decision, Failure};
use std::collections::BTreeSet;

/// Empty replies in a row that end a Run.
const MAX_EMPTY: u32 = 2;

/// Final answers that may miss the output schema before a Run fails.
const MAX_REPAIRS: u32 = 1;

/// Characters of a model's text that a failure carries; all of it is in the Journal.
const SHOWN: usize = 2000;

/// Anthropic's word for a turn that is not over.
const PAUSED: &str = "pause_turn";

const EMPTY: &str = "Your last reply was empty. Use a tool, or answer.";

const ANNOUNCED: &str = "You announced the use of a tool, and none came. Use the tool, or answer.";

const REFUSED: &str = "That reply was another model's. Answer in its place.";

const CLAMPED: &str = "Your last reply was cut off. Answer again, in fewer words.";

const UNREAD: &str = "A message arrived while you were writing that reply; it stands before the reply. \
                      Take it into account and answer again.";

/// Decides on a reply. `clamped`: the budget had left it less room than the manifest gives.
pub(crate) fn decide(agent: &Agent, state: &mut State, reply: &ModelReply, clamped: bool) -> Decision {
    let text = reply.joined_text();
    match &reply.stop {
        StopReason::Refusal => return refused(agent, state, &text),
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Length | StopReason::Other(_) => {}
    }
    let wishes = wishes(reply);
    if !wishes.is_empty() {
        state.phase = Phase::Tools;
        state.empty = 0;
        let actions: Vec<Action> = wishes.into_iter().map(|wish| agent.tools().act_on(wish)).collect();
        let spawned = |action: &Action| if let Action::Spawn(child) = action { Some(child.name.clone()) } else { None };
        state.helpers.extend(actions.iter().filter_map(spawned));
        return Decision { actions, constants: Vec::new() };
    }
    match &reply.stop {
        // The next call finds the budget spent and parks the Run, which a raise can continue.
        StopReason::Length if clamped => {
            state.phase = Phase::Idle;
            note(CLAMPED)
        }
        StopReason::Length => {
            let message = format!(
                "the output limit of {} tokens cut the answer; raise spec.model.maxOutputTokens. It began: {}",
                agent.manifest().spec.model.max_output_tokens,
                bounded(&text, SHOWN)
            );
            fail(agent, state, "agent.output_truncated", message)
        }
        // The server interrupted its own tools and goes on from what it said, which stands in the Transcript.
        StopReason::Other(word) if word == PAUSED => {
            state.phase = Phase::Idle;
            Decision::none()
        }
        // A word that nobody here knows is no proof that the answer is complete.
        StopReason::Other(word) => {
            let (word, text) = (bounded(word, 64), bounded(&text, SHOWN));
            let message = format!("the model stopped for the unknown reason `{word}` after: {text}");
            fail(agent, state, "agent.unknown_stop", message)
        }
        // Tools were announced and none came: as good as nothing.
        StopReason::ToolUse => empty(agent, state, ANNOUNCED),
        StopReason::EndTurn if text.trim().is_empty() => empty(agent, state, EMPTY),
        StopReason::EndTurn => answer(agent, state, &text),
        StopReason::Refusal => Decision::none(),
    }
}

/// Ends the Run as Failed; a conversation goes on instead, and says what went wrong.
pub(crate) fn fail(agent: &Agent, state: &mut State, code: &str, message: String) -> Decision {
    if agent.converses() {
        state.phase = Phase::Idle;
        let said = Decision::none().and(Action::Speak(format!("[{code}] {message}")));
        return if state.unread { said } else { said.and(wait_for_message()) };
    }
    Decision::fail(Failure::new(code, message))
}

/// Waits until somebody says something.
pub(crate) fn wait_for_message() -> Action {
    Action::Wait { signals: vec![MESSAGE_SIGNAL.into()], timeout_ms: None }
}

/// Another model may be asked once, where the manifest says so; asking the same one again would only cost.
fn refused(agent: &Agent, state: &mut State, text: &str) -> Decision {
    let Some(next) = agent.fallback(state.model, Trouble::Refused) else {
        return fail(agent, state, "agent.refused", format!("the model refused: {}", bounded(text, SHOWN)));
    };
    state.model = next;
    state.phase = Phase::Model;
    state.seen = None;
    let Decision { mut actions, constants } = agent.call_model(state);
    actions.insert(0, Action::Note(Message::user(REFUSED)));
    Decision { actions, constants }
}

fn note(text: impl Into<String>) -> Decision {
    Decision::none().and(Action::Note(Message::user(text)))
}

fn empty(agent: &Agent, state: &mut State, hint: &str) -> Decision {
    state.phase = Phase::Idle;
    state.empty += 1;
    if state.empty < MAX_EMPTY {
        return note(hint);
    }
    state.empty = if agent.converses() { 0 } else { state.empty };
    fail(agent, state, "agent.empty_reply", "the model said nothing twice".into())
}

fn answer(agent: &Agent, state: &mut State, text: &str) -> Decision {
    state.phase = Phase::Idle;
    state.empty = 0;
    if state.unread {
        return note(UNREAD);
    }
    if agent.converses() {
        state.repairs = 0;
        return Decision::none().and(Action::Speak(text.into())).and(wait_for_message());
    }
    let Some(shape) = agent.output() else {
        return Decision::finish(&text);
    };
    match shape.accept(text) {
        Ok(answer) => Decision::none().and(Action::Finish(answer.into())),
        Err(problems) if state.repairs < MAX_REPAIRS => {
            state.repairs += 1;
            note(format!(
                "The answer was not accepted (agent.output_schema):\n{problems}\n\
                 Answer again with one JSON value that matches the schema, and nothing else."
            ))
        }
        Err(problems) => {
            let was = bounded(text, SHOWN);
            let message = format!("the answer does not match spec.output.schema:\n{problems}\nIt was: {was}");
            fail(agent, state, "agent.output_schema", message)
        }
    }
}

/// The tool uses of a reply. Some servers give several the same id; the first of them is the one that runs.
fn wishes(reply: &ModelReply) -> Vec<ToolUse<'_>> {
    let mut ids = BTreeSet::new();
    let mut wishes: Vec<ToolUse<'_>> = reply
        .tool_uses()
        .map(|(id, name, args)| ToolUse { id, name, args, doubled: !ids.insert(id), cut: false })
        .collect();
    if reply.stop == StopReason::Length
        && let Some(last) = wishes.last_mut()
    {
        last.cut = true;
    }
    wishes
}
