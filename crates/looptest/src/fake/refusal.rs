//! What a provider says when it does not answer, in its own form.

use super::journal::Wire;
use loopd_script::FaultKind;
use serde_json::{Value, json};

/// A complaint, before it has a provider's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
    /// OpenAI's name of the setting that is wrong.
    pub(super) param: Option<String>,
    /// OpenAI's word for it.
    pub(super) code: Option<&'static str>,
    /// Google's reason, among the details.
    pub(super) reason: Option<&'static str>,
    /// How long to wait, in milliseconds.
    pub(super) retry_after_ms: Option<u64>,
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), param: None, code: None, reason: None, retry_after_ms: None }
    }

    /// The request is wrong.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(super) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    pub(super) const fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    /// The fault of a script, as this provider has it.
    pub(super) fn of_fault(wire: Wire, kind: FaultKind) -> Self {
        match kind {
            FaultKind::RateLimited => Self::of_status(wire, 429),
            FaultKind::Unavailable => Self::of_status(wire, if wire == Wire::Messages { 529 } else { 503 }),
            FaultKind::Rejected => Self::of_status(wire, 400),
            FaultKind::Unauthorised => Self::of_status(wire, 401),
            FaultKind::TooLarge => match wire {
                Wire::Completions | Wire::Responses => Self::invalid(
                    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 \
                     tokens. Please reduce the length of the messages.",
                )
                .param(if wire == Wire::Completions { "messages" } else { "input" })
                .code("context_length_exceeded"),
                Wire::Messages => Self::invalid("prompt is too long: 210000 tokens > 200000 maximum"),
                Wire::Gemini => {
                    Self::invalid("The input token count (10000) exceeds the maximum number of tokens allowed (8192).")
                }
            },
            // These three are no words of a server; where one must speak nevertheless, it is its own fault.
            FaultKind::Cut | FaultKind::Hang | FaultKind::Malformed => Self::of_status(wire, 500),
        }
    }

    /// What a provider says with this status.
    pub(super) fn of_status(wire: Wire, status: u16) -> Self {
        let message = match (status, wire) {
            (401, Wire::Completions | Wire::Responses) => "Incorrect API key provided: [secret].",
            (401, Wire::Messages) => "invalid x-api-key",
            (401, Wire::Gemini) => "API key not valid. Please pass a valid API key.",
            (403, _) => "This key may not use this model.",
            (404, _) => "There is no such model.",
            (413, _) => "Request exceeds the maximum size",
            (429, Wire::Gemini) => "Resource has been exhausted (e.g. check quota).",
            (429, _) => "Rate limit reached. Please try again later.",
            (503, Wire::Gemini) => "The model is overloaded. Please try again later.",
            (529, _) => "Overloaded",
            (500.., _) => "The server had an error while processing your request.",
            (_, _) => "The request is refused by the script.",
        };
        let code = match status {
            401 => Some("invalid_api_key"),
            404 => Some("model_not_found"),
            429 => Some("rate_limit_exceeded"),
            _ => None,
        };
        // Google answers a wrong key with 400.
        let (sent, reason) =
            if status == 401 && wire == Wire::Gemini { (400, Some("API_KEY_INVALID")) } else { (status, None) };
        Self { code, reason, ..Self::new(sent, message) }
    }

    /// The body of the response.
    pub(super) fn body(&self, wire: Wire) -> Value {
        match wire {
            Wire::Completions | Wire::Responses => json!({"error": self.openai()}),
            Wire::Messages => json!({
                "type": "error",
                "error": {"type": self.anthropic_type(), "message": self.message},
                "request_id": "req_fake",
            }),
            Wire::Gemini => json!({"error": self.google()}),
        }
    }

    /// The error object of OpenAI.
    pub(super) fn openai(&self) -> Value {
        let kind = match self.status {
            429 => "requests",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        json!({"message": self.message, "type": kind, "param": self.param, "code": self.code})
    }

    const fn anthropic_type(&self) -> &'static str {
        match self.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }

    fn google(&self) -> Value {
        let status = match self.status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            500.. => "INTERNAL",
            _ => "INVALID_ARGUMENT",
        };
        let mut error = json!({"code": self.status, "message": self.message, "status": status});
        let mut details = Vec::new();
        if let Some(reason) = self.reason {
            let domain = "googleapis.com";
            details
                .push(json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain}));
        }
        if let Some(ms) = self.retry_after_ms {
            let delay = format!("{}.{:03}s", ms / 1000, ms % 1000);
            details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}));
        }
        if !details.is_empty() {
            error["details"] = Value::Array(details);
        }
        error
    }

    /// The headers that come with it.
    pub(super) fn headers(&self, wire: Wire) -> Vec<(String, String)> {
        let Some(ms) = self.retry_after_ms.filter(|_| wire != Wire::Gemini) else {
            return Vec::new();
        };
        let mut headers = vec![("retry-after".to_owned(), ms.div_ceil(1000).to_string())];
        if ms % 1000 != 0 && wire != Wire::Messages {
            headers.push(("retry-after-ms".to_owned(), ms.to_string()));
        }
        headers
    }
}
