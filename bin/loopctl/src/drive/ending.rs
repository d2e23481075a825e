//! How the end of driving is told: the result to stdout, everything else to stderr.

use super::Left;
use crate::context::Context;
use crate::exit::Exit;
use crate::find;
use crate::output::{self, Format};
use crate::paint::Paint;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_fixture::excerpt;
use loopd_kernel::outcome::Finality;
use loopd_kernel::question::{Ask, OpenQuestion};
use loopd_kernel::{MicroUsd, Outcome, Projection, RunId, TimeMs};
use loopd_runtime::RunEnd;
use loopd_store::{RunStatus, Store};
use serde::Serialize;
use serde_json::value::RawValue;

/// What programs read.
#[derive(Serialize)]
struct Report<'a> {
    run: RunId,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    questions: &'a [OpenQuestion],
    iterations: u64,
    tokens: u64,
    spent_micro_usd: MicroUsd,
    exit: u8,
}

/// Tells how driving a Run ended here.
pub(super) async fn report(
    context: &Context,
    store: &dyn Store,
    run: RunId,
    left: Left,
    format: Format,
) -> Result<Exit, Problem> {
    let exit = match &left {
        Left::End(RunEnd::Lost(error)) => {
            return Err(Problem::new(Code::RunLost, format!("{} was given up here: {error}", words::short(run)))
                .why("its journal is whole up to the last step")
                .fix(context.place.command(&format!("run resume {}", words::short(run)))));
        }
        Left::End(end) => Exit::of_end(end),
        Left::Stopped => context.signals.exit(),
        Left::TimedOut => Exit::TimedOut,
    };
    let row = store.run(run).await?.ok_or_else(|| Problem::new(Code::RunUnknown, format!("{run} is gone")))?;
    let projection = find::projection(store, &row).await?;
    // Whoever stops it knows what it was doing.
    if format != Format::Table || matches!(left, Left::End(_)) {
        tell(context, store, &projection, row.status, format, exit).await?;
    }
    match left {
        Left::End(RunEnd::Released) => {
            say_how_to_go_on(context, run, "was released: another process drives the store now");
        }
        Left::End(_) => {}
        Left::Stopped => say_how_to_go_on(context, run, "stopped; nothing is lost"),
        Left::TimedOut => say_how_to_go_on(context, run, "the time is over; the run was released and nothing is lost"),
    }
    Ok(exit)
}

/// Tells how a Run stands that is not driven here, by what the store says.
///
/// # Errors
/// [`Problem`] when its Journal does not load.
pub async fn report_row(context: &Context, store: &dyn Store, run: RunId, format: Format) -> Result<Exit, Problem> {
    let row = store.run(run).await?.ok_or_else(|| Problem::new(Code::RunUnknown, format!("{run} is gone")))?;
    let projection = find::projection(store, &row).await?;
    let exit = projection.outcome().map_or(Exit::Waiting, |(outcome, _)| Exit::of_outcome(outcome));
    tell(context, store, &projection, row.status, format, exit).await?;
    Ok(exit)
}

async fn tell(
    context: &Context,
    store: &dyn Store,
    projection: &Projection,
    status: RunStatus,
    format: Format,
    exit: Exit,
) -> Result<(), Problem> {
    match format {
        Format::Json | Format::Jsonl => {
            let outcome = projection.outcome().map(|(outcome, _)| outcome);
            let output = match outcome {
                Some(Outcome::Completed { output }) => serde_json::from_str::<&RawValue>(output).ok(),
                _ => None,
            };
            let report = Report {
                run: projection.run,
                status: status.name(),
                outcome: outcome.map(Outcome::name),
                output,
                evidence: outcome.filter(|outcome| exit_has_evidence(outcome)).map(words::outcome),
                questions: &projection.questions,
                iterations: projection.ledger.iterations,
                tokens: projection.ledger.tokens(),
                spent_micro_usd: projection.ledger.spent,
                exit: exit.code(),
            };
            output::json(format, &report)?;
        }
        Format::Name => output::line(&projection.run.to_string())?,
        Format::Table => {
            let asked = find::family_questions(store, projection.run).await?;
            people(context, projection, &asked)?;
        }
    }
    Ok(())
}

const fn exit_has_evidence(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Completed { .. })
}

