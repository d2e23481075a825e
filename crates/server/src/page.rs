//! The built-in page: one file, one policy.

use crate::App;
use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const HTML: &str = include_str!("page/page.html");

/// The page and the policy under which it runs: its own script and style by their digests, requests to its own server,
/// and nothing else.
#[derive(Debug)]
pub(crate) struct Page {
    policy: String,
}

impl Page {
    pub(crate) fn new() -> Self {
        let (script, style) = (digest_of("script"), digest_of("style"));
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; connect-src 'self'; \
             img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'"
        );
        Self { policy }
    }
}

/// The digest of what stands between `<tag>` and `</tag>`.
fn digest_of(tag: &str) -> String {
    let after = HTML.split_once(&format!("<{tag}>")).map_or("", |(_, after)| after);
    let inside = after.split_once(&format!("</{tag}>")).map_or("", |(inside, _)| inside);
    STANDARD.encode(Sha256::digest(inside.as_bytes()))
}

pub(crate) fn router() -> Router<App> {
    Router::new().route("/", get(page))
}

async fn page(State(app): State<App>) -> Response {
    let said =
        [(CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (CONTENT_SECURITY_POLICY, app.page.policy.clone())];
    (said, HTML).into_response()
}
