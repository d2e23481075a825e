//! `search_files`: the lines that hold a text.

use super::read;
use super::root::{Below, Root, open_file};
use super::tool::Stop;
use super::walk::{MAX_DEPTH, Skipped, Visited, Walk};
use cap_std::fs::{Dir, File};
use loopd_runtime::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::Read as _;

pub(super) const DESCRIPTION: &str = "Finds the lines that hold a text, word for word, in a file or in all files of a \
                                      folder and the folders below it. Hidden files are left out.";

/// Matches of one answer.
const MAX_MATCHES: u64 = 200;

/// Matches where the arguments do not say.
const DEFAULT_MATCHES: u64 = 50;

/// Characters of a line that are shown.
const MAX_LINE: usize = 400;

/// Bytes of a file that is searched.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// Bytes that one call reads.
const MAX_TOTAL: u64 = 512 * 1024 * 1024;

/// Characters of a text to look for.
const MAX_NEEDLE: usize = 1000;

/// What to find.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The text to look for, within one line.
    #[schemars(length(min = 1, max = 1000))]
    text: String,
    /// The file or folder to look into; without it, everything that can be seen.
    #[serde(default)]
    path: String,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// How many matches to show, at most 200.
    #[serde(default = "default_matches")]
    #[schemars(range(min = 1, max = 200))]
    limit: u64,
}

const fn default_matches() -> u64 {
    DEFAULT_MATCHES
}

/// The answer of `search_files`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The matches, by path and line.
    pub matches: Vec<Match>,
    /// Files that were searched.
    pub files: u64,
    /// What was left out; absent when every match is here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// Files that were not searched.
    #[serde(default, skip_serializing_if = "Skipped::is_nothing")]
    pub skipped: Skipped,
}

/// A line that holds the text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u64,
    /// The line without its end, or the part of a long line around the match.
    pub text: String,
    /// True when `text` is only a part of the line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

pub(super) fn run(root: &Root, args: Args, stop: &Stop) -> Result<Found, ToolError> {
    let path = Below::parse(&args.path)?;
    let length = args.text.chars().count();
    if length == 0 || length > MAX_NEEDLE || args.text.contains('\n') {
        return Err(ToolError::invalid_args(format!("text: expected 1 to {MAX_NEEDLE} characters of one line")));
    }
    if args.limit == 0 || args.limit > MAX_MATCHES {
        return Err(ToolError::invalid_args(format!("limit: expected 1 to {MAX_MATCHES}")));
    }
    let mut search =
        Search { needle: Needle::new(&args), limit: args.limit, stop, matches: Vec::new(), more: 0, files: 0, read: 0 };
    let skipped = match root.file(&path) {
        Ok(file) => search.one_file(file, &path)?,
        Err(error) if error.failure.code == "file.is_a_folder" => {
            let visit = |visited: &Visited<'_>, skipped: &mut Skipped| search.visit(visited, skipped);
            let mut walk = Walk { stop, depth: MAX_DEPTH, hidden: false, skipped: Skipped::default(), visit };
            walk.run(root, &path)?;
            walk.skipped
        }
        Err(error) => return Err(error),
    };
    let shown = search.matches.len() as u64;
    let truncated = (search.more > 0)
        .then(|| format!("{shown} of {} matches are shown; narrow the text or the path", shown + search.more));
    Ok(Found { matches: search.matches, files: search.files, truncated, skipped })
}

struct Search<'a> {
    needle: Needle,
    limit: u64,
    stop: &'a Stop,
    matches: Vec<Match>,
    more: u64,
    files: u64,
    read: u64,
}

enum Needle {
    Exact(String),
    Folded(String),
}

impl Needle {
    fn new(args: &Args) -> Self {
        if args.ignore_case { Self::Folded(args.text.to_lowercase()) } else { Self::Exact(args.text.clone()) }
    }

    /// Where in the line the text is: the character it begins with, as near as case folding lets know.
    fn find(&self, line: &str) -> Option<usize> {
        let in_chars = |text: &str, at: usize| text.get(..at).map_or(0, |head| head.chars().count());
        match self {
            Self::Exact(needle) => line.find(needle).map(|at| in_chars(line, at)),
            Self::Folded(needle) => {
                let folded = line.to_lowercase();
                folded.find(needle).map(|at| in_chars(&folded, at))
            }
        }
    }
}

impl Search<'_> {
    fn one_file(&mut self, file: File, path: &Below) -> Result<Skipped, ToolError> {
        let mut skipped = Skipped::default();
        self.file(file, path, &mut skipped)?;
        Ok(skipped)
    }

    fn visit(&mut self, visited: &Visited<'_>, skipped: &mut Skipped) -> Result<(), ToolError> {
        if visited.kind.is_dir() {
            return Ok(());
        }
        if !visited.kind.is_file() {
            skipped.links_and_special += 1;
            return Ok(());
        }
        let dir: &Dir = visited.parent;
        match open_file(dir, visited.name, &visited.path) {
            Ok(file) => self.file(file, &visited.path, skipped),
            Err(_) => {
                skipped.unreadable += 1;
                Ok(())
            }
        }
    }

    fn file(&mut self, file: File, path: &Below, skipped: &mut Skipped) -> Result<(), ToolError> {
        let length = file.metadata().map_or(u64::MAX, |found| found.len());
        if length > MAX_FILE || self.read > MAX_TOTAL {
            skipped.too_large += 1;
            return Ok(());
        }
        let mut bytes = Vec::new();
        // It may have grown since it was asked for its length.
        if file.take(MAX_FILE).read_to_end(&mut bytes).is_err() {
            skipped.unreadable += 1;
            return Ok(());
        }
        self.read += bytes.len() as u64;
        let Ok(text) = read::text(&mut bytes, false) else {
            skipped.not_text += 1;
            return Ok(());
        };
        self.files += 1;
        for (number, line) in text.lines().enumerate() {
            self.stop.check()?;
            if let Some(at) = self.needle.find(line) {
                self.found(path, number as u64 + 1, line, at);
            }
        }
        Ok(())
    }

    fn found(&mut self, path: &Below, number: u64, line: &str, at: usize) {
        if self.matches.len() as u64 == self.limit {
            self.more += 1;
            return;
        }
        let skip = if line.chars().count() > MAX_LINE { at.saturating_sub(MAX_LINE / 4) } else { 0 };
        let text: String = line.chars().skip(skip).take(MAX_LINE).collect();
        let cut = text.len() < line.len();
        self.matches.push(Match { path: path.to_string(), line: number, text, cut });
    }
}
