//! Scripts written in Rust.

use crate::on_wire::OnWire;
use crate::script::{Fault, FaultKind, Script, ScriptTurn, ScriptUse, When};
use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use serde_json::Value;

impl Script {
    /// A script without turns: [`Script::says`] and its like add them.
    #[must_use]
    pub fn empty() -> Self {
        Self { label: None, pace: crate::Pace::default(), turns: Vec::new() }
    }

    /// The next turn: the model says this and is done.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        self.turn(ScriptTurn::says(text))
    }

    /// The next turn: the model asks for one tool. A string as arguments is sent as it stands, garbage included.
    #[must_use]
    pub fn asks(self, tool: impl Into<String>, args: Value) -> Self {
        self.turn(ScriptTurn::asks(tool, args))
    }

    /// The next turn. Where it has no conditions and no `times`, turn *n* answers a request in which the model has
    /// spoken *n - 1* times: so attempts, and conversations side by side, do not disturb each other.
    #[must_use]
    pub fn turn(mut self, mut turn: ScriptTurn) -> Self {
        if turn.when == When::default() && turn.times.is_none() {
            let numbered = self.turns.iter().filter(|turn| turn.when.turn.is_some()).count();
            turn.when.turn = Some(numbered + 1);
        }
        self.turns.push(turn);
        self
    }

    /// A request whose last user message contains `text` gets this turn, whatever comes next. It stands before the
    /// turns that are there already.
    #[must_use]
    pub fn when(mut self, text: impl Into<String>, mut turn: ScriptTurn) -> Self {
        turn.when.user_contains = Some(text.into());
        self.turns.insert(0, turn);
        self
    }
}

impl ScriptTurn {
    /// The model says this.
    #[must_use]
    pub fn says(text: impl Into<String>) -> Self {
        Self { say: Some(text.into()), ..Self::default() }
    }

    /// The model says this as JSON.
    #[must_use]
    pub fn json(value: Value) -> Self {
        Self { json: Some(value), ..Self::default() }
    }

    /// The model asks for one tool.
    #[must_use]
    pub fn asks(tool: impl Into<String>, args: Value) -> Self {
        Self::default().and_asks(tool, args)
    }

    /// The model refuses, in these words.
    #[must_use]
    pub fn refuses(text: impl Into<String>) -> Self {
        Self::says(text).stops(StopReason::Refusal)
    }

    /// A response that is sent in the place of an answer.
    #[must_use]
    pub fn fails(on_wire: OnWire) -> Self {
        Self::default().on_wire(on_wire)
    }

    /// The same, and asks for one more tool.
    #[must_use]
    pub fn and_asks(mut self, tool: impl Into<String>, args: Value) -> Self {
        self.uses.push(ScriptUse { tool: tool.into(), args });
        self
    }

    /// The same after this reasoning.
    #[must_use]
    pub fn thinks(mut self, text: impl Into<String>) -> Self {
        self.reasoning = Some(text.into());
        self
    }

    /// The same with this usage.
    #[must_use]
    pub const fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The same with this reason to stop.
    #[must_use]
    pub fn stops(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The same under these conditions.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// The same, played at most once: with it, turns come in the order in which requests arrive.
    #[must_use]
    pub const fn once(mut self) -> Self {
        self.times = Some(1);
        self
    }

    /// The same, sent like this.
    #[must_use]
    pub fn on_wire(mut self, on_wire: OnWire) -> Self {
        self.on_wire = on_wire;
        self
    }

    /// The same, and its next attempt fails like this.
    #[must_use]
    pub fn fails_first(self, error: FaultKind) -> Self {
        self.fault(Fault { error: Some(error), ..Fault::default() })
    }

    /// The same, and its next attempt is sent like this.
    #[must_use]
    pub fn first_on_wire(self, on_wire: OnWire) -> Self {
        self.fault(Fault { on_wire, ..Fault::default() })
    }

    /// The same with this fault, for the attempt after those that have one.
    #[must_use]
    pub fn fault(mut self, mut fault: Fault) -> Self {
        fault.attempt = self.faults.iter().map(|fault| fault.attempt).max().unwrap_or(0) + 1;
        self.faults.push(fault);
        self
    }
}
