//! One listener to the store's hints for all streams of a server.

use crate::locked;
use loopd_store::{Feed, Hint, Store};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior};

/// Feeds whose heads are asked for at once.
const HEADS: usize = 500;

/// Who listens to which Feed.
pub(crate) struct Hub {
    store: Arc<dyn Store>,
    every: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    listens: bool,
    feeds: HashMap<Feed, Heard>,
}

/// The listeners of one Feed.
#[derive(Default)]
struct Heard {
    /// Its head when all of them were rung last because of it.
    head: Option<u64>,
    bells: Vec<(Arc<Bell>, usize)>,
}

/// What wakes one stream: which of its Feeds may have something.
#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<BTreeSet<usize>>,
    notify: Notify,
}

impl Bell {
    fn ring(&self, index: usize) {
        locked(&self.rung).insert(index);
        self.notify.notify_one();
    }
}

/// A stream's ear; it stops listening when it is dropped.
#[derive(Debug)]
pub(crate) struct Listener {
    hub: Arc<Hub>,
    bell: Arc<Bell>,
    feeds: Vec<Feed>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

impl Hub {
    pub(crate) fn new(store: Arc<dyn Store>, every: Duration) -> Self {
        Self { store, every, state: Mutex::default() }
    }

    /// Listens to these Feeds; the listener calls them by their place here. Hints of the time before are not heard: read
    /// once after this.
    pub(crate) fn listen(self: &Arc<Self>, feeds: Vec<Feed>) -> Listener {
        let bell = Arc::new(Bell::default());
        let mut state = locked(&self.state);
        for (index, feed) in feeds.iter().enumerate() {
            state.feeds.entry(*feed).or_default().bells.push((Arc::clone(&bell), index));
        }
        if !std::mem::replace(&mut state.listens, true) {
            tokio::spawn(pass_on(Arc::downgrade(self), self.store.hints(), self.every));
        }
        drop(state);
        Listener { hub: Arc::clone(self), bell, feeds }
    }

    fn ring(&self, feed: &Feed) {
        if let Some(heard) = locked(&self.state).feeds.get(feed) {
            heard.bells.iter().for_each(|(bell, index)| bell.ring(*index));
        }
    }

    /// Compares all heads with those of last time: makes up for lost hints.
    async fn look(&self) {
        let feeds: Vec<Feed> = locked(&self.state).feeds.keys().copied().collect();
        for some in feeds.chunks(HEADS) {
            let Ok(heads) = self.store.feed_heads(some).await else { return };
            let mut state = locked(&self.state);
            for (feed, head) in some.iter().zip(heads) {
                let Some(heard) = state.feeds.get_mut(feed) else { continue };
                // A listener that came since is rung once too often rather than once too rarely.
                if heard.head.replace(head) != Some(head) {
                    heard.bells.iter().for_each(|(bell, index)| bell.ring(*index));
                }
            }
        }
    }

    fn forget(&self, listener: &Listener) {
        let mut state = locked(&self.state);
        for feed in &listener.feeds {
            if let Some(heard) = state.feeds.get_mut(feed) {
                heard.bells.retain(|(bell, _)| !Arc::ptr_eq(bell, &listener.bell));
                if heard.bells.is_empty() {
                    state.feeds.remove(feed);
                }
            }
        }
    }
}

/// Passes hints on for as long as the hub lives.
async fn pass_on(hub: Weak<Hub>, mut hints: loopd_store::Hints, every: Duration) {
    let mut look = tokio::time::interval_at(Instant::now() + every, every);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deaf = false;
    loop {
        let hint = tokio::select! {
            hint = hints.recv(), if !deaf => hint,
            _ = look.tick() => Ok(Hint::Foreign),
        };
        let Some(hub) = hub.upgrade() else { return };
        match hint {
            Ok(Hint::Feed(feed)) => hub.ring(&feed),
            Ok(Hint::Foreign) | Err(RecvError::Lagged(_)) => hub.look().await,
            Ok(Hint::Run(_) | Hint::Inbox(_)) => {}
            Err(RecvError::Closed) => deaf = true,
        }
    }
}

impl Listener {
    /// Waits until a Feed may have something.
    pub(crate) async fn rung(&self) {
        self.bell.notify.notified().await;
    }

    /// Which Feeds may have something, since it was asked last.
    pub(crate) fn heard(&self) -> BTreeSet<usize> {
        std::mem::take(&mut locked(&self.bell.rung))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.hub.forget(self);
    }
}
