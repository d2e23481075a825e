//! Skills: instructions that a model reads when it needs them.

use crate::manifest::ManifestError;
use loopd_kernel::model::ToolOffer;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The name of the tool by which a model reads a skill.
pub const USE_SKILL: &str = "use_skill";

/// The line that stands above and below the head of a `SKILL.md`.
const FENCE: &str = "---";

/// A skill: its name and what it is for are always shown, its text is read when the model asks for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// When it is of use.
    pub description: String,
    /// The text.
    pub text: String,
}

/// The head of a `SKILL.md`. What other programs put there is none of ours.
#[derive(Deserialize)]
struct Head {
    name: Option<String>,
    description: Option<String>,
}

impl Skill {
    /// Reads a `SKILL.md`: a head of YAML between two lines `---` with `name` and `description`, and the text. `file` is
    /// how errors name it, `folder` is its name where the head has none.
    ///
    /// # Errors
    /// [`ManifestError`], naming the file and what was expected.
    pub fn parse(file: &str, folder: &str, bytes: &[u8]) -> Result<Self, ManifestError> {
        let wrong = |line: u64, message: &str| ManifestError {
            file: file.into(),
            line,
            column: u64::from(line > 0),
            message: message.into(),
            help: Some("a SKILL.md begins with `---`, name and description, `---`; the text follows".into()),
            excerpt: None,
        };
        let whole = std::str::from_utf8(bytes).map_err(|_| wrong(0, "it is not UTF-8 text"))?;
        let whole = whole.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let rest = whole.strip_prefix(FENCE).and_then(|rest| rest.strip_prefix('\n'));
        let rest = rest.ok_or_else(|| wrong(1, "expected a head between two lines `---`"))?;
        let (head, text) = rest
            .split_once("\n---\n")
            .or_else(|| Some((rest.strip_suffix("\n---")?, "")))
            .ok_or_else(|| wrong(1, "the head has no end: expected a line `---`"))?;
        let head: Head = serde_saphyr::from_str(head).map_err(|error| {
            let line = error.location().map_or(1, |location| location.line() + 1);
            wrong(line, "the head is not YAML with name and description")
        })?;
        let name = head.name.unwrap_or_else(|| folder.into());
        let description = head.description.filter(|text| !text.trim().is_empty());
        let description = description.ok_or_else(|| wrong(2, "expected a description: the model chooses by it"))?;
        if name.trim().is_empty() || name.contains('\n') {
            return Err(wrong(2, "expected a name of one line"));
        }
        Ok(Self { name, description, text: text.trim().into() })
    }
}

/// The tool as a model sees it.
pub(crate) fn offer(skills: &[Skill]) -> ToolOffer {
    let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let parameters = json!({
        "type": "object",
        "properties": { "name": { "type": "string", "enum": names, "description": "The skill." } },
        "required": ["name"],
        "additionalProperties": false
    });
    ToolOffer {
        name: USE_SKILL.into(),
        description: "Reads a skill: instructions for a certain kind of work. Read it before you begin such work."
            .into(),
        parameters: parameters.to_string(),
    }
}

/// What the instructions say of the skills.
pub(crate) fn instruction(skills: &[Skill]) -> Option<String> {
    let list: Vec<String> = skills.iter().map(|skill| format!("- {}: {}", skill.name, skill.description)).collect();
    (!list.is_empty()).then(|| format!("Skills that you can read with {USE_SKILL}:\n{}", list.join("\n")))
}
