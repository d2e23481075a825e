//! The Messages API, the protocol of Anthropic and of servers that speak it too.
//!
//! An answer is a list of blocks. Text and tool uses become parts of the neutral reply; every other block that
//! Anthropic wants to see again (thinking, redacted thinking, what its own tools did) is kept as it came, as reasoning
//! of this model, and goes back to this model only. An answer exists only when `message_stop` says that it is
//! complete; one call sends one request.

mod assemble;
mod blocks;
mod config;
mod event;
mod history;
mod numbered;
mod request;
mod schema;
mod usage;

#[cfg(test)]
mod tests;

pub use config::AnthropicConfig;

use crate::catalogue::ModelFacts;
use crate::complaint::refused;
use crate::connect;
use crate::intake::answer;
use crate::key::ApiKey;
use crate::names;
use crate::wire::{Body, Tap, exchange, within};
use assemble::{Assembler, Belongs};
use async_trait::async_trait;
use loopd_kernel::CallId;
use loopd_kernel::machine::ModelTerms;
use loopd_runtime::{CallContext, Exchange, Model, ModelAnswer, ModelError, ModelRequest};
use reqwest::header::{HeaderMap, HeaderName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

const VERSION_HEADER: &str = "anthropic-version";
const VERSION: &str = "2023-06-01";
const KEY_HEADER: &str = "x-api-key";

/// How the schema of an answer reaches the server. Whoever asked for a schema checks the answer in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerFormat {
    /// Not at all.
    Off,
    /// As `output_config.format`: every model since 4.5 holds to it, with tools and with thinking. A schema that it
    /// cannot hold to, for example one with free members or one that contains itself, is not sent.
    Format,
    /// As the schema of a tool that must be used: for older models and other servers. It works only where no other
    /// tools are offered and the model does not think; with tools, nothing is sent, and models that always think
    /// reject it. What a model says beside its answer is left out.
    Tool,
}

/// A model behind the Messages API. [`AnthropicConfig::build`] makes it.
#[derive(Debug, Clone)]
pub struct Anthropic {
    client: reqwest::Client,
    endpoint: reqwest::Url,
    model: String,
    /// Provider and model, as reasoning carries it.
    origin: String,
    /// What shares its rate limits with other models.
    account: String,
    key: Option<ApiKey>,
    headers: HeaderMap,
    terms: ModelTerms,
    facts: ModelFacts,
    idle_timeout: Duration,
    /// The exact bytes of exchanges are kept.
    keep_exchange: bool,
    stream: bool,
    temperature: bool,
    prompt_cache: bool,
    parallel_tool_use: Option<bool>,
    answer_format: AnswerFormat,
    extra_body: BTreeMap<String, serde_json::Value>,
}

#[async_trait]
impl Model for Anthropic {
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

impl Anthropic {
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
            answer: request::answer_tool(self, &request.constants)?.map(|tool| tool.shape),
        };
        let headers = response.headers().clone();
        answer(Assembler::new(belongs), &headers, Body::new(response, self.idle_timeout).tapped(tap), context).await
    }

    fn request(&self, body: String) -> Result<reqwest::RequestBuilder, ModelError> {
        let mut request = connect::request(&self.client, &self.endpoint, &self.headers, self.stream, body);
        if !self.headers.contains_key(VERSION_HEADER) {
            request = request.header(VERSION_HEADER, VERSION);
        }
        match &self.key {
            Some(key) => connect::with_key(request, HeaderName::from_static(KEY_HEADER), key.reveal()),
            None => Ok(request),
        }
    }
}

/// A recorded stream, without a connection.
pub(crate) fn recorded(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    show: &mut dyn FnMut(String),
) -> Result<ModelAnswer, ModelError> {
    let belongs = Belongs { call: CallId(1), origin: "recorded", secrets: &[], names: BTreeMap::new(), answer: None };
    crate::recorded::assemble(Assembler::new(belongs), pieces, show)
}
