//! Colours: they mean state only, and text reads the same without them.

use crate::output::Color;
use std::fmt::Display;

/// What a colour means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Done.
    Good,
    /// Waits, or is in doubt.
    Waits,
    /// Failed.
    Bad,
    /// Moves.
    Live,
}

impl Tone {
    /// As tables know it.
    pub const fn color(self) -> comfy_table::Color {
        match self {
            Self::Good => comfy_table::Color::DarkGreen,
            Self::Waits => comfy_table::Color::DarkYellow,
            Self::Bad => comfy_table::Color::DarkRed,
            Self::Live => comfy_table::Color::DarkCyan,
        }
    }
}

/// Paints text for one stream, or leaves it as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// No colours.
    pub const PLAIN: Self = Self { on: false };

    /// Colours for a stream.
    pub fn for_stream(color: Color, is_terminal: bool) -> Self {
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { on: color == Color::Auto && is_terminal && !set("NO_COLOR") && !dumb }
    }

    /// Whether anything is painted.
    pub const fn is_on(self) -> bool {
        self.on
    }

    fn with(self, code: &str, text: impl Display) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_string() }
    }

    /// As its state asks.
    pub fn tone(self, tone: Tone, text: impl Display) -> String {
        match tone {
            Tone::Good => self.good(text),
            Tone::Waits => self.wait(text),
            Tone::Bad => self.bad(text),
            Tone::Live => self.live(text),
        }
    }

    /// What counts.
    pub fn bold(self, text: impl Display) -> String {
        self.with("1", text)
    }

    /// What is beside the point.
    pub fn dim(self, text: impl Display) -> String {
        self.with("2", text)
    }

    /// Done.
    pub fn good(self, text: impl Display) -> String {
        self.with("32", text)
    }

    /// Waits, or is in doubt.
    pub fn wait(self, text: impl Display) -> String {
        self.with("33", text)
    }

    /// Failed.
    pub fn bad(self, text: impl Display) -> String {
        self.with("31", text)
    }

    /// Moves.
    pub fn live(self, text: impl Display) -> String {
        self.with("36", text)
    }
}
