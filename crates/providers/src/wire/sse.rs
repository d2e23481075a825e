//! Server-sent events out of a stream of bytes that may be cut anywhere.
//!
//! It is a pure reader: bytes in, events out. It works on bytes and decodes whole events only, so that a
//! character that arrives in two pieces stays one character. What the standard forgives is forgiven (a field
//! without a colon, a repeated `event`, a `retry` that is no number, unknown fields); what would damage text is
//! an error. An event without its closing blank line is never delivered: it may be half of one.

/// The largest event that is read, so that a broken server cannot fill the memory.
pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// Its `event` field; empty where there was none.
    pub name: String,
    /// Its `data` lines, joined by line feeds.
    pub data: String,
}

/// The bytes are no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event is not UTF-8. Replacing characters would damage what is recorded for ever.
    #[error("the stream is not UTF-8")]
    NotUtf8,
    /// An event is larger than [`MAX_EVENT_BYTES`].
    #[error("an event of the stream is larger than {MAX_EVENT_BYTES} bytes")]
    TooLong,
}

/// Reads events.
#[derive(Debug, Default)]
pub struct SseReader {
    line: Vec<u8>,
    name: Vec<u8>,
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return: a line feed that follows belongs to the same line end.
    after_return: bool,
    /// The first line has been read, and with it the byte order mark.
    begun: bool,
    /// Where the last event of the last bytes ended.
    behind: usize,
}

impl SseReader {
    /// Reads on: the events that `bytes` complete.
    ///
    /// # Errors
    /// [`SseError`]; the reader is of no use afterwards.
    pub fn push(&mut self, all: &[u8]) -> Result<Vec<SseEvent>, SseError> {
        let (mut events, mut bytes) = (Vec::new(), all);
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let before = events.len();
            // A line that came whole is read where it lies.
            if self.line.is_empty() {
                self.fits(end)?;
                self.line_ends(&bytes[..end], &mut events)?;
            } else {
                self.keep(&bytes[..end])?;
                let mut line = std::mem::take(&mut self.line);
                self.line_ends(&line, &mut events)?;
                line.clear();
                self.line = line;
            }
            let returned = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if returned {
                self.after_return = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            if events.len() > before {
                self.behind = all.len() - bytes.len();
            }
        }
        self.keep(bytes)?;
        Ok(events)
    }

    /// Where in the bytes that were pushed last their last event ended. Of use only when they completed one.
    #[must_use]
    pub const fn behind_last_event(&self) -> usize {
        self.behind
    }

    /// Whether everything that came was part of a complete event.
    #[must_use]
    pub fn is_between_events(&self) -> bool {
        self.line.is_empty() && self.data.is_none() && self.name.is_empty()
    }

    fn fits(&self, more: usize) -> Result<(), SseError> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held + more > MAX_EVENT_BYTES { Err(SseError::TooLong) } else { Ok(()) }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        self.fits(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_ends(&mut self, mut line: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            let name = std::mem::take(&mut self.name);
            if let Some(data) = self.data.take() {
                events.push(SseEvent { name: text(name)?, data: text(data)? });
            }
            return Ok(());
        }
        let colon = memchr::memchr(b':', line);
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.name = value.to_vec(),
            // A comment (no field name), `id` and `retry`, which mean nothing to a request that is never resumed,
            // and whatever else comes up.
            _ => {}
        }
        Ok(())
    }
}

fn text(bytes: Vec<u8>) -> Result<String, SseError> {
    String::from_utf8(bytes).map_err(|_| SseError::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn shown(events: &[SseEvent]) -> String {
        events.iter().map(|event| format!("{:?} {:?}\n", event.name, event.data)).collect()
    }

    /// The events must not depend on where the stream was cut: at every single byte, and in two at every place.
    #[track_caller]
    fn check(stream: impl AsRef<[u8]>, expect: Expect) {
        let stream = stream.as_ref();
        let read = |pieces: &mut dyn Iterator<Item = &[u8]>| -> (String, bool) {
            let mut reader = SseReader::default();
            let mut events = Vec::new();
            for piece in pieces {
                match reader.push(piece) {
                    Ok(more) => events.extend(more),
                    Err(error) => return (format!("{}error: {error}\n", shown(&events)), true),
                }
            }
            (shown(&events), reader.is_between_events())
        };
        let (whole, clean) = read(&mut [stream].into_iter());
        expect.assert_eq(&format!("{whole}{}", if clean { "" } else { "(cut)\n" }));
        for size in 1..=stream.len().max(1) {
            assert_eq!(read(&mut stream.chunks(size)).0, whole, "in pieces of {size}");
        }
        for at in 0..=stream.len() {
            let (left, right) = stream.split_at(at);
            assert_eq!(read(&mut [left, b"", right].into_iter()).0, whole, "cut at {at}");
            // A prefix gives a prefix of the events, never another event.
            let (prefix, _) = read(&mut [left].into_iter());
            assert!(whole.starts_with(&prefix), "prefix of {at}: {prefix}");
        }
    }

    #[test]
    fn events_do_not_depend_on_the_cuts() {
        check(
            "data: a\n\ndata: b\n\n",
            expect![[r#"
            "" "a"
            "" "b"
        "#]],
        );
        check(
            "data: a\r\n\r\ndata: b\r\rdata: c\n\r\ndata: d\r\n\n",
            expect![[r#"
            "" "a"
            "" "b"
            "" "c"
            "" "d"
        "#]],
        );
        check(
            "\u{feff}data: marked\n\ndata: \u{feff}kept\n\n",
            expect![[r#"
            "" "marked"
            "" "\u{feff}kept"
        "#]],
        );
        check(
            "event: error\ndata: one\ndata:two\ndata:  three\ndata\ndata:\n\n",
            expect![[r#"
            "error" "one\ntwo\n three\n\n"
        "#]],
        );
        check(
            "data: one\r\ndata: two\r\n\r\n",
            expect![[r#"
                "" "one\ntwo"
            "#]],
        );
        check(
            "data: 那里 🎉 é\n\n",
            expect![[r#"
            "" "那里 🎉 é"
        "#]],
        );
    }

    #[test]
    fn comments_and_odd_fields_are_no_events() {
        check(
            ": OPENROUTER PROCESSING\n\n:\n\ndata: x\n\n",
            expect![[r#"
            "" "x"
        "#]],
        );
        check(
            "id: 7\nretry: soon\nretry: 10\nwhatever\nevent: a\nevent: b\ndata: x\n\nretry: 5\n\n",
            expect![[r#"
            "b" "x"
        "#]],
        );
        check(
            "event: alone\n\ndata: next\n\n",
            expect![[r#"
            "" "next"
        "#]],
        );
    }

    #[test]
    fn half_an_event_is_none() {
        check(
            "data: a\n\ndata: b",
            expect![[r#"
            "" "a"
            (cut)
        "#]],
        );
        check(
            "data: a\n\ndata: b\n",
            expect![[r#"
            "" "a"
            (cut)
        "#]],
        );
        check("", expect![""]);
        check(
            b"data: \xE9\x82\n\n",
            expect![[r#"
            error: the stream is not UTF-8
        "#]],
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut reader = SseReader::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1 << 20], b"\n"].concat();
        let error = (0..64).find_map(|_| reader.push(&line).err());
        assert_eq!(error, Some(SseError::TooLong));
    }
}
