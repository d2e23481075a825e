//! The tools of an Agent and the check of what a model wants to do with them.

use crate::ask;
use crate::helper;
use crate::schema::{NotASchema, Schema};
use crate::skill::{Skill, USE_SKILL};
use crate::text::bounded;
use crate::{json, words};
use loopd_kernel::action::ToolCall;
use loopd_kernel::child::Spawn;
use loopd_kernel::model::{Constants, Message, ToolOffer};
use loopd_kernel::transcript::READ_RESULT;
use loopd_kernel::{Action, Limits};
use serde::Serialize;
use std::collections::BTreeMap;

/// The tools by name, with their compiled schemas.
#[derive(Debug)]
pub(crate) struct Toolset {
    schemas: BTreeMap<String, Schema>,
    /// Bytes of a result that the model is shown.
    cap: Option<u64>,
    helpers: BTreeMap<String, Ready>,
    skills: BTreeMap<String, String>,
}

/// An Agent that can be given a task.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) loop_name: String,
    pub(crate) definition: Constants,
    pub(crate) limits: Limits,
}

/// One wish of a model.
#[derive(Clone, Copy)]
pub(crate) struct ToolUse<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) args: &'a str,
    /// An earlier wish of the same reply has this id.
    pub(crate) doubled: bool,
    /// The output limit may have cut the arguments.
    pub(crate) cut: bool,
}

/// Why a wish is not carried out: what the model reads in place of a result.
#[derive(Serialize)]
struct Refusal<'a> {
    error: &'a str,
    message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

impl<'a> Refusal<'a> {
    fn new(error: &'a str, message: impl Into<String>) -> Self {
        Self { error, message: message.into(), problems: Vec::new() }
    }
}

impl Toolset {
    /// Compiles the schemas of `offers`. An error names the tool.
    pub(crate) fn new(offers: &[ToolOffer], cap: Option<u64>) -> Result<Self, (String, NotASchema)> {
        let compile = |offer: &ToolOffer| match Schema::compile(&offer.parameters) {
            Ok(schema) => Ok((offer.name.clone(), schema)),
            Err(error) => Err((offer.name.clone(), error)),
        };
        let schemas = offers.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { schemas, cap, helpers: BTreeMap::new(), skills: BTreeMap::new() })
    }

    /// Adds the Agents behind tools, and the texts behind skills.
    pub(crate) fn with(self, helpers: BTreeMap<String, Ready>, skills: &[Skill]) -> Self {
        let skills = skills.iter().map(|skill| (skill.name.clone(), skill.text.clone())).collect();
        Self { helpers, skills, ..self }
    }

    /// What becomes of a wish: a Call, a Question, or a typed error that the model reads.
    pub(crate) fn act_on(&self, wish: ToolUse<'_>) -> Action {
        self.carry_out(wish).unwrap_or_else(|refusal| {
            let text = serde_json::to_string(&refusal).unwrap_or_else(|_| refusal.message.clone());
            Action::Note(Message::Tool { id: wish.id.into(), text, error: true })
        })
    }

    fn carry_out(&self, wish: ToolUse<'_>) -> Result<Action, Refusal<'static>> {
        let ToolUse { id, name, args, .. } = wish;
        if wish.doubled {
            let message = format!(
                "this use of `{}` was not run: an earlier one in the same reply has the same id. \
                 Ask for one tool at a time.",
                bounded(name, 64)
            );
            return Err(Refusal::new("tool.duplicate_id", message));
        }
        let Some(schema) = self.schemas.get(name) else {
            return Err(self.unknown(name));
        };
        // Models send an empty text for a tool without arguments; of a cut reply it may be all that is left.
        let args = match args.trim().is_empty() {
            true if wish.cut => {
                let message = "the arguments are missing: the output limit cut the reply";
                return Err(Refusal::new("tool.invalid_args", message));
            }
            true => "{}",
            false => args,
        };
        let value = json::value(args).map_err(|why| {
            Refusal::new("tool.invalid_args", format!("the arguments were not read: {why}. Send one JSON object."))
        })?;
        // No server of models takes anything else, and a schema may forget to say so.
        let shape = if value.is_object() { Ok(()) } else { Err(vec!["the value: expected type object".into()]) };
        if let Err(problems) = shape.and_then(|()| schema.check(&value)) {
            let message = format!("the arguments do not fit the schema of `{name}`; nothing was run");
            return Err(Refusal { problems, ..Refusal::new("tool.invalid_args", message) });
        }
        if name == ask::NAME {
            let question = ask::question(args, id.into());
            return question.map(Action::Ask).map_err(|why| Refusal::new("tool.invalid_args", why.to_string()));
        }
        // What is read again is bounded by the tool: a mark in it would name the wrong call.
        let (reply_to, cap) = (Some(id.into()), self.cap.filter(|_| name != READ_RESULT));
        let invalid = |why: serde_json::Error| Refusal::new("tool.invalid_args", why.to_string());
        if let Some(helper) = self.helpers.get(name) {
            let helper::Task { task } = serde_json::from_str(args).map_err(invalid)?;
            let Ready { loop_name, definition, limits } = helper.clone();
            let input = serde_json::to_string(&task).map_err(invalid)?;
            // Several tasks of one reply are several children, which are told apart by the use.
            let child = Spawn::new(format!("{name}:{id}"), loop_name, input);
            return Ok(Action::Spawn(Spawn { definition: Some(definition), limits, reply_to, cap, ..child }));
        }
        if name == USE_SKILL && !self.skills.is_empty() {
            let helper::Wanted { name } = serde_json::from_str(args).map_err(invalid)?;
            let text = self.skills.get(&name).cloned().unwrap_or_default();
            return Ok(Action::Note(Message::Tool { id: id.into(), text, error: false }));
        }
        Ok(Action::CallTool(ToolCall { tool: name.into(), args: args.into(), reply_to, cap }))
    }

    fn unknown(&self, name: &str) -> Refusal<'static> {
        let known = || self.schemas.keys().map(String::as_str);
        let guess = words::nearest(name, known()).map(|near| format!(" Did you mean `{near}`?")).unwrap_or_default();
        let list: Vec<&str> = known().collect();
        let have =
            if list.is_empty() { "there are no tools".into() } else { format!("the tools are {}", list.join(", ")) };
        Refusal::new("tool.unknown", format!("there is no tool `{}`; {have}.{guess}", bounded(name, 64)))
    }
}
