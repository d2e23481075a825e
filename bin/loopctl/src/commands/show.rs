//! `run show` and `show FILE`: what a Run did, as people read it.

use crate::attach;
use crate::cli::{RunShowArgs, ShowArgs};
use crate::commands::list::{Summary, state};
use crate::context::Context;
use crate::drive::{describe_question, way_on, width};
use crate::exit::Exit;
use crate::files;
use crate::find;
use crate::journal::{self, Chain, Reading};
use crate::layout;
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::steps::Style;
use crate::words;
use loopd_fixture::excerpt;
use loopd_fixture::trajectory::Trajectory;
use loopd_kernel::outcome::Finality;
use loopd_kernel::projection::Status;
use loopd_kernel::question::OpenQuestion;
use loopd_kernel::{Outcome, RunId};
use loopd_store::{RunFilter, RunRow, Store};
use serde::Serialize;

/// What programs read.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    trajectory: &'a Trajectory,
    questions: &'a [OpenQuestion],
    chain: &'a Chain,
    #[serde(flatten)]
    kin: &'a Kin,
}

/// The Runs around a Run of the store.
#[derive(Serialize, Default)]
struct Kin {
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<RunId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<Summary>,
    /// The children as people read them.
    #[serde(skip)]
    lines: Vec<String>,
}

/// The children that are listed.
const CHILDREN: usize = 100;

impl Kin {
    async fn of(context: &Context, store: &dyn Store, row: &RunRow) -> Result<Self, Problem> {
        let filter = RunFilter { parent: Some(row.run), limit: CHILDREN, ..RunFilter::default() };
        let page = store.runs(filter).await?;
        let (paint, driven) = (context.paint, context.place.is_driven());
        let line = |child: &RunRow| {
            let (tone, state) = state(child, driven);
            let name = excerpt::line(&child.loop_name, 40);
            format!("{}  {name}  {}", words::short(child.run), paint.tone(tone, state))
        };
        // Rows come newest first; people read what happened from the beginning.
        let rows = || page.items.iter().rev();
        let mut lines: Vec<String> = rows().map(line).collect();
        if page.next.is_some() {
            let all = context.place.command(&format!("run list --children {}", words::short(row.run)));
            lines.push(paint.dim(format!("there are more; {all}")));
        }
        Ok(Self { parent: row.parent, children: rows().map(Summary::of).collect(), lines })
    }
}

/// Shows a Run of the store.
pub async fn run(context: &Context, args: RunShowArgs) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let row = find::run(&*store, &args.run).await?;
    let reading = journal::read(&*store, &row).await?;
    let kin = Kin::of(context, &*store, &row).await?;
    write(context, &reading, &kin, args.full, args.format.format)?;
    if args.format.format == Format::Table {
        say_what_next(context, &reading);
    }
    reading.whole()?;
    Ok(Exit::Completed)
}

/// Shows a Fixture.
pub fn fixture(context: &Context, args: &ShowArgs) -> Result<Exit, Problem> {
    let fixture = files::fixture(&args.file)?;
    let reading = files::reading(&fixture);
    write(context, &reading, &Kin::default(), args.full, args.format.format)?;
    reading.whole()?;
    Ok(Exit::Completed)
}

fn write(context: &Context, reading: &Reading, kin: &Kin, full: bool, format: Format) -> Result<(), Problem> {
    let Reading { trajectory, questions, chain, .. } = reading;
    match format {
        Format::Json => output::json(format, &Shown { trajectory, questions, chain, kin })?,
        Format::Jsonl => output::json_list(format, &trajectory.steps)?,
        Format::Name => output::line(&trajectory.run.to_string())?,
        Format::Table => {
            let style = Style { paint: context.paint, width: width(), full };
            output::line(&head(&style, reading, kin))?;
            for (_, _, text) in style.steps(&trajectory.steps) {
                output::line(&text)?;
            }
            output::line(&end(&style, trajectory))?;
        }
    }
    Ok(())
}

fn head(style: &Style, reading: &Reading, kin: &Kin) -> String {
    let Reading { trajectory, chain, .. } = reading;
    let paint = style.paint;
    let label = |name: &str| paint.dim(format!("{name:<8}"));
    let asked = attach::asked(&trajectory.input);
    let asked = excerpt::line(&asked, if style.full { usize::MAX } else { style.width.saturating_sub(10) });
    let ledger = &trajectory.ledger;
    let mut spent = format!(
        "{} · {}",
        words::plural(ledger.iterations, "iteration", "iterations"),
        words::spending(ledger.tokens(), ledger.spent)
    );
    if ledger.charged_tokens > 0 {
        spent.push_str(&format!(" ({} of them charged unseen)", words::count(ledger.charged_tokens)));
    }
    let limits = paint.dim(format!("limits: {}", words::limits(&trajectory.limits)));
    let chain = match &reading.broken {
        None => format!("verified, {}, head {}", words::plural(chain.entries, "entry", "entries"), chain.head.short()),
        Some(why) => paint.bad(format!("broken: {why}")),
    };
    let agent = excerpt::line(&format!("{} {}", trajectory.loop_name, trajectory.version), 80);
    let mut lines = vec![
        format!("{}  {agent}", paint.bold(trajectory.run)),
        format!("  {}{asked}", label("asked")),
        format!("  {}{}, {}", label("started"), words::moment(trajectory.started_at), took(trajectory)),
        format!("  {}{spent}   {limits}", label("spent")),
        format!("  {}{chain}", label("chain")),
    ];
    lines.extend(kin.parent.map(|parent| format!("  {}{}", label("parent"), words::short(parent))));
    for (n, child) in kin.lines.iter().enumerate() {
        lines.push(format!("  {} {child}", label(if n == 0 { "children" } else { "" })));
    }
    lines.join("\n") + "\n"
}

fn took(trajectory: &Trajectory) -> String {
    let time = words::duration(trajectory.duration_ms());
    if trajectory.status == Status::Open { format!("{time} so far") } else { format!("took {time}") }
}

fn end(style: &Style, trajectory: &Trajectory) -> String {
    let paint = style.paint;
    match &trajectory.status {
        Status::Open => format!("\n{} it has not ended", paint.wait("open")),
        Status::Ended(Outcome::Completed { output }) => {
            let text = serde_json::from_str::<String>(output).unwrap_or_else(|_| layout::json(output));
            let lines: Vec<String> = excerpt::lines(&text).lines().map(|line| format!("  {line}")).collect();
            format!("\n{}\n{}", paint.good("completed"), lines.join("\n"))
        }
        Status::Ended(outcome) => format!("\n{}", paint.bad(words::outcome(outcome))),
        Status::Parked(outcome) => format!("\n{}", paint.wait(words::outcome(outcome))),
    }
}

fn say_what_next(context: &Context, reading: &Reading) {
    let trajectory = &reading.trajectory;
    for question in &reading.questions {
        output::note(&describe_question(context, context.paint_err, trajectory.run, question));
    }
    if let Status::Parked(outcome) = &trajectory.status
        && let Some(command) = way_on(trajectory.run, outcome, Finality::Parked)
    {
        output::note(&format!("go on with  {}", context.place.command(&command)));
    }
}
