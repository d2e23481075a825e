//! An interview: three kinds of questions, a summary, and a person's consent to it. No model is asked.
#![forbid(unsafe_code)]

use async_trait::async_trait;
use loopd_operator::{Asked, Cx, Error, Next, Place, Reconcile, ask, choose, confirm, form};
use loopd_protocol::{ActorKind, ConversationId, Message, NewQuestion, QuestionStatus};
use serde_json::json;

/// How long a question stays open, in seconds: a day.
const OPEN_S: u64 = 86_400;

/// Interviews whoever says something to it.
#[derive(Debug, Default, Clone, Copy)]
pub struct Interview;

#[async_trait]
impl Reconcile for Interview {
    async fn reconcile(&self, cx: &mut Cx, _: ConversationId) -> Result<Next, Error> {
        let inputs = cx.inputs();
        let Some(input) = inputs.first() else { return Ok(Next::Done) };
        // Operators that talk to each other would interview each other for ever.
        if input.from.kind() != ActorKind::Person {
            cx.handle(input);
            return Ok(Next::Done);
        }
        if let Some(words) = interview(cx, input).await? {
            cx.answer(input, key(input, "end"), words);
            cx.handle(input);
        }
        Ok(Next::Done)
    }
}

/// What a step of the interview that a message began is known by, also after a restart.
fn key(input: &Message, step: &str) -> String {
    format!("{}/{step}", input.id)
}

/// How the interview ended; nothing while somebody still has to answer.
async fn interview(cx: &mut Cx, input: &Message) -> Result<Option<String>, Error> {
    let level = json!({
        "type": "object",
        "properties": { "years": { "type": "integer", "minimum": 0, "maximum": 80 } },
        "required": ["years"],
        "additionalProperties": false
    });
    let questions = [
        ("name", ask("What is your name?", OPEN_S)),
        ("language", choose("Which language do you write most?", &["Rust", "Go", "Python", "TypeScript"], OPEN_S)),
        ("years", form("For how many years?", level, OPEN_S)),
    ];
    let mut answers = Vec::new();
    for (step, question) in questions {
        let Some(asked) = put(cx, input, step, question).await? else { return Ok(None) };
        let Some(text) = asked.text() else { return Ok(Some(ended(&asked))) };
        let years = asked.value().and_then(|value| value["years"].as_u64());
        answers.push((step, years.map_or(text, |years| years.to_string())));
    }
    let lines: Vec<_> = answers.iter().map(|(step, answer)| format!("- {step}: {answer}")).collect();
    let summary = lines.join("\n");
    let sure = confirm(format!("Is this right?\n\n{summary}"), OPEN_S);
    let Some(sure) = put(cx, input, "sure", sure).await? else { return Ok(None) };
    Ok(Some(if sure.is_accepted() { format!("Thank you. This is noted:\n\n{summary}") } else { ended(&sure) }))
}

/// Asks whoever began the interview; the question once it is over.
async fn put(cx: &mut Cx, input: &Message, step: &str, question: NewQuestion) -> Result<Option<Asked>, Error> {
    let question = NewQuestion { to: Some(input.from.clone()), reply_to: Some(input.id), ..question };
    let asked = cx.ask(Place::Here, &key(input, step), question).await?;
    Ok(asked.filter(Asked::is_over))
}

fn ended(asked: &Asked) -> String {
    let why = match asked.state().status {
        QuestionStatus::Declined => "you said no",
        QuestionStatus::TimedOut => "nobody answered in time",
        QuestionStatus::Open | QuestionStatus::Answered | QuestionStatus::Dismissed | QuestionStatus::Withdrawn => {
            "a question was closed"
        }
    };
    format!("The interview is over: {why}. Nothing is noted.")
}
