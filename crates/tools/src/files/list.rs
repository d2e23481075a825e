//! `list_files`: the entries of a folder.

use super::root::{Below, Root};
use super::tool::Stop;
use super::walk::{MAX_DEPTH, Skipped, Visited, Walk};
use loopd_runtime::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) const DESCRIPTION: &str = "Lists the files and folders of a folder, sorted by name. Paths are relative to \
                                      the one folder that can be seen.";

/// Entries of one answer.
const MAX_SHOWN: u64 = 1000;

/// What to list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The folder; without it, everything that can be seen.
    #[serde(default)]
    path: String,
    /// How many levels of folders to go down: 1 is the folder itself. Hidden folders are not entered.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 32))]
    depth: u32,
}

const fn one() -> u32 {
    1
}

/// The answer of `list_files`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The folder.
    pub path: String,
    /// What is in it, each folder followed by its own entries.
    pub entries: Vec<Entry>,
    /// Entries that did not fit; absent when all are here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// What cannot be listed.
    #[serde(default, skip_serializing_if = "Skipped::is_nothing")]
    pub skipped: Skipped,
}

/// One entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its path, as the other tools take it.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
    /// The size of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A file that can be read.
    File,
    /// A folder.
    Folder,
    /// A link; it is not followed.
    Link,
    /// A pipe, a device or a socket; it is not read.
    Special,
}

pub(super) fn run(root: &Root, args: Args, stop: &Stop) -> Result<Listing, ToolError> {
    let path = Below::parse(&args.path)?;
    if args.depth == 0 || args.depth > MAX_DEPTH {
        return Err(ToolError::invalid_args(format!("depth: expected 1 to {MAX_DEPTH}")));
    }
    let (mut entries, mut more) = (Vec::new(), 0_u64);
    let visit = |visited: &Visited<'_>, _: &mut Skipped| {
        if entries.len() as u64 == MAX_SHOWN {
            more += 1;
        } else {
            entries.push(entry(visited));
        }
        Ok(())
    };
    let mut walk = Walk { stop, depth: args.depth - 1, hidden: true, skipped: Skipped::default(), visit };
    walk.run(root, &path)?;
    let skipped = walk.skipped;
    let truncated =
        (more > 0).then(|| format!("{MAX_SHOWN} of {} entries are shown; list a folder of them", MAX_SHOWN + more));
    Ok(Listing { path: path.to_string(), entries, truncated, skipped })
}

fn entry(visited: &Visited<'_>) -> Entry {
    let kind = match visited.kind {
        kind if kind.is_file() => EntryKind::File,
        kind if kind.is_dir() => EntryKind::Folder,
        kind if kind.is_symlink() => EntryKind::Link,
        _ => EntryKind::Special,
    };
    let bytes = match kind {
        EntryKind::File => visited.parent.symlink_metadata(visited.name).ok().map(|found| found.len()),
        EntryKind::Folder | EntryKind::Link | EntryKind::Special => None,
    };
    Entry { path: visited.path.to_string(), kind, bytes }
}
