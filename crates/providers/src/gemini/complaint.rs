//! What a server says when it refuses, sorted by what the caller can do about it.

use crate::complaint::{Class, Known, hear, message};
use crate::wire::{excerpt, seconds};
use loopd_runtime::ModelError;
use serde_json::Value;
use std::time::Duration;

/// Words by which a request is said not to fit into the context window, in lower case.
const TOO_LARGE: [&str; 7] = [
    "input token count",
    "exceeds the maximum number of tokens",
    "exceeds the maximum number of input tokens",
    "context window",
    "prompt is too long",
    "request payload size exceeds",
    "maximum context length",
];

/// Words by which the key, or the account behind it, is said to be the trouble, in lower case. Some of it comes as
/// 400 or 429, but neither another request nor waiting helps.
const ABOUT_THE_ACCOUNT: [&str; 12] = [
    "api_key_invalid",
    "api key not valid",
    "api key not found",
    "api key expired",
    "reported as leaked",
    "api_key_service_blocked",
    "service_disabled",
    "billing_disabled",
    "credits are depleted",
    "user location is not supported",
    "not available in your country",
    // A quota of nothing: the account may not use this model at all.
    "limit: 0,",
];

/// What a refusal says of itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Complaint {
    status: Option<u16>,
    /// The class by Google's own name, for example `RESOURCE_EXHAUSTED`.
    word: String,
    /// For people: bounded, without secrets.
    message: String,
    /// Everything, in lower case.
    all: String,
    retry_delay: Option<Duration>,
}

/// The error behind a response that is no success. `idle` is how long no byte of its body may come.
pub(super) async fn refused(response: reqwest::Response, idle: Duration, secrets: &[&str]) -> ModelError {
    let heard = hear(response, idle, secrets).await;
    let mut complaint = Complaint::read(Some(heard.status), &heard.body, secrets);
    complaint.message.push_str(&heard.notes);
    complaint.into_error(Known { retry_after: heard.retry_after, ..Known::default() })
}

impl Complaint {
    /// Reads the body of an error response, or an error object inside of a stream (without `status`).
    pub(super) fn read(status: Option<u16>, body: &str, secrets: &[&str]) -> Self {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        // An error of the streaming endpoint may stand in a list.
        let outer = json.get(0).unwrap_or(&json);
        let inner = outer.get("error").filter(|error| !error.is_null()).unwrap_or(outer);
        let text = |name: &str| inner.get(name).and_then(Value::as_str).unwrap_or_default();
        let said = [text("message"), inner.as_str().unwrap_or_default(), body];
        let said = excerpt(said.iter().find(|said| !said.is_empty()).unwrap_or(&""), secrets);
        let code = inner.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let message = message(said, status);
        Self {
            status: status.or(code.filter(|code| (300..600).contains(code))),
            word: text("status").to_owned(),
            message,
            all: body.to_lowercase(),
            retry_delay: retry_delay(inner),
        }
    }

    /// The error of the port.
    pub(super) fn into_error(self, known: Known) -> ModelError {
        // Where head and body disagree, the longer wait satisfies both.
        let retry_after = known.retry_after.max(self.retry_delay);
        self.class().into_error(self.message, Known { retry_after, ..known })
    }

    fn class(&self) -> Class {
        let says = |any: &[&str]| any.iter().any(|words| self.all.contains(words));
        let is_rate = self.status == Some(429) || self.word == "RESOURCE_EXHAUSTED";
        if self.status == Some(413) || (!is_rate && says(&TOO_LARGE)) {
            return Class::TooLarge;
        }
        if says(&ABOUT_THE_ACCOUNT) {
            return Class::Unauthorised;
        }
        by_word(&self.word).or_else(|| self.status.map(Class::of_status)).unwrap_or(Class::Interrupted)
    }
}

/// How long the details of an error ask to wait.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay"))?.as_str()?;
    seconds(delay.strip_suffix('s')?)
}

