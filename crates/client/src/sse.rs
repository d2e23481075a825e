//! Server-sent events, as the HTML standard defines the format.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its type; `message` where the stream names none.
    pub event: String,
    /// Its data: lines joined by line feeds.
    pub data: String,
    /// Its id, where this event names one.
    pub id: Option<String>,
}

/// The most bytes of one event: more is no event of our server.
pub const FRAME_BYTES: usize = 16 << 20;

/// An event that is larger than any event may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {FRAME_BYTES} bytes")]
pub struct TooLarge;

/// Turns the bytes of a stream into events, however they were cut.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return: a line feed behind it belongs to it.
    after_return: bool,
    begun: bool,
    event: String,
    data: Option<String>,
    id: Option<String>,
    retry_ms: Option<u64>,
    bytes: usize,
}

impl Parser {
    /// Takes the next bytes, and adds the events that end in them.
    ///
    /// # Errors
    /// [`TooLarge`]; what was added before is good, and nothing that follows makes sense.
    pub fn push(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), TooLarge> {
        for byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, *byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => frames.extend(self.line()),
                byte => {
                    self.bytes += 1;
                    if self.bytes > FRAME_BYTES {
                        return Err(TooLarge);
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(())
    }

    /// How long to wait before coming back, in milliseconds, where the server has said so.
    #[must_use]
    pub const fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    fn line(&mut self) -> Option<Frame> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let text = if self.begun { &*text } else { text.trim_start_matches('\u{feff}') };
        self.begun = true;
        if text.is_empty() {
            return self.end();
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => self.retry_ms = value.parse().ok(),
            // A comment, or a field of a later standard.
            _ => {}
        }
        None
    }

    fn end(&mut self) -> Option<Frame> {
        self.bytes = 0;
        let (event, data, id) = (std::mem::take(&mut self.event), self.data.take(), self.id.take());
        let event = if event.is_empty() { "message".to_owned() } else { event };
        Some(Frame { event, data: data?, id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(event: &str, data: &str, id: Option<&str>) -> Frame {
        Frame { event: event.to_owned(), data: data.to_owned(), id: id.map(str::to_owned) }
    }

    const STREAM: &str = "\u{feff}retry: 2000\nevent: hello\nid: a1\ndata: {}\n\n:\n\nevent: message\r\nid: a2\r\n\
                          data: {\"text\":\"ü\"}\r\n\r\ndata:one\rdata: two\r\rid: 3\n\nevent: cut\ndata: never ended\n";

    fn expected() -> Vec<Frame> {
        vec![
            frame("hello", "{}", Some("a1")),
            frame("message", "{\"text\":\"ü\"}", Some("a2")),
            frame("message", "one\ntwo", None),
        ]
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
        for size in [1, 2, 3, 7, 1000] {
            let mut parser = Parser::default();
            let mut frames = Vec::new();
            for chunk in STREAM.as_bytes().chunks(size) {
                parser.push(chunk, &mut frames).expect("small");
            }
            assert_eq!((frames, parser.retry_ms()), (expected(), Some(2000)), "pieces of {size}");
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        let mut parser = Parser::default();
        let mut frames = Vec::new();
        // What ended before it is not lost.
        parser.push(b"data: before\n\n", &mut frames).expect("small");
        let piece = vec![b'x'; 1 << 20];
        let refused = (0..20).find_map(|_| parser.push(&piece, &mut frames).err());
        assert_eq!((refused, frames), (Some(TooLarge), vec![frame("message", "before", None)]));
    }
}
