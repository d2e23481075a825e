//! Records, counters and Feeds: what surrounds Journals, in one small vocabulary.
//!
//! A [`Record`] is a row of one [`Table`] whose body only its owner reads. A store knows where it belongs (its scope),
//! its place there, its key, when it is due and which words it is found by; it decides nothing. Concurrent writers
//! agree through [`crate::Expect::Record`]; writers that must not fail write without an expectation.

use loopd_kernel::TimeMs;
use std::sync::Arc;

/// What kind of thing a Record is. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Somebody who speaks.
    Actor = 1,
    /// A Conversation.
    Conversation = 2,
    /// That an Actor belongs to a Conversation.
    Member = 3,
    /// A Message, without its Blocks.
    Message = 4,
    /// A Block of a Message.
    Block = 5,
    /// How far an Actor has read a Conversation.
    Cursor = 6,
    /// A Question to a person.
    Question = 7,
    /// A call to a Harness.
    Call = 8,
    /// A file in a Conversation.
    Artifact = 9,
    /// An API token.
    Token = 10,
    /// An entry of the audit log.
    Audit = 11,
    /// That a Question is open.
    Open = 12,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 12] = [
        Self::Actor,
        Self::Conversation,
        Self::Member,
        Self::Message,
        Self::Block,
        Self::Cursor,
        Self::Question,
        Self::Call,
        Self::Artifact,
        Self::Token,
        Self::Audit,
        Self::Open,
    ];

    /// The stored number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The table with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.number() == number)
    }
}

/// The identity of a Record within its table, of a scope, and of a Feed: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RecordId(pub [u8; 16]);

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The table.
    pub table: Table,
    /// The identity, unique in the table.
    pub id: RecordId,
    /// What it belongs to: lists and keys are per table and scope.
    pub scope: RecordId,
    /// Its place in lists of the scope. Written as [`Place`] says.
    pub place: u64,
    /// A key, unique per table and scope; and what [`crate::Write::Touch`] finds it by.
    pub key: Option<String>,
    /// When somebody has to look at it.
    pub due: Option<TimeMs>,
    /// How often it was written, from 1. Assigned by the store; what a write says here counts for nothing.
    pub rev: u64,
    /// The words it is found by; nothing finds it without them. Written, never read back (`None` in reads).
    pub words: Option<String>,
    /// The body, by convention JSON.
    pub body: Vec<u8>,
}

/// Where a Record that is written stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Where the store has it; a new one takes the next number.
    Keep,
    /// The next number of its table and scope: 1, 2, 3, without a gap, in the order of commits.
    Next,
    /// Here.
    At(u64),
}

/// What a Feed tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedKind {
    /// A Conversation.
    Conversation = 1,
    /// An Actor: its wakes.
    Actor = 2,
}

/// A Feed: a change log of one scope, numbered without a gap in the order of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Feed {
    /// What it tells of.
    pub kind: FeedKind,
    /// Which one.
    pub id: RecordId,
}

/// One item of a Feed, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewItem {
    /// The Feed.
    pub feed: Feed,
    /// When.
    pub at: TimeMs,
    /// The Record that it tells of; its place and revision after this Batch's writes so far are kept with the item.
    pub of: Option<(Table, RecordId)>,
    /// The body, by convention JSON.
    pub body: Arc<[u8]>,
}

/// One item of a Feed, as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedItem {
    /// Its position, from 1.
    pub position: u64,
    /// When.
    pub at: TimeMs,
    /// Place and revision of the Record that it tells of, as the Batch had left it when it wrote the item.
    pub of: Option<(u64, u64)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A number that Batches add to and that may have an upper bound.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter(pub String);

/// What a store is asked about Records and Feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The Record with this identity: none or one.
    Record(Table, RecordId),
    /// The Records with these identities, in this order; those that are not there are left out.
    These(Table, Vec<RecordId>),
    /// The Record with this key in the scope: none or one.
    Key(Table, RecordId, String),
    /// A part of the scope's list, by (place, identity).
    List(List),
    /// Records that are due at `until`, the longest overdue first.
    Due {
        /// The table.
        table: Table,
        /// The time.
        until: TimeMs,
        /// At most this many.
        limit: usize,
    },
    /// Records of these scopes that hold all words of `text` (words are runs of letters and digits, in any case), the
    /// latest place first. No word finds nothing.
    Search {
        /// The table.
        table: Table,
        /// The scopes.
        scopes: Vec<RecordId>,
        /// The words.
        text: String,
        /// At most this many.
        limit: usize,
    },
}

/// A part of the list of one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    /// The table.
    pub table: Table,
    /// The scope.
    pub scope: RecordId,
    /// Where the page before ended; `None` begins at the start.
    pub beyond: Option<(u64, RecordId)>,
    /// The greatest place first.
    pub newest_first: bool,
    /// At most this many.
    pub limit: usize,
}
