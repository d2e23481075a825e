//! Every answer that is not a success, as problem+json. The only place where an error becomes a status.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use loopd_platform::Error;
use loopd_protocol::Problem;
use loopd_store::StoreError;

/// The media type of [`Problem`].
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// The longest detail: what a client sent is told back in parts only.
const DETAIL_CHARS: usize = 400;

/// A request that is not done.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    detail: String,
    field: Option<Box<str>>,
    retryable: bool,
    says: Says,
}

/// A header that goes with the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    RetryAfter(u64),
    Authenticate,
}

/// What handlers and layers return.
pub(crate) type Answer<T> = Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let retryable = matches!(status.as_u16(), 408 | 429 | 503);
        Self { status, code, detail: detail.into(), field: None, retryable, says: Says::Nothing }
    }

    pub(crate) fn about(mut self, field: impl Into<String>) -> Self {
        let field = field.into();
        self.field = (!field.is_empty() && field != ".").then_some(field.into_boxed_str());
        self
    }

    fn after(mut self, seconds: u64) -> Self {
        self.says = Says::RetryAfter(seconds.max(1));
        self
    }

    pub(crate) fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", detail)
    }

    pub(crate) fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).about(field)
    }

    pub(crate) fn forbidden(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", format!("the body has more than {limit} bytes"))
    }

    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        let mut refusal = Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail);
        refusal.says = Says::Authenticate;
        refusal
    }

    pub(crate) fn too_many(code: &'static str, detail: impl Into<String>, after_s: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail).after(after_s)
    }

    pub(crate) fn draining() -> Self {
        let detail = "the server is stopping; try again when it is back";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", detail).after(5)
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    /// What the platform says of a request with `If-Match`: another revision is a precondition that failed.
    pub(crate) fn of_match(error: Error) -> Self {
        let mut refusal = Self::from(error);
        if refusal.code == "revision" {
            refusal.status = StatusCode::PRECONDITION_FAILED;
        }
        refusal
    }

    /// What a bare status becomes: routers and connections answer some requests before we see them.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => {
                ("no_route", "there is nothing at this path; GET /openapi.json lists what there is")
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method", "this path does not take this method; the header Allow lists those")
            }
            StatusCode::BAD_REQUEST => ("malformed", "the request cannot be read"),
            _ => ("internal", "the request was not done"),
        };
        Self::new(status, code, detail)
    }

    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (code, retryable, detail) = (error.code(), error.is_retryable(), error.to_string());
        let mut refusal = match error {
            Error::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, code, detail),
            Error::Forbidden(_) => Self::new(StatusCode::FORBIDDEN, code, detail),
            Error::Invalid { field, detail } => Self::invalid(field, detail),
            Error::Conflict { .. } => Self::new(StatusCode::CONFLICT, code, detail),
            Error::Busy { code: "draining", retry_after_s, .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).after(retry_after_s)
            }
            Error::Busy { retry_after_s, .. } => Self::too_many(code, detail, retry_after_s),
            Error::TooLarge { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, code, detail),
            Error::Store(error) => of_store(&error, code),
        };
        refusal.retryable = retryable;
        refusal
    }
}

/// The store's own words go to the log: they may name files and statements.
fn of_store(error: &StoreError, code: &'static str) -> Refusal {
    tracing::error!(%error, "the store refused a request");
    match error {
        StoreError::Full(_) => {
            Refusal::new(StatusCode::INSUFFICIENT_STORAGE, code, "the store is full: nothing was written")
        }
        StoreError::Corrupt(_) | StoreError::TooNew { .. } => {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, code, "the store contradicts itself; see the server's log")
        }
        StoreError::Ambiguous(_) => {
            let detail = "nobody knows whether it was written: send it again with the same Idempotency-Key";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).after(1)
        }
        StoreError::Conflict(_)
        | StoreError::Fenced(_)
        | StoreError::Unavailable(_)
        | StoreError::DriverElsewhere(_)
        | StoreError::ClientOnly => {
            let detail = "the store does not take this now; see the server's log";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).after(1)
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Error::Store(error).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut detail: String = self.detail.chars().take(DETAIL_CHARS).collect();
        if detail.len() < self.detail.len() {
            detail.push('…');
        }
        let problem = Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Refused").to_owned(),
            status: self.status.as_u16(),
            detail,
            code: self.code.to_owned(),
            retryable: self.retryable,
            retry_after_s: match self.says {
                Says::RetryAfter(seconds) => Some(seconds),
                Says::Nothing | Says::Authenticate => None,
            },
            field: self.field.map(String::from),
        };
        // Strings and numbers always serialise.
        let mut response = Response::new(Body::from(serde_json::to_vec(&problem).unwrap_or_default()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        let header = match self.says {
            Says::Nothing => None,
            Says::RetryAfter(seconds) => Some((RETRY_AFTER, HeaderValue::from(seconds))),
            Says::Authenticate => Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        };
        response.headers_mut().extend(header);
        response
    }
}
