//! What a server says when it refuses, sorted by what the caller can do about it.

use crate::wire::{Body, excerpt, header, retry_after};
use loopd_kernel::Usage;
use loopd_runtime::ModelError;
use reqwest::header::LOCATION;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// How much of the body of an error is read.
const ERROR_BYTES: usize = 64 * 1024;

/// Words by which servers say that a request does not fit into the context window, in lower case. Codes, error types
/// and messages are searched alike, also where a gateway wraps the message of another server.
const TOO_LARGE: [&str; 33] = [
    "context_length_exceeded",
    "context length exceeded",
    "context_window_exceeded",
    "exceed_context_size",
    "model_max_prompt_tokens_exceeded",
    "tokens_limit_reached",
    "request_too_large",
    "maximum context length",
    "maximum prompt length is",
    "maximum model length is",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input token count",
    "input tokens exceed",
    "too many input tokens",
    "exceeds the maximum number of tokens",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeds model context window",
    "exceeds the model's context",
    "exceeds the model's maximum context",
    "exceed context limit",
    "context window exceeds limit",
    "context size has been exceeded",
    "context overflow",
    "greater than the context length",
    "longer than the model's context length",
    "input length exceeds context length",
    "exceeded model token limit",
    "too large for model with",
    "reduce the length of the messages",
    "prompt exceeds the length limit",
];

/// OpenAI and Groq count this as a rate, but no waiting makes the request smaller than the limit of a minute.
const LARGER_THAN_A_RATE: &str = "request too large for";

/// What a refusal says of itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    status: Option<u16>,
    code: String,
    kind: String,
    /// For people: bounded, without secrets.
    message: String,
    /// Everything, in lower case.
    all: String,
}

/// What was known when the refusal came.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Known {
    /// How long the server asks to wait.
    pub(crate) retry_after: Option<Duration>,
    /// A part of the answer had come already, so something was generated.
    pub(crate) begun: bool,
    /// Usage, where it had been said.
    pub(crate) usage: Option<Usage>,
}

/// A response that is no success, as it was read.
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// What its head says to people, to stand behind the message; empty when it says nothing.
    pub(crate) notes: String,
    /// How long its head asks to wait.
    pub(crate) retry_after: Option<Duration>,
}

/// Reads a response that is no success. `idle` is how long no byte of its body may come.
pub(crate) async fn hear(response: reqwest::Response, idle: Duration, secrets: &[&str]) -> Heard {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers(), clock);
    let text = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(|text| excerpt(text, secrets))
    };
    let mut notes = String::new();
    if let Some(location) = text(LOCATION.as_str()) {
        notes.push_str(&format!(" (it redirects to {location}: correct base_url)"));
    }
    if let Some(id) = header::REQUEST_IDS.iter().find_map(|name| text(name)) {
        notes.push_str(&format!(" (request {id})"));
    }
    let body = Body::new(response, idle).start(ERROR_BYTES).await;
    Heard { status, body: String::from_utf8_lossy(&body).into_owned(), notes, retry_after }
}

/// The error behind a response that is no success. `idle` is how long no byte of its body may come.
pub(crate) async fn refused(response: reqwest::Response, idle: Duration, secrets: &[&str]) -> ModelError {
    let heard = hear(response, idle, secrets).await;
    let mut complaint = Complaint::read(Some(heard.status), &heard.body, secrets);
    complaint.message.push_str(&heard.notes);
    complaint.into_error(Known { retry_after: heard.retry_after, ..Known::default() })
}

/// The message for people: what was said, behind the status where there is one.
pub(crate) fn message(said: String, status: Option<u16>) -> String {
    match (said.is_empty(), status) {
        (true, Some(status)) => format!("HTTP {status} without a word"),
        (true, None) => "an error without a word".into(),
        (false, Some(status)) => format!("HTTP {status}: {said}"),
        (false, None) => said,
    }
}

/// Only for a `Retry-After` date in a response that has no date itself.
#[expect(clippy::disallowed_methods, reason = "a date of the outside world is compared, nothing of a Run")]
pub(crate) fn clock() -> SystemTime {
    SystemTime::now()
}

impl Complaint {
    /// Reads the body of an error response, or an error object inside of a stream (without `status`).
    pub(crate) fn read(status: Option<u16>, body: &str, secrets: &[&str]) -> Self {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        // Gemini wraps the object into a list.
        let outer = json.get(0).unwrap_or(&json);
        let inner = outer.get("error").filter(|error| !error.is_null()).unwrap_or(outer);
        let text = |name: &str| match inner.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        let message = ["message", "detail", "error"].iter().map(|name| text(name)).find(|text| !text.is_empty());
        let message = message.or_else(|| inner.as_str().map(str::to_owned)).unwrap_or_else(|| body.to_owned());
        let message = self::message(excerpt(&message, secrets), status);
        Self {
            status,
            code: text("code").to_lowercase(),
            kind: text("type").to_lowercase(),
            message,
            all: body.to_lowercase(),
        }
    }

