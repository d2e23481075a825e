//! A script as it is written. `docs/demo-model.md` teaches it.

use crate::on_wire::OnWire;
use crate::template::{Template, TemplateError};
use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A script: the first turn that fits the request is played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// What every text begins with. Without one the demo model has its own, so that nobody takes its texts for the
    /// words of a real model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The pace of turns that have none of their own.
    #[serde(default)]
    pub pace: Pace,
    /// The turns.
    pub turns: Vec<ScriptTurn>,
}

/// How slowly it answers. Time passes only where it is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// Milliseconds before the first word.
    pub delay_ms: u64,
    /// Milliseconds before each further word.
    pub word_ms: u64,
}

/// One turn of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptTurn {
    /// When it is played; always, where nothing is said.
    pub when: When,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// The text as JSON, without the label: for answers that a program reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// What the model thinks before it speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tools to use.
    #[serde(rename = "use", skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<ScriptUse>,
    /// Its own pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Its usage; else an estimate from the sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it stopped; else what follows from `use`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopReason>,
    /// Attempts that fail before one succeeds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// It is played at most so many times; then the next turn that fits is. Attempts that fail do not count. Only a
    /// server can count: the demo model refuses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// How it is sent. Only a server can: the demo model refuses it.
    #[serde(skip_serializing_if = "OnWire::is_usual")]
    pub on_wire: OnWire,
}

/// A tool to use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptUse {
    /// Its name.
    pub tool: String,
    /// Its arguments. A string is sent as it stands: as JSON text, or as the nonsense of a confused model.
    #[serde(default = "no_args")]
    pub args: Value,
}

fn no_args() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Conditions, all of which must hold. Text is compared without regard to case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The model that is asked for has this in its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The last user message contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_contains: Option<String>,
    /// The last line of the last user message contains this: what comes before it may be no more than context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_contains: Option<String>,
    /// The system text contains this: tells the agents of one demo apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_contains: Option<String>,
    /// It is the model's turn number N in this request, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// It is the model's turn number N since the last user message, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// A result of this tool came since the model last spoke; `*` is any tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
    /// One of these results contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_contains: Option<String>,
    /// One of these results is an error (true), or none is (false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_failed: Option<bool>,
    /// So many results of these tools are in this request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, usize>,
    /// These tools are on offer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<String>,
}

/// An attempt that fails. The attempt number is recorded, so this too is the same after a restart. For a server, a
/// request that is the same as an earlier one, byte for byte, is its next attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FaultKind>,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// After how many words a stream is cut.
    #[serde(default)]
    pub after_words: usize,
    /// How it is sent. Only a server can: the demo model refuses it.
    #[serde(default, skip_serializing_if = "OnWire::is_usual")]
    pub on_wire: OnWire,
}

/// The ways to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Too many requests.
    RateLimited,
    /// Not reached, or overloaded.
    Unavailable,
    /// The stream breaks off after some words.
    Cut,
    /// Nothing comes until the time is over.
    Hang,
    /// An answer that is none.
    Malformed,
    /// The request is wrong.
    Rejected,
    /// The request is too large.
    TooLarge,
    /// The key is wrong.
    Unauthorised,
}

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It does not read.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// There is no turn in it.
    #[error("it has no turns")]
    Empty,
    /// A turn says nothing, uses nothing and does not fail.
    #[error("turn {turn} does nothing: it needs `say`, `json` or `use`")]
    Nothing {
        /// Its number in the script, from 1.
        turn: usize,
    },
    /// A turn has two texts.
    #[error("turn {turn} has `say` and `json`: it can have one text")]
    TwoTexts {
        /// Its number in the script, from 1.
        turn: usize,
    },
    /// A fault does nothing.
    #[error("turn {turn}, attempt {attempt}: the fault needs `error` or `on_wire`")]
    NoFault {
        /// Its number in the script, from 1.
        turn: usize,
        /// The attempt.
        attempt: u32,
    },
    /// A setting of how an answer is sent cannot be right.
    #[error("turn {turn}: {problem}")]
    OnWire {
        /// Its number in the script, from 1.
        turn: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A turn needs a server that plays it.
    #[error("turn {turn} has `{setting}`, which only a server can play")]
    ServerOnly {
        /// Its number in the script, from 1.
        turn: usize,
        /// What it has.
        setting: &'static str,
    },
    /// A turn has a placeholder that cannot be filled.
    #[error("turn {turn}: {problem}")]
    Template {
        /// Its number in the script, from 1.
        turn: usize,
        /// What is wrong with it.
        problem: TemplateError,
    },
}

