//! A client of streams, as a browser is one.

use crate::world::{Ask, World};
use axum::http::{HeaderMap, StatusCode};
use futures::StreamExt;
use serde_json::Value;
use std::time::Duration;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub event: String,
    pub id: Option<String>,
    pub data: String,
}

impl Sent {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

/// A client of a stream, as a browser is one.
pub struct Listening {
    pub headers: HeaderMap,
    body: axum::body::BodyDataStream,
    rest: String,
    /// Comments and events, in order.
    pub raw: String,
    pub over: bool,
}

impl World {
    pub async fn listen(&self, token: &str, path: impl Into<String>, last: Option<&str>) -> Listening {
        let mut ask = Ask::get(path).by(token);
        if let Some(last) = last {
            ask = ask.header("last-event-id", last);
        }
        Listening::of(self.response(ask).await).await
    }
}

impl Listening {
    pub async fn of(response: axum::response::Response) -> Self {
        let (parts, body) = response.into_parts();
        if parts.status != StatusCode::OK {
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            panic!("no stream: {} {}", parts.status, String::from_utf8_lossy(&body));
        }
        let body = body.into_data_stream();
        Self { headers: parts.headers, body, rest: String::new(), raw: String::new(), over: false }
    }

    /// The next piece of the body, if there is one without time passing.
    pub async fn piece(&mut self) -> Option<String> {
        let next = tokio::time::timeout(Duration::from_millis(1), self.body.next()).await.ok()?;
        match next {
            Some(piece) => {
                let piece = String::from_utf8(piece.unwrap().to_vec()).unwrap();
                self.raw.push_str(&piece);
                Some(piece)
            }
            None => {
                self.over = true;
                None
            }
        }
    }

    /// All events that there are by now.
    pub async fn events(&mut self) -> Vec<Sent> {
        while let Some(piece) = self.piece().await {
            self.rest.push_str(&piece);
        }
        let mut events = Vec::new();
        while let Some((frame, rest)) = self.rest.split_once("\n\n") {
            events.extend(parse(frame));
            self.rest = rest.to_owned();
        }
        events
    }
}

/// The event of a frame; comments are none.
pub fn parse(frame: &str) -> Option<Sent> {
    let (mut event, mut id, mut data) = (None, None, None);
    for line in frame.lines() {
        match line.split_once(": ").unwrap_or((line, "")) {
            ("event", value) => event = Some(value.to_owned()),
            ("id", value) => id = Some(value.to_owned()),
            ("data", value) => data = Some(value.to_owned()),
            ("retry" | "" | ":", _) => {}
            other => panic!("not a line of an event: {other:?}"),
        }
    }
    Some(Sent { event: event?, id, data: data? })
}