    /// The error of the port.
    pub(crate) fn into_error(self, known: Known) -> ModelError {
        self.class().into_error(self.message, known)
    }

    fn class(&self) -> Class {
        let is_rate = self.status == Some(429) || self.code == "429" || self.words().contains("rate_limit");
        if self.all.contains(LARGER_THAN_A_RATE) || self.status == Some(413) {
            return Class::TooLarge;
        }
        if !is_rate && self.status.is_none_or(|status| status >= 400) && self.says_too_large() {
            return Class::TooLarge;
        }
        if self.is_about_money() {
            return Class::Unauthorised;
        }
        let status = self.status.or_else(|| self.code.parse().ok().filter(|code| (300..600).contains(code)));
        match status {
            Some(status) => Class::of_status(status),
            None => self.by_words(),
        }
    }

    fn says_too_large(&self) -> bool {
        TOO_LARGE.iter().any(|words| self.all.contains(words))
    }

    /// The account cannot pay. It comes as 429, but waiting does not help.
    fn is_about_money(&self) -> bool {
        self.status == Some(402)
            || self.all.contains("credit balance is too low")
            || ["insufficient_quota", "billing_hard_limit_reached", "insufficient_balance", "billing_error"]
                .iter()
                .any(|word| self.code == *word || self.kind == *word)
    }

    fn words(&self) -> String {
        format!("{} {}", self.code, self.kind)
    }

    /// Error objects inside of a stream have no status.
    fn by_words(&self) -> Class {
        let words = self.words();
        let says = |any: &[&str]| any.iter().any(|word| words.contains(word));
        if says(&["rate_limit", "ratelimit", "too_many_requests", "resource_exhausted"]) {
            Class::RateLimited
        } else if says(&["authentication", "permission", "invalid_api_key", "unauthorized"]) {
            Class::Unauthorised
        } else if says(&[
            "invalid_",
            "badrequest",
            "bad_request",
            "not_found",
            "notfound",
            "unsupported",
            "content_filter",
            "policy",
        ]) {
            Class::Rejected
        } else if says(&["overloaded", "server_error", "servererror", "api_error", "unavailable", "timeout"]) {
            Class::Unavailable
        } else {
            // Unknown words: try again, at an unknown price.
            Class::Interrupted
        }
    }
}

/// What the caller can do about a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    RateLimited,
    Unavailable,
    Interrupted,
    Rejected,
    TooLarge,
    Unauthorised,
}

