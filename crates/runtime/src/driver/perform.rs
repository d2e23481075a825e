//! Performing one Call: from a permit to the input that its end means.

use super::patience::Patience;
use crate::config::Config;
use crate::deadline::{Deadline, Window, within};
use crate::limits::{Asking, Limits, NotNow};
use crate::ports::{
    CallContext, Clock, Delta, Entropy, Exchange, Model, ModelError, ModelRequest, Results, Tool, ToolError,
};
use crate::seats::Seat;
use loopd_kernel::failure::{Disposition, Failure};
use loopd_kernel::machine::{Dispatch, Input, Permit, Probe, ProbeAnswer, Settling};
use loopd_kernel::model::{Constants, Message, ModelConstants};
use loopd_kernel::projection::Target;
use loopd_kernel::record::Setback;
use loopd_kernel::{CallId, MicroUsd, RunId, TimeMs, Usage};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a Call that may not be sent stays here before it is wanted again.
const PAUSE_MS: u64 = 1_000;

/// What every Call of a worker shares.
#[derive(Clone)]
pub struct Performer {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
    pub config: Config,
    pub limits: Arc<Limits>,
    /// How long the store is waited for.
    pub patience: Patience,
    pub deltas: Option<mpsc::UnboundedSender<Delta>>,
}

/// The thing that a Call calls, found before it is sent.
pub enum Work {
    Tool(Arc<dyn Tool>, Arc<dyn Results>),
    Model {
        model: Arc<dyn Model>,
        constants: Arc<ModelConstants>,
        messages: Vec<Arc<Message>>,
    },
    /// It was there when the Call was intended and is gone now.
    Gone,
}

impl Performer {
    /// Performs the Call. Cancelling `cancel` asks it to stop; dropping the future gives it up.
    pub async fn perform(
        self,
        permit: Permit,
        run: RunId,
        window: Window,
        work: Work,
        cancel: CancellationToken,
    ) -> Input {
        let call = permit.call();
        let clock = &*self.clock;
        let _seat = match self.enter(&work, (run, call), window, &cancel).await {
            Ok(seat) => seat,
            Err(not_now) => return self.not_now(call, not_now).await,
        };
        // A wall clock that was set back does not widen the window.
        if !window.is_open(clock) {
            return self.not_sent(call);
        }
        let dispatch = match permit.send(clock.now()) {
            Ok(dispatch) => dispatch,
            Err(_) => return self.not_sent(call),
        };
        let deadline = Deadline::of(&window, dispatch.abort_by);
        let timeout = deadline.left(clock);
        if timeout.is_zero() {
            return too_late(call);
        }
        let context = CallContext {
            run: dispatch.run,
            call,
            key: dispatch.key,
            attempt: dispatch.call.attempts + 1,
            timeout,
            cancel: cancel.clone(),
            deltas: self.deltas.clone(),
        };
        match (work, &dispatch.call.target) {
            (Work::Tool(tool, earlier), Target::Tool { args, .. }) => {
                let calling = tool.call_with(args, &context, &*earlier);
                self.call_tool(call, calling, &context, deadline).await
            }
            (Work::Model { model, constants, messages }, Target::Model(wanted)) => {
                let request = ModelRequest {
                    model: wanted.model.clone(),
                    constants,
                    messages,
                    max_output_tokens: dispatch
                        .call
                        .intent
                        .as_ref()
                        .and_then(|intent| intent.max_output)
                        .unwrap_or(wanted.max_output_tokens),
                    temperature_milli: wanted.temperature_milli,
                };
                self.call_model(&dispatch, &model, request, context, deadline).await
            }
            (Work::Tool(..) | Work::Model { .. } | Work::Gone, _) => {
                let failure = Failure::new("call.gone", "what this call names is not here any more");
                settle(call, Settling::Failed(failure, Disposition::DidNotHappen), free(), Some(MicroUsd(0)))
            }
        }
    }

    /// Waits for a seat with the provider, where the Call goes to one. A worker that stops, or a Run that is cancelled,
    /// ends that at once: what is cut off while it only waits would count as sent.
    async fn enter(
        &self,
        work: &Work,
        call: (RunId, CallId),
        window: Window,
        cancel: &CancellationToken,
    ) -> Result<Option<Seat>, NotNow> {
        let Work::Model { model, .. } = work else { return Ok(None) };
        let (clock, entropy, config) = (&*self.clock, &*self.entropy, &self.config);
        let asking = Asking { clock, entropy, config, window, call };
        let lane = self.limits.lane(model);
        tokio::select! {
            biased;
            entered = lane.enter(model.max_in_flight(), asking) => entered,
            () = self.patience.drain.cancelled() => Err(NotNow { why: "the worker stops", again_in_ms: 0 }),
            () = cancel.cancelled() => Err(NotNow { why: "nobody wants it any more", again_in_ms: 0 }),
        }
    }

    /// Asks the target of a Call whether it happened.
    pub async fn probe(self, tool: Arc<dyn Tool>, probe: Probe, cancel: CancellationToken) -> Input {
        let (call, asked_at) = (probe.call.id, self.clock.now());
        let Target::Tool { args, .. } = &probe.call.target else { return Input::Continue };
        let timeout = Duration::from_millis(tool.terms().timeout_ms);
        let (run, key, attempt) = (probe.run, probe.key, probe.call.lost);
        let context = CallContext { run, call, key, attempt, timeout, cancel, deltas: None };
        let answer = tokio::time::timeout(timeout, tool.probe(args, &context)).await;
        let late = || ProbeAnswer::Unclear(format!("no answer within {} ms", timeout.as_millis()));
        Input::Probed { call, asked_at, answer: answer.unwrap_or_else(|_| late()) }
    }

