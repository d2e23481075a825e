//! What the Agent does with each Event.

use crate::agent::Agent;
use crate::context;
use crate::manifest::Trouble;
use crate::reply;
use crate::state::{Phase, State};
use loopd_kernel::model::StopReason;
use loopd_kernel::outcome::{Interrupt, Outcome};
use loopd_kernel::transcript::MESSAGE_SIGNAL;
use loopd_kernel::{Action, Cx, Decision, Event, Failure};

/// The signal that gives up what is under way; the Run then waits for a message.
pub(crate) const INTERRUPT_SIGNAL: &str = "interrupt";

/// The signal that ends a conversation.
pub(crate) const FINISH_SIGNAL: &str = "finish";

/// Anthropic's word for an answer that the window cut.
const WINDOW: &str = "model_context_window_exceeded";

/// The reason with which an Agent that ran out of its limits is given up.
const USED_UP: &str = "it was stopped: its limits for this task are used up, and what it found is lost";

pub(crate) fn decide(agent: &Agent, state: &mut State, cx: &Cx, event: Event) -> Decision {
    // Another definition may have taken the Run over, with fewer fallbacks.
    state.model = state.model.min(agent.manifest().spec.fallbacks.len() as u32);
    match event {
        Event::IterationStarted { .. } => {
            state.unread = false;
            if context::is_full(agent, state, &cx.transcript) {
                return context::summarise(agent, state, cx, false);
            }
            state.phase = Phase::Model;
            agent.call_model(state)
        }
        Event::ModelReplied { reply, clamped, .. } if is_summary(state.phase) => {
            context::resume(agent, state, cx, &reply, clamped)
        }
        Event::ModelReplied { reply, clamped, usage, .. } => {
            context::count(agent, state, &cx.transcript, usage);
            if reply.stop == StopReason::Other(WINDOW.into()) && agent.compacts() {
                return too_large(agent, state, cx);
            }
            reply::decide(agent, state, &reply, clamped)
        }
        Event::CallFailed { target, .. } | Event::CallDenied { target, .. } if state.helpers.remove(&target) => {
            Decision::none()
        }
        Event::CallFailed { failure, .. } | Event::CallDenied { failure, .. }
            if state.phase == Phase::Model || is_summary(state.phase) =>
        {
            model_failed(agent, state, cx, failure)
        }
        Event::SignalReceived { name, .. } => signal(agent, state, &name),
        Event::ChildEnded { name, .. } => {
            state.helpers.remove(&name);
            Decision::none()
        }
        Event::ChildParked { name, outcome, .. } => match outcome {
            Outcome::BudgetExceeded { .. } | Outcome::Stuck { .. } => {
                Decision::none().and(Action::CancelChild { child: name, reason: USED_UP.into() })
            }
            // A person has to look, and may let it go on.
            Outcome::Interrupted { interrupt: Interrupt::Cancelled { .. } }
            | Outcome::Interrupted { .. }
            | Outcome::Completed { .. }
            | Outcome::PolicyDenied { .. }
            | Outcome::Failed { .. } => Decision::none(),
        },
        // These join the Transcript by themselves, and the next iteration starts once none is in flight.
        Event::ToolReturned(_)
        | Event::CallFailed { .. }
        | Event::CallDenied { .. }
        | Event::CallUnknown { .. }
        | Event::Answered { .. }
        | Event::TimerFired { .. } => Decision::none(),
    }
}

const fn is_summary(phase: Phase) -> bool {
    matches!(phase, Phase::Summary | Phase::TightSummary)
}

/// A call of the model came to nothing: another model takes over, a summary makes the conversation shorter, or the Run
/// fails.
fn model_failed(agent: &Agent, state: &mut State, cx: &Cx, failure: Failure) -> Decision {
    let trouble = Trouble::of(&failure);
    if let Some(next) = trouble.and_then(|trouble| agent.fallback(state.model, trouble)) {
        state.model = next;
        // The next provider counts otherwise.
        state.seen = None;
        // It is sent what was said meanwhile.
        state.unread = false;
        let tight = trouble == Some(Trouble::TooLarge) || state.phase == Phase::TightSummary;
        return match state.phase {
            Phase::Summary | Phase::TightSummary => context::summarise(agent, state, cx, tight),
            Phase::Idle | Phase::Model | Phase::Tools => agent.call_model(state),
        };
    }
    if trouble == Some(Trouble::TooLarge) && agent.compacts() {
        return too_large(agent, state, cx);
    }
    reply::fail(agent, state, &failure.code, failure.message)
}

/// The provider says that the conversation does not fit: it is summarised, once for one request.
fn too_large(agent: &Agent, state: &mut State, cx: &Cx) -> Decision {
    let again = state.compacted.is_some_and(|last| last.iteration == cx.iteration);
    match state.phase {
        Phase::Summary => context::summarise(agent, state, cx, true),
        Phase::TightSummary => context::full(agent, state, "not even a summary of it can be asked for"),
        Phase::Model if again => context::full(agent, state, "a summary did not make it fit"),
        Phase::Idle | Phase::Model | Phase::Tools => context::summarise(agent, state, cx, false),
    }
}

fn signal(agent: &Agent, state: &mut State, name: &str) -> Decision {
    match name {
        MESSAGE_SIGNAL => {
            let heard = if agent.works_long() { state.phase == Phase::Idle } else { state.phase != Phase::Model };
            state.unread |= !heard;
            Decision::none()
        }
        INTERRUPT_SIGNAL if state.phase != Phase::Idle && agent.works_long() => {
            state.phase = Phase::Idle;
            let given_up = given_up(state);
            // Somebody has said already what comes next.
            if state.unread { given_up } else { given_up.and(reply::wait_for_message()) }
        }
        FINISH_SIGNAL if agent.converses() => {
            let finish = Action::Finish("null".into());
            match std::mem::replace(&mut state.phase, Phase::Idle) {
                Phase::Idle => Decision::none().and(finish),
                Phase::Model | Phase::Tools | Phase::Summary | Phase::TightSummary => given_up(state).and(finish),
            }
        }
        _ => Decision::none(),
    }
}

/// Gives up the calls and the Agents that are at work.
fn given_up(state: &mut State) -> Decision {
    let reason = "the person whom it works for interrupted the work";
    let cancel = |child| Action::CancelChild { child, reason: String::from(reason) };
    let helpers = std::mem::take(&mut state.helpers);
    Decision {
        actions: std::iter::once(Action::CancelCalls).chain(helpers.into_iter().map(cancel)).collect(),
        constants: Vec::new(),
    }
}
