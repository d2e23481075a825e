//! Files in Conversations.

use crate::App;
use crate::auth::{By, Principal};
use crate::extract::{Key, Params, Reply, Segment, essence, receive};
use crate::refusal::{Answer, Refusal};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use loopd_platform::FeedName;
use loopd_protocol::{Artifact, ArtifactId, ConversationId};
use serde::Deserialize;
use std::fmt::Write as _;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The media type of bytes of which nobody said more.
const BYTES: &str = "application/octet-stream";

/// Types that are told back, besides audio and video.
const HARMLESS: [&str; 14] = [
    "application/gzip",
    "application/json",
    "application/jsonl",
    "application/pdf",
    "application/zip",
    "image/avif",
    "image/bmp",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/csv",
    "text/markdown",
    "text/plain",
];

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(attach)).routes(routes!(download))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AttachQuery {
    /// The file's name: no path, at most 200 characters.
    #[param(min_length = 1, max_length = 200)]
    name: String,
}

/// The bytes of a file, whatever they are.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[allow(dead_code, reason = "it is described, and never made")]
struct Bytes(Vec<u8>);

/// Attaches a file: the body is its bytes, `Content-Type` its media type.
#[utoipa::path(post, path = "/v1/conversations/{conversation}/artifacts", tag = "artifacts",
    params(("conversation" = ConversationId, Path, description = "Where"), AttachQuery),
    request_body(content = Bytes, content_type = "*/*", description = "The bytes"),
    responses(
        (status = 201, description = "It is attached", body = Artifact),
        (status = 200, description = "The same key attached it before", body = Artifact)))]
async fn attach(
    State(app): State<App>,
    principal: Principal,
    Segment(conversation): Segment<ConversationId>,
    Key(key): Key,
    Params(query): Params<AttachQuery>,
    request: Request,
) -> Answer<Reply<Artifact>> {
    let kind = request.headers().get(CONTENT_TYPE).map(|kind| kind.to_str().map(str::to_owned));
    let kind = match kind {
        None => BYTES.to_owned(),
        Some(Ok(kind)) => kind,
        Some(Err(_)) => return Err(Refusal::malformed("the media type is not ASCII").about("Content-Type")),
    };
    // Whoever may not read it may not fill memory for it either.
    app.platform().may_follow(&principal.caller, &FeedName::Conversation(conversation)).await?;
    let slot = app
        .rates
        .upload(principal.who, app.limits())
        .inspect_err(|refusal| app.metrics.rate_limited(refusal.code()))?;
    let bytes = receive(request, &app, app.platform().config().artifact_bytes).await?;
    let file = (query.name.as_str(), kind.as_str());
    let (artifact, already) = app.platform().attach(&principal.caller, conversation, &key, file, bytes).await?;
    drop(slot);
    let location = format!("/v1/artifacts/{}", artifact.id);
    Ok(Reply::made(artifact, already, location))
}

/// Reads the bytes of a file. Browsers save them; none shows them.
#[utoipa::path(get, path = "/v1/artifacts/{artifact}", tag = "artifacts",
    params(("artifact" = ArtifactId, Path, description = "Which one")),
    responses((status = 200, description = "The bytes", content((Bytes = "*/*")))))]
async fn download(State(app): State<App>, By(by): By, Segment(id): Segment<ArtifactId>) -> Answer<Response> {
    let (artifact, bytes) = app.platform().artifact(&by, id).await?;
    let kind = HeaderValue::from_str(harmless(&artifact.media_type)).unwrap_or(HeaderValue::from_static(BYTES));
    let mut response = (StatusCode::OK, Body::from(bytes)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    let texts = [(CONTENT_DISPOSITION, disposition(&artifact.name)), (ETAG, format!("\"{}\"", artifact.digest))];
    for (name, text) in texts {
        let value = HeaderValue::from_str(&text).map_err(|_| Refusal::internal("the file's name cannot be written"))?;
        headers.insert(name, value);
    }
    Ok(response)
}

/// The type as it was said, where browsers only show or play it. What they might run is bytes to them, whatever else
/// keeps them from running it.
fn harmless(media_type: &str) -> &str {
    let essence = essence(media_type);
    let shown = essence.starts_with("audio/") || essence.starts_with("video/") || HARMLESS.contains(&essence.as_str());
    if shown { media_type } else { BYTES }
}

/// The name twice: plain, for whoever reads nothing else, and as RFC 8187 says.
fn disposition(name: &str) -> String {
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut exact = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            exact.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(exact, "%{byte:02X}");
        }
    }
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}")
}

fn is_plain(c: char) -> bool {
    (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\' | '%' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        let said = disposition("a\"; filename=b\r\nX: y/ü.html");
        assert_eq!(
            said,
            "attachment; filename=\"a_; filename=b__X: y__.html\"; \
             filename*=UTF-8''a%22%3B%20filename%3Db%0D%0AX%3A%20y%2F%C3%BC.html"
        );
        assert!(HeaderValue::from_str(&said).is_ok());
    }
}
