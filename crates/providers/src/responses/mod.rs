//! The Responses API, the protocol of OpenAI's newer models and of servers that speak it too.
//!
//! Nothing is kept at the server: every request says that it is not stored and holds the whole conversation. An answer
//! is a list of items. Messages and function calls become parts of the neutral reply; every other item (reasoning
//! above all) is kept byte for byte as reasoning of this model, and goes back to this model only, in its place. An
//! answer exists only when the server said how it ended; one call sends one request.

mod assemble;
mod config;
mod event;
mod history;
mod items;
mod request;

#[cfg(test)]
mod tests;

pub use config::ResponsesConfig;

use crate::catalogue::ModelFacts;
use crate::complaint::refused;
use crate::connect;
use crate::intake::answer;
use crate::key::ApiKey;
use crate::names;
use crate::openai::StructuredOutput;
use crate::wire::{Body, Tap, exchange, within};
use assemble::{Assembler, Belongs};
use async_trait::async_trait;
use loopd_kernel::machine::ModelTerms;
use loopd_runtime::{CallContext, Exchange, Model, ModelAnswer, ModelError, ModelRequest};
use reqwest::header::{HeaderMap, HeaderName};
use std::collections::BTreeMap;
use std::time::Duration;

/// A model behind the Responses API. [`ResponsesConfig::build`] makes it.
#[derive(Debug, Clone)]
pub struct Responses {
    client: reqwest::Client,
    endpoint: reqwest::Url,
    model: String,
    /// Provider, protocol and model, as reasoning carries it.
    origin: String,
    /// What shares its rate limits with other models.
    account: String,
    key: Option<ApiKey>,
    /// Where the key goes when not into `Authorization`.
    key_header: Option<HeaderName>,
    headers: HeaderMap,
    terms: ModelTerms,
    facts: ModelFacts,
    idle_timeout: Duration,
    /// The exact bytes of exchanges are kept.
    keep_exchange: bool,
    stream: bool,
    /// The server says itself when the output limit cut an answer. Some call such an answer complete.
    tells_cuts: bool,
    structured_output: StructuredOutput,
    schema_with_tools: bool,
    parallel_tool_calls: Option<bool>,
    encrypted_reasoning: bool,
    extra_body: BTreeMap<String, serde_json::Value>,
}

#[async_trait]
impl Model for Responses {
    fn terms(&self) -> ModelTerms {
        self.terms
    }

    fn price_source(&self) -> Option<String> {
        self.facts.price_source()
    }

    fn context_window(&self) -> Option<u64> {
        self.facts.window()
    }

    fn limits_key(&self) -> Option<&str> {
        Some(&self.account)
    }

    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        self.call_kept(request, context).await.map(|(answer, _)| answer)
    }

    async fn call_kept(
        &self,
        request: ModelRequest,
        context: CallContext,
    ) -> Result<(ModelAnswer, Option<Exchange>), ModelError> {
        let tap = Tap::new(self.keep_exchange);
        let answer = within(&context, self.perform(&request, &context, &tap)).await?;
        Ok((answer, tap.exchange()))
    }
}

impl Responses {
    async fn perform(
        &self,
        request: &ModelRequest,
        context: &CallContext,
        tap: &Tap,
    ) -> Result<ModelAnswer, ModelError> {
        let body = request::encode(self, request)?;
        tap.sent(&body);
        let response = exchange(self.request(body)?).await?;
        let secrets = connect::secrets(self.key.as_ref(), &self.headers);
        if !response.status().is_success() {
            return Err(refused(response, self.idle_timeout, &secrets).await);
        }
        let belongs = Belongs {
            call: context.call,
            origin: &self.origin,
            secrets: &secrets,
            names: names::changed(&request.constants.tools),
            limit: (!self.tells_cuts).then_some(request.max_output_tokens),
        };
        let headers = response.headers().clone();
        answer(Assembler::new(belongs), &headers, Body::new(response, self.idle_timeout).tapped(tap), context).await
    }

    fn request(&self, body: String) -> Result<reqwest::RequestBuilder, ModelError> {
        let request = connect::request(&self.client, &self.endpoint, &self.headers, self.stream, body);
        connect::with_bearer(request, self.key.as_ref(), self.key_header.as_ref())
    }
}