impl Script {
    /// Reads a script from JSON.
    ///
    /// # Errors
    /// [`ScriptError::Json`].
    pub fn from_json(text: &str) -> Result<Self, ScriptError> {
        Ok(serde_json::from_str(text)?)
    }

    /// Finds what could only go wrong while it plays.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn check(&self) -> Result<(), ScriptError> {
        if self.turns.is_empty() {
            return Err(ScriptError::Empty);
        }
        (1..).zip(&self.turns).try_for_each(|(turn, own)| own.check(turn))
    }

    /// The same for a player that is no server: it has no connection and keeps no count.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn check_without_server(&self) -> Result<(), ScriptError> {
        self.check()?;
        for (turn, own) in (1..).zip(&self.turns) {
            let travels = |on_wire: &OnWire| !on_wire.is_usual();
            if travels(&own.on_wire) || own.faults.iter().any(|fault| travels(&fault.on_wire)) {
                return Err(ScriptError::ServerOnly { turn, setting: "on_wire" });
            }
            if own.times.is_some() {
                return Err(ScriptError::ServerOnly { turn, setting: "times" });
            }
        }
        Ok(())
    }
}

impl ScriptTurn {
    fn check(&self, turn: usize) -> Result<(), ScriptError> {
        if self.say.is_some() && self.json.is_some() {
            return Err(ScriptError::TwoTexts { turn });
        }
        let is_silent = self.say.is_none() && self.json.is_none() && self.uses.is_empty();
        if is_silent && !self.on_wire.replaces_the_answer() {
            return Err(ScriptError::Nothing { turn });
        }
        for fault in &self.faults {
            if fault.error.is_none() && fault.on_wire.is_usual() {
                return Err(ScriptError::NoFault { turn, attempt: fault.attempt });
            }
        }
        for on_wire in self.faults.iter().map(|fault| &fault.on_wire).chain([&self.on_wire]) {
            let problem = |problem| ScriptError::OnWire { turn, problem };
            if on_wire.chunk_bytes == Some(0) {
                return Err(problem("`chunk_bytes` must be at least 1"));
            }
            if on_wire.status.is_some_and(|status| !(200..600).contains(&status)) {
                return Err(problem("`status` must be from 200 to 599"));
            }
        }
        let problem = |problem| ScriptError::Template { turn, problem };
        let texts = self.say.iter().chain(&self.reasoning);
        texts.clone().try_for_each(|text| Template::parse(text).map(drop)).map_err(problem)?;
        let mut values = self.json.iter().chain(self.uses.iter().map(|tool| &tool.args));
        values.try_for_each(check_value).map_err(problem)
    }
}

fn check_value(value: &Value) -> Result<(), TemplateError> {
    match value {
        Value::String(text) => Template::parse(text).map(drop),
        Value::Array(items) => items.iter().try_for_each(check_value),
        Value::Object(members) => members.values().try_for_each(check_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

impl Default for Script {
    /// It answers anything, and says what it is.
    fn default() -> Self {
        let turn = |last_tool: Option<&str>, say: &str| ScriptTurn {
            when: When { last_tool: last_tool.map(str::to_owned), ..When::default() },
            say: Some(say.into()),
            ..ScriptTurn::default()
        };
        Self {
            label: None,
            pace: Pace::default(),
            turns: vec![
                turn(Some("*"), "The tool answered: {{last}}"),
                turn(None, "No real model is connected. You said: {{input}}"),
            ],
        }
    }
}
