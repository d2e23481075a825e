//! The bytes that define an Agent: everything that its decisions depend on, so that a store or a fixture can
//! rebuild it without the YAML file, the program that registered its tools, or the folder it was started in.

use crate::manifest::Manifest;
use crate::skill::Skill;
use loopd_kernel::model::ToolOffer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The form of these bytes. A Run goes on, and a recording replays, by the rules of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Form {
    /// The first.
    #[serde(rename = "loopd.agent/1")]
    V1,
    /// Long results are capped, a conversation that is too long is summarised, and the work can be interrupted.
    #[serde(rename = "loopd.agent/2")]
    V2,
}

/// An Agent with what was resolved from outside when it was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) form: Form,
    /// The manifest, normalised: fields in a fixed order, defaults filled in, scalars in one spelling.
    pub(crate) agent: Manifest,
    /// Every tool as the model is offered it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<ToolOffer>,
    /// What the demo script said when the Agent was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) demo_script: Option<Box<RawValue>>,
    /// The windows of the models in tokens, where somebody knows them: the first model's, then those of the fallbacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) windows: Vec<Option<u64>>,
    /// The definitions of the Agents that may be given tasks, in the manifest's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) agents: Vec<Box<RawValue>>,
    /// The texts that follow the instructions, as they were when the Agent was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) documents: Vec<Document>,
    /// The skills, as they were when the Agent was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) skills: Vec<Skill>,
    /// An answer ends a turn and not the Run.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub(crate) conversation: bool,
}

/// A text that belongs to the instructions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Its name, for example `AGENTS.md`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// What a manifest names and somebody else has to find: files, tools, and what is known of models.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The tools that the manifest names.
    pub tools: Vec<ToolOffer>,
    /// The windows of its models in tokens, in the order of [`Manifest::models`]; missing ones are unknown.
    pub windows: Vec<Option<u64>>,
    /// The definitions of the Agents that it names, in its order.
    pub agents: Vec<Vec<u8>>,
    /// The texts that it names as instructions.
    pub documents: Vec<Document>,
    /// The skills that it names.
    pub skills: Vec<Skill>,
    /// Whether an answer ends a turn and not the Run: the Run then waits for the signal `message`, gives up what is
    /// under way at the signal `interrupt`, and ends at the signal `finish`.
    pub conversation: bool,
}