fn by_word(word: &str) -> Option<Class> {
    Some(match word {
        "RESOURCE_EXHAUSTED" => Class::RateLimited,
        "UNAVAILABLE" | "INTERNAL" | "ABORTED" => Class::Unavailable,
        // The server gave up; whether the model behind it worked, and is paid, nobody says.
        "DEADLINE_EXCEEDED" | "CANCELLED" | "UNKNOWN" | "DATA_LOSS" => Class::Interrupted,
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => Class::Unauthorised,
        "INVALID_ARGUMENT"
        | "NOT_FOUND"
        | "FAILED_PRECONDITION"
        | "OUT_OF_RANGE"
        | "UNIMPLEMENTED"
        | "ALREADY_EXISTS" => Class::Rejected,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use loopd_kernel::Usage;

    /// `status body` per line in, class, wait and message out.
    #[track_caller]
    fn check(cases: &[(u16, &str)], expect: Expect) {
        let lines: String = cases
            .iter()
            .map(|(status, body)| {
                let status = Some(*status).filter(|status| *status != 0);
                let error = Complaint::read(status, body, &["AIza-1"]).into_error(Known::default());
                let wait = error.retry_after().map(|wait| format!(" after {wait:?}")).unwrap_or_default();
                format!("{}{wait} | {error}\n", error.code().trim_start_matches("model."))
            })
            .collect();
        expect.assert_eq(&lines);
    }

    #[test]
    fn quotas_say_how_long_to_wait() {
        check(
            &[
                (
                    429,
                    r#"{"error":{"code":429,"message":"You exceeded your current quota. limit: 20, model: x","status":"RESOURCE_EXHAUSTED","details":[
                        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaValue":"20"}]},
                        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37.826266381s"}]}}"#,
                ),
                (
                    429,
                    r#"[{"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}]"#,
                ),
                (
                    429,
                    r#"{"error":{"message":"soon","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"soon"}]}}"#,
                ),
                (
                    429,
                    r#"{"error":{"message":"metric: free_tier_requests, limit: 0, model: x","status":"RESOURCE_EXHAUSTED"}}"#,
                ),
                (429, r#"{"error":{"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}"#),
                (
                    429,
                    r#"{"error":{"message":"Quota exceeded: input token count per minute","status":"RESOURCE_EXHAUSTED"}}"#,
                ),
                (503, r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#),
            ],
            expect![[r#"
                rate_limited after 37.827s | rate limited: HTTP 429: You exceeded your current quota. limit: 20, model: x
                rate_limited | rate limited: HTTP 429: Resource has been exhausted (e.g. check quota).
                rate_limited | rate limited: HTTP 429: soon
                unauthorised | unauthorised: HTTP 429: metric: free_tier_requests, limit: 0, model: x
                unauthorised | unauthorised: HTTP 429: Your prepayment credits are depleted.
                rate_limited | rate limited: HTTP 429: Quota exceeded: input token count per minute
                unavailable | unavailable: HTTP 503: The model is overloaded.
            "#]],
        );
    }

    #[test]
    fn keys_requests_and_sizes_are_told_apart() {
        check(
            &[
                (
                    400,
                    r#"{"error":{"code":400,"message":"API key not valid. AIza-1","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
                ),
                (400, r#"{"error":{"code":400,"message":"Invalid JSON payload","status":"INVALID_ARGUMENT"}}"#),
                (
                    400,
                    r#"{"error":{"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}"#,
                ),
                (
                    400,
                    r#"{"error":{"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
                ),
                (403, r#"{"error":{"message":"denied","status":"PERMISSION_DENIED"}}"#),
                (404, r#"{"error":{"message":"models/x is not found","status":"NOT_FOUND"}}"#),
                (413, "<html>too large</html>"),
                (401, ""),
            ],
            expect![[r#"
                unauthorised | unauthorised: HTTP 400: API key not valid. [secret]
                rejected | rejected: HTTP 400: Invalid JSON payload
                unauthorised | unauthorised: HTTP 400: User location is not supported for the API use.
                too_large | too large: HTTP 400: The input token count (9) exceeds the maximum number of tokens allowed (8).
                unauthorised | unauthorised: HTTP 403: denied
                rejected | rejected: HTTP 404: models/x is not found
                too_large | too large: HTTP 413: <html>too large</html>
                unauthorised | unauthorised: HTTP 401 without a word
            "#]],
        );
    }

    #[test]
    fn what_the_server_gave_up_may_be_paid() {
        check(
            &[
                (500, r#"{"error":{"message":"An internal error has occurred","status":"INTERNAL"}}"#),
                (504, r#"{"error":{"message":"Deadline expired","status":"DEADLINE_EXCEEDED"}}"#),
                (499, r#"{"error":{"message":"gone","status":"CANCELLED"}}"#),
                (502, "Bad\u{1b} gateway"),
                (0, r#"{"error":{"code":503,"message":"later"}}"#),
                (0, r#"{"error":{"message":"odd"}}"#),
                (0, r#"{"error":"boom"}"#),
                (308, ""),
            ],
            expect![[r#"
                unavailable | unavailable: HTTP 500: An internal error has occurred
                interrupted | interrupted: HTTP 504: Deadline expired
                interrupted | interrupted: HTTP 499: gone
                unavailable | unavailable: HTTP 502: Bad gateway
                unavailable | unavailable: later
                interrupted | interrupted: odd
                interrupted | interrupted: boom
                rejected | rejected: HTTP 308 without a word
            "#]],
        );
    }

    #[test]
    fn what_had_begun_may_cost() {
        let complaint =
            |word: &str| Complaint::read(None, &format!(r#"{{"error":{{"status":"{word}","message":"no"}}}}"#), &[]);
        let begun = Known { begun: true, ..Known::default() };
        let interrupted = ModelError::Interrupted { message: "no".into(), usage: None };
        let stopped = ModelError::Stopped { message: "no".into(), usage: None };
        assert_eq!(complaint("UNAVAILABLE").into_error(begun), interrupted);
        assert_eq!(complaint("RESOURCE_EXHAUSTED").into_error(begun), interrupted);
        assert_eq!(complaint("INVALID_ARGUMENT").into_error(begun), stopped);
        assert_eq!(complaint("UNAVAILABLE").into_error(Known::default()).usage(), Some(Usage::default()));
    }
}
