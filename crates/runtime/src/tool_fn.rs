//! Native functions as tools: typed arguments become the schema.

use crate::ports::{CallContext, ProbeAnswer, Tool, ToolError};
use async_trait::async_trait;
use loopd_kernel::machine::ToolTerms;
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{EffectClass, EffectKey};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

/// A tool made of a function.
pub struct ToolFn<F, A> {
    offer: ToolOffer,
    terms: ToolTerms,
    dedup_for: Option<Duration>,
    function: F,
    args: PhantomData<fn(A)>,
}

impl<F, A> std::fmt::Debug for ToolFn<F, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolFn").field("offer", &self.offer.name).field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// Makes a tool of an async function from typed arguments to a serialisable result. Its class is
/// [`EffectClass::Once`], the safe one, until [`ToolFn::class`] says otherwise.
pub fn tool_fn<F, A, R, Fut>(
    name: &str,
    description: &str,
    function: F,
) -> ToolFn<impl Fn(A, EffectKey) -> Fut + Send + Sync + 'static, A>
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    make(name, description, EffectClass::Once, None, move |args, _| function(args))
}

/// Makes a tool whose target removes doubles by a key: the function hands the key on, and it is the same in
/// every attempt. The target has to know a key for at least `dedup_for`; afterwards a person is asked.
pub fn keyed_tool_fn<F, A, R, Fut>(name: &str, description: &str, dedup_for: Duration, function: F) -> ToolFn<F, A>
where
    F: Fn(A, EffectKey) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    make(name, description, EffectClass::Keyed, Some(dedup_for), function)
}

fn make<F, A: JsonSchema>(
    name: &str,
    description: &str,
    class: EffectClass,
    dedup_for: Option<Duration>,
    function: F,
) -> ToolFn<F, A> {
    let parameters = schemars::schema_for!(A).as_value().to_string();
    ToolFn {
        offer: ToolOffer { name: name.into(), description: description.into(), parameters },
        terms: ToolTerms { class, timeout_ms: 60_000 },
        dedup_for,
        function,
        args: PhantomData,
    }
}

impl<F, A> ToolFn<F, A> {
    /// Declares the effect class.
    #[must_use]
    pub const fn class(mut self, class: EffectClass) -> Self {
        self.terms.class = class;
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub const fn timeout_ms(mut self, ms: u64) -> Self {
        self.terms.timeout_ms = ms;
        self
    }
}

#[async_trait]
impl<F, A, R, Fut> Tool for ToolFn<F, A>
where
    F: Fn(A, EffectKey) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    fn offer(&self) -> &ToolOffer {
        &self.offer
    }

    fn terms(&self) -> ToolTerms {
        self.terms
    }

    fn dedup_for(&self) -> Option<Duration> {
        self.dedup_for
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        let result = (self.function)(parse(args)?, context.key).await?;
        // The effect has happened: a result that does not serialise is no reason to do it again.
        serde_json::to_string(&result).map_err(|error| ToolError {
            failure: loopd_kernel::Failure::new("tool.output", error.to_string()),
            disposition: loopd_kernel::failure::Disposition::Landed,
        })
    }
}

/// A tool made of a function and of a question to its target: see [`probed_tool_fn`].
#[derive(Debug)]
pub struct ProbedFn<F, A, P> {
    function: ToolFn<F, A>,
    landing_bound: Option<Duration>,
    probe: P,
}

/// Makes a tool whose target can be asked whether a Call happened. `function` sends it with its effect key, for example
/// as the reference of a transfer; `probe` looks for that key: `Ok(Some)` is the result of what has happened, `Ok(None)`
/// says that it has not, an error that the target cannot say. "Not happened" is believed once nothing can land any
/// more: `landing_bound` after the attempt was given up. Without a bound a person is asked instead.
pub fn probed_tool_fn<F, A, R, Fut, P, Asked>(
    name: &str,
    description: &str,
    landing_bound: Option<Duration>,
    function: F,
    probe: P,
) -> ProbedFn<F, A, P>
where
    F: Fn(A, EffectKey) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    P: Fn(A, EffectKey) -> Asked + Send + Sync + 'static,
    Asked: Future<Output = Result<Option<R>, ToolError>> + Send + 'static,
{
    ProbedFn { function: make(name, description, EffectClass::Probed, None, function), landing_bound, probe }
}

impl<F, A, P> ProbedFn<F, A, P> {
    /// Sets the timeout of an attempt, and of a question.
    #[must_use]
    pub fn timeout_ms(self, ms: u64) -> Self {
        Self { function: self.function.timeout_ms(ms), ..self }
    }
}

#[async_trait]
impl<F, A, R, Fut, P, Asked> Tool for ProbedFn<F, A, P>
where
    F: Fn(A, EffectKey) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: Serialize,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    P: Fn(A, EffectKey) -> Asked + Send + Sync + 'static,
    Asked: Future<Output = Result<Option<R>, ToolError>> + Send + 'static,
{
    fn offer(&self) -> &ToolOffer {
        self.function.offer()
    }

    fn terms(&self) -> ToolTerms {
        self.function.terms()
    }

    fn landing_bound(&self) -> Option<Duration> {
        self.landing_bound
    }

    async fn probe(&self, args: &str, context: &CallContext) -> ProbeAnswer {
        let typed: A = match parse(args) {
            Ok(typed) => typed,
            Err(error) => return ProbeAnswer::Unclear(error.to_string()),
        };
        match (self.probe)(typed, context.key).await {
            Ok(None) => ProbeAnswer::NotLanded,
            Ok(Some(result)) => serde_json::to_string(&result)
                .map_or_else(|error| ProbeAnswer::Unclear(error.to_string()), ProbeAnswer::Landed),
            Err(error) => ProbeAnswer::Unclear(error.to_string()),
        }
    }

    async fn call(&self, args: &str, context: &CallContext) -> Result<String, ToolError> {
        self.function.call(args, context).await
    }
}

fn parse<A: DeserializeOwned>(args: &str) -> Result<A, ToolError> {
    let text = if args.trim().is_empty() { "{}" } else { args };
    serde_json::from_str(text).map_err(|error| ToolError::invalid_args(error.to_string()))
}
