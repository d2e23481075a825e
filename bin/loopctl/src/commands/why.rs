//! `run why`: why a Run does not move, and what to do about it.

use crate::cli::WhyArgs;
use crate::commands::list::state;
use crate::context::Context;
use crate::drive::{describe_question, in_time, way_on};
use crate::exit::Exit;
use crate::find;
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::words;
use loopd_assemble::Agents;
use loopd_fixture::excerpt;
use loopd_kernel::Projection;
use loopd_kernel::projection::{Call, Status};
use loopd_store::{RunRow, RunStatus, Store};
use serde::Serialize;

/// Inbox items that are counted.
const INBOX: usize = 1000;

/// What is known, for programs and for people.
#[derive(Serialize)]
struct Why {
    run: loopd_kernel::RunId,
    /// The run that started it, when one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<loopd_kernel::RunId>,
    status: &'static str,
    /// In one sentence.
    why: String,
    /// The command that helps, where one does.
    fix: Option<String>,
    driven: bool,
    epoch: u64,
    iteration: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<OpenCall>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    signals: Vec<String>,
    wakes_at: Option<String>,
    inbox: usize,
    /// Why this machine cannot run it, if it cannot.
    cannot_run: Option<String>,
}

/// A Call that has no settlement.
#[derive(Serialize)]
struct OpenCall {
    call: loopd_kernel::CallId,
    target: String,
    /// `wanted`: not sent. `open`: sent, perhaps. `unknown`: a person has to say.
    state: &'static str,
    class: Option<&'static str>,
    attempts: u32,
    not_before: Option<String>,
    abort_by: Option<String>,
    /// The child Run that it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    child: Option<loopd_kernel::RunId>,
}

/// Says why a Run does not move.
pub async fn why(context: &Context, args: WhyArgs) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let row = find::run(&*store, &args.run).await?;
    let projection = find::projection(&*store, &row).await?;
    let inbox = store.inbox(row.run, INBOX).await?.len();
    let agents = Agents::from_folder_of(None, context.catalogue()?)?;
    let cannot_run = match row.status {
        RunStatus::Ended => None,
        RunStatus::Running | RunStatus::Suspended | RunStatus::Parked => {
            agents.resolve(&*store, &row).await.err().map(Problem::from)
        }
    };
    let why = look(context, &row, &projection, inbox, cannot_run.as_ref());
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => output::json(format, &why)?,
        Format::Name => output::line(&row.run.to_string())?,
        Format::Table => people(context, &row, &projection, &why)?,
    }
    Ok(Exit::Completed)
}

fn look(context: &Context, row: &RunRow, projection: &Projection, inbox: usize, cannot_run: Option<&Problem>) -> Why {
    let driven = context.place.is_driven();
    let waits = projection.waits();
    let (why, fix) = sentence(context, row, projection, driven, inbox);
    let cannot_run = cannot_run.map(|problem| match &problem.fix {
        Some(fix) => format!("{}; {fix}", problem.what),
        None => problem.what.clone(),
    });
    let calls = projection.open.iter().map(|call| OpenCall::of(call, "open"));
    let calls = calls.chain(projection.wanted.iter().map(|call| OpenCall::of(call, "wanted")));
    let calls = calls.chain(projection.in_doubt.iter().map(|call| OpenCall::of(call, "unknown")));
    Why {
        run: row.run,
        parent: row.parent,
        status: row.status.name(),
        why,
        fix: fix.map(|command| context.place.command(&command)),
        driven,
        epoch: row.epoch.0,
        iteration: projection.iteration,
        calls: calls.collect(),
        questions: waits.questions.iter().map(|open| format!("{}/{}", row.run, open.id)).collect(),
        signals: waits.signals,
        wakes_at: waits.wake_at.map(words::rfc3339),
        inbox,
        cannot_run,
    }
}

impl OpenCall {
    fn of(call: &Call, state: &'static str) -> Self {
        let intent = call.intent.as_ref();
        Self {
            call: call.id,
            target: call.target.name().into(),
            state,
            class: intent.map(|intent| intent.class.name()),
            attempts: call.attempts,
            not_before: call.not_before.map(words::rfc3339),
            abort_by: intent.map(|intent| words::rfc3339(intent.abort_by)),
            child: call.target.child().map(|child| child.run),
        }
    }
}

