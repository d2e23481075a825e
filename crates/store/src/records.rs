//! Records, counters and Feeds: what surrounds Journals, in one small vocabulary.
//!
//! A [`Record`] is a row of one [`Table`] whose body only its owner reads. A store knows where it belongs (its scope),
//! its place there, its key, when it is due and which words it is found by; it decides nothing. Concurrent writers
//! agree through [`crate::Expect::Record`]; writers that must not fail write without an expectation.

use loopd_kernel::TimeMs;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The bodies of one part of a Feed are read up to about this many bytes: 1 MiB, and what its last item is above that.
pub const FEED_BYTES: usize = 1 << 20;

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
    /// The manifest of an agent.
    Agent = 13,
}

impl Table {
    /// Every table.
    pub const ALL: [Self; 13] = [
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
        Self::Agent,
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

/// The identity of a Record within its table, of a scope, and of a Feed: 16 bytes, in the order of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RecordId(pub [u8; 16]);

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The table.
    pub table: Table,
    /// The identity, unique in the table.
    pub id: RecordId,
    /// What it belongs to: lists and keys are per table and scope. It never changes.
    pub scope: RecordId,
    /// Its place in lists of the scope. Written as [`Place`] says.
    pub place: u64,
    /// A key, unique per table and scope; and what [`crate::Write::Touch`] finds it by.
    pub key: Option<String>,
    /// When somebody has to look at it. A write without it says that nobody has to any more.
    pub due: Option<TimeMs>,
    /// How often it was written, from 1; a Record that was removed and is written again begins at 1 again. Assigned by
    /// the store; what a write says here counts for nothing.
    pub rev: u64,
    /// The text whose [`words`] it is found by; nothing finds it without them, and a write without them takes those of
    /// the write before away. Written, never read back (`None` in reads).
    pub words: Option<String>,
    /// The body, by convention JSON.
    pub body: Vec<u8>,
}

/// Where a Record that is written stands.
///
/// The numbers of a table and scope are given once: a Batch that is not committed uses none, and removing Records gives
/// none back. Two Records may stand at one place; their identities then order them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Where the store has it; a new one takes the next number.
    Keep,
    /// The next number of its table and scope: 1, 2, 3, without a gap, in the order of commits. One that is there
    /// already moves.
    Next,
    /// Here, further or not. The next number stays what it is.
    At(u64),
}

/// What a Feed tells of. The numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedKind {
    /// A Conversation.
    Conversation = 1,
    /// An Actor: its wakes.
    Actor = 2,
}

impl FeedKind {
    /// The stored number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }
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
    /// The Record that it tells of; its place and revision after this Batch's writes so far are kept with the item,
    /// or nothing when it is not there.
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

/// A number that Batches add to and that may have an upper bound. It is known by its name alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter(pub String);

/// What a store is asked about Records and Feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The Record with this identity: none or one.
    Record(Table, RecordId),
    /// The Records with these identities, in this order and as often; those that are not there are left out.
    These(Table, Vec<RecordId>),
    /// The Record with this key in the scope: none or one.
    Key(Table, RecordId, String),
    /// A part of the scope's list, by (place, identity).
    List(List),
    /// Records that are due at `until`, the longest overdue first, and by identity where they are equally so.
    Due {
        /// The table.
        table: Table,
        /// The time.
        until: TimeMs,
        /// At most this many.
        limit: usize,
    },
    /// Records of these scopes that hold all [`words`] of `text`, the greatest place first and at one place the greatest
    /// identity. A text without a word finds nothing, whatever signs are in it.
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
    /// Where the page before ended: place and identity of its last Record, which need not be there any more; `None`
    /// begins at the start.
    pub beyond: Option<(u64, RecordId)>,
    /// The greatest place first, and at one place the greatest identity; else both the other way round.
    pub newest_first: bool,
    /// At most this many.
    pub limit: usize,
}

/// What a counter stands at after `by` was added, or taken away. `None`: more than `max`, or than 64 bits. For stores.
#[must_use]
pub fn count_after(before: u64, by: i64, max: Option<u64>) -> Option<u64> {
    let after =
        if by < 0 { before.saturating_sub(by.unsigned_abs()) } else { before.checked_add(by.unsigned_abs())? };
    max.is_none_or(|max| after <= max).then_some(after)
}

/// A longer word counts for this many characters of it: nobody looks for what is longer, and what looks like a word
/// of that length (encoded bytes, mostly) would only fill an index.
pub const WORD_CHARS: usize = 128;

/// The words of a text, each once: runs of letters and digits ([`char::is_alphanumeric`]), in lower case. For stores,
/// so that all of them find the same.
#[must_use]
pub fn words(text: &str) -> BTreeSet<String> {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    let cut = |run: &str| run.chars().take(WORD_CHARS).collect::<String>();
    runs.map(|run| cut(run).to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_known_by_their_numbers() {
        for table in Table::ALL {
            assert_eq!(Table::from_number(table.number()), Some(table));
        }
        assert_eq!(Table::from_number(0), None);
        assert_eq!(Table::from_number(14), None);
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_in_lower_case() {
        let table: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" -*\"()\0:^+ ", &[]),
            ("one two, ONE!", &["one", "two"]),
            ("a_b-c.d", &["a", "b", "c", "d"]),
            ("NEAR(x OR y)", &["near", "or", "x", "y"]),
            ("Größe 12kg ½", &["12kg", "größe", "½"]),
            ("ΟΔΟΣ", &["οδος"]),
            ("don't", &["don", "t"]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text).iter().collect::<Vec<_>>(), expected, "{text}");
        }
        let long = words(&"ä".repeat(WORD_CHARS + 1));
        assert_eq!(long, BTreeSet::from(["ä".repeat(WORD_CHARS)]));
    }
}
