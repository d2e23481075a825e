//! `run list`.

use crate::cli::ListArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::find;
use crate::output::{self, Format};
use crate::paint::{Paint, Tone};
use crate::problem::Problem;
use crate::words;
use comfy_table::{Cell, CellAlignment, Table, presets};
use loopd_fixture::excerpt;
use loopd_kernel::{MicroUsd, RunId};
use loopd_store::{RunFilter, RunRow, RunStatus, Store};
use serde::Serialize;

/// A Run as programs read it in lists.
#[derive(Serialize)]
pub struct Summary {
    run: RunId,
    #[serde(rename = "loop")]
    loop_name: String,
    version: String,
    status: &'static str,
    outcome: Option<String>,
    iterations: u64,
    tokens: u64,
    spent_micro_usd: MicroUsd,
    entries: u64,
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<RunId>,
    created_at: String,
    updated_at: String,
    wake_at: Option<String>,
}

impl Summary {
    /// Of a row.
    pub fn of(row: &RunRow) -> Self {
        Self {
            run: row.run,
            loop_name: row.loop_name.clone(),
            version: row.version.clone(),
            status: row.status.name(),
            outcome: row.outcome.clone(),
            iterations: row.iteration,
            tokens: row.tokens,
            spent_micro_usd: row.spent,
            entries: row.head.0,
            key: row.admission.clone(),
            parent: row.parent,
            created_at: words::rfc3339(row.created_at),
            updated_at: words::rfc3339(row.updated_at),
            wake_at: row.wake_at.map(words::rfc3339),
        }
    }
}

/// Lists Runs, newest first.
pub async fn list(context: &Context, args: ListArgs) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let limit = args.limit as usize;
    let parent = match &args.children {
        Some(text) => Some(find::run(&*store, text).await?.run),
        None => None,
    };
    let filter = RunFilter { statuses: args.status, loop_name: args.loop_name, parent, limit, ..RunFilter::default() };
    let page = store.runs(filter).await?;
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => {
            let rows: Vec<Summary> = page.items.iter().map(Summary::of).collect();
            output::json_list(format, &rows)?;
        }
        Format::Name => {
            for row in &page.items {
                output::line(&row.run.to_string())?;
            }
        }
        Format::Table if page.items.is_empty() => output::note("no runs"),
        Format::Table => {
            output::line(&table(context, &page.items, context.place.is_driven()))?;
            if page.next.is_some() {
                output::note(&context.paint_err.dim(format!("there are more; --limit {}", limit.saturating_mul(5))));
            }
        }
    }
    Ok(Exit::Completed)
}

fn table(context: &Context, rows: &[RunRow], driven: bool) -> String {
    let mut table = plain_table(["RUN", "AGENT", "STATE", "ITER", "TOKENS", "COST", "STARTED", "TOOK"]);
    for row in rows {
        let cost = if row.spent == MicroUsd(0) { String::new() } else { words::dollars(row.spent) };
        let (tone, state) = state(row, driven);
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(words::short(row.run)),
            Cell::new(excerpt::line(&row.loop_name, 30)),
            painted(context.paint, tone, &state),
            number(words::count(row.iteration)),
            number(words::count(row.tokens)),
            number(cost),
            Cell::new(words::ago(row.created_at, context.now())),
            number(words::duration(row.updated_at.since(row.created_at))),
        ]);
    }
    text(&table)
}

/// How a Run stands, in one or two words; colour means state.
pub fn state(row: &RunRow, driven: bool) -> (Tone, String) {
    match (row.status, row.outcome.as_deref()) {
        (RunStatus::Ended, Some("Completed")) => (Tone::Good, "Completed".into()),
        (RunStatus::Ended, outcome) => (Tone::Bad, outcome.unwrap_or("ended").into()),
        (RunStatus::Parked, outcome) => (Tone::Waits, format!("parked: {}", outcome.unwrap_or("?"))),
        (RunStatus::Suspended, _) if row.wake_at.is_some() => (Tone::Waits, "sleeps".into()),
        (RunStatus::Suspended, _) => (Tone::Waits, "waits".into()),
        (RunStatus::Running, _) => match (row.worker, driven) {
            (Some(_), true) => (Tone::Live, "running".into()),
            (Some(_), false) => (Tone::Bad, "crashed".into()),
            (None, _) => (Tone::Waits, "stopped".into()),
        },
    }
}

/// A cell in the colour of its state.
pub fn painted(paint: Paint, tone: Tone, text: &str) -> Cell {
    let cell = Cell::new(text);
    if paint.is_on() { cell.fg(tone.color()) } else { cell }
}

/// A table of plain columns: no lines that a copy would carry along.
pub fn plain_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// The table as lines without spaces at their ends.
pub fn text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
