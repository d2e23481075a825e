//! Gemini's `generateContent`, in one piece and as a stream.
//!
//! Three rules hold throughout: an answer exists only with the finish reason that completes it; what was generated is
//! recorded as it came, its signatures byte for byte; one call sends one request.

mod assemble;
mod chunk;
mod complaint;
mod config;
mod history;
mod intake;
mod names;
mod request;
mod schema;
mod usage;

#[cfg(test)]
mod tests;

pub use config::GeminiConfig;

use crate::catalogue::ModelFacts;
use crate::connect;
use crate::intake::{End, is_json, show};
use crate::key::ApiKey;
use crate::wire::{Body, Tap, exchange, within};
use assemble::{Assembler, Belongs};
use async_trait::async_trait;
use intake::{Intake, whole};
use loopd_kernel::CallId;
use loopd_kernel::machine::ModelTerms;
use loopd_runtime::{CallContext, Exchange, Model, ModelAnswer, ModelError, ModelRequest};
use names::Names;
use reqwest::header::{HeaderMap, HeaderName};
use std::collections::BTreeMap;
use std::time::Duration;

/// Where the key goes: never into the address, which ends up in logs.
const KEY_HEADER: &str = "x-goog-api-key";

/// A model behind a `generateContent` endpoint. [`GeminiConfig::build`] makes it.
#[derive(Debug, Clone)]
pub struct Gemini {
    client: reqwest::Client,
    endpoint: reqwest::Url,
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
    structured_output: bool,
    schema_with_tools: bool,
    /// A tool use that this model did not sign gets the signature that says so.
    stand_in_signatures: bool,
    generation_config: BTreeMap<String, serde_json::Value>,
    extra_body: BTreeMap<String, serde_json::Value>,
}

#[async_trait]
impl Model for Gemini {
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
        let names = Names::of(&request.constants.tools);
        let body = request::encode(self, &request)?;
        let answer = within(&context, self.perform(body, &names, &context, &tap)).await?;
        Ok((answer, tap.exchange()))
    }
}

impl Gemini {
    async fn perform(
        &self,
        body: String,
        names: &Names,
        context: &CallContext,
        tap: &Tap,
    ) -> Result<ModelAnswer, ModelError> {
        tap.sent(&body);
        let response = exchange(self.request(body)?).await?;
        let secrets = connect::secrets(self.key.as_ref(), &self.headers);
        if !response.status().is_success() {
            return Err(complaint::refused(response, self.idle_timeout, &secrets).await);
        }
        let belongs = Belongs { call: context.call, origin: &self.origin, names, secrets: &secrets };
        let json = is_json(response.headers());
        let mut body = Body::new(response, self.idle_timeout).tapped(tap);
        if json {
            let body = body.all().await;
            return match body {
                Ok(body) => whole(Assembler::new(belongs), &body),
                Err(why) => Assembler::new(belongs).end(End::Broken(why)),
            };
        }
        streamed(Intake::new(belongs), body, context).await
    }

    fn request(&self, body: String) -> Result<reqwest::RequestBuilder, ModelError> {
        let request = connect::request(&self.client, &self.endpoint, &self.headers, self.stream, body);
        match &self.key {
            Some(key) => connect::with_key(request, HeaderName::from_static(KEY_HEADER), key.reveal()),
            None => Ok(request),
        }
    }
}

/// An answer that comes as events. It is read to its end: counts may come behind the finish reason.
async fn streamed(mut intake: Intake<'_>, mut body: Body, context: &CallContext) -> Result<ModelAnswer, ModelError> {
    loop {
        match body.next().await {
            Ok(Some(piece)) => intake.push(&piece, &mut |text| show(context, text))?,
            Ok(None) => return intake.end(End::Proper),
            Err(why) => return intake.end(End::Broken(why)),
        }
    }
}

/// A recorded stream, without a connection.
pub(crate) fn recorded(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    show: &mut dyn FnMut(String),
) -> Result<ModelAnswer, ModelError> {
    let names = Names::default();
    let mut intake = Intake::new(Belongs { call: CallId(1), origin: "recorded", names: &names, secrets: &[] });
    for piece in pieces {
        intake.push(piece, show)?;
    }
    intake.end(End::Proper)
}
