//! Listing, reading and searching files inside one folder, the root.
//!
//! # Guarantees
//! * A path names a place below the root by its components; it is walked from a handle of the root, one folder at
//!   a time, without following a link. Neither `..`, an absolute path, a link, a folder with a similar name, nor
//!   somebody who swaps a folder for a link meanwhile leads outside. The root itself may be reached through a link.
//! * Only regular files are opened. Pipes, devices and sockets are refused, and a pipe cannot block the opening.
//! * Every answer is bounded, in a fixed order, and says how much it left out.
//! * Text is given exactly; what is not UTF-8 text is an error, never garbled text.
//!
//! # Caveats
//! A hard link, or a file system mounted below the root, is content of the root like any other.

mod list;
mod read;
mod root;
mod search;
mod tool;
mod walk;

pub use list::{Entry, EntryKind, Listing};
pub use read::{Content, Cut, Unit};
pub use root::RootError;
pub use search::{Found, Match};
pub use walk::Skipped;

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
}

impl FileTool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::List, Self::Read, Self::Search];

    /// The name that a model uses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list_files",
            Self::Read => "read_file",
            Self::Search => "search_files",
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
            Self::List => tool::offer::<list::Args>(self.name(), list::DESCRIPTION),
            Self::Read => tool::offer::<read::Args>(self.name(), read::DESCRIPTION),
            Self::Search => tool::offer::<search::Args>(self.name(), search::DESCRIPTION),
        }
    }

    fn over(self, root: &Arc<Root>) -> Arc<dyn Tool> {
        match self {
            Self::List => Arc::new(BlockingTool::new(self.offer(), root, list::run)),
            Self::Read => Arc::new(BlockingTool::new(self.offer(), root, read::run)),
            Self::Search => Arc::new(BlockingTool::new(self.offer(), root, search::run)),
        }
    }
}

/// The tools of `allow` over the folder `root`, all of class `read`.
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
