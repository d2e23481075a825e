//! One HTTP exchange: at most one request, given up in time, cancelled when nobody wants it.

use super::excerpt;
use bytes::Bytes;
use loopd_runtime::{CallContext, Exchange, ModelError};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The largest answer that is read.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// How much is read of what follows an answer.
const REST_BYTES: usize = 64 * 1024;
/// How long it is waited for.
const REST_TIME: Duration = Duration::from_secs(1);

/// Does `work` within the time of the attempt, unless nobody wants it any more.
///
/// # Errors
/// What `work` reports; else [`ModelError::Interrupted`], because the provider may be working, and paid, on.
pub async fn within<T>(
    context: &CallContext,
    work: impl Future<Output = Result<T, ModelError>>,
) -> Result<T, ModelError> {
    if context.cancel.is_cancelled() {
        return Err(ModelError::Unavailable { message: "cancelled before it was sent".into(), retry_after: None });
    }
    let interrupted = |message: String| Err(ModelError::Interrupted { message, usage: None });
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => interrupted("cancelled".into()),
        result = tokio::time::timeout(context.timeout, work) => match result {
            Ok(result) => result,
            Err(_) => interrupted(format!("no answer within {:?}", context.timeout)),
        },
    }
}

/// Sends `request` and waits for the head of the response.
///
/// # Errors
/// [`ModelError::Unavailable`] when no connection came about, so that nothing can have been generated;
/// [`ModelError::Interrupted`] when the connection broke later.
pub async fn exchange(request: reqwest::RequestBuilder) -> Result<reqwest::Response, ModelError> {
    request.send().await.map_err(|error| {
        let connected = !error.is_connect();
        // An origin is scheme, host and port: whom nobody reached, and nothing secret.
        let server = error.url().map(|url| url.origin().ascii_serialization()).filter(|_| !connected);
        let said = describe(error);
        let message = server.map_or_else(|| said.clone(), |server| format!("{server} cannot be reached: {said}"));
        if connected {
            ModelError::Interrupted { message, usage: None }
        } else {
            ModelError::Unavailable { message, retry_after: None }
        }
    })
}

/// Keeps the bytes of an exchange as they pass, where that is wanted.
#[derive(Debug, Clone, Default)]
pub struct Tap(Option<Arc<Mutex<Exchange>>>);

impl Tap {
    /// A tap that keeps what passes, or one that does not.
    #[must_use]
    pub fn new(keep: bool) -> Self {
        Self(keep.then(Arc::default))
    }

    /// The body of the request.
    pub fn sent(&self, body: &str) {
        self.with(|exchange| exchange.request = body.as_bytes().to_vec());
    }

    fn came(&self, piece: &[u8]) {
        self.with(|exchange| exchange.response.extend_from_slice(piece));
    }

    fn with(&self, take: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = &self.0 {
            take(&mut exchange.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// What passed.
    #[must_use]
    pub fn exchange(&self) -> Option<Exchange> {
        let exchange = self.0.as_ref()?;
        Some(std::mem::take(&mut *exchange.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The body of a response, piece by piece.
#[derive(Debug)]
pub struct Body {
    response: reqwest::Response,
    idle: Duration,
    read: usize,
    tap: Tap,
}

impl Body {
    /// Reads the body of `response`; `idle` is how long no byte may come.
    #[must_use]
    pub fn new(response: reqwest::Response, idle: Duration) -> Self {
        Self { response, idle, read: 0, tap: Tap::default() }
    }

    /// The same, with what passes kept.
    #[must_use]
    pub fn tapped(self, tap: &Tap) -> Self {
        Self { tap: tap.clone(), ..self }
    }

    /// The next piece; `None` at its proper end. Every byte counts as a sign of life, a comment in an event stream
    /// included.
    ///
    /// # Errors
    /// What broke: the connection, the patience, the limit.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let piece = match tokio::time::timeout(self.idle, self.response.chunk()).await {
            Ok(piece) => piece.map_err(describe)?,
            Err(_) => return Err(format!("nothing came for {:?}", self.idle)),
        };
        self.read += piece.as_ref().map_or(0, Bytes::len);
        self.tap.came(piece.as_deref().unwrap_or_default());
        if self.read > MAX_BODY_BYTES {
            return Err(format!("the answer is larger than {MAX_BODY_BYTES} bytes"));
        }
        Ok(piece)
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`Body::next`].
    pub async fn all(&mut self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// As much as comes of the first `limit` bytes: for the body of an error, where some is better than none.
    pub async fn start(&mut self, limit: usize) -> Vec<u8> {
        let mut start = Vec::new();
        while start.len() < limit {
            match self.next().await {
                Ok(Some(piece)) => start.extend_from_slice(&piece),
                Ok(None) | Err(_) => break,
            }
        }
        start.truncate(limit);
        start
    }

    /// Reads what follows the answer, within bounds and aside: a connection with something left in it is closed, and
    /// the next call pays for a new one. Nobody waits for it, and it ends with the async runtime.
    pub fn leave(self) {
        let Self { mut response, .. } = self;
        tokio::spawn(async move {
            let rest = async {
                let mut read = 0;
                while let Ok(Some(piece)) = response.chunk().await {
                    read += piece.len();
                    if read > REST_BYTES {
                        break;
                    }
                }
            };
            let _ = tokio::time::timeout(REST_TIME, rest).await;
        });
    }
}

/// An HTTP error with its causes, which is where it says what happened, and without the URL, which may hold keys.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = inner.source();
    }
    excerpt(&text, &[])
}
