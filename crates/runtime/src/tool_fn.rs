//! Native functions as tools: typed arguments become the schema.

use crate::ports::{CallContext, Tool, ToolError};
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
        let text = if args.trim().is_empty() { "{}" } else { args };
        let typed: A = serde_json::from_str(text).map_err(|error| ToolError::invalid_args(error.to_string()))?;
        let result = (self.function)(typed, context.key).await?;
        // The effect has happened: a result that does not serialise is no reason to do it again.
        serde_json::to_string(&result).map_err(|error| ToolError {
            failure: loopd_kernel::Failure::new("tool.output", error.to_string()),
            disposition: loopd_kernel::failure::Disposition::Landed,
        })
    }
}
