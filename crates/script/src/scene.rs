//! What a request says, as the conditions and placeholders of a script see it.

use crate::script::When;
use loopd_kernel::model::{Message, ModelConstants, Part, ToolOffer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many characters of a message an error shows.
const SHOWN: usize = 300;

/// The part of a request that a script looks at.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The model that is asked for.
    pub model: &'a str,
    /// System text, tools and output schema.
    pub constants: &'a ModelConstants,
    /// The messages, in order.
    pub messages: &'a [Arc<Message>],
    /// The largest number of output tokens.
    pub max_output_tokens: u64,
}

/// Everything a turn may depend on: the request and nothing else.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The request.
    pub(crate) asked: Asked<'a>,
    /// The last user message.
    pub(crate) input: &'a str,
    /// The first user message.
    pub(crate) first: &'a str,
    /// The last message, whoever's.
    pub(crate) last: &'a str,
    /// The number of the model's turn, from 1.
    pub(crate) turn: usize,
    /// The number of the model's turn since the last user message, from 1.
    pub(crate) step: usize,
    /// The results of each tool, in order.
    pub(crate) results: BTreeMap<&'a str, Vec<&'a str>>,
    /// Name, text and failure of the results since the model last spoke.
    fresh: Vec<(&'a str, &'a str, bool)>,
    system: &'a str,
    tools: &'a [ToolOffer],
}

impl<'a> Scene<'a> {
    /// What `asked` says.
    #[must_use]
    pub fn of(asked: Asked<'a>) -> Self {
        let mut scene = Self {
            asked,
            input: "",
            first: "",
            last: "",
            turn: 1,
            step: 1,
            results: BTreeMap::new(),
            fresh: Vec::new(),
            system: asked.constants.system.as_deref().unwrap_or_default(),
            tools: &asked.constants.tools,
        };
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        let mut spoken = false;
        for message in asked.messages {
            match message.as_ref() {
                Message::User { text, .. } => {
                    if !spoken {
                        scene.first = text;
                        spoken = true;
                    }
                    scene.input = text;
                    scene.last = text;
                    scene.step = 1;
                }
                Message::Assistant { parts } => {
                    scene.turn += 1;
                    scene.step += 1;
                    scene.fresh.clear();
                    for part in parts {
                        match part {
                            Part::Text { text } => scene.last = text,
                            Part::ToolUse { id, name, .. } => drop(names.insert(id, name)),
                            Part::Reasoning { .. } => {}
                        }
                    }
                }
                Message::Tool { id, text, error } => {
                    let name = names.get(id.as_str()).copied().unwrap_or_default();
                    scene.last = text;
                    scene.results.entry(name).or_default().push(text);
                    scene.fresh.push((name, text, *error));
                }
            }
        }
        scene
    }

    /// The last line of the last user message that says something.
    pub(crate) fn line(&self) -> &'a str {
        self.input.trim_end().lines().last().unwrap_or_default().trim()
    }

    /// Whether all conditions hold.
    #[must_use]
    pub fn fits(&self, when: &When) -> bool {
        let contains = |text: &str, part: &str| text.to_lowercase().contains(&part.to_lowercase());
        let is = |wanted: &Option<String>, holds: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(holds);
        let results_of = |name: &str| self.results.get(name).map_or(0, Vec::len);
        is(&when.model, &|part| contains(self.asked.model, part))
            && is(&when.user_contains, &|part| contains(self.input, part))
            && is(&when.line_contains, &|part| contains(self.line(), part))
            && is(&when.system_contains, &|part| contains(self.system, part))
            && when.turn.is_none_or(|turn| turn == self.turn)
            && when.step.is_none_or(|step| step == self.step)
            && is(&when.last_tool, &|name| self.fresh.iter().any(|(of, ..)| name == "*" || *of == name))
            && is(&when.tool_contains, &|part| self.fresh.iter().any(|(_, text, _)| contains(text, part)))
            && when.tool_failed.is_none_or(|failed| self.fresh.iter().any(|(.., error)| *error) == failed)
            && when.results.iter().all(|(name, count)| results_of(name) == *count)
            && when.offers.iter().all(|name| self.tools.iter().any(|offer| offer.name == *name))
    }

    /// A few words about it, for whoever writes the script.
    #[must_use]
    pub fn describe(&self) -> String {
        let fresh: Vec<&str> = self.fresh.iter().map(|(name, ..)| *name).collect();
        format!(
            "turn {}, step {}, fresh results of {fresh:?}, last user message {:?}",
            self.turn,
            self.step,
            self.input.chars().take(SHOWN).collect::<String>()
        )
    }
}
