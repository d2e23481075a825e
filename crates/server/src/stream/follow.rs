//! One stream: what it reads, and when it ends.

use super::frame;
use super::hub::Listener;
use crate::App;
use crate::auth::Principal;
use crate::rates::Slot;
use axum::body::Bytes;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, Stream, StreamExt};
use loopd_platform::{Error, FeedName};
use loopd_protocol::{Delta, Event};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

/// Events that are read at once, at most: with the store's own bound, all that a slow client makes the server hold.
const PAGE: usize = 32;
/// How old the last look at the token may be when something is told.
const LOOK: Duration = Duration::from_secs(1);

/// A Feed of a stream.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) name: FeedName,
    /// The last event that was delivered.
    pub(crate) position: u64,
    /// Whether more may come.
    pub(crate) open: bool,
    /// Whether it is somebody's to follow because of another Conversation, whose changes this Feed does not tell.
    pub(crate) indirect: bool,
}

impl Followed {
    pub(crate) const fn at(name: FeedName, position: u64, indirect: bool) -> Self {
        Self { name, position, open: true, indirect }
    }
}

/// What a stream begins with.
#[derive(Debug, Default)]
pub(crate) struct Begin {
    pub(crate) feeds: Vec<Followed>,
    /// Feeds of the cursor that are not there for the caller any more, and why.
    pub(crate) closed: Vec<(FeedName, &'static str)>,
}

type Heard = (usize, Receiver<Delta>, Result<Delta, RecvError>);

struct Following {
    app: App,
    principal: Principal,
    feeds: Vec<Followed>,
    listener: Listener,
    /// Text as it arrives: the next one of each Conversation.
    deltas: FuturesUnordered<BoxFuture<'static, Heard>>,
    /// Feeds to read now.
    pending: BTreeSet<usize>,
    /// Feeds to read, and texts to listen to, with the next heartbeat: they failed.
    later: BTreeSet<usize>,
    deaf: BTreeSet<usize>,
    /// Where the turn is.
    turn: usize,
    beat: Instant,
    /// When the token was looked at last.
    looked: Instant,
    ended: bool,
    _slot: Slot,
}

/// The stream's bytes.
pub(crate) fn follow(
    app: App,
    principal: Principal,
    begin: Begin,
    listener: Listener,
    slot: Slot,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    let mut first = String::new();
    frame::hello(&mut first, &begin.feeds);
    for (name, code) in &begin.closed {
        frame::closed(&mut first, &begin.feeds, name, code);
    }
    let mut following = Following {
        pending: (0..begin.feeds.len()).collect(),
        later: BTreeSet::new(),
        deaf: BTreeSet::new(),
        deltas: FuturesUnordered::new(),
        feeds: begin.feeds,
        beat: Instant::now() + app.limits().heartbeat,
        looked: Instant::now(),
        turn: 0,
        ended: false,
        _slot: slot,
        app,
        principal,
        listener,
    };
    for index in 0..following.feeds.len() {
        following.watch(index, &mut first);
    }
    // Boxed, so that the state is moved by its address.
    let rest = futures::stream::unfold(Box::new(following), |mut following| async move {
        let text = following.next().await?;
        Some((Ok(Bytes::from(text)), following))
    });
    futures::stream::iter([Ok(Bytes::from(first))]).chain(rest)
}

impl Following {
    /// The next piece, or the end.
    async fn next(&mut self) -> Option<String> {
        while !self.ended {
            if self.app.ending.is_cancelled() {
                self.ended = true;
                return Some(frame::STOPPING.to_owned());
            }
            if Instant::now() >= self.beat {
                return self.heartbeat().await;
            }
            self.pending.append(&mut self.listener.heard());
            if let Some(index) = self.next_pending() {
                let text = self.read(index).await;
                if !text.is_empty() {
                    return Some(text);
                }
                continue;
            }
            let ending = self.app.ending.clone();
            tokio::select! {
                () = ending.cancelled() => {}
                () = self.listener.rung() => {}
                () = tokio::time::sleep_until(self.beat) => {}
                Some(heard) = self.deltas.next(), if !self.deltas.is_empty() => {
                    let text = self.delta(heard).await;
                    if !text.is_empty() {
                        return Some(text);
                    }
                }
            }
        }
        None
    }

    /// In turn, so that a busy Feed does not keep the others waiting.
    fn next_pending(&mut self) -> Option<usize> {
        let next = self.pending.range(self.turn..).next().or_else(|| self.pending.first()).copied()?;
        self.pending.remove(&next);
        self.turn = next + 1;
        Some(next)
    }

    async fn heartbeat(&mut self) -> Option<String> {
        self.beat = Instant::now() + self.app.limits().heartbeat;
        if !self.is_let_in(Duration::ZERO).await {
            return None;
        }
        let mut text = frame::HEARTBEAT.to_owned();
        for index in 0..self.feeds.len() {
            if self.feeds.get(index).is_some_and(|feed| feed.open) {
                self.may_follow(index, &mut text).await;
            }
        }
        self.pending.append(&mut self.later);
        for index in std::mem::take(&mut self.deaf) {
            self.watch(index, &mut text);
        }
        Some(text)
    }

