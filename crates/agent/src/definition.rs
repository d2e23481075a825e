//! The bytes that define an Agent: everything that its decisions depend on, so that a store or a fixture can
//! rebuild it without the YAML file, the program that registered its tools, or the folder it was started in.

use crate::manifest::Manifest;
use loopd_kernel::model::ToolOffer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The form of these bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Form {
    /// The first.
    #[serde(rename = "loopd.agent/1")]
    V1,
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
}
