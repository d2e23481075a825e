//! The Questions of Conversations: listed, shown, answered.

use super::follow::{Ear, Heard};
use super::names::{self, short};
use super::part;
use super::reach::Reach;
use crate::cli::AnswerArgs;
use crate::commands;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_client::Start;
use loopd_fixture::excerpt;
use loopd_kernel::TimeMs;
use loopd_protocol::{Answer, AskKind, Event, Question, QuestionStatus};
use std::time::Duration;
use tokio::time::timeout;

/// How long somebody who answers waits for the Run to take it.
const TAKEN: Duration = Duration::from_secs(5);

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
            output::line(&format!("{}  {}", question.id, part::stands(&question)))?;
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
                        value.unwrap_or_else(|| part::stands(&question).into())
                    ))?;
                }
                None if question.status == QuestionStatus::Open => output::note(&how(reach, &question)),
                None => {}
            }
        }
    }
    Ok(Exit::Completed)
}

/// Answers a Question. The same answer again changes nothing. A Run's answer counts once the Run has taken it, which is
/// waited for a moment.
///
/// # Errors
/// [`Problem`].
pub async fn answer(reach: &Reach, args: &AnswerArgs) -> Result<Exit, Problem> {
    let id = names::question(reach, &args.question).await?;
    let question = reach.client.question(id).await?;
    let answer = given(&question, args)?;
    let sent = super::send::again(async || reach.client.answer(id, &answer).await).await?;
    // It is sent, whatever keeps this from seeing what becomes of it.
    let seen = match sent.status {
        QuestionStatus::Open => timeout(TAKEN, taken(reach, &sent)).await.ok().and_then(Result::ok),
        _ => None,
    };
    let now = seen.unwrap_or_else(|| sent.clone());
    output::note(&came_of(&sent, &answer, &now)?);
    if !now.status.is_final() {
        output::note(&format!("see what becomes of it:  {}", reach.command(&format!("ask show {id}"))));
    }
    Ok(Exit::Completed)
}

/// The Question once its Run has ended it.
async fn taken(reach: &Reach, sent: &Question) -> Result<Question, Problem> {
    let mut ear = Ear::open(reach, sent.conversation, Start::Now).await?;
    // It may have been taken before anybody listened.
    let mut now = reach.client.question(sent.id).await?;
    while !now.status.is_final() {
        match ear.next().await? {
            Heard::Event(event) => match event.event {
                Event::Question { question } if question.id == sent.id => now = *question,
                _ => {}
            },
            Heard::Reset => now = reach.client.question(sent.id).await?,
            Heard::Closed(_) => break,
            Heard::Delta(_) | Heard::Note(_) => {}
        }
    }
    Ok(now)
}

/// What came of an answer, as far as it is known now.
fn came_of(sent: &Question, answer: &Answer, now: &Question) -> Result<String, Problem> {
    let name = short(now.id);
    let by = |question: &Question| question.answer.as_ref().map(|answer| answer.by.clone());
    if now.status.is_final() && (now.status != answer.status || by(now) != by(sent)) {
        let what = format!("the answer did not count: {name} was {} meanwhile", part::ended(now.status));
        return Err(Problem::new(Code::ServerConflict, what));
    }
    Ok(format!("{name} {}", part::stands(now)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use loopd_protocol::Scope;
    use serde_json::json;

    fn question(status: &str, by: Option<&str>) -> Question {
        let id = "0".repeat(31) + "1";
        let mut text = json!({
            "id": format!("qst_{id}"), "conversation": format!("con_{id}"), "message": format!("msg_{id}"), "kind": "ask",
            "from": "harness/asks", "prompt": "Which?", "status": status, "asked_at": 0,
        });
        if let Some(by) = by {
            text["answer"] = json!({ "by": by, "at": 1, "value": "red" });
        }
        serde_json::from_value(text).expect("a question")
    }

    #[track_caller]
    fn check(now: &Question, expected: &str) {
        let answer = Answer { status: QuestionStatus::Answered, value: Some(json!("red")), scope: Scope::Once };
        let said = came_of(&question("open", Some("person/me")), &answer, now);
        assert_eq!(said.unwrap_or_else(|problem| format!("{}: {}", problem.code.name(), problem.what)), expected);
    }

    /// Nobody is told that an answer counted before it did, or though it did not.
    #[test]
    fn an_answer_counts_when_its_run_took_it() {
        check(&question("answered", Some("person/me")), "qst_00000000000000 answered");
        check(&question("open", Some("person/me")), "qst_00000000000000 sent to the run, which has not taken it yet");
        let refused = "E-SERVER-CONFLICT: the answer did not count: qst_00000000000000 was ";
        check(&question("withdrawn", Some("person/me")), &format!("{refused}withdrawn meanwhile"));
        check(&question("timed_out", Some("person/me")), &format!("{refused}timed out meanwhile"));
        check(&question("answered", Some("person/ann")), &format!("{refused}answered meanwhile"));
    }
}
