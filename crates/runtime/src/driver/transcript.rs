//! The Transcript of an active Run in memory: read when a model call first needs it, then kept up with
//! the Entries that the Run commits.

use super::load::LoadError;
use loopd_kernel::model::Message;
use loopd_kernel::transcript::{self, Change, ReadError};
use loopd_kernel::{Entry, Projection, Seq};
use loopd_store::{Store, StoreError};
use std::sync::Arc;

const PAGE: usize = 1024;

/// Messages with the Entry that they come from, up to a Seq.
#[derive(Debug, Default)]
pub struct Cache {
    messages: Vec<(Seq, Arc<Message>)>,
    /// What the Run was started with: a compacted Transcript begins with it again.
    origin: Option<Arc<Message>>,
    upto: Option<Seq>,
}

impl Cache {
    /// Takes Entries that were just committed; without effect until the cache was first read.
    ///
    /// # Errors
    /// [`LoadError`] when a message does not read.
    pub fn extend(&mut self, entries: &[Entry]) -> Result<(), LoadError> {
        if self.upto.is_none() {
            return Ok(());
        }
        entries.iter().try_for_each(|entry| self.take(entry))
    }

    fn take(&mut self, entry: &Entry) -> Result<(), LoadError> {
        for change in transcript::changes(entry).map_err(|error| unreadable(entry.seq, &error))? {
            match change {
                Change::Say(message) => {
                    let message = Arc::new(message);
                    if entry.seq == Seq(1) {
                        self.origin = Some(message.clone());
                    }
                    self.messages.push((entry.seq, message));
                }
                Change::Compact { summary, after } => {
                    let unanswered =
                        |seq: Seq, message: &Message| seq > after && matches!(message, Message::User { .. });
                    let kept = self.messages.drain(..).filter(|(seq, message)| unanswered(*seq, message));
                    let begun = self.origin.clone().into_iter().chain([Arc::new(summary)]);
                    self.messages = begun.map(|message| (after, message)).chain(kept.collect::<Vec<_>>()).collect();
                }
            }
        }
        self.upto = Some(entry.seq);
        Ok(())
    }

    /// The messages of the Entries before `intent`, the request's own Entry.
    ///
    /// # Errors
    /// [`LoadError`] when the store or a message does not read.
    pub async fn before(
        &mut self,
        store: &dyn Store,
        projection: &Projection,
        intent: Seq,
    ) -> Result<Vec<Arc<Message>>, LoadError> {
        if self.upto.is_none() {
            let mut at = Seq(projection.transcript.start.0.saturating_sub(1));
            if at > Seq(0) {
                let first = store.entries(projection.run, Seq(0), 1).await?;
                first.iter().try_for_each(|entry| self.take(entry))?;
                self.messages.clear();
            }
            self.upto = Some(at);
            while at < projection.head.seq {
                let page = store.entries(projection.run, at, PAGE).await?;
                let Some(last) = page.last() else { break };
                at = last.seq;
                page.iter().try_for_each(|entry| self.take(entry))?;
            }
        }
        let upto = self.messages.partition_point(|(seq, _)| *seq < intent);
        Ok(self.messages.iter().take(upto).map(|(_, message)| message.clone()).collect())
    }
}

fn unreadable(seq: Seq, error: &ReadError) -> LoadError {
    LoadError::Store(StoreError::Corrupt(format!("entry {seq} holds a message that does not read: {error:?}")))
}
