//! The script of the demo model, as it is written. `docs/demo-model.md` teaches it.

use super::template::{Template, TemplateError};
use loopd_kernel::Usage;
use loopd_kernel::model::StopReason;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A script: the first turn that fits the request is played.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemoScript {
    /// What every text begins with, so that nobody takes it for the words of a real model.
    #[serde(default = "label")]
    pub label: String,
    /// The pace of turns that have none of their own.
    #[serde(default)]
    pub pace: Pace,
    /// The turns.
    pub turns: Vec<DemoTurn>,
}

fn label() -> String {
    "(demo model)".into()
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
pub struct DemoTurn {
    /// When it is played; always, where nothing is said.
    pub when: When,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
    /// The text as JSON, without the label: for answers that a program reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The tools to use.
    #[serde(rename = "use", skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<DemoUse>,
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
}

/// A tool to use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DemoUse {
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
    /// The last user message contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_contains: Option<String>,
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

/// An attempt that fails. The attempt number is recorded, so this too is the same after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How.
    pub error: FaultKind,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// After how many words a stream is cut.
    #[serde(default)]
    pub after_words: usize,
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
    /// A turn has a placeholder that cannot be filled.
    #[error("turn {turn}: {problem}")]
    Template {
        /// Its number in the script, from 1.
        turn: usize,
        /// What is wrong with it.
        problem: TemplateError,
    },
}

impl DemoScript {
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
        for (turn, own) in (1..).zip(&self.turns) {
            if own.say.is_some() && own.json.is_some() {
                return Err(ScriptError::TwoTexts { turn });
            }
            if own.say.is_none() && own.json.is_none() && own.uses.is_empty() {
                return Err(ScriptError::Nothing { turn });
            }
            let problem = |problem| ScriptError::Template { turn, problem };
            own.say.iter().try_for_each(|text| Template::parse(text).map(drop)).map_err(problem)?;
            let values = own.json.iter().chain(own.uses.iter().map(|tool| &tool.args));
            for value in values {
                check_value(value).map_err(problem)?;
            }
        }
        Ok(())
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

impl Default for DemoScript {
    /// It answers anything, and says what it is.
    fn default() -> Self {
        let turn = |last_tool: Option<&str>, say: &str| DemoTurn {
            when: When { last_tool: last_tool.map(str::to_owned), ..When::default() },
            say: Some(say.into()),
            ..DemoTurn::default()
        };
        Self {
            label: label(),
            pace: Pace::default(),
            turns: vec![
                turn(Some("*"), "The tool answered: {{last}}"),
                turn(None, "No real model is connected. You said: {{input}}"),
            ],
        }
    }
}