    /// Whether the token still lets in, as far as was known so long ago. The stream ends if not.
    async fn is_let_in(&mut self, ago: Duration) -> bool {
        if self.looked.elapsed() >= ago {
            self.looked = Instant::now();
            self.ended = !self.principal.still_good(&self.app).await;
        }
        !self.ended
    }

    /// Reads a page of a Feed.
    async fn read(&mut self, index: usize) -> String {
        let mut out = String::new();
        if !self.may_go_on(index, &mut out).await {
            return out;
        }
        let Some((name, position)) =
            self.feeds.get(index).filter(|feed| feed.open).map(|feed| (feed.name.clone(), feed.position))
        else {
            return out;
        };
        let (events, more) = match self.app.platform().events(&name, position, PAGE).await {
            Ok(page) => page,
            Err(error) => {
                tracing::warn!(%error, feed = %name, "a feed cannot be read; it is tried again");
                self.later.insert(index);
                return out;
            }
        };
        if more {
            self.pending.insert(index);
        }
        let mut delivered = 0;
        for event in events {
            // Who was a member when the stream began may be none any more: asked before every event that can say so.
            if matches!(event.event, Event::Conversation { .. }) && !self.may_follow(index, &mut out).await {
                break;
            }
            let Some(feed) = self.feeds.get_mut(index) else { break };
            let is_next = event.position == feed.position + 1;
            // What lies between was erased.
            feed.position = if is_next { event.position } else { event.position - 1 };
            if !is_next {
                frame::reset(&mut out, &self.feeds);
                self.advance(index, event.position);
            }
            frame::event(&mut out, &self.feeds, &event);
            delivered += 1;
            if matches!(event.event, Event::ConversationDeleted { .. }) {
                self.close(index, "deleted", &mut out);
                break;
            }
        }
        self.app.metrics.events(delivered);
        out
    }

    /// Before anything is told: whether the token still lets in, and of a Feed that does not tell it, whether its follower
    /// still may.
    async fn may_go_on(&mut self, index: usize, out: &mut String) -> bool {
        if !self.is_let_in(LOOK).await {
            return false;
        }
        let indirect = self.feeds.get(index).is_some_and(|feed| feed.open && feed.indirect);
        !indirect || self.may_follow(index, out).await
    }

    /// Whether the Feed is still the caller's to follow. It is closed if not, and read later if nobody can tell now.
    async fn may_follow(&mut self, index: usize, out: &mut String) -> bool {
        let Some(name) = self.feeds.get(index).map(|feed| feed.name.clone()) else { return false };
        match self.app.platform().may_follow(&self.principal.caller, &name).await {
            Ok(_) => true,
            Err(error @ (Error::Forbidden(_) | Error::NotFound { .. })) => {
                self.close(index, error.code(), out);
                false
            }
            Err(error) => {
                tracing::warn!(%error, feed = %name, "nobody can tell who may follow; it is asked again");
                self.later.insert(index);
                false
            }
        }
    }

    fn advance(&mut self, index: usize, position: u64) {
        if let Some(feed) = self.feeds.get_mut(index) {
            feed.position = position;
        }
    }

    fn close(&mut self, index: usize, code: &str, out: &mut String) {
        let Some(feed) = self.feeds.get_mut(index) else { return };
        feed.open = false;
        let name = feed.name.clone();
        frame::closed(out, &self.feeds, &name, code);
        self.ended |= !self.feeds.iter().any(|feed| feed.open);
    }

    /// Begins to listen to the texts of a Conversation, with what there is so far.
    fn watch(&mut self, index: usize, out: &mut String) {
        if let Some(Followed { name: FeedName::Conversation(id), open: true, .. }) = self.feeds.get(index) {
            let (so_far, receiver) = self.app.engine.deltas().subscribe(*id);
            so_far.iter().for_each(|delta| frame::delta(out, delta));
            self.deltas.push(wait(index, receiver));
        }
    }

    async fn delta(&mut self, (index, receiver, heard): Heard) -> String {
        let mut out = String::new();
        if !self.may_go_on(index, &mut out).await {
            self.deaf.insert(index);
            return out;
        }
        if !self.feeds.get(index).is_some_and(|feed| feed.open) {
            return out;
        }
        match heard {
            Ok(delta) => {
                frame::delta(&mut out, &delta);
                self.deltas.push(wait(index, receiver));
            }
            // It missed some: what there is so far has them.
            Err(RecvError::Lagged(_)) => self.watch(index, &mut out),
            Err(RecvError::Closed) => drop(self.deaf.insert(index)),
        }
        out
    }
}

fn wait(index: usize, mut receiver: Receiver<Delta>) -> BoxFuture<'static, Heard> {
    Box::pin(async move {
        let heard = receiver.recv().await;
        (index, receiver, heard)
    })
}
