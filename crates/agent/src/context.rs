//! The model's window: when the conversation gets too long for it, a summary takes its place.

use crate::agent::Agent;
use crate::reply;
use crate::state::{Compacted, Phase, Seen, State};
use loopd_kernel::model::{Message, ModelReply, StopReason};
use loopd_kernel::transcript::Head;
use loopd_kernel::{Action, Cx, Decision, Usage};

/// Bytes that hold at least one token, where nobody has counted: texts of most languages have more.
const BYTES_PER_TOKEN: u64 = 3;

/// The part of the window that is used before a summary is asked for, in percent.
const FILL: u64 = 90;

/// Bytes of one tool result that a summary is made from.
const RESULT: u64 = 4_000;

/// The same, when the whole was too long for the provider.
const TIGHT_RESULT: u64 = 200;

/// Summaries in iterations that follow each other: after so many the work gets nowhere.
const MAX_ROW: u32 = 3;

/// What the model that summarises is told before everything else.
pub(crate) const SYSTEM: &str = "You write the working notes by which another instance of you goes on with a task. \
                                 You use no tools and you do not go on with the task yourself.";

const ASK: &str = "The conversation has become too long. Write down everything that is needed to go on without it: what was \
                   asked for, exactly, with all later wishes; what has been done, with names, paths, numbers and results \
                   that are still needed; what was tried in vain; what comes next. Write the notes and nothing else.";

const INTRO: &str = "[These notes take the place of the conversation so far. The task stands above; go on from here.]";

/// True when the next request would leave the model too little room.
pub(crate) fn is_full(agent: &Agent, state: &State, transcript: &Head) -> bool {
    let Some(window) = agent.window(state.model).filter(|_| agent.compacts()) else {
        return false;
    };
    let room = window.saturating_sub(agent.model(state.model).max_output_tokens).max(window / 4);
    // Input and notes alone cannot be made shorter.
    transcript.items > 2 && tokens(agent, state.seen, transcript) > room / 100 * FILL
}

/// The tokens of the next request: what a provider counted, and a bound of what came since.
fn tokens(agent: &Agent, seen: Option<Seen>, transcript: &Head) -> u64 {
    let Some(seen) = seen.filter(|seen| seen.bytes <= transcript.bytes) else {
        return (transcript.bytes + agent.constants().name.bytes).div_ceil(BYTES_PER_TOKEN);
    };
    seen.tokens.saturating_add((transcript.bytes - seen.bytes).div_ceil(BYTES_PER_TOKEN))
}

/// Notes how long the conversation is behind a reply, where that matters.
pub(crate) fn count(agent: &Agent, state: &mut State, transcript: &Head, usage: Option<Usage>) {
    let usage = usage.filter(|_| agent.window(state.model).is_some());
    state.seen = usage.map(|usage| Seen { tokens: usage.total(), bytes: transcript.bytes });
}

/// Asks for a summary of everything; `tight` where the provider would not take everything.
pub(crate) fn summarise(agent: &Agent, state: &mut State, cx: &Cx, tight: bool) -> Decision {
    if !tight && row(state, cx) > MAX_ROW {
        let why = "the conversation fills the model's window again at once, summary after summary";
        return full(agent, state, why);
    }
    state.phase = if tight { Phase::TightSummary } else { Phase::Summary };
    let mut call = agent.request(state.model);
    call.aside = true;
    call.result_cap = Some(if tight { TIGHT_RESULT } else { RESULT });
    // A word is more than a token, and what is cut off is lost.
    let most = (call.max_output_tokens / 2).max(50);
    call.messages = vec![Message::user(format!("{ASK} Use at most {most} words."))];
    Decision::model_with(call, agent.summary_constants())
}

/// How many summaries there would be in iterations that follow each other, with one now.
fn row(state: &State, cx: &Cx) -> u32 {
    match state.compacted {
        Some(last) if last.iteration + 1 >= cx.iteration => last.row + 1,
        Some(_) | None => 1,
    }
}

/// Goes on with the summary that the model wrote. `clamped`: the budget had left it less room than the manifest gives.
pub(crate) fn resume(agent: &Agent, state: &mut State, cx: &Cx, summary: &ModelReply, clamped: bool) -> Decision {
    let text = summary.joined_text();
    if summary.stop == StopReason::Length && clamped {
        // The next call finds the budget spent and parks the Run; the conversation is still whole then.
        state.phase = Phase::Idle;
        return Decision::none();
    }
    if summary.stop != StopReason::EndTurn || text.trim().is_empty() {
        if state.phase == Phase::Summary {
            return summarise(agent, state, cx, true);
        }
        return full(agent, state, "the model wrote no complete summary of it");
    }
    state.compacted = Some(Compacted { iteration: cx.iteration, row: row(state, cx) });
    state.seen = None;
    // Whoever said something meanwhile stands behind the summary.
    state.unread = false;
    state.phase = Phase::Model;
    let notes = format!("{INTRO}\n\n{}", text.trim());
    let Decision { mut actions, constants } = agent.call_model(state);
    actions.insert(0, Action::Compact(notes));
    Decision { actions, constants }
}

/// The conversation fits the window no more, and nothing makes it fit.
pub(crate) fn full(agent: &Agent, state: &mut State, why: &str) -> Decision {
    let help = "choose a model with a larger window, or give the work in smaller parts";
    reply::fail(
        agent,
        state,
        "agent.context_full",
        format!("the conversation is too long for the model: {why}; {help}"),
    )
}