impl Class {
    /// The class that a status has where nothing says more.
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            401 | 402 | 403 | 407 => Self::Unauthorised,
            429 => Self::RateLimited,
            408 | 409 | 425 => Self::Unavailable,
            // The gateway gave up; whether the model behind it worked, and is paid, nobody says.
            499 | 504 | 524 => Self::Interrupted,
            501 | 505 => Self::Rejected,
            500..=599 => Self::Unavailable,
            _ => Self::Rejected,
        }
    }

    /// The error of the port.
    pub(crate) fn into_error(self, message: String, known: Known) -> ModelError {
        let Known { retry_after, begun, usage } = known;
        match self {
            // Once it has begun to answer, what it says against the request does not undo what it costs.
            Self::TooLarge | Self::Rejected | Self::Unauthorised if begun => ModelError::Stopped { message, usage },
            Self::TooLarge => ModelError::TooLarge(message),
            Self::Rejected => ModelError::Rejected(message),
            Self::Unauthorised => ModelError::Unauthorised(message),
            // These two promise that nothing was generated.
            Self::RateLimited if !begun => ModelError::RateLimited { message, retry_after },
            Self::Unavailable if !begun => ModelError::Unavailable { message, retry_after },
            Self::RateLimited | Self::Unavailable | Self::Interrupted => ModelError::Interrupted { message, usage },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// `status body` per line in, class and message out.
    #[track_caller]
    fn check(cases: &[(u16, &str)], expect: Expect) {
        let lines: String = cases
            .iter()
            .map(|(status, body)| {
                let status = Some(*status).filter(|status| *status != 0);
                let error = Complaint::read(status, body, &["sk-1"]).into_error(Known::default());
                format!("{} | {error}\n", error.code().trim_start_matches("model."))
            })
            .collect();
        expect.assert_eq(&lines);
    }

    #[test]
    fn oai_16_overflow_is_known_by_code_and_by_words() {
        check(
            &[
                (400, r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#),
                (400, r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000"}}"#),
                (
                    400,
                    r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                ),
                (
                    400,
                    r#"{"object":"error","message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","code":400}"#,
                ),
                (
                    400,
                    r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"maximum prompt length is 131072\"}"}}}"#,
                ),
                (500, r#"{"error":{"message":"input is too long for requested model"}}"#),
                (
                    400,
                    r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"}}"#,
                ),
                (413, "<html>Request Entity Too Large</html>"),
                (
                    429,
                    r#"{"error":{"message":"Request too large for gpt-x on tokens per min: Limit 30000, Requested 40000","code":"rate_limit_exceeded"}}"#,
                ),
                (
                    0,
                    r#"{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8)"}}"#,
                ),
            ],
            expect![[r#"
                too_large | too large: HTTP 400: no
                too_large | too large: HTTP 400: prompt is too long: 210000 tokens > 200000
                too_large | too large: HTTP 400: the request exceeds the available context size
                too_large | too large: HTTP 400: This model's maximum context length is 8192 tokens.
                too_large | too large: HTTP 400: Provider returned error
                too_large | too large: HTTP 500: input is too long for requested model
                too_large | too large: HTTP 400: input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000
                too_large | too large: HTTP 413: <html>Request Entity Too Large</html>
                too_large | too large: HTTP 429: Request too large for gpt-x on tokens per min: Limit 30000, Requested 40000
                too_large | too large: The input token count (9) exceeds the maximum number of tokens allowed (8)
            "#]],
        );
    }

    #[test]
    fn a_status_has_its_class() {
        check(
            &[
                (
                    400,
                    r#"{"error":{"message":"max_tokens is too large: 9. This model supports at most 8 completion tokens"}}"#,
                ),
                (401, r#"{"error":{"message":"Incorrect API key provided: sk-1"}}"#),
                (402, r#"{"error":{"message":"Insufficient Balance"}}"#),
                (400, r#"{"error":{"message":"Your credit balance is too low"}}"#),
                (403, ""),
                (404, r#"{"error":"model \"x\" not found"}"#),
                (422, r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#),
                (429, r#"[{"error":{"message":"slow down, too many tokens"}}]"#),
                (429, r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#),
                (500, "oops\u{1b}[31m"),
                (503, r#"{"error":{"message":"Loading model"}}"#),
                (504, "upstream timed out"),
                (529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#),
                (501, "no"),
                (308, ""),
            ],
            expect![[r#"
                rejected | rejected: HTTP 400: max_tokens is too large: 9. This model supports at most 8 completion tokens
                unauthorised | unauthorised: HTTP 401: Incorrect API key provided: [secret]
                unauthorised | unauthorised: HTTP 402: Insufficient Balance
                unauthorised | unauthorised: HTTP 400: Your credit balance is too low
                unauthorised | unauthorised: HTTP 403 without a word
                rejected | rejected: HTTP 404: model "x" not found
                rejected | rejected: HTTP 422: [{"loc":["body"],"msg":"field required"}]
                rate_limited | rate limited: HTTP 429: slow down, too many tokens
                unauthorised | unauthorised: HTTP 429: pay
                unavailable | unavailable: HTTP 500: oops [31m
                unavailable | unavailable: HTTP 503: Loading model
                interrupted | interrupted: HTTP 504: upstream timed out
                unavailable | unavailable: HTTP 529: Overloaded
                rejected | rejected: HTTP 501: no
                rejected | rejected: HTTP 308 without a word
            "#]],
        );
    }

    #[test]
    fn an_error_inside_of_a_stream_is_sorted_by_its_words() {
        check(
            &[
                (0, r#"{"error":{"type":"invalid_request_error","message":"bad tool"}}"#),
                (0, r#"{"error":{"type":"overloaded_error","message":"later"}}"#),
                (0, r#"{"error":{"code":502,"message":"Provider disconnected"}}"#),
                (0, r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#),
                (0, r#"{"error":{"type":"authentication_error"}}"#),
                (0, r#"{"error":"boom"}"#),
                (0, r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#),
            ],
            expect![[r#"
                rejected | rejected: bad tool
                unavailable | unavailable: later
                unavailable | unavailable: Provider disconnected
                rate_limited | rate limited: slow
                unauthorised | unauthorised: {"error":{"type":"authentication_error"}}
                interrupted | interrupted: boom
                rejected | rejected: bad
            "#]],
        );
    }

    #[test]
    fn what_had_begun_may_cost() {
        let complaint = || Complaint::read(None, r#"{"error":{"type":"overloaded_error","message":"later"}}"#, &[]);
        let known = Known { begun: true, ..Known::default() };
        let error = complaint().into_error(known);
        assert_eq!(error, ModelError::Interrupted { message: "later".into(), usage: None });
        assert_eq!(complaint().into_error(Known::default()).usage(), Some(Usage::default()));
    }
}
