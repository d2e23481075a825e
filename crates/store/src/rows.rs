//! What a store holds besides Entries.

use crate::batch::Write;
use loopd_kernel::budget::Limits;
use loopd_kernel::child::{ChildNews, Parent};
use loopd_kernel::question::{OpenQuestion, QuestionEnd};
use loopd_kernel::{CallId, Digest, Epoch, MicroUsd, QuestionId, RunId, Seq, TimeMs};
use serde::{Deserialize, Serialize};

/// The identity of one worker process; a new one at every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(pub u64);

/// Whether a Run moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// A worker drives it, or should.
    Running,
    /// It waits for a person, a signal or a timer, and costs no memory.
    Suspended,
    /// It stopped at a reopenable outcome.
    Parked,
    /// It is sealed.
    Ended,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Running, Self::Suspended, Self::Parked, Self::Ended];

    /// The name in output, arguments and stores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Parked => "parked",
            Self::Ended => "ended",
        }
    }

    /// The status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// One Run as lists show it and claims choose it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRow {
    /// The Run.
    pub run: RunId,
    /// The outermost scope.
    pub tenant: String,
    /// The caller's key for starting once, unique per tenant.
    pub admission: Option<String>,
    /// The Loop's name.
    pub loop_name: String,
    /// Its declared version.
    pub version: String,
    /// The digest of its definition's bytes, which are stored as a blob.
    pub definition: Digest,
    /// Where this machine found the definition (the path of a manifest), so that a later worker here
    /// resolves its relative paths alike. Local: part of no Journal and no fixture.
    pub origin: Option<String>,
    /// The Run that started it, when one did. It need not be in this store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Whether it moves.
    pub status: RunStatus,
    /// The last Seq.
    pub head: Seq,
    /// The chain hash there.
    pub hash: Digest,
    /// The fencing number; only a claim changes it.
    pub epoch: Epoch,
    /// Who drives it.
    pub worker: Option<WorkerId>,
    /// The earliest timer or expiry.
    pub wake_at: Option<TimeMs>,
    /// The outcome's name, once there is one.
    pub outcome: Option<String>,
    /// The iteration.
    pub iteration: u64,
    /// Tokens consumed.
    pub tokens: u64,
    /// Money spent.
    pub spent: MicroUsd,
    /// When it started.
    pub created_at: TimeMs,
    /// The time of the last Entry.
    pub updated_at: TimeMs,
}

impl RunRow {
    /// Takes over what a [`Write::UpdateRun`] says; any other write changes nothing.
    pub fn update(&mut self, write: Write) {
        let Write::UpdateRun { run: _, status, worker, wake_at, outcome, iteration, tokens, spent, updated_at } = write
        else {
            return;
        };
        (self.status, self.worker, self.wake_at) = (status, worker, wake_at);
        (self.iteration, self.tokens, self.spent) = (iteration, tokens, spent);
        (self.outcome, self.updated_at) = (outcome, updated_at);
    }

    /// The [`Write::UpdateRun`] that leaves it as it is: what takes another one back.
    #[must_use]
    pub fn as_update(&self) -> Write {
        let Self { run, status, worker, wake_at, iteration, tokens, spent, updated_at, .. } = *self;
        let outcome = self.outcome.clone();
        Write::UpdateRun { run, status, worker, wake_at, outcome, iteration, tokens, spent, updated_at }
    }
}

/// The folded Journal at a Seq: where recovery begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The Run.
    pub run: RunId,
    /// The last Entry that is folded in.
    pub seq: Seq,
    /// JSON of the Projection.
    pub body: Vec<u8>,
}

/// An open Question, as lists across Runs show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionRow {
    /// The Run that asks.
    pub run: RunId,
    /// What it asks.
    pub question: OpenQuestion,
}

/// Something for a Run from outside, until its worker takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxItem {
    /// The place in the store's order; assigned by the store, 0 before.
    pub id: i64,
    /// The Run.
    pub run: RunId,
    /// The dedup key: unique per Run for as long as the Run exists, also after the item was taken.
    pub key: String,
    /// When it was added.
    pub at: TimeMs,
    /// What it is.
    pub body: InboxBody,
}

/// What an inbox item is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum InboxBody {
    /// A signal.
    Signal {
        /// Its name.
        name: String,
        /// Its body.
        body: String,
    },
    /// The end of a Question.
    Answer {
        /// The Question.
        question: QuestionId,
        /// How it ended.
        end: QuestionEnd,
        /// Who.
        actor: String,
        /// The answer as JSON text.
        value: String,
    },
    /// A wish to cancel.
    Cancel {
        /// Who.
        actor: String,
        /// Why.
        reason: String,
    },
    /// A wish to reopen a parked Run.
    Reopen {
        /// Who.
        actor: String,
        /// Raised limits.
        raise: Limits,
    },
    /// A worker that does not drive the Run any more had the result of a Call.
    Late {
        /// The Call.
        call: CallId,
        /// The epoch of that worker.
        epoch: Epoch,
        /// The output.
        output: String,
    },
    /// News of a child.
    News(ChildNews),
    /// What a child Run starts with; its Journal is empty until then.
    Birth {
        /// Its parent.
        parent: Parent,
        /// The outermost scope.
        tenant: String,
        /// The input as JSON text.
        input: String,
        /// The limits.
        limits: Limits,
    },
}

