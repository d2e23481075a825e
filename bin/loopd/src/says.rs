//! Where text goes: data to stdout, everything else to stderr.

use std::io::{self, Write};

/// Says something to the person at stderr. Nobody listening is no error.
pub fn note(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Writes a line to stdout.
///
/// # Errors
/// What the operating system says.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush())
}
