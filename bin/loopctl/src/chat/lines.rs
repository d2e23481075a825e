//! What is typed, line by line.

use std::io::BufRead as _;
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
            let mut whole = String::new();
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if let Some(begun) = line.strip_suffix('\\') {
                    whole.push_str(begun);
                    whole.push('\n');
                    continue;
                }
                whole.push_str(&line);
                let line = std::mem::take(&mut whole);
                if !line.trim().is_empty() && sender.send(Typed::of(&line)).is_err() {
                    break;
                }
            }
        });
        Self(lines)
    }

    /// The next line; `None` when there is none any more.
    pub async fn next(&mut self) -> Option<Typed> {
        self.0.recv().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
