//! The body of a response, act by act.

use super::plan::Act;
use super::service::Service;
use hyper::body::{Body, Bytes, Frame};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Why a connection breaks: because the script says so.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection here")]
pub(super) struct Broken;

/// A body that does one act after the other. Each piece leaves as a packet of its own.
pub(super) struct Acts {
    service: Arc<Service>,
    left: VecDeque<Act>,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// What was sent may not have left yet.
    unsent: bool,
}

impl Acts {
    pub(super) fn new(service: Arc<Service>, acts: Vec<Act>) -> Self {
        Self { service, left: acts.into(), waiting: None, unsent: false }
    }
}

impl Body for Acts {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                if waiting.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.waiting = None;
            }
            // The connection sends what it has whenever there is nothing more at once; an error would take it away.
            if std::mem::take(&mut self.unsent) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match self.left.pop_front() {
                None => return Poll::Ready(None),
                Some(Act::Send(bytes)) if bytes.is_empty() => {}
                Some(Act::Send(bytes)) => {
                    self.unsent = true;
                    return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
                }
                Some(Act::Break) => return Poll::Ready(Some(Err(Broken))),
                Some(Act::Pause(ms)) => self.waiting = Some(Box::pin(pause(ms))),
                Some(Act::Wait(gate)) => {
                    let service = self.service.clone();
                    self.waiting = Some(Box::pin(async move { service.gates().pass(&gate).await }));
                }
            }
        }
    }
}

/// Lets time pass, where a script asks for it.
pub(super) async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}
