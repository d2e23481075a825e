//! The Questions of Conversations: listed, shown, answered.

use super::names::{self, short};
use super::part;
use super::reach::Reach;
use crate::cli::AnswerArgs;
use crate::commands;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_fixture::excerpt;
use loopd_kernel::TimeMs;
use loopd_protocol::{Answer, AskKind, Question, QuestionStatus};

/// Who asks what.
pub fn asks(question: &Question) -> String {
    let title = excerpt::line(&question.title, 200);
    let title = if title.is_empty() { title } else { format!("{title}: ") };
    let prompt = excerpt::lines(question.prompt.trim_end()).replace('\n', "\n  ");
    let call = question
        .authorises
        .as_ref()
        .map(|call| format!("\n  for {} {}", excerpt::line(&call.tool, 60), excerpt::line(&call.args, 400)));
    format!("{} asks: {title}{prompt}{}", question.from, call.unwrap_or_default())
}

/// How it is answered.
pub fn how(reach: &Reach, question: &Question) -> String {
    let choices = part::choices(question);
    let answer = if choices.is_empty() { "ANSWER".to_owned() } else { choices.join(" | ") };
    let command = reach.command(&format!("ask answer {}", short(question.id)));
    let for_whom = question.to.as_ref().map(|to| format!(" (for {to})")).unwrap_or_default();
    format!("  answer with  {command} {answer}{for_whom}")
}

/// The open Questions of a server, of one Conversation or of all.
///
/// # Errors
/// [`Problem`].
pub async fn listed(reach: &Reach, of: Option<&str>) -> Result<Vec<Question>, Problem> {
    let of = match of {
        Some(text) => Some(names::conversation(reach, text).await?),
        None => None,
    };
    names::all(usize::MAX, async |part| reach.client.questions(of, &part).await).await
}

/// Shows a Question whole.
///
/// # Errors
/// [`Problem`].
pub async fn show(reach: &Reach, text: &str, format: Format) -> Result<Exit, Problem> {
    let id = names::question(reach, text).await?;
    let question = reach.client.question(id).await?;
    match format {
        Format::Json | Format::Jsonl => output::json(format, &question)?,
        Format::Name => output::line(&question.id.to_string())?,
        Format::Table => {
            output::line(&format!("{}  {}", question.id, part::ended(question.status)))?;
            output::line(&asks(&question))?;
            for choice in &question.choices {
                let (label, more) = (excerpt::line(&choice.label, 100), excerpt::line(&choice.description, 200));
                output::line(format!("  {}  {label}  {more}", excerpt::line(&choice.value, 60)).trim_end())?;
            }
            if let Some(deadline) = question.deadline {
                output::line(&format!("  until {}", words::moment(TimeMs(deadline))))?;
            }
            match &question.answer {
                Some(answer) => {
                    let value = answer.value.as_ref().map(|value| excerpt::line(&value.to_string(), 400));
                    output::line(&format!(
                        "  {}: {}",
                        answer.by,
                        value.unwrap_or_else(|| part::ended(question.status).into())
                    ))?;
                }
                None if question.status == QuestionStatus::Open => output::note(&how(reach, &question)),
                None => {}
            }
        }
    }
    Ok(Exit::Completed)
}

/// Answers a Question. The same answer again changes nothing.
///
/// # Errors
/// [`Problem`].
pub async fn answer(reach: &Reach, args: &AnswerArgs) -> Result<Exit, Problem> {
    let id = names::question(reach, &args.question).await?;
    let question = reach.client.question(id).await?;
    let answer = given(&question, args)?;
    let ended = super::send::again(async || reach.client.answer(id, &answer).await).await?;
    output::note(&format!("{} {}", short(id), part::ended(ended.status)));
    Ok(Exit::Completed)
}

fn given(question: &Question, args: &AnswerArgs) -> Result<Answer, Problem> {
    let name = short(question.id);
    let ends = |status| Ok(Answer { status, value: None, scope: loopd_protocol::Scope::Once });
    if args.dismiss {
        return ends(QuestionStatus::Dismissed);
    }
    if args.decline {
        return ends(QuestionStatus::Declined);
    }
    if question.kind != AskKind::Resolve && (args.output.is_some() || args.evidence.is_some()) {
        return Err(Problem::new(Code::Answer, format!("{name} does not ask what became of a call"))
            .fix("leave --output and --evidence out"));
    }
    let text = args.value.as_deref().unwrap_or_default();
    let value = match question.kind {
        AskKind::Confirm => {
            return match text.to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" => ends(QuestionStatus::Answered),
                "no" | "n" | "false" => ends(QuestionStatus::Declined),
                _ => Err(Problem::new(Code::Answer, format!("{name} takes yes or no"))),
            };
        }
        AskKind::Resolve => commands::resolution(&name, text, args)?,
        AskKind::Ask => {
            let schema = schema(question);
            commands::typed(&name, schema.as_deref(), text, args.json)?
        }
    };
    let value = serde_json::from_str(&value).map_err(|error| Problem::new(Code::Answer, error.to_string()))?;
    Ok(Answer { status: QuestionStatus::Answered, value: Some(value), scope: loopd_protocol::Scope::Once })
}

/// What an answer has to fit.
fn schema(question: &Question) -> Option<String> {
    match &question.schema {
        Some(schema) => Some(schema.to_string()),
        None if question.choices.is_empty() || question.free_text => None,
        None => {
            let values: Vec<_> = question.choices.iter().map(|choice| &choice.value).collect();
            Some(serde_json::json!({ "enum": values }).to_string())
        }
    }
}
