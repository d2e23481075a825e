//! Listing, reading, searching, writing and editing files inside one folder, the root.
//!
//! # Guarantees
//! * A path names a place below the root by its components; it is walked from a handle of the root, one folder at
//!   a time, without following a link. Neither `..`, an absolute path, a link, a folder with a similar name, nor
//!   somebody who swaps a folder for a link meanwhile leads outside. The root itself may be reached through a link.
//! * Only regular files are opened. Pipes, devices and sockets are refused, and a pipe cannot block the opening.
//! * Every answer is bounded, in a fixed order, and says how much it left out.
//! * Text is given exactly; what is not UTF-8 text is an error, never garbled text.
//! * A file is written whole or not at all: beside its place first, flushed, then renamed. A reader sees the old
//!   content or the new one, a lost machine leaves one of them.
//! * An edit never overwrites what somebody else wrote since it read the file: it says so, and their content stays.
//!
//! # Effect classes
//! * Listing, reading and searching are `read`.
//! * `write_file` is `probed`. Its target can be asked: a file with just that content has been written, and what
//!   still lies beside its place under the name of the call was not. Anything else is unclear, and a person is asked.
//! * `edit_file` is `once`. A file does not show whether a text was replaced or was never there, so nobody can be
//!   asked but a person.
//!
//! # Caveats
//! A hard link, or a file system mounted below the root, is content of the root like any other. Writing a file gives
//! it a new inode: its permissions are kept, its owner and further hard links are not. Whoever holds a file open
//! while it is edited goes on writing to the one that was replaced. A process that is killed while it writes leaves
//! a file `.loopd-….tmp` behind.

mod edit;
mod hint;
mod list;
mod place;
mod read;
pub(crate) mod root;
mod search;
mod tool;
mod walk;
mod write;

pub use edit::Edited;
pub use list::{Entry, EntryKind, Listing};
pub use read::{Content, Cut, Unit};
pub use root::RootError;
pub use search::{Found, Match};
pub use walk::Skipped;
pub use write::Written;

use crate::args::offer;
use loopd_kernel::EffectClass;
use loopd_kernel::model::ToolOffer;
use loopd_runtime::Tool;
use root::Root;
use std::path::Path;
use std::sync::Arc;
use tool::BlockingTool;

/// One of the file tools.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FileTool {
    /// `list_files`: the entries of a folder.
    List,
    /// `read_file`: the text of a file, or a part of it.
    Read,
    /// `search_files`: the lines that hold a text.
    Search,
    /// `write_file`: a whole file.
    Write,
    /// `edit_file`: another text in the place of one that is there.
    Edit,
}

impl FileTool {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::List, Self::Read, Self::Search, Self::Write, Self::Edit];

    /// Those that change nothing.
    pub const READING: [Self; 3] = [Self::List, Self::Read, Self::Search];

    /// The name that a model uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list_files",
            Self::Read => "read_file",
            Self::Search => "search_files",
            Self::Write => "write_file",
            Self::Edit => "edit_file",
        }
    }

    /// What recovery may do with an open Call of it.
    #[must_use]
    pub const fn class(self) -> EffectClass {
        match self {
            Self::List | Self::Read | Self::Search => EffectClass::Read,
            Self::Write => EffectClass::Probed,
            Self::Edit => EffectClass::Once,
        }
    }

    /// The tool of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The tool as a model sees it.
    #[must_use]
    pub fn offer(self) -> ToolOffer {
        match self {
            Self::List => offer::<list::Args>(self.name(), list::DESCRIPTION),
            Self::Read => offer::<read::Args>(self.name(), read::DESCRIPTION),
            Self::Search => offer::<search::Args>(self.name(), search::DESCRIPTION),
            Self::Write => offer::<write::Args>(self.name(), write::DESCRIPTION),
            Self::Edit => offer::<edit::Args>(self.name(), edit::DESCRIPTION),
        }
    }

    fn over(self, root: &Arc<Root>) -> Arc<dyn Tool> {
        let (offer, class) = (self.offer(), self.class());
        match self {
            Self::List => Arc::new(BlockingTool::new(offer, class, root, |root, args, attempt| {
                list::run(root, args, &attempt.stop)
            })),
            Self::Read => Arc::new(BlockingTool::new(offer, class, root, |root, args, attempt| {
                read::run(root, args, &attempt.stop)
            })),
            Self::Search => Arc::new(BlockingTool::new(offer, class, root, |root, args, attempt| {
                search::run(root, args, &attempt.stop)
            })),
            Self::Write => Arc::new(BlockingTool::new(offer, class, root, write::run).probed_by(write::look)),
            Self::Edit => Arc::new(BlockingTool::new(offer, class, root, edit::run)),
        }
    }
}

/// The tools of `allow` over the folder `root`.
///
/// # Errors
/// [`RootError`], naming the root, when it is not there, is no folder or may not be opened.
pub fn file_tools(root: &Path, allow: &[FileTool]) -> Result<Vec<Arc<dyn Tool>>, RootError> {
    let root = Arc::new(Root::open(root)?);
    Ok(allow.iter().map(|tool| tool.over(&root)).collect())
}

/// The tools of `allow` as a model sees them, without a root: for looking at an Agent where its files are not.
#[must_use]
pub fn file_offers(allow: &[FileTool]) -> Vec<ToolOffer> {
    allow.iter().map(|tool| tool.offer()).collect()
}
