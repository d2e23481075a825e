//! What is typed, line by line.

use std::io::BufRead;
use tokio::sync::mpsc;

/// What somebody typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Typed {
    /// Something for the agent.
    Text(String),
    /// Leave; the conversation stays as it is.
    Leave,
    /// End the conversation for good.
    End,
    /// How much has been used.
    Usage,
    /// Twice as much of the limit that was reached.
    Raise,
    /// What may be typed.
    Help,
    /// A line that is no text.
    Garbled,
    /// A word with a slash that means nothing.
    Unknown(String),
}

/// What may be typed, for people.
pub const HELP: &str = "\
/usage   tokens and money so far
/raise   twice as much of the limit that was reached, and go on
/exit    leave; the conversation can be taken up again
/end     end the conversation for good
A line that ends with \\ goes on in the next one.
Ctrl-C interrupts the agent, and leaves while it waits; Ctrl-D leaves, too.";

impl Typed {
    fn of(line: &str) -> Self {
        match line.trim() {
            "/exit" | "/quit" => Self::Leave,
            "/end" => Self::End,
            "/usage" => Self::Usage,
            "/raise" => Self::Raise,
            "/help" | "/?" => Self::Help,
            word if word.starts_with('/') && !word.contains(char::is_whitespace) && !word[1..].contains('/') => {
                Self::Unknown(word.into())
            }
            _ => Self::Text(line.into()),
        }
    }
}

/// The lines of stdin. They are read by a thread of their own: nothing can wake a read from a terminal.
pub struct Lines(mpsc::UnboundedReceiver<Typed>);

impl Lines {
    /// Begins to read.
    pub fn of_stdin() -> Self {
        let (sender, lines) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            read(std::io::stdin().lock(), |typed| sender.send(typed).is_ok());
        });
        Self(lines)
    }

    /// The next line; `None` when there is none any more.
    pub async fn next(&mut self) -> Option<Typed> {
        self.0.recv().await
    }
}

/// Reads what is typed until there is no more, or nobody `takes` it.
fn read(mut stdin: impl BufRead, mut takes: impl FnMut(Typed) -> bool) {
    let mut whole = Vec::new();
    loop {
        let mut line = Vec::new();
        let more = stdin.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0);
        for end in *b"\n\r" {
            line.pop_if(|last| *last == end);
        }
        let goes_on = line.pop_if(|last| *last == b'\\').is_some();
        whole.append(&mut line);
        if goes_on {
            whole.push(b'\n');
            continue;
        }
        let typed = match String::from_utf8(std::mem::take(&mut whole)) {
            Ok(line) if line.trim().is_empty() => None,
            Ok(line) => Some(Typed::of(line.trim_end_matches('\n'))),
            Err(_) => Some(Typed::Garbled),
        };
        if typed.is_some_and(|typed| !takes(typed)) || !more {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_was_typed_is_lost() {
        let text = |text: &str| Typed::Text(text.into());
        for (typed, read_as) in [
            (&b"one\ntwo"[..], vec![text("one"), text("two")]),
            (b"one\\\n\\\ntwo\r\n\n", vec![text("one\n\ntwo")]),
            (b"begun\\", vec![text("begun")]),
            (b"begun\\\n", vec![text("begun")]),
            (b"\xff\xfe\nafter\n", vec![Typed::Garbled, text("after")]),
            (b" \n\n", vec![]),
        ] {
            let mut all = Vec::new();
            read(typed, |typed| {
                all.push(typed);
                true
            });
            assert_eq!(all, read_as, "{typed:?}");
        }
    }

    #[test]
    fn commands_are_told_from_what_is_meant_for_the_agent() {
        for (line, typed) in [
            ("/exit", Typed::Leave),
            (" /end ", Typed::End),
            ("/ende", Typed::Unknown("/ende".into())),
            ("/etc/hosts", Typed::Text("/etc/hosts".into())),
            ("/usage of words", Typed::Text("/usage of words".into())),
            ("hello", Typed::Text("hello".into())),
        ] {
            assert_eq!(Typed::of(line), typed, "{line}");
        }
    }
}
