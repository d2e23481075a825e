//! A stream of Feeds that comes back after every loss, without loss and without doubles.

use crate::client::send;
use crate::sse::{Frame, Parser};
use crate::{Client, Error};
use loopd_protocol::{Delta, Event, FeedEvent};
use reqwest::header::{ACCEPT, HeaderName};
use reqwest::{Method, Response};
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// After so long without anything, not even a heartbeat, the connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(60);
/// The first pause before coming back; it doubles with each further one that leads nowhere.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause, unless the server asks for less.
const LONGEST: Duration = Duration::from_secs(5);

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Where a stream begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// With what comes from now on.
    Now,
    /// With the first event of each Feed.
    Beginning,
    /// After the event with this id.
    After(String),
}

/// What a stream tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It stands at these positions, for the first time or again.
    Hello(BTreeMap<String, u64>),
    /// Something happened. Each event of a Feed is told once, in order.
    Event(Box<FeedEvent>),
    /// Text as it arrives.
    Delta(Delta),
    /// Events before these positions are gone: read anew what they were about.
    Reset(BTreeMap<String, u64>),
    /// Nothing more comes from this Feed.
    Closed {
        /// Which one.
        feed: String,
        /// Why.
        code: String,
    },
    /// The connection is lost, and the stream will come back by itself.
    Lost(String),
}

#[derive(Deserialize)]
struct Positions {
    positions: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Closed {
    feed: String,
    code: String,
}

/// A stream of Feeds.
///
/// # Guarantees
/// Every event that [`Follow::next`] returns is new: a Feed's positions only rise. After a loss it asks for what follows
/// the last event that it was given. [`Follow::next`] may be dropped at any point and called again.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    feeds: Vec<String>,
    /// Where a Feed begins that the cursor does not name.
    from: &'static str,
    /// The id of the last event, or of the one behind which it was to begin.
    cursor: Option<String>,
    /// The last position that was told, per Feed.
    seen: BTreeMap<String, u64>,
    connection: Option<(Response, Parser)>,
    /// The server has answered before.
    begun: bool,
    ready: VecDeque<Told>,
    pause: Duration,
    longest: Duration,
    silence: Duration,
    /// Why the connection was given up, once what came before is told.
    failed: Option<Error>,
    /// When to come back.
    back_at: Option<Instant>,
}

impl Follow {
    /// Follows these Feeds, `conversation/con_…` or `actor/kind/key`. Nothing is sent before the first
    /// [`Follow::next`].
    #[must_use]
    pub fn new(client: Client, feeds: Vec<String>, start: Start) -> Self {
        let (from, cursor) = match start {
            Start::Now => ("now", None),
            Start::Beginning => ("start", None),
            Start::After(id) => ("now", Some(id)),
        };
        Self {
            client,
            feeds,
            from,
            cursor,
            seen: BTreeMap::new(),
            connection: None,
            begun: false,
            ready: VecDeque::new(),
            pause: PAUSE,
            longest: LONGEST,
            silence: SILENCE,
            failed: None,
            back_at: None,
        }
    }

    /// Takes a connection for dead after so long without anything, in place of a minute: for servers with another
    /// heartbeat than the usual 15 s.
    #[must_use]
    pub const fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// What the stream tells next; it waits as long as it takes, and comes back after every loss. `None` once every
    /// Feed is closed.
    ///
    /// # Errors
    /// [`Error`] where coming back is no use: the first connection fails, the server refuses for good, or it says what this
    /// client cannot read. Everything before that was told; called again, it comes back behind the last event.
    pub async fn next(&mut self) -> Result<Option<Told>, Error> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Ok(Some(told));
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            if self.feeds.is_empty() {
                return Ok(None);
            }
            if let Some(at) = self.back_at {
                tokio::time::sleep_until(at).await;
                self.back_at = None;
            }
            let Some((response, parser)) = &mut self.connection else {
                self.connect().await?;
                continue;
            };
            let mut frames = Vec::new();
            let whole = match tokio::time::timeout(self.silence, response.chunk()).await {
                Ok(Ok(Some(bytes))) => parser.push(&bytes, &mut frames),
                Ok(Ok(None)) => {
                    self.lose("the server has ended the stream".to_owned());
                    continue;
                }
                Ok(Err(error)) => {
                    self.lose(Error::unreachable(error).to_string());
                    continue;
                }
                Err(_) => {
                    self.lose(format!("nothing came for {} s", self.silence.as_secs()));
                    continue;
                }
            };
            if let Some(retry) = parser.retry_ms() {
                self.longest = Duration::from_millis(retry).min(LONGEST);
            }
            let taken = frames.into_iter().try_for_each(|frame| self.take(frame));
            if let Err(error) = taken.and(whole.map_err(|error| Error::Strange(error.to_string()))) {
                // What followed in the same piece would move the cursor over what was not told.
                self.leave();
                self.failed = Some(error);
            }
        }
    }

    fn lose(&mut self, why: String) {
        self.leave();
        self.ready.push_back(Told::Lost(why));
    }

    /// Gives the connection up, to come back after a pause.
    fn leave(&mut self) {
        self.connection = None;
        self.back_at = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(self.longest);
    }

    async fn connect(&mut self) -> Result<(), Error> {
        let mut query: Vec<_> = self.feeds.iter().map(|feed| ("feed", feed.as_str())).collect();
        query.push(("from", self.from));
        let mut request = self.client.request(Method::GET, "/v1/stream", &query).header(ACCEPT, "text/event-stream");
        if let Some(id) = self.cursor.as_deref() {
            request = request.header(LAST_EVENT_ID, id);
        }
        // Also an answer that never begins is silence.
        let sent = tokio::time::timeout(self.silence, send(request)).await;
        let silent = |_| Err(Error::Unreachable(format!("no answer came for {} s", self.silence.as_secs())));
        match sent.unwrap_or_else(silent) {
            Ok(response) => {
                self.connection = Some((response, Parser::default()));
                self.begun = true;
                Ok(())
            }
            // Who was never there may not exist; who was there comes back.
            Err(error) if error.is_retryable() && self.begun => {
                self.leave();
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, frame: Frame) -> Result<(), Error> {
        let told = match frame.event.as_str() {
            "hello" => {
                self.pause = PAUSE;
                Told::Hello(parse::<Positions>(&frame)?.positions)
            }
            "reset" => {
                let positions = parse::<Positions>(&frame)?.positions;
                for (feed, position) in &positions {
                    let seen = self.seen.entry(feed.clone()).or_default();
                    *seen = (*seen).max(*position);
                }
                Told::Reset(positions)
            }
            "closed" => {
                let Closed { feed, code } = parse(&frame)?;
                self.feeds.retain(|one| *one != feed);
                Told::Closed { feed, code }
            }
            "delta" => Told::Delta(parse(&frame)?),
            event if Event::NAMES.contains(&event) => {
                let event: FeedEvent = parse(&frame)?;
                let seen = self.seen.entry(event.feed.clone()).or_default();
                if event.position <= *seen {
                    return Ok(());
                }
                *seen = event.position;
                Told::Event(Box::new(event))
            }
            // Of a later server.
            _ => {
                self.cursor = frame.id.or(self.cursor.take());
                return Ok(());
            }
        };
        self.cursor = frame.id.or(self.cursor.take());
        self.ready.push_back(told);
        Ok(())
    }
}

fn parse<T: serde::de::DeserializeOwned>(frame: &Frame) -> Result<T, Error> {
    serde_json::from_str(&frame.data)
        .map_err(|error| Error::Strange(format!("the stream says what this client does not know: {error}")))
}
