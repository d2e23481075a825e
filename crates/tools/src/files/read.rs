//! `read_file`: the exact text of a file, or of a part of it.

use super::root::{Below, Root, failed};
use super::tool::Stop;
use cap_std::fs::File;
use loopd_runtime::ToolError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

pub(super) const DESCRIPTION: &str = "Reads a text file, or a part of it, exactly as it is. A long file comes in parts: \
                                      the answer says where the next one begins.";

/// Bytes of text of one answer.
const MAX_TEXT: u64 = 64 * 1024;

/// Lines of one answer where the arguments do not say.
const DEFAULT_LINES: u64 = 1000;

/// Bytes that are read to find a line; beyond, a part is named in bytes.
const MAX_SCAN: u64 = 256 * 1024 * 1024;

/// What to read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// The file, as `list_files` names it.
    path: String,
    /// Where to begin: a line, counted from 1, or with unit `bytes` a byte, counted from 0.
    offset: Option<u64>,
    /// How many lines or bytes at most.
    #[schemars(range(min = 1))]
    limit: Option<u64>,
    /// What offset and limit count.
    #[serde(default)]
    #[schemars(schema_with = "unit_schema")]
    unit: Unit,
}

/// The plainest form: not every server of models follows references inside a schema.
fn unit_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": ["lines", "bytes"] })
}

/// What an offset counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Lines, from 1.
    #[default]
    Lines,
    /// Bytes, from 0.
    Bytes,
}

/// The answer of `read_file`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// The file.
    pub path: String,
    /// Its text from `first_byte` on, line ends as they are.
    pub text: String,
    /// The line that the text begins with; absent for a part in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// Where the text begins in the file.
    pub first_byte: u64,
    /// How many bytes the text has.
    pub bytes: u64,
    /// How many bytes the file has.
    pub total_bytes: u64,
    /// What comes after it; absent when the text goes to the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<Cut>,
}

/// Where a text was cut.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Bytes of the file after this part.
    pub left_bytes: u64,
    /// The offset that goes on.
    pub next_offset: u64,
    /// What that offset counts: bytes where the cut is inside a line.
    pub next_unit: Unit,
}

pub(super) fn run(root: &Root, args: Args, stop: &Stop) -> Result<Content, ToolError> {
    let path = Below::parse(&args.path)?;
    if args.limit == Some(0) {
        return Err(ToolError::invalid_args("limit: expected at least 1"));
    }
    let file = root.file(&path)?;
    let total = file.metadata().map_err(|error| failed(&path, &error))?.len();
    let mut reader = Reader { file: BufReader::with_capacity(64 * 1024, file), path: &path, at: 0, total };
    match args.unit {
        Unit::Lines => reader.lines(args.offset.unwrap_or(1), args.limit.unwrap_or(DEFAULT_LINES), stop),
        Unit::Bytes => reader.bytes(args.offset.unwrap_or(0), args.limit.unwrap_or(MAX_TEXT)),
    }
}

struct Reader<'a> {
    file: BufReader<File>,
    path: &'a Below,
    /// Bytes read so far.
    at: u64,
    total: u64,
}

