//! Chat completions, the protocol of OpenAI and of almost everything else that serves models.
//!
//! What servers make of it differs in a hundred ways; this module takes what can be understood and turns the rest
//! into typed errors. Three rules hold throughout: an answer exists only when the server said that it was complete;
//! what was generated is recorded as it came; one call sends one request.

mod assemble;
mod calls;
mod chunk;
mod history;
mod request;
mod usage;

#[cfg(test)]
mod tests;

use crate::catalogue::ModelFacts;
use crate::complaint::refused;
use crate::connect;
use crate::intake::answer;
use crate::key::ApiKey;
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

pub(crate) use request::OWN_MEMBERS;

/// What a server can do about the schema of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// Nothing: the schema is not sent.
    Off,
    /// It promises JSON, but knows no schema.
    JsonObject,
    /// It takes a schema.
    #[default]
    JsonSchema,
    /// It takes a schema and holds to it; OpenAI asks for `additionalProperties: false` in every object then.
    Strict,
}

/// In which earlier messages a server gets its reasoning back. Another server or model never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayReasoning {
    /// In none.
    Never,
    /// In those that use tools: what DeepSeek demands and what no known server refuses.
    #[default]
    ToolTurns,
    /// In all.
    Always,
}

/// A model behind a chat completions endpoint. [`crate::OpenAiConfig::build`] makes it.
#[derive(Debug, Clone)]
pub struct OpenAi {
    pub(crate) client: reqwest::Client,
    pub(crate) endpoint: reqwest::Url,
    pub(crate) model: String,
    /// Provider and model, as reasoning carries it.
    pub(crate) origin: String,
    /// What shares its rate limits with other models.
    pub(crate) account: String,
    pub(crate) key: Option<ApiKey>,
    /// Where the key goes when not into `Authorization`.
    pub(crate) key_header: Option<HeaderName>,
    pub(crate) headers: HeaderMap,
    pub(crate) terms: ModelTerms,
    pub(crate) facts: ModelFacts,
    pub(crate) idle_timeout: Duration,
    /// The exact bytes of exchanges are kept.
    pub(crate) keep_exchange: bool,
    pub(crate) stream: bool,
    pub(crate) stream_usage: bool,
    /// The output limit is called `max_completion_tokens`.
    pub(crate) completion_limit: bool,
    pub(crate) structured_output: StructuredOutput,
    pub(crate) schema_with_tools: bool,
    pub(crate) parallel_tool_calls: Option<bool>,
    pub(crate) replay_reasoning: ReplayReasoning,
    pub(crate) extra_body: BTreeMap<String, serde_json::Value>,
}

#[async_trait]
impl Model for OpenAi {
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
        let body = request::encode(self, &request)?;
        let answer = within(&context, self.perform(body, &context, &tap)).await?;
        Ok((answer, tap.exchange()))
    }
}

impl OpenAi {
    async fn perform(&self, body: String, context: &CallContext, tap: &Tap) -> Result<ModelAnswer, ModelError> {
        tap.sent(&body);
        let response = exchange(self.request(body)?).await?;
        let secrets = connect::secrets(self.key.as_ref(), &self.headers);
        if !response.status().is_success() {
            return Err(refused(response, self.idle_timeout, &secrets).await);
        }
        let belongs = Belongs { call: context.call, origin: &self.origin, secrets: &secrets };
        let headers = response.headers().clone();
        answer(Assembler::new(belongs), &headers, Body::new(response, self.idle_timeout).tapped(tap), context).await
    }

    fn request(&self, body: String) -> Result<reqwest::RequestBuilder, ModelError> {
        let request = connect::request(&self.client, &self.endpoint, &self.headers, self.stream, body);
        connect::with_bearer(request, self.key.as_ref(), self.key_header.as_ref())
    }
}

/// A recorded stream, without a connection.
pub(crate) fn recorded(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    show: &mut dyn FnMut(String),
) -> Result<ModelAnswer, ModelError> {
    crate::recorded::assemble(
        Assembler::new(Belongs { call: CallId(1), origin: "recorded", secrets: &[] }),
        pieces,
        show,
    )
}