fn people(context: &Context, projection: &Projection, asked: &[(RunId, OpenQuestion)]) -> Result<(), Problem> {
    let paint = context.paint_err;
    let short = words::short(projection.run);
    let Some((outcome, finality)) = projection.outcome() else {
        for (run, question) in asked {
            output::note(&describe_question(context, paint, *run, question));
        }
        if !asked.is_empty() {
            output::note(&format!("then  {}", context.place.command(&format!("run resume {short}"))));
        }
        return Ok(());
    };
    if let Outcome::Completed { output } = outcome {
        let text = readable(output);
        if output::stdout_is_terminal() && output::stderr_is_terminal() {
            output::note("");
        }
        output::line(&if output::stdout_is_terminal() { excerpt::lines(&text) } else { text })?;
        if output::stderr_is_terminal() {
            let ledger = &projection.ledger;
            let took = words::duration(projection.head.at.since(projection.started_at));
            let spending = words::spending(ledger.tokens(), ledger.spent);
            output::note(&paint.dim(format!("{short} completed · {spending} · {took}")));
        }
        return Ok(());
    }
    let mark = if finality == Finality::Parked { paint.wait(&short) } else { paint.bad(&short) };
    output::note(&format!("{mark} {}", words::outcome(outcome)));
    if let Some(command) = way_on(projection.run, outcome, finality) {
        output::note(&format!("go on with  {}", context.place.command(&command)));
    }
    output::note(&paint.dim(format!("what it did: {}", context.place.command(&format!("run show {short}")))));
    Ok(())
}

/// The command that takes a Run further, when there is one.
pub fn way_on(run: RunId, outcome: &Outcome, finality: Finality) -> Option<String> {
    let resume = format!("run resume {}", words::short(run));
    match (outcome, finality) {
        (_, Finality::Ended) => None,
        (Outcome::BudgetExceeded { breach }, Finality::Parked) => {
            Some(format!("{resume} {} {}", words::flag(breach.dimension), words::enough(breach)))
        }
        (_, Finality::Parked) => Some(resume),
    }
}

/// JSON text as people read it: a string is what it says, everything else is laid out.
fn readable(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| crate::layout::json(json))
}

fn say_how_to_go_on(context: &Context, run: RunId, what: &str) {
    let short = words::short(run);
    output::note(&format!("{short} {what}"));
    output::note(&format!("go on with  {}", context.place.command(&format!("run resume {short}"))));
}

/// A Question with the exact command that answers it.
pub fn describe_question(context: &Context, paint: Paint, run: RunId, question: &OpenQuestion) -> String {
    let name = format!("{}/{}", words::short(run), question.id);
    let answer = |value: &str| context.place.command(&format!("ask answer {name} {value}"));
    // A prompt of several lines is set off, so that none of them passes for one of ours.
    let head = |prompt: &str| {
        let prompt = excerpt::lines(prompt.trim_end()).replace('\n', "\n    │ ");
        format!("{} {prompt}", paint.wait(format!("? {name}")))
    };
    let mut lines = match &question.ask {
        Ask::Ask { prompt, schema, .. } => {
            let mut lines = vec![head(prompt)];
            let choices = schema.as_deref().and_then(choices);
            match (&choices, schema) {
                (Some(choices), _) => lines.push(format!("  one of  {}", excerpt::line(&choices.join(" | "), 200))),
                (None, Some(schema)) => lines.push(format!("  schema  {}", excerpt::line(schema, 200))),
                (None, None) => {}
            }
            let plain = |choice: &String| excerpt::lines(choice) == *choice && !choice.contains(['\n', '\t']);
            let example = choices.and_then(|choices| choices.into_iter().find(plain));
            lines.push(format!(
                "  answer  {}",
                answer(&example.map_or_else(|| "'…'".into(), |c| crate::place::shell(&c)))
            ));
            lines
        }
        Ask::Confirm { prompt, .. } => vec![head(prompt), format!("  answer  {}", answer("yes|no"))],
        Ask::Resolve { call, tool, args, reason, lands_until } => [
            head(&format!("{call} may have happened, and nobody here can know: {}", excerpt::line(reason, 200))),
            format!("  call    {} {}", excerpt::line(tool, 60), excerpt::lines(args).replace('\n', "\n    │ ")),
            format!("  answer  {}", answer("landed|failed|retry|unknown")),
        ]
        .into_iter()
        .chain(may_land(*lands_until, context.now()))
        .collect(),
    };
    if let Some(at) = question.expires_at {
        lines.push(format!("  expires {}", words::moment(at)));
    }
    lines.join("\n")
}

/// Until when nobody can say that the Call did not happen, while that is to come.
fn may_land(until: Option<TimeMs>, now: TimeMs) -> Option<String> {
    let until = until.map(answerable_after).filter(|until| *until >= now)?;
    Some(format!("  note    it may still land: `failed` and `retry` are taken after {}", words::moment(until)))
}

/// The moment after which a Run takes it that a Call did not happen: clocks may differ.
pub fn answerable_after(lands_until: TimeMs) -> TimeMs {
    lands_until.after(u64::try_from(loopd_runtime::Config::default().skew.as_millis()).unwrap_or(u64::MAX))
}

/// The choices of an `enum` schema, when they are texts.
fn choices(schema: &str) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Enum {
        r#enum: Vec<String>,
    }
    serde_json::from_str::<Enum>(schema).ok().map(|schema| schema.r#enum).filter(|choices| !choices.is_empty())
}