    /// The dispatch window closed first: nothing was sent, the Call is intended anew.
    fn not_sent(&self, call: CallId) -> Input {
        Input::Retry {
            call,
            failure: Failure::new("call.not_sent", "the dispatch window closed before the call was sent"),
            setback: Setback::NotSent,
            usage: free(),
            cost: Some(MicroUsd(0)),
            retry_at: self.clock.now(),
        }
    }

    /// Others are before it: nothing was sent, the Call is intended anew when it may be its turn.
    async fn not_now(&self, call: CallId, not_now: NotNow) -> Input {
        // The Run's own time may be ahead of a clock that was set back: whatever time it is given is over at once then,
        // and only this keeps it from asking again and again.
        let pause = not_now.again_in_ms.min(PAUSE_MS);
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(pause)) => {}
            () = self.patience.drain.cancelled() => {}
        }
        Input::Retry {
            call,
            failure: Failure::new("call.not_sent", not_now.why),
            setback: Setback::NotSent,
            usage: free(),
            cost: Some(MicroUsd(0)),
            retry_at: self.clock.now().after(not_now.again_in_ms - pause),
        }
    }

    async fn call_tool(
        &self,
        call: CallId,
        calling: impl Future<Output = Result<String, ToolError>>,
        context: &CallContext,
        deadline: Deadline,
    ) -> Input {
        let result = match within(&*self.clock, deadline, calling).await {
            Ok(result) => result,
            Err(_) => {
                Err(ToolError::in_doubt("tool.timeout", format!("no result within {} ms", context.timeout.as_millis())))
            }
        };
        let settling = match result {
            Ok(output) => Settling::Landed(output),
            Err(error) => Settling::Failed(error.failure, error.disposition),
        };
        settle(call, settling, None, None)
    }

    async fn call_model(
        &self,
        dispatch: &Dispatch,
        model: &Arc<dyn Model>,
        request: ModelRequest,
        context: CallContext,
        deadline: Deadline,
    ) -> Input {
        let call = dispatch.call.id;
        let terms = model.terms();
        let cost = |usage: &Option<Usage>| match (usage, &terms.price) {
            (Some(usage), Some(price)) => Some(price.cost(usage)),
            (Some(usage), None) if usage.total() == 0 => Some(MicroUsd(0)),
            (Some(_) | None, _) => None,
        };
        let lane = self.limits.lane(model);
        let (timeout, sent_ms) = (context.timeout, self.clock.steady_ms());
        let result = match within(&*self.clock, deadline, model.call_kept(request, context)).await {
            Ok(result) => result,
            Err(_) => Err(ModelError::Interrupted {
                message: format!("no complete answer within {} ms", timeout.as_millis()),
                usage: None,
            }),
        };
        lane.hear(result.as_ref().map(|(answer, _)| answer), sent_ms, &*self.clock, &self.config);
        match result {
            Ok((answer, exchange)) => match serde_json::to_string(&answer.reply) {
                Ok(reply) => settle(call, landed(reply, exchange), answer.usage, cost(&answer.usage)),
                Err(error) => {
                    let failure = Failure::new("model.malformed", error.to_string());
                    settle(call, Settling::Failed(failure, Disposition::Landed), answer.usage, cost(&answer.usage))
                }
            },
            Err(error) => {
                let usage = error.usage();
                let failure = Failure::new(error.code(), error.to_string());
                let attempts = dispatch.call.attempts + 1;
                if error.is_retryable() && attempts < terms.max_attempts {
                    // Tried before the gate opens it would only be sent back.
                    let gate = self.clock.now().after(lane.left_ms(&*self.clock));
                    let retry_at = self.retry_at(attempts, error.retry_after()).max(gate);
                    let setback = Setback::Failed;
                    return Input::Retry { call, failure, setback, usage, cost: cost(&usage), retry_at };
                }
                settle(call, Settling::Failed(failure, Disposition::DidNotHappen), usage, cost(&usage))
            }
        }
    }

    /// Exponential back-off with jitter upward only, never before the provider's own wish.
    fn retry_at(&self, attempts: u32, retry_after: Option<Duration>) -> TimeMs {
        let factor = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let base = self.config.backoff.saturating_mul(factor).min(self.config.backoff_cap);
        let jitter = u64::from(self.entropy.salt()[0]) * u64::try_from(base.as_millis()).unwrap_or(0) / 1024;
        let pause = base.max(retry_after.unwrap_or_default()).saturating_add(Duration::from_millis(jitter));
        self.clock.now().after(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX))
    }
}

pub fn settle(call: CallId, settling: Settling, usage: Option<Usage>, cost: Option<MicroUsd>) -> Input {
    Input::Settle { call, settling, usage, cost }
}

fn landed(output: String, exchange: Option<Exchange>) -> Settling {
    match exchange {
        Some(Exchange { request, response }) => {
            let (request, response) = (Constants::of_bytes(&request), Constants::of_bytes(&response));
            Settling::Kept { output, request, response }
        }
        None => Settling::Landed(output),
    }
}

/// The commit of the intent took all the time that the Call had. What is sent now may land when nobody reckons with it
/// any more, and intending it anew would only come to the same.
fn too_late(call: CallId) -> Input {
    let failure = Failure::new("call.too_late", "its time was over before it could be sent");
    settle(call, Settling::Failed(failure, Disposition::DidNotHappen), free(), Some(MicroUsd(0)))
}

fn free() -> Option<Usage> {
    Some(Usage::default())
}
