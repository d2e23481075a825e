//! `run start`, and its short form `run FILE QUESTION`.

use crate::attach;
use crate::cli::StartOptions;
use crate::commands::resume;
use crate::context::Context;
use crate::drive::{self, View, Worker};
use crate::exit::Exit;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_assemble::{Agents, Manner};
use loopd_kernel::machine::Admission;
use loopd_runtime::Started;
use serde_json::value::RawValue;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The tenant of this program: it serves one person on one machine.
pub const TENANT: &str = "default";

/// The largest input in bytes.
const INPUT: u64 = 16 * 1024 * 1024;

/// Starts a Run and drives it. With a key that was used before, it goes on with that Run.
pub async fn start(context: &Context, file: &Path, args: StartOptions) -> Result<Exit, Problem> {
    let catalogue = context.catalogue()?;
    let agent = loopd_assemble::load(file, Manner::Task, &catalogue)?;
    let limits = agent.limits.overridden(&args.limits.limits());
    agent.affordable(&limits)?;
    let input = match args.attach.is_empty() {
        true => input(file, &args)?,
        false => attach::message(&asked(file, &args)?, &args.attach)?,
    };
    let store = context.place.driver().await?;
    let programs = Arc::new(Agents::knowing([&agent], catalogue));
    let worker = Worker::start(context, store, programs, &args.drive).await?;
    let admission = Admission { tenant: TENANT.into(), input, limits, key: args.key.clone() };
    let started = worker.runtime().start(&agent.program, admission).await;
    let view = View::new(context, args.drive.quiet);
    match started.map_err(|error| drive::start_problem(error, context))? {
        Started::New(driven) => {
            view.say(&context.paint_err.dim(format!("{} of {}", driven.run, agent.name)));
            worker.finish(driven, view, args.format.format).await
        }
        Started::Already(run) => {
            view.say(&context.paint_err.dim(format!("{run} was started before with this key")));
            let raise = args.limits.limits();
            resume::go_on(context, worker, view, run, raise, args.format.format).await
        }
    }
}

/// The question as it was given.
fn asked(file: &Path, args: &StartOptions) -> Result<String, Problem> {
    let text = match (&args.question, &args.input) {
        (Some(question), _) => question.clone(),
        (None, Some(input)) if input == "-" => from(std::io::stdin().lock(), "stdin")?,
        (None, Some(input)) => match input.strip_prefix('@') {
            Some(path) => {
                let file = std::fs::File::open(path);
                from(file.map_err(|error| Problem::new(Code::Input, format!("{path}: {}", words::os(&error))))?, path)?
            }
            None => input.clone(),
        },
        (None, None) => {
            return Err(Problem::new(Code::Input, "there is no question").fix(format!(
                "loopctl run {} \"your question\"  or  --input @FILE  or  --input - for stdin",
                crate::place::shell(&file.to_string_lossy())
            )));
        }
    };
    let text = text.trim_end_matches(['\n', '\r']);
    if text.trim().is_empty() {
        return Err(Problem::new(Code::Input, "the question is empty"));
    }
    Ok(text.into())
}

/// The input as JSON text: an object as it was written, anything else as a text.
fn input(file: &Path, args: &StartOptions) -> Result<String, Problem> {
    let text = asked(file, args)?;
    if text.trim_start().starts_with('{')
        && let Ok(object) = serde_json::from_str::<&RawValue>(&text)
    {
        return Ok(object.get().into());
    }
    serde_json::to_string(&text).map_err(|error| Problem::new(Code::Input, error.to_string()))
}

fn from(reader: impl Read, name: &str) -> Result<String, Problem> {
    let mut text = String::new();
    let read = reader.take(INPUT + 1).read_to_string(&mut text);
    let read = read.map_err(|error| Problem::new(Code::Input, format!("{name}: {}", words::os(&error))))?;
    if read as u64 > INPUT {
        let most = words::bytes(usize::try_from(INPUT).unwrap_or(usize::MAX));
        return Err(Problem::new(Code::Input, format!("{name} holds more than {most}")));
    }
    Ok(text)
}
