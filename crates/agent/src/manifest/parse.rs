//! Reading a manifest, and saying what is wrong with one: file, line, column, what was expected.

use super::Manifest;
use super::check::{Checked, Problem, check};
use super::locate::locate;
use serde::de::DeserializeOwned;
use serde_saphyr::{DefaultMessageFormatter, Error as YamlError, Location, MessageFormatter as _};
use std::fmt;

/// The largest manifest in bytes; instructions of this size do not fit any model.
const MAX_BYTES: usize = 1024 * 1024;

/// Characters of a line that an error shows.
const EXCERPT: usize = 100;

/// A manifest that does not read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestError {
    /// The file as the caller named it.
    pub file: String,
    /// The line, from 1; 0 where no line is to blame.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// What is wrong and what was expected.
    pub message: String,
    /// How to put it right, where that can be guessed.
    pub help: Option<String>,
    /// The line itself with a mark under the column; absent where it may hold a secret.
    pub excerpt: Option<String>,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n{help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// Reads a manifest. `file` is how errors name it; nothing is opened.
    ///
    /// # Errors
    /// [`ManifestError`], naming file, line and what was expected.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, ManifestError> {
        read(file, bytes, check)
    }
}

/// Reads a document of this format and checks it.
pub(super) fn read<T: Document>(
    file: &str,
    bytes: &[u8],
    check: impl FnOnce(&T) -> Checked,
) -> Result<T, ManifestError> {
    let whole =
        |message: String| ManifestError { file: file.into(), line: 0, column: 0, message, help: None, excerpt: None };
    if bytes.len() > MAX_BYTES {
        return Err(whole(format!("the {} is {} bytes; at most {MAX_BYTES} are read", T::WORD, bytes.len())));
    }
    let yaml = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
        whole(format!("line {line} is not UTF-8 text; a {} is YAML in UTF-8", T::WORD))
    })?;
    let options = serde_saphyr::options! { with_snippet: false };
    let document: T = serde_saphyr::from_str_with_options(yaml, options)
        .map_err(|error| from_yaml::<T>(file, yaml, error.without_snippet()))?;
    check(&document).map_err(|problem| from_problem(file, yaml, problem))?;
    Ok(document)
}

/// A kind of document, for error messages.
pub(super) trait Document: DeserializeOwned {
    /// What it is called in a sentence.
    const WORD: &'static str;
    /// What was expected of an empty file.
    const EXPECTED: &'static str;
}

impl Document for Manifest {
    const WORD: &'static str = "manifest";
    const EXPECTED: &'static str = "an agent manifest";
}

fn from_problem(file: &str, yaml: &str, problem: Problem) -> ManifestError {
    let location = locate(yaml, &problem.path);
    let mut error = at(file, yaml, location, problem.message, None);
    if problem.secret {
        error.excerpt = None;
    }
    error
}

fn from_yaml<T: Document>(file: &str, yaml: &str, error: &YamlError) -> ManifestError {
    let location = error.location().filter(|location| *location != Location::UNKNOWN);
    let (message, help) = explain(error, T::EXPECTED);
    at(file, yaml, location, message, help.or_else(|| tab(yaml)))
}

fn at(file: &str, yaml: &str, location: Option<Location>, message: String, help: Option<String>) -> ManifestError {
    let (line, column) = location.map_or((0, 0), |location| (location.line(), location.column()));
    ManifestError {
        file: file.into(),
        line,
        column,
        message: printable(&message),
        help: help.map(|help| printable(&help)),
        excerpt: excerpt(yaml, line, column),
    }
}

/// YAML says of a tab in the indentation only that something before it does not read.
fn tab(yaml: &str) -> Option<String> {
    let indent = |line: &str| line.bytes().take_while(u8::is_ascii_whitespace).any(|byte| byte == b'\t');
    let line = yaml.lines().position(indent)? + 1;
    Some(format!("line {line} is indented with a tab; YAML wants spaces"))
}

/// What is wrong in words of this format, and a guess at what was meant.
#[expect(clippy::wildcard_enum_match_arm, reason = "the enum is the YAML library's and is open")]
fn explain(error: &YamlError, document: &str) -> (String, Option<String>) {
    match error {
        YamlError::Eof { .. } => (format!("expected {document}, found an empty document"), None),
        YamlError::SerdeUnknownField { field, expected, .. } => unknown("field", field, expected),
        YamlError::SerdeUnknownVariant { variant, expected, .. } => unknown("value", variant, expected),
        YamlError::SerdeMissingField { field, .. } => (format!("the field `{field}` is missing here"), None),
        YamlError::SerdeInvalidType { unexpected, expected, .. } => {
            (format!("expected {expected}, found {unexpected}"), None)
        }
        YamlError::SerdeInvalidValue { unexpected, expected, .. } => {
            (format!("expected {expected}, found {unexpected}"), None)
        }
        YamlError::InvalidScalar { ty, .. } => (format!("expected {}", friendly(ty)), None),
        YamlError::Unexpected { expected, .. } => (format!("expected {}", friendly(expected)), None),
        YamlError::ExternallyTaggedEnumExpectedScalarOrMapping { .. } => ("expected a single word".into(), None),
        YamlError::DuplicateMappingKey { key: Some(key), .. } => (format!("the key `{key}` occurs twice"), None),
        YamlError::NullIntoString { .. } => ("expected a text, found nothing".into(), None),
        // The rest is about YAML itself; its words are the library's.
        other => (DefaultMessageFormatter.format_message(other).into_owned(), None),
    }
}

fn unknown(what: &str, found: &str, expected: &[&str]) -> (String, Option<String>) {
    let guess = crate::words::nearest(found, expected.iter().copied());
    let hint = guess.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let known: Vec<String> = expected.iter().map(|name| format!("`{name}`")).collect();
    let help = (!known.is_empty()).then(|| format!("expected one of: {}", known.join(", ")));
    (format!("unknown {what} `{found}`{hint}"), help)
}

fn friendly(ty: &str) -> &str {
    match ty {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "bool" | "boolean" => "true or false",
        "mapping start" => "a mapping of fields",
        "sequence start" => "a list",
        other => other,
    }
}

/// Without control characters, which could redraw a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// The line with a mark under the column. A tab is one column wide there.
fn excerpt(yaml: &str, line: u64, column: u64) -> Option<String> {
    let index = usize::try_from(line.checked_sub(1)?).ok()?;
    let text = yaml.lines().nth(index)?;
    let column = usize::try_from(column).ok()?.max(1);
    // A long line is shown around the column.
    let skip = (column - 1).saturating_sub(EXCERPT / 2);
    let shown: String = text.chars().skip(skip).take(EXCERPT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let margin = format!("{line:>4} | ");
    let mark = margin.len() + column - 1 - skip;
    Some(format!("{margin}{}\n{:>mark$}^", shown.trim_end(), ""))
}
