//! Checking that each citation of an answer is an exact span of a document.
//!
//! # Guarantees
//! * A document is named by its path below the root: no `..`, no absolute path, and no link on the way, so that a
//!   citation cannot point to a file outside.
//! * A quote is exact when its bytes stand in the document, one after the other. Nothing is folded, trimmed or joined.
//!
//! # Caveats
//! Files are looked at by name. Whoever can swap them while they are checked can have anything checked.

use serde::Deserialize;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Bytes of a document that is read.
pub const MAX_DOCUMENT: u64 = 16 * 1024 * 1024;

/// What the agent answers: the output schema of `agent.yaml` as a type.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The answer.
    pub answer: String,
    /// What it rests on.
    pub citations: Vec<Citation>,
}

/// A quote and the document that it is said to come from.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Citation {
    /// The document: a path below the root, with `/` between its parts.
    pub file: String,
    /// The quote.
    pub quote: String,
}

/// Where a quote stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
    /// The line that it begins in, from 1.
    pub line: usize,
    /// How often the document holds it; `start` and `line` are of the first time.
    pub times: usize,
}

/// Why a citation is not exact.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotExact {
    /// The path does not stay below the root.
    #[error("the path is not one below the folder of documents")]
    Outside,
    /// A part of the path is a link.
    #[error("`{0}` is a link, which is not followed")]
    Link(String),
    /// There is no such document.
    #[error("there is no such document")]
    Missing,
    /// It is a folder, a pipe or something else.
    #[error("it is not a regular file")]
    NotAFile,
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is larger than [`MAX_DOCUMENT`].
    #[error("it is larger than {MAX_DOCUMENT} bytes")]
    TooLarge,
    /// It is not UTF-8 text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// A quote without a letter or digit stands everywhere and proves nothing.
    #[error("the quote says nothing")]
    Empty,
    /// The words are there, with other white space between them.
    #[error("the words stand in line {line} or after, with other white space between them")]
    Respaced {
        /// The line that they begin in.
        line: usize,
    },
    /// The document does not hold it.
    #[error("the document does not hold this text")]
    Absent,
}

impl Answer {
    /// Reads an answer: as `loopctl run` prints it, or inside the report of `loopctl run -o json`.
    ///
    /// # Errors
    /// The JSON error, where it is neither.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Report {
            output: Answer,
        }
        serde_json::from_str(text).or_else(|bare| match serde_json::from_str::<Report>(text) {
            Ok(report) => Ok(report.output),
            Err(_) => Err(bare),
        })
    }

    /// Every citation with what was found, in their order.
    pub fn check<'a>(&'a self, root: &'a Path) -> impl Iterator<Item = (&'a Citation, Result<Place, NotExact>)> {
        self.citations.iter().map(|citation| (citation, citation.check(root)))
    }

    /// True when there is a citation and every one is exact.
    #[must_use]
    pub fn is_exact(&self, root: &Path) -> bool {
        !self.citations.is_empty() && self.check(root).all(|(_, found)| found.is_ok())
    }
}

impl Citation {
    /// Looks for the quote in the document below `root`.
    ///
    /// # Errors
    /// [`NotExact`] with the first reason.
    pub fn check(&self, root: &Path) -> Result<Place, NotExact> {
        if !self.quote.contains(char::is_alphanumeric) {
            return Err(NotExact::Empty);
        }
        find(&read(&below(root, &self.file)?)?, &self.quote)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bytes {}..{}, line {}", self.start, self.end, self.line)?;
        if self.times > 1 { write!(f, ", the first of {} times", self.times) } else { Ok(()) }
    }
}

/// The regular file that `file` names below `root`, reached without a link.
fn below(root: &Path, file: &str) -> Result<PathBuf, NotExact> {
    let parts: Vec<&str> = file.split('/').collect();
    // A backslash or a colon means something else on other systems.
    let odd = |part: &&str| matches!(*part, "" | "." | "..") || part.contains(['\\', ':', '\0']);
    if parts.iter().any(odd) {
        return Err(NotExact::Outside);
    }
    let mut path = root.to_path_buf();
    for (at, part) in parts.iter().enumerate() {
        path.push(part);
        // Asked of the name itself: a link is seen as a link.
        let kind = path.symlink_metadata().map_err(|error| unreadable(&error))?.file_type();
        let last = at + 1 == parts.len();
        if kind.is_symlink() {
            return Err(NotExact::Link(parts[..=at].join("/")));
        }
        if last && !kind.is_file() {
            return Err(NotExact::NotAFile);
        }
        if !last && !kind.is_dir() {
            return Err(NotExact::Missing);
        }
    }
    Ok(path)
}

fn unreadable(error: &std::io::Error) -> NotExact {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => NotExact::Missing,
        _ => NotExact::Unreadable(error.to_string()),
    }
}

fn read(path: &Path) -> Result<String, NotExact> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
    file.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > MAX_DOCUMENT {
        return Err(NotExact::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| NotExact::NotText)
}

fn find(document: &str, quote: &str) -> Result<Place, NotExact> {
    let line_of = |at: usize| document.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
    match document.find(quote) {
        Some(start) => {
            Ok(Place { start, end: start + quote.len(), line: line_of(start), times: document.matches(quote).count() })
        }
        None => Err(respaced(document, quote).map_or(NotExact::Absent, |at| NotExact::Respaced { line: line_of(at) })),
    }
}

/// Where the words of the quote begin, when white space alone is what differs.
fn respaced(document: &str, quote: &str) -> Option<usize> {
    let wanted: Vec<&str> = quote.split_whitespace().collect();
    let words: Vec<&str> = document.split_whitespace().collect();
    let at = words.windows(wanted.len()).position(|window| window == wanted)?;
    // A word is a part of the document, so that its address says where it stands.
    words.get(at).map(|word| word.as_ptr() as usize - document.as_ptr() as usize)
}
