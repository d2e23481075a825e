//! The tools by which a model gives tasks to other Agents.

use loopd_kernel::model::ToolOffer;
use serde::Deserialize;

/// What such a tool is called with.
#[derive(Deserialize)]
pub(crate) struct Task {
    pub(crate) task: String,
}

/// What [`crate::skill::USE_SKILL`] is called with.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    pub(crate) name: String,
}

/// The tool as a model sees it.
pub(crate) fn offer(name: &str, description: &str) -> ToolOffer {
    ToolOffer {
        name: name.into(),
        description: format!(
            "Gives a task to another agent and waits for its answer. It knows nothing of this conversation. {description}"
        )
        .trim_end()
        .into(),
        parameters: r#"{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"The task, complete in itself."}},"required":["task"],"additionalProperties":false}"#.into(),
    }
}
