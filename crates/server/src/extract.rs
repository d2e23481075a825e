//! The parts of a request, each read in one way with one kind of refusal; and the shape of an answer.

use crate::App;
use crate::refusal::{Answer, Refusal};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, LOCATION, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use loopd_platform::Paging;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

/// Parameters in the path. What cannot be an identity is one that nothing has.
#[derive(Debug)]
pub(crate) struct Segment<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Segment<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Answer<Self> {
        match Path::<T>::from_request_parts(parts, app).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(rejection) => Err(Refusal::not_found(format!("nothing has this path: {}", rejection.body_text()))),
        }
    }
}

/// Parameters behind the question mark: unknown and repeated ones are refused.
#[derive(Debug)]
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Answer<Self> {
        match Query::<T>::from_request_parts(parts, app).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => {
                let text = rejection.body_text();
                let detail = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
                // `name: what is wrong`, where the deserialiser knows the name.
                let field = detail.split_once(": ").map_or("", |(name, _)| name);
                Err(Refusal::invalid(if field.contains(' ') { "" } else { field }, detail))
            }
        }
    }
}

/// What lists take.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// `next` of the part before.
    pub(crate) cursor: Option<String>,
    /// At most this many items; 0, or nothing, is the usual number.
    pub(crate) limit: Option<u32>,
}

/// What lists take, as the platform takes it.
pub(crate) fn paging(cursor: Option<String>, limit: Option<u32>) -> Paging {
    Paging { cursor, limit: number(limit) }
}

/// A number of items, as the platform takes it: nothing is 0, the usual number.
pub(crate) fn number(asked: Option<u32>) -> usize {
    usize::try_from(asked.unwrap_or(0)).unwrap_or(usize::MAX)
}

/// The header `Idempotency-Key`. Without one the key is empty, and the same request again does it again.
#[derive(Debug)]
pub(crate) struct Key(pub(crate) String);

impl FromRequestParts<App> for Key {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Answer<Self> {
        let Some(value) = single(&parts.headers, "idempotency-key")? else { return Ok(Self(String::new())) };
        match value.to_str() {
            Ok(text) if loopd_platform::is_key(text) => Ok(Self(text.to_owned())),
            Ok(_) | Err(_) => {
                let detail = "a key has 1 to 200 visible ASCII characters, without spaces";
                Err(Refusal::malformed(detail).about("Idempotency-Key"))
            }
        }
    }
}

/// The header `If-Match`: the revision that the change is about.
#[derive(Debug)]
pub(crate) struct IfMatch(pub(crate) Option<u64>);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Answer<Self> {
        let Some(value) = single(&parts.headers, IF_MATCH.as_str())? else { return Ok(Self(None)) };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        // Proxies that compress make tags weak; a revision is one all the same.
        let tag = text.strip_prefix("W/").unwrap_or(text);
        let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).and_then(|tag| tag.parse().ok());
        let wrong =
            || Refusal::malformed("expected a revision in quotes, as the header ETag says it").about("If-Match");
        number.map(|revision| Self(Some(revision))).ok_or_else(wrong)
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &'static str) -> Answer<Option<&'a HeaderValue>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(Refusal::malformed("the header is there twice").about(name)),
    }
}

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Answer<Self> {
        if !is_json(request.headers()) {
            let detail = "send JSON, with `Content-Type: application/json`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail));
        }
        let limit = app.limits().json_bytes.saturating_add(app.platform().config().message_bytes);
        let bytes = receive(request, app, limit).await?;
        parse(&bytes).map(Self)
    }
}

/// A JSON body that may be left out.
#[derive(Debug)]
pub(crate) struct JsonOr<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<App> for JsonOr<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Answer<Self> {
        let headers = request.headers();
        let empty = headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
        if empty && !headers.contains_key(CONTENT_TYPE) && !headers.contains_key(TRANSFER_ENCODING) {
            return Ok(Self(T::default()));
        }
        Json::from_request(request, app).await.map(|Json(value)| Self(value))
    }
}

/// A media type without its parameters, in lower case.
pub(crate) fn essence(media_type: &str) -> String {
    media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = essence(text);
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Answer<T> {
    if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        // Otherwise a list would pass for an object whose names are left out.
        serde_json::from_slice::<IgnoredAny>(bytes).map_err(|error| Refusal::malformed(error.to_string()))?;
        return Err(Refusal::invalid("", "the body is no JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        // The reader calls some values that do not fit, null among them, an error of syntax.
        if error.inner().is_data() || serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            Refusal::invalid(error.path().to_string(), error.inner().to_string())
        } else {
            Refusal::malformed(error.inner().to_string())
        }
    })?;
    reader.end().map_err(|error| Refusal::malformed(error.to_string()))?;
    Ok(value)
}

/// The whole body, or a refusal once it is clear that it is too large or comes too slowly.
pub(crate) async fn receive(request: Request, app: &App, limit: usize) -> Answer<Vec<u8>> {
    let headers = request.headers();
    if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        let detail = "send the body as it is, without Content-Encoding";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", detail));
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > limit) {
        return Err(Refusal::too_large(limit));
    }
    let received = tokio::time::timeout(app.limits().body_timeout, collect(request.into_body(), limit)).await;
    received.unwrap_or_else(|_| {
        Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "timeout", "the body did not arrive in time"))
    })
}

async fn collect(body: Body, limit: usize) -> Answer<Vec<u8>> {
    let mut chunks = body.into_data_stream();
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next().await {
        let chunk: Bytes = chunk.map_err(|_| Refusal::malformed("the body broke off"))?;
        if chunk.len() > limit - bytes.len() {
            return Err(Refusal::too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// A success with a JSON body.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    status: StatusCode,
    body: T,
    headers: Vec<(HeaderName, String)>,
}

impl<T> Reply<T> {
    pub(crate) const fn ok(body: T) -> Self {
        Self { status: StatusCode::OK, body, headers: Vec::new() }
    }

    pub(crate) const fn accepted(body: T) -> Self {
        Self { status: StatusCode::ACCEPTED, body, headers: Vec::new() }
    }

    /// New: 201. The same again: 200.
    pub(crate) fn made(body: T, already: bool, location: String) -> Self {
        let status = if already { StatusCode::OK } else { StatusCode::CREATED };
        Self { status, body, headers: vec![(LOCATION, location)] }
    }

    pub(crate) fn revision(mut self, revision: u64) -> Self {
        self.headers.push((ETAG, format!("\"{revision}\"")));
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: String) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        let body = match serde_json::to_vec(&self.body) {
            Ok(body) => body,
            Err(error) => return Refusal::internal(error.to_string()).into_response(),
        };
        let mut response = (self.status, Body::from(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.headers {
            match HeaderValue::from_str(&value) {
                Ok(value) => headers.append(name, value),
                Err(_) => return Refusal::internal("a header cannot be written").into_response(),
            };
        }
        response
    }
}
