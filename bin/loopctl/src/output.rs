//! Where text goes: data to stdout, everything else to stderr.

use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};

/// How results are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One JSON value
    Json,
    /// One JSON value a line
    Jsonl,
    /// Names only
    Name,
}

impl Format {
    /// True when a program reads it.
    pub const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Jsonl)
    }
}

/// When colours are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Color {
    /// On a terminal that has them, unless NO_COLOR is set
    Auto,
    /// Never
    Never,
}

/// Writes text and a line break to stdout.
///
/// # Errors
/// What the operating system says. A reader that has closed its end is none: it has seen enough.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes bytes to stdout.
///
/// # Errors
/// As [`line`].
pub fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a value as JSON to stdout: readable as `json`, on one line as `jsonl`.
///
/// # Errors
/// As [`line`].
pub fn json(format: Format, value: &impl Serialize) -> io::Result<()> {
    let text = match format {
        // An answer keeps its own white space; within JSON a line break is nothing but that.
        Format::Jsonl => serde_json::to_string(value)?.replace(['\n', '\r'], " "),
        Format::Json | Format::Table | Format::Name => serde_json::to_string_pretty(value)?,
    };
    line(&text)
}

/// Writes values to stdout: one array as `json`, one line each as `jsonl`.
///
/// # Errors
/// As [`line`].
pub fn json_list<T: Serialize>(format: Format, values: &[T]) -> io::Result<()> {
    if format == Format::Jsonl {
        return values.iter().try_for_each(|value| json(format, value));
    }
    json(format, &values)
}

/// Says something to the person at stderr. Nobody listening is no error.
pub fn note(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// True when stdout is a terminal.
pub fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// True when stderr is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}
