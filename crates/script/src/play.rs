//! What a turn answers.

use crate::scene::Scene;
use crate::script::{Script, ScriptTurn};
use crate::template::{Template, fill};
use loopd_kernel::Usage;
use loopd_kernel::model::{Message, ModelReply, Part, StopReason};
use serde_json::json;

/// The estimate where a script gives no usage.
const BYTES_PER_TOKEN: usize = 4;

/// The member of a played [`Part::Reasoning`] that holds its text.
pub const REASONING_TEXT: &str = "text";

/// An answer of a script. Who answered is the player's to say: `model` and the `origin` of reasoning are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// The reply.
    pub reply: ModelReply,
    /// What the script says, or an estimate from the sizes.
    pub usage: Usage,
}

impl Script {
    /// The first turn that fits and that `may_play`, with its place in the script.
    pub fn turn_for(&self, scene: &Scene<'_>, may_play: impl Fn(usize) -> bool) -> Option<(usize, &ScriptTurn)> {
        self.turns.iter().enumerate().find(|(at, turn)| scene.fits(&turn.when) && may_play(*at))
    }
}

impl ScriptTurn {
    /// What this turn answers in `scene`. Texts begin with `label`, ids of tool uses with `id`; an id is
    /// `ID_TURN_SLOT`, so no two of one conversation are the same.
    ///
    /// The output limit is held, as a real model holds it: a reply that is larger stops in the middle and uses no tool.
    #[must_use]
    pub fn answer(&self, scene: &Scene<'_>, label: &str, id: &str) -> Played {
        let text = |text: &str| Template::parse(text).map_or_else(|_| text.to_owned(), |filled| filled.text(scene));
        let mut parts = Vec::new();
        if let Some(reasoning) = &self.reasoning {
            let opaque = json!({ REASONING_TEXT: text(reasoning) }).to_string();
            parts.push(Part::Reasoning { opaque, origin: String::new() });
        }
        let said = self.say.as_ref().map(|say| {
            let text = text(say);
            if label.is_empty() { text } else { format!("{label} {text}") }
        });
        let said = said.or_else(|| self.json.as_ref().map(|json| fill(json, scene).to_string()));
        parts.extend(said.map(|text| Part::Text { text }));
        for (slot, tool) in self.uses.iter().enumerate() {
            let args = fill(&tool.args, scene);
            let args = args.as_str().map_or_else(|| args.to_string(), str::to_owned);
            parts.push(Part::ToolUse { id: format!("{id}_{}_{slot}", scene.turn), name: tool.tool.clone(), args });
        }
        let stop = self.stop.clone().unwrap_or(match self.uses.is_empty() {
            true => StopReason::EndTurn,
            false => StopReason::ToolUse,
        });
        limited(ModelReply { parts, stop, model: String::new() }, self.usage, scene)
    }
}

fn limited(mut reply: ModelReply, usage: Option<Usage>, scene: &Scene<'_>) -> Played {
    let is_reasoning = |part: &&Part| matches!(part, Part::Reasoning { .. });
    let mut usage = usage.unwrap_or_else(|| Usage {
        input: tokens(asked_bytes(scene)),
        output: tokens(reply.parts.iter().filter(|part| !is_reasoning(part)).map(part_bytes).sum()),
        reasoning: tokens(reply.parts.iter().filter(is_reasoning).map(part_bytes).sum()),
        ..Usage::default()
    });
    let limit = scene.asked.max_output_tokens;
    if usage.output.saturating_add(usage.reasoning) > limit {
        usage.reasoning = usage.reasoning.min(limit);
        usage.output = limit - usage.reasoning;
        let mut text = reply.joined_text();
        let bytes = usize::try_from(usage.output).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        text.truncate(text.floor_char_boundary(bytes));
        reply.parts.retain(|part| is_reasoning(&part));
        reply.parts.push(Part::Text { text });
        reply.stop = StopReason::Length;
    }
    Played { reply, usage }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}

fn asked_bytes(scene: &Scene<'_>) -> usize {
    let constants = scene.asked.constants;
    let system = constants.system.as_ref().map_or(0, String::len);
    let tools = constants.tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.parameters.len());
    let messages = scene.asked.messages.iter().map(|message| match message.as_ref() {
        Message::User { text, .. } | Message::Tool { text, .. } => text.len(),
        Message::Assistant { parts } => parts.iter().map(part_bytes).sum(),
    });
    system + tools.sum::<usize>() + messages.sum::<usize>()
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::ToolUse { name, args, .. } => name.len() + args.len(),
        Part::Reasoning { opaque, .. } => opaque.len(),
    }
}

impl Scene<'_> {
    /// The estimate of the tokens of the request, where a provider counts them.
    #[must_use]
    pub fn input_tokens(&self) -> u64 {
        tokens(asked_bytes(self))
    }
}