impl Reader<'_> {
    fn lines(&mut self, first: u64, limit: u64, stop: &Stop) -> Result<Content, ToolError> {
        if first == 0 {
            return Err(ToolError::invalid_args("offset: lines are counted from 1"));
        }
        let skipped = self.skip_lines(first - 1, stop)?;
        if skipped < first - 1 {
            let message = format!("{} has {skipped} lines", self.path);
            return Err(ToolError::did_not_happen("file.past_end", message));
        }
        let (from, mut bytes, mut lines) = (self.at, Vec::new(), 0);
        while lines < limit && (bytes.len() as u64) < MAX_TEXT {
            let room = MAX_TEXT - bytes.len() as u64;
            let read = (&mut self.file).take(room).read_until(b'\n', &mut bytes);
            if read.map_err(|error| failed(self.path, &error))? == 0 {
                break;
            }
            lines += u64::from(bytes.last() == Some(&b'\n'));
        }
        let at_line_end = bytes.last().is_none_or(|byte| *byte == b'\n');
        let more = self.more()?;
        let next = if at_line_end { (first + lines, Unit::Lines) } else { (0, Unit::Bytes) };
        let content = self.content(from, bytes, more, next)?;
        Ok(Content { first_line: Some(first), ..content })
    }

    fn bytes(&mut self, from: u64, limit: u64) -> Result<Content, ToolError> {
        if from > self.total {
            let message = format!("{} has {} bytes", self.path, self.total);
            return Err(ToolError::did_not_happen("file.past_end", message));
        }
        self.file.seek(SeekFrom::Start(from)).map_err(|error| failed(self.path, &error))?;
        let mut bytes = Vec::new();
        let read = (&mut self.file).take(limit.min(MAX_TEXT)).read_to_end(&mut bytes);
        read.map_err(|error| failed(self.path, &error))?;
        let more = self.more()?;
        self.content(from, bytes, more, (0, Unit::Bytes))
    }

    /// Whether the file goes on.
    fn more(&mut self) -> Result<bool, ToolError> {
        Ok(!self.file.fill_buf().map_err(|error| failed(self.path, &error))?.is_empty())
    }

    /// Skips `count` lines without keeping them; fewer when the file ends before.
    fn skip_lines(&mut self, count: u64, stop: &Stop) -> Result<u64, ToolError> {
        let (mut skipped, mut open_line) = (0, false);
        while skipped < count {
            stop.check()?;
            if self.at >= MAX_SCAN {
                let message = format!(
                    "line {} of {} lies too far from its beginning; read it with unit bytes",
                    count + 1,
                    self.path
                );
                return Err(ToolError::did_not_happen("file.too_large", message));
            }
            let buffer = self.file.fill_buf().map_err(|error| failed(self.path, &error))?;
            if buffer.is_empty() {
                return Ok(skipped + u64::from(open_line));
            }
            let end = buffer.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let used = end.unwrap_or(buffer.len());
            self.file.consume(used);
            self.at += used as u64;
            skipped += u64::from(end.is_some());
            open_line = end.is_none();
        }
        Ok(skipped)
    }

    fn content(&self, from: u64, mut bytes: Vec<u8>, more: bool, next: (u64, Unit)) -> Result<Content, ToolError> {
        let text = match text(&mut bytes, more) {
            Ok(text) => text,
            Err((at, what)) => {
                let message = format!("{} is not UTF-8 text: byte {} is {what}", self.path, from + at);
                return Err(ToolError::did_not_happen("file.not_text", message));
            }
        };
        let end = from + text.len() as u64;
        let total = self.total.max(end);
        let (next_offset, next_unit) = if next.1 == Unit::Bytes { (end, Unit::Bytes) } else { next };
        let truncated = more.then_some(Cut { left_bytes: total - end, next_offset, next_unit });
        let bytes = text.len() as u64;
        Ok(Content {
            path: self.path.to_string(),
            text,
            first_line: None,
            first_byte: from,
            bytes,
            total_bytes: total,
            truncated,
        })
    }
}

/// The text of `bytes`; a character that the end cuts is left for the next part when there is one.
pub(super) fn text(bytes: &mut Vec<u8>, more: bool) -> Result<String, (u64, &'static str)> {
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err((at as u64, "NUL, as in binary files and UTF-16"));
    }
    if let Err(error) = std::str::from_utf8(bytes) {
        let at = error.valid_up_to();
        if !(more && error.error_len().is_none() && at > 0) {
            return Err((at as u64, "not valid there"));
        }
        bytes.truncate(at);
    }
    String::from_utf8(std::mem::take(bytes))
        .map_err(|error| (error.utf8_error().valid_up_to() as u64, "not valid there"))
}
