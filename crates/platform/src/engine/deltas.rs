//! Streamed text of running calls, for whoever watches. It is never the answer, and nobody waits for it.

use super::Engine;
use super::wishes::call_record;
use loopd_kernel::{CallId, RunId};
use loopd_protocol::{ConversationId, Delta, HarnessCallId, MessageId};
use loopd_runtime::Delta as RunDelta;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{broadcast, mpsc};

/// Runs of which it is remembered what is settled.
const SETTLED: usize = 100_000;

/// Pieces of text that wait for a slow watcher before it loses the oldest.
const PIECES: usize = 1024;

/// The streamed text of one server, by Conversation.
#[derive(Clone, Debug, Default)]
pub struct Deltas {
    shared: Arc<Mutex<Shared>>,
}

/// What a watcher gets: the text so far, and then its pieces. After a lag the text so far is asked for again.
pub type Followed = (Vec<Delta>, broadcast::Receiver<Delta>);

#[derive(Debug, Default)]
struct Shared {
    /// What each Run is writing at this moment.
    parts: HashMap<RunId, Part>,
    /// The newest Call of each Run that stands in its Message: what is streamed of it comes too late.
    settled: HashMap<RunId, CallId>,
    /// Who watches.
    watched: HashMap<ConversationId, broadcast::Sender<Delta>>,
}

#[derive(Debug, Clone)]
struct Part {
    conversation: ConversationId,
    message: MessageId,
    call: CallId,
    part: String,
    text: String,
}

impl Deltas {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a Conversation.
    #[must_use]
    pub fn subscribe(&self, conversation: ConversationId) -> Followed {
        let mut shared = self.lock();
        shared.watched.retain(|_, sender| sender.receiver_count() > 0);
        let sender = shared.watched.entry(conversation).or_insert_with(|| broadcast::Sender::new(PIECES));
        let receiver = sender.subscribe();
        let parts = shared.parts.values().filter(|part| part.conversation == conversation);
        let so_far = parts.map(|part| part.delta(0, part.text.clone())).collect();
        (so_far, receiver)
    }

    /// Forgets what a Run was writing up to this Call: it stands in its Message now, or will be written anew.
    pub(super) fn settle(&self, run: RunId, call: CallId) {
        let mut shared = self.lock();
        if shared.parts.get(&run).is_some_and(|part| part.call <= call) {
            shared.parts.remove(&run);
        }
        if shared.settled.len() >= SETTLED {
            shared.settled.clear();
        }
        let newest = shared.settled.entry(run).or_insert(call);
        *newest = call.max(*newest);
    }

    fn add(&self, delta: RunDelta, (conversation, message): (ConversationId, MessageId)) {
        let mut shared = self.lock();
        if shared.settled.get(&delta.run).is_some_and(|settled| delta.call <= *settled) {
            return;
        }
        let name = format!("{}/{}", delta.call, delta.attempt);
        let call = delta.call;
        let new = || Part { conversation, message, call, part: name.clone(), text: String::new() };
        let part = shared.parts.entry(delta.run).or_insert_with(new);
        if part.part != name {
            *part = new();
        }
        let piece = part.delta(part.text.len() as u64, delta.text.clone());
        part.text.push_str(&delta.text);
        if let Some(sender) = shared.watched.get(&conversation) {
            // Nobody watches any more: then nobody needs it.
            let _ = sender.send(piece);
        }
    }
}

impl Part {
    fn delta(&self, offset: u64, text: String) -> Delta {
        let (conversation, message, part) = (self.conversation, self.message, self.part.clone());
        Delta { conversation, message, part, offset, text }
    }
}

/// Passes on what the Runtime streams until the engine drains.
pub(super) async fn follow(engine: Engine, mut deltas: mpsc::UnboundedReceiver<RunDelta>) {
    // Which Message a Run writes, or that it is no call's.
    let mut known: HashMap<RunId, Option<(ConversationId, MessageId)>> = HashMap::new();
    loop {
        let next = tokio::select! {
            () = engine.inner.drain.cancelled() => return,
            next = deltas.recv() => next,
        };
        let Some(delta) = next else { return };
        if known.len() > 10_000 {
            known.clear();
        }
        let place = match known.get(&delta.run) {
            Some(place) => *place,
            None => {
                let id = HarnessCallId(call_record(delta.run).0);
                // What cannot be read now is asked for again with the next piece.
                let Ok(found) = engine.platform().call_row(id).await else { continue };
                let place = found.map(|(_, stored)| (stored.call.conversation, stored.call.message));
                known.insert(delta.run, place);
                place
            }
        };
        if let Some(place) = place {
            engine.inner.deltas.add(delta, place);
        }
    }
}
