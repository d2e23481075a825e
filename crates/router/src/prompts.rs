//! What the models are told: files, which anybody may replace by their own.

use std::io;
use std::path::{Path, PathBuf};

/// A prompt that is a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// Plan how the question is answered.
    Plan,
    /// Plan anew, with what was found and what was said since.
    Replan,
    /// The reply was no plan.
    Repair,
    /// Answer at once.
    Answer,
    /// Make one answer of what was found.
    Synthesise,
}

impl Prompt {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Plan, Self::Replan, Self::Repair, Self::Answer, Self::Synthesise];

    /// The name of its file.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Plan => "plan.md",
            Self::Replan => "replan.md",
            Self::Repair => "repair.md",
            Self::Answer => "answer.md",
            Self::Synthesise => "synthesise.md",
        }
    }

    /// The text that comes with the Router.
    #[must_use]
    pub const fn usual(self) -> &'static str {
        match self {
            Self::Plan => include_str!("../prompts/plan.md"),
            Self::Replan => include_str!("../prompts/replan.md"),
            Self::Repair => include_str!("../prompts/repair.md"),
            Self::Answer => include_str!("../prompts/answer.md"),
            Self::Synthesise => include_str!("../prompts/synthesise.md"),
        }
    }

    /// What may stand in it as `{{name}}`; the first ones must.
    const fn names(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::Plan => (&["agents", "question"], &["history", "max_tasks"]),
            Self::Replan => (&["agents", "question", "evidence", "late"], &["history", "max_tasks"]),
            Self::Repair => (&["error", "request"], &["reply"]),
            Self::Answer => (&["question", "context"], &[]),
            Self::Synthesise => (&["question", "evidence"], &["late"]),
        }
    }
}

/// A folder of prompts that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// A file does not read.
    #[error("{}: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is none of the files in the folder.
    #[error("{}: none of plan.md, replan.md, repair.md, answer.md and synthesise.md is there", folder.display())]
    Nothing {
        /// The folder.
        folder: PathBuf,
    },
    /// A placeholder that is not filled in.
    #[error("{file}: nothing is filled in for {{{{{name}}}}}; known are {known}")]
    Unknown {
        /// The file.
        file: &'static str,
        /// What stands there.
        name: String,
        /// What may.
        known: String,
    },
    /// Without this the model could not do what it is asked for.
    #[error("{file}: {{{{{name}}}}} is missing")]
    Missing {
        /// The file.
        file: &'static str,
        /// What has to stand there.
        name: &'static str,
    },
}

/// The prompts of a Router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    texts: [String; 5],
}

impl Default for Prompts {
    fn default() -> Self {
        Self { texts: Prompt::ALL.map(|prompt| prompt.usual().to_owned()) }
    }
}

impl Prompts {
    /// Those of a folder; for a file that is not there, the usual one.
    ///
    /// # Errors
    /// [`PromptError`].
    pub fn of_folder(folder: &Path) -> Result<Self, PromptError> {
        let mut prompts = Self::default();
        let mut found = 0;
        for (prompt, text) in Prompt::ALL.into_iter().zip(&mut prompts.texts) {
            let file = folder.join(prompt.file());
            match std::fs::read_to_string(&file) {
                Ok(own) => *text = checked(prompt, own)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(PromptError::Unreadable { file, error }),
            }
            found += 1;
        }
        // A folder that was written wrongly must not pass for one without a wish.
        if found == 0 { Err(PromptError::Nothing { folder: folder.to_owned() }) } else { Ok(prompts) }
    }

    /// The prompt with what is filled in. What was filled in is not looked at again.
    pub(crate) fn render(&self, prompt: Prompt, values: &[(&str, &str)]) -> String {
        let text = self.texts.get(prompt as usize).map_or("", String::as_str);
        let mut out = String::with_capacity(text.len());
        for (before, name) in pieces(text) {
            out.push_str(before);
            let value = name.and_then(|name| values.iter().find(|(known, _)| *known == name));
            out.push_str(value.map_or("", |(_, value)| value));
        }
        out.trim_end().to_owned()
    }
}

fn checked(prompt: Prompt, text: String) -> Result<String, PromptError> {
    let (needed, further) = prompt.names();
    let named: Vec<_> = pieces(&text).filter_map(|(_, name)| name).collect();
    let known = || needed.iter().chain(further);
    if let Some(name) = named.iter().find(|name| !known().any(|known| known == *name)) {
        let known = known().copied().collect::<Vec<_>>().join(", ");
        return Err(PromptError::Unknown { file: prompt.file(), name: (*name).to_owned(), known });
    }
    match needed.iter().find(|name| !named.contains(name)) {
        Some(name) => Err(PromptError::Missing { file: prompt.file(), name }),
        None => Ok(text),
    }
}

/// The text in pieces: what stands before a placeholder, and its name.
fn pieces(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let here = rest?;
        let found = here.match_indices("{{").find_map(|(at, _)| {
            let (name, behind) = here.get(at + 2..)?.split_once("}}")?;
            let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            is_name.then_some((here.get(..at)?, name, behind))
        });
        rest = found.map(|(.., behind)| behind);
        Some(found.map_or((here, None), |(before, name, _)| (before, Some(name))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let prompts = Prompts::default();
        let said = prompts.render(Prompt::Answer, &[("context", ""), ("question", "What is {{context}}?")]);
        assert_eq!(said, "What is {{context}}?");
    }

    #[test]
    fn the_usual_prompts_are_in_order() {
        for prompt in Prompt::ALL {
            checked(prompt, prompt.usual().to_owned()).unwrap();
        }
    }

    #[track_caller]
    fn check(file: &str, text: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), text).unwrap();
        let read = Prompts::of_folder(folder.path());
        let said = read.map(|prompts| prompts.render(Prompt::Answer, &[("question", "Q"), ("context", "C ")]));
        let said = said.map_err(|error| error.to_string()).unwrap_or_else(|error| error);
        assert_eq!(said.replace(&folder.path().display().to_string(), "DIR"), expected);
    }

    #[test]
    fn a_folder_replaces_what_it_has_and_mistakes_are_named() {
        check("answer.md", "{{context}}Briefly: {{question}}\n", "C Briefly: Q");
        check("plan.md", "{{agents}} {{question}}", "C Q");
        check(
            "answer.md",
            "{{context}} {{query}}",
            "answer.md: nothing is filled in for {{query}}; known are question, context",
        );
        check("answer.md", "{{context}}", "answer.md: {{question}} is missing");
        check("plans.md", "", "DIR: none of plan.md, replan.md, repair.md, answer.md and synthesise.md is there");
        check("answer.md", "{{context}}{{\"a\": {\"b\": 1}} {{question}}", "C {{\"a\": {\"b\": 1}} Q");
    }
}