/// Why, in one sentence, and the command that helps.
fn sentence(
    context: &Context,
    row: &RunRow,
    projection: &Projection,
    driven: bool,
    inbox: usize,
) -> (String, Option<String>) {
    let short = words::short(row.run);
    let resume = Some(format!("run resume {short}"));
    match &projection.status {
        Status::Ended(outcome) => {
            (format!("it has ended: {}", words::outcome(outcome)), Some(format!("run show {short}")))
        }
        Status::Parked(outcome) => {
            (words::outcome(outcome), way_on(row.run, outcome, loopd_kernel::outcome::Finality::Parked))
        }
        Status::Open if projection.is_suspended() && inbox > 0 && !driven => {
            ("something waits in its inbox, and nobody drives it".into(), resume)
        }
        Status::Open if projection.is_suspended() => match (projection.questions.first(), projection.wake_at()) {
            (Some(question), _) => {
                let name = format!("{short}/{}", question.id);
                ("it waits for a person".into(), Some(format!("ask answer {name} …")))
            }
            (None, Some(at)) => {
                let when = format!("it sleeps until {} ({})", words::moment(at), in_time(at, context.now()));
                if driven { (when, None) } else { (format!("{when}, and nobody drives it"), resume) }
            }
            (None, None) if !projection.waits().children.is_empty() => children(row, projection),
            (None, None) => {
                let names = projection.waits().signals.join(", ");
                (format!("it waits for a signal: {}", excerpt::line(&names, 200)), None)
            }
        },
        Status::Open if driven && row.worker.is_some() && overdue(context, projection) => {
            let what = "its worker is gone, and a process that drives the store for another run has not taken it over";
            (what.into(), resume)
        }
        Status::Open if driven && row.worker.is_some() => {
            let calls = projection.open.len() as u64;
            let what = match calls {
                0 => "its worker decides".into(),
                calls => format!("{} in flight", words::plural(calls, "call is", "calls are")),
            };
            (format!("it moves: {what}"), Some(format!("run watch {short}")))
        }
        Status::Open if row.worker.is_some() => ("its worker died; nobody drives it now".into(), resume),
        Status::Open => ("it was stopped; nobody drives it now".into(), resume),
    }
}

/// What a Run waits for that waits for its children: the first one that needs somebody.
fn children(row: &RunRow, projection: &Projection) -> (String, Option<String>) {
    let children: Vec<_> = projection.children().map(|(_, child)| child).collect();
    let parked = children.iter().find(|child| child.parked);
    let first = parked.or_else(|| children.first()).map(|child| format!("run why {}", words::short(child.run)));
    let count = words::plural(children.len() as u64, "child", "children");
    let why = if parked.is_some() { "one of them is parked" } else { "it goes on when they end" };
    (format!("it waits for {count}: {why}"), first.or_else(|| Some(format!("run show {}", words::short(row.run)))))
}

/// Whether every open Call should have been given up by now.
fn overdue(context: &Context, projection: &Projection) -> bool {
    let over = |call: &Call| call.intent.as_ref().is_some_and(|intent| intent.abort_by < context.now());
    !projection.open.is_empty() && projection.open.iter().all(over)
}

fn people(context: &Context, row: &RunRow, projection: &Projection, why: &Why) -> Result<(), Problem> {
    let paint = context.paint;
    let (tone, state) = state(row, why.driven);
    let mut lines = vec![format!("{}  {}", paint.bold(words::short(row.run)), paint.tone(tone, state))];
    let label = |name: &str| paint.dim(format!("  {name:<8}"));
    lines.push(format!("{}{}", label("why"), why.why));
    lines.extend(row.parent.map(|parent| format!("{}{}", label("parent"), words::short(parent))));
    for call in &why.calls {
        let mut facts = vec![call.state.to_owned()];
        facts.extend(call.class.map(String::from));
        facts.extend((call.attempts > 0).then(|| format!("attempt {}", call.attempts + 1)));
        facts.extend(call.not_before.as_ref().map(|at| format!("not before {at}")));
        facts.extend(call.child.map(|child| format!("child {}", words::short(child))));
        let given_up = call.abort_by.as_ref().filter(|_| call.child.is_none());
        facts.extend(given_up.map(|at| format!("given up at {at}")));
        let target = excerpt::line(&call.target, 80);
        lines.push(format!("{}{} {target}  {}", label("call"), call.call, paint.dim(facts.join(" · "))));
    }
    let who = match (row.worker, why.driven) {
        (Some(_), true) => format!("a worker of the process that drives the store, {}", row.epoch),
        (Some(_), false) => format!("a worker that is gone, {}", row.epoch),
        (None, true) => format!("nobody; a process drives the store, {}", row.epoch),
        (None, false) => format!("nobody, {}", row.epoch),
    };
    lines.push(format!("{}{who}", label("worker")));
    if why.inbox > 0 {
        lines.push(format!("{}{}", label("inbox"), words::plural(why.inbox as u64, "item waits", "items wait")));
    }
    if let Some(cannot) = &why.cannot_run {
        lines.push(format!("{}{}", label("cannot"), paint.bad(format!("this machine cannot run it: {cannot}"))));
    }
    let asks = why.inbox == 0 && !projection.questions.is_empty();
    if asks {
        let questions = projection.questions.iter();
        lines.extend(questions.map(|question| describe_question(context, paint, row.run, question)));
    } else {
        lines.extend(why.fix.as_ref().map(|fix| format!("{}{fix}", label("do"))));
    }
    output::line(&lines.join("\n"))?;
    Ok(())
}
