//! How long the Transcript is, and a digest of all of it.

use super::{Item, items};
use crate::digest::Digest;
use crate::ids::Seq;
use crate::record::Record;
use serde::{Deserialize, Serialize};

/// Where the Transcript starts, how long it is, and a digest of all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// The first Entry that belongs to it; of a compacted one, the first after what the summary replaced. The Run's
    /// input belongs to it as well then.
    pub start: Seq,
    /// How many items.
    pub items: u64,
    /// Their bytes; an image counts for the most that a provider takes for one.
    pub bytes: u64,
    /// The running digest.
    pub digest: Digest,
    /// Its first item, the Run's input, with which it begins again when it is compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// What people and the Loop said since a model last spoke: no summary replaces that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
}

/// The first item of a Transcript.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Origin {
    /// Its bytes.
    pub bytes: u64,
    /// The digest of a Transcript that holds nothing else.
    pub digest: Digest,
}

/// The user messages behind the last reply of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// The Entry of that reply; before the first one, that of the input.
    pub after: Seq,
    /// How many items.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their running digest.
    pub digest: Digest,
}

impl Head {
    /// Takes what an Entry says.
    pub(crate) fn take(&mut self, seq: Seq, record: &Record, payload: &[u8]) {
        for item in items(record, payload) {
            match item {
                Item::Compacted { after, .. } => self.compact(after, &item),
                Item::User(_) | Item::Assistant(_) | Item::Tool { .. } | Item::Note(_) => self.add(seq, &item),
            }
        }
    }

    fn add(&mut self, seq: Seq, item: &Item<'_>) {
        let weight = item.weight();
        if self.items == 0 {
            self.start = seq;
        }
        self.items += 1;
        self.bytes = self.bytes.saturating_add(weight);
        self.digest = running(&self.digest, item);
        if seq == Seq(1) {
            self.origin = Some(Origin { bytes: self.bytes, digest: self.digest });
        }
        match &mut self.mark {
            Some(mark) if item.is_user() => {
                mark.items += 1;
                mark.bytes = mark.bytes.saturating_add(weight);
                mark.digest = running(&mark.digest, item);
            }
            // What a tool returned belongs to the reply that asked for it.
            Some(_) if !matches!(item, Item::Assistant(_)) => {}
            Some(_) | None => self.mark = Some(Mark { after: seq, items: 0, bytes: 0, digest: Digest::default() }),
        }
    }

    fn compact(&mut self, after: Seq, summary: &Item<'_>) {
        let origin = self.origin.unwrap_or(Origin { bytes: 0, digest: Digest::default() });
        let late = self.mark.filter(|mark| mark.after == after);
        self.start = after.next();
        self.items = u64::from(self.origin.is_some()) + 1 + late.map_or(0, |late| late.items);
        self.bytes = origin.bytes.saturating_add(summary.weight()).saturating_add(late.map_or(0, |late| late.bytes));
        let begun = running(&origin.digest, summary);
        self.digest = match late {
            Some(late) if late.items > 0 => Digest::of("loopd-transcript-late/1", &[&begun.0, &late.digest.0]),
            Some(_) | None => begun,
        };
        self.mark = late;
    }
}

fn running(before: &Digest, item: &Item<'_>) -> Digest {
    let [role, id, text] = item.parts();
    Digest::of("loopd-transcript/1", &[&before.0, role, id, text])
}
