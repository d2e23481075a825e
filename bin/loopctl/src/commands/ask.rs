//! `ask list`: what runs ask people.

use crate::context::Context;
use crate::drive::describe_question;
use crate::exit::Exit;
use crate::find::{self, QUESTIONS};
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::words;
use loopd_kernel::QuestionId;
use loopd_kernel::RunId;
use loopd_kernel::question::Ask;
use loopd_store::{QuestionRow, Store};
use serde::Serialize;

/// A Question as programs read it.
#[derive(Serialize)]
struct Listed<'a> {
    name: String,
    run: RunId,
    question: QuestionId,
    #[serde(flatten)]
    ask: &'a Ask,
    asked_at: String,
    expires_at: Option<String>,
}

impl<'a> Listed<'a> {
    fn of(row: &'a QuestionRow) -> Self {
        Self {
            name: format!("{}/{}", row.run, row.question.id),
            run: row.run,
            question: row.question.id,
            ask: &row.question.ask,
            asked_at: words::rfc3339(row.question.asked_at),
            expires_at: row.question.expires_at.map(words::rfc3339),
        }
    }
}

/// Lists open Questions.
pub async fn list(context: &Context, run: Option<&str>, format: Format) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let run = match run {
        Some(run) => Some(find::run(&*store, run).await?.run),
        None => None,
    };
    let open = store.questions(run, QUESTIONS).await?;
    match format {
        Format::Json | Format::Jsonl => {
            output::json_list(format, &open.iter().map(Listed::of).collect::<Vec<_>>())?;
        }
        Format::Name => {
            for row in &open {
                output::line(&format!("{}/{}", row.run, row.question.id))?;
            }
        }
        Format::Table if open.is_empty() => output::note("no open questions"),
        Format::Table => {
            for row in &open {
                output::line(&describe_question(context, context.paint, row.run, &row.question))?;
            }
        }
    }
    Ok(Exit::Completed)
}
