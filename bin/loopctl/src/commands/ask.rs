//! `ask list|show|answer`: what people are asked, by the Runs of the store and in the Conversations of a server.

use crate::cli::{AskArgs, AskCommand, ServerArgs};
use crate::commands::answer;
use crate::context::Context;
use crate::drive::describe_question;
use crate::exit::Exit;
use crate::find::{self, QUESTIONS};
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::server::{self, Reach};
use crate::words;
use loopd_kernel::QuestionId;
use loopd_kernel::RunId;
use loopd_kernel::question::Ask;
use loopd_protocol::Question;
use loopd_store::{QuestionRow, Store};
use serde::Serialize;

/// A Question of a Run as programs read it.
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

/// A Question as programs read it.
#[derive(Serialize)]
#[serde(untagged)]
enum Either<'a> {
    OfServer {
        name: String,
        #[serde(flatten)]
        question: &'a Question,
    },
    OfRun(Listed<'a>),
}

impl<'a> Listed<'a> {
    fn of(row: &'a QuestionRow) -> Self {
        Self {
            name: name(row),
            run: row.run,
            question: row.question.id,
            ask: &row.question.ask,
            asked_at: words::rfc3339(row.question.asked_at),
            expires_at: row.question.expires_at.map(words::rfc3339),
        }
    }
}

fn name(row: &QuestionRow) -> String {
    format!("{}/{}", row.run, row.question.id)
}

/// `loopctl ask …`.
///
/// # Errors
/// [`Problem`].
pub async fn ask(context: &Context, args: AskArgs) -> Result<Exit, Problem> {
    match args.command {
        AskCommand::List { of, format } => list(context, &args.server, of.as_deref(), format.format).await,
        AskCommand::Show { question, format } => match reach(context, &args.server, &question)? {
            Some(reach) => server::show(&reach, &question, format.format).await,
            None => show(context, &question, format.format).await,
        },
        AskCommand::Answer(answer) => match reach(context, &args.server, &answer.question)? {
            Some(reach) => server::answer(&reach, &answer).await,
            None => answer::answer(context, answer).await,
        },
    }
}

/// The server that a name is of; `None` is the store.
fn reach(context: &Context, args: &ServerArgs, name: &str) -> Result<Option<Reach>, Problem> {
    if name.contains('/') || name.starts_with("run_") {
        return Ok(None);
    }
    if name.starts_with("qst_") || name.starts_with("con_") {
        return Reach::new(context, args).map(Some);
    }
    let found = server::locate(&context.place, args);
    found.map(|found| Reach::at(&context.place, found, args)).transpose()
}

/// Lists open Questions: of the server, and of the Runs of its store that are no calls of it.
async fn list(context: &Context, args: &ServerArgs, of: Option<&str>, format: Format) -> Result<Exit, Problem> {
    let reach = reach(context, args, of.unwrap_or_default())?;
    let of_server = match &reach {
        Some(reach) => server::listed(reach, of).await?,
        None => Vec::new(),
    };
    let of_runs = match &reach {
        Some(_) if of.is_some() || server::locate(&context.place, args).is_some_and(|found| found.named) => Vec::new(),
        Some(_) | None => {
            let store = context.place.client()?;
            let run = match of {
                Some(run) => Some(find::run(&*store, run).await?.run),
                None => None,
            };
            let mut open = store.questions(run, QUESTIONS).await?;
            open.retain(|row| !of_server.iter().any(|question| question.run == Some(row.run.to_string())));
            open
        }
    };
    match format {
        Format::Json | Format::Jsonl => {
            let server = of_server.iter().map(|question| Either::OfServer { name: question.id.to_string(), question });
            let all: Vec<_> = server.chain(of_runs.iter().map(|row| Either::OfRun(Listed::of(row)))).collect();
            output::json_list(format, &all)?;
        }
        Format::Name => {
            of_server.iter().try_for_each(|question| output::line(&question.id.to_string()))?;
            of_runs.iter().try_for_each(|row| output::line(&name(row)))?;
        }
        Format::Table if of_server.is_empty() && of_runs.is_empty() => output::note("no open questions"),
        Format::Table => {
            for question in &of_server {
                let Some(reach) = &reach else { break };
                output::line(&format!("{}\n{}", server::asks(question), server::how(reach, question)))?;
            }
            for row in &of_runs {
                output::line(&describe_question(context, context.paint, row.run, &row.question))?;
            }
        }
    }
    Ok(Exit::Completed)
}

/// Shows a Question of a Run.
async fn show(context: &Context, text: &str, format: Format) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let row = find::question(&*store, text).await?;
    match format {
        Format::Json | Format::Jsonl => output::json(format, &Listed::of(&row))?,
        Format::Name => output::line(&name(&row))?,
        Format::Table => output::line(&describe_question(context, context.paint, row.run, &row.question))?,
    }
    Ok(Exit::Completed)
}
