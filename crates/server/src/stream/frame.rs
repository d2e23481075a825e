//! Events as the stream writes them.

use super::cursor;
use super::follow::Followed;
use loopd_platform::FeedName;
use loopd_protocol::{Delta, FeedEvent};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Nothing, so that proxies and clients see that the stream lives.
pub(crate) const HEARTBEAT: &str = ":\n\n";
/// The last that a stream says when the server stops: come back with the last id.
pub(crate) const STOPPING: &str = "event: stopping\ndata: {}\n\n";

/// Milliseconds after which browsers come back.
const RETRY_MS: u32 = 2000;

/// One event. JSON has no line feed outside of strings, and inside they are escaped: it is always one line.
fn push(out: &mut String, event: &str, id: Option<&str>, data: &impl Serialize) {
    // Writing to a String cannot fail, and what is written always serialises.
    let _ = writeln!(out, "event: {event}");
    if let Some(id) = id {
        let _ = writeln!(out, "id: {id}");
    }
    let _ = write!(out, "data: {}\n\n", serde_json::to_string(data).unwrap_or_default());
}

fn id(feeds: &[Followed]) -> String {
    cursor::encode(feeds.iter().filter(|feed| feed.open).map(|feed| (&feed.name, feed.position)))
}

#[derive(Serialize)]
struct Positions {
    positions: BTreeMap<String, u64>,
}

fn positions(feeds: &[Followed]) -> Positions {
    let one = |feed: &Followed| (feed.name.to_string(), feed.position);
    Positions { positions: feeds.iter().filter(|feed| feed.open).map(one).collect() }
}

pub(crate) fn hello(out: &mut String, feeds: &[Followed]) {
    let _ = writeln!(out, "retry: {RETRY_MS}");
    push(out, "hello", Some(&id(feeds)), &positions(feeds));
}

/// What is before these positions is gone, or was never there: read anew.
pub(crate) fn reset(out: &mut String, feeds: &[Followed]) {
    push(out, "reset", Some(&id(feeds)), &positions(feeds));
}

pub(crate) fn event(out: &mut String, feeds: &[Followed], event: &FeedEvent) {
    push(out, event.event.name(), Some(&id(feeds)), event);
}

pub(crate) fn delta(out: &mut String, delta: &Delta) {
    push(out, "delta", None, delta);
}

#[derive(Serialize)]
struct Closed<'a> {
    feed: String,
    code: &'a str,
}

/// Nothing more comes from this Feed. The id leaves it out, so that nobody asks for it again.
pub(crate) fn closed(out: &mut String, feeds: &[Followed], name: &FeedName, code: &str) {
    push(out, "closed", Some(&id(feeds)), &Closed { feed: name.to_string(), code });
}
