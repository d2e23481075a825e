//! Requests with what they need, and the usual for the rest.

use loopd_protocol::{AskKind, Block, Budget, Choice, KnownBlock, NewCall, NewQuestion, OnPark, Priority, Say};
use serde_json::Value;

/// A Message of Markdown to everybody.
#[must_use]
pub fn markdown(text: impl Into<String>) -> Say {
    let blocks = vec![Block::Known(KnownBlock::Markdown { text: text.into() })];
    Say { actor: None, to: Vec::new(), reply_to: None, blocks }
}

/// A call of a target with a prompt; it times out after half an hour.
#[must_use]
pub fn call(target: impl Into<String>, prompt: impl Into<String>) -> NewCall {
    NewCall {
        target: target.into(),
        prompt: prompt.into(),
        artifacts: Vec::new(),
        effect_key: String::new(),
        actor: None,
        recipient: None,
        reply_to: None,
        timeout_s: 30 * 60,
        budget: Budget::default(),
        on_park: OnPark::default(),
        priority: Priority::default(),
    }
}

/// A Question that any text answers, open for so many seconds.
#[must_use]
pub fn ask(prompt: impl Into<String>, timeout_s: u64) -> NewQuestion {
    NewQuestion {
        actor: None,
        kind: AskKind::Ask,
        to: None,
        title: String::new(),
        prompt: prompt.into(),
        choices: Vec::new(),
        free_text: false,
        schema: None,
        authorises: None,
        timeout_s,
        reply_to: None,
    }
}

/// A Question that one of these values answers.
#[must_use]
pub fn choose(prompt: impl Into<String>, values: &[&str], timeout_s: u64) -> NewQuestion {
    let choice = |value: &&str| Choice { value: (*value).to_owned(), label: String::new(), description: String::new() };
    NewQuestion { choices: values.iter().map(choice).collect(), ..ask(prompt, timeout_s) }
}

/// A Question that a value of this JSON Schema answers.
#[must_use]
pub fn form(prompt: impl Into<String>, schema: Value, timeout_s: u64) -> NewQuestion {
    NewQuestion { schema: Some(schema), ..ask(prompt, timeout_s) }
}

/// Yes or no. Only an explicit accept is consent.
#[must_use]
pub fn confirm(prompt: impl Into<String>, timeout_s: u64) -> NewQuestion {
    NewQuestion { kind: AskKind::Confirm, ..ask(prompt, timeout_s) }
}