impl InboxBody {
    /// True when it moves a parked Run; anything else waits until the Run is reopened.
    #[must_use]
    pub const fn moves_parked(&self) -> bool {
        match self {
            Self::Cancel { .. } | Self::Reopen { .. } => true,
            Self::Signal { .. } | Self::Answer { .. } | Self::Late { .. } | Self::News(_) | Self::Birth { .. } => false,
        }
    }
}

/// The largest number of items that wait in one Run's inbox.
pub const INBOX_ITEMS: usize = 10_000;

/// The room that a full inbox still has for items that move a parked Run: nobody is locked out of stopping it.
pub const INBOX_RESERVE: usize = 100;

/// The largest size of what waits in one Run's inbox, in bytes as [`InboxBody::size`] counts them: 64 MiB.
pub const INBOX_BYTES: usize = 64 << 20;

/// The bytes that a full inbox still has for items that move a parked Run: 4 MiB.
pub const INBOX_RESERVE_BYTES: usize = 4 << 20;

/// The largest size of one item that is no result, in bytes as [`InboxBody::size`] counts them: 1 MiB.
pub const ITEM_BYTES: usize = 1 << 20;

/// The largest size of a late result, in bytes as [`InboxBody::size`] counts them: 16 MiB.
pub const RESULT_BYTES: usize = 16 << 20;

/// What an item counts for besides its texts, in bytes.
pub const ITEM_OVERHEAD: usize = 64;

/// What waits in one Run's inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiting {
    /// How many items.
    pub items: usize,
    /// Their size, as [`InboxBody::size`] counts it.
    pub bytes: usize,
}

impl Waiting {
    /// As much, and this item. For stores.
    #[must_use]
    pub const fn with(self, item: &InboxBody) -> Self {
        Self { items: self.items + 1, bytes: self.bytes.saturating_add(item.size()) }
    }
}

impl InboxBody {
    /// The largest size of an item like this: what a tool returned may be larger than what people send.
    #[must_use]
    pub const fn largest(&self) -> usize {
        match self {
            Self::Late { .. } => RESULT_BYTES,
            Self::Signal { .. }
            | Self::Answer { .. }
            | Self::Cancel { .. }
            | Self::Reopen { .. }
            | Self::News(_)
            | Self::Birth { .. } => ITEM_BYTES,
        }
    }

    /// The size that counts towards the caps, in bytes: that of its texts and [`ITEM_OVERHEAD`]. Never 0.
    #[must_use]
    pub const fn size(&self) -> usize {
        let texts = match self {
            Self::Signal { name, body } => name.len() + body.len(),
            Self::Answer { question: _, end: _, actor, value } => actor.len() + value.len(),
            Self::Cancel { actor, reason } => actor.len() + reason.len(),
            Self::Reopen { actor, raise: _ } => actor.len(),
            Self::Late { call: _, epoch: _, output } => output.len(),
            Self::News(news) => match &news.outcome {
                loopd_kernel::Outcome::Completed { output } => output.len(),
                _ => 0,
            },
            Self::Birth { parent: _, tenant, input, limits: _ } => tenant.len() + input.len(),
        };
        ITEM_OVERHEAD + texts
    }

    /// Whether an inbox in which this much waits already takes the item, too. For stores.
    #[must_use]
    pub const fn has_room(&self, waiting: Waiting) -> bool {
        let (items, bytes) = if self.moves_parked() {
            (INBOX_ITEMS + INBOX_RESERVE, INBOX_BYTES + INBOX_RESERVE_BYTES)
        } else {
            (INBOX_ITEMS, INBOX_BYTES)
        };
        waiting.items < items && waiting.bytes.saturating_add(self.size()) <= bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_counts_the_bytes_of_all_texts() {
        let text = || "aé".to_owned();
        let sizes = [
            (InboxBody::Signal { name: text(), body: "body".to_owned() }, 7),
            (InboxBody::Signal { name: String::new(), body: String::new() }, 0),
            (
                InboxBody::Answer {
                    question: QuestionId(u64::MAX),
                    end: QuestionEnd::Answered,
                    actor: text(),
                    value: text(),
                },
                6,
            ),
            (InboxBody::Cancel { actor: text(), reason: "r".to_owned() }, 4),
            (InboxBody::Reopen { actor: text(), raise: Limits::default() }, 3),
        ];
        for (body, texts) in sizes {
            assert_eq!(body.size(), ITEM_OVERHEAD + texts, "{body:?}");
        }
    }

    #[test]
    fn a_row_from_before_there_were_parents_reads_and_one_without_a_parent_says_nothing_of_it() {
        let run = RunId([7; 16]);
        let row = RunRow {
            run,
            tenant: "default".to_owned(),
            admission: None,
            loop_name: "echo".to_owned(),
            version: "1.0.0".to_owned(),
            definition: Digest::default(),
            origin: None,
            parent: None,
            status: RunStatus::Running,
            head: Seq(0),
            hash: Digest::default(),
            epoch: Epoch(1),
            worker: None,
            wake_at: None,
            outcome: None,
            iteration: 0,
            tokens: 0,
            spent: MicroUsd(0),
            created_at: TimeMs(0),
            updated_at: TimeMs(0),
        };
        let old = serde_json::to_value(&row).unwrap();
        assert_eq!(old.get("parent"), None);
        assert_eq!(serde_json::from_value::<RunRow>(old).unwrap(), row);
        let child = RunRow { parent: Some(RunId([8; 16])), ..row };
        let text = serde_json::to_string(&child).unwrap();
        assert_eq!(serde_json::from_str::<RunRow>(&text).unwrap(), child);
    }
}
