//! Runs and their Journals, straight from the store.

use crate::App;
use crate::auth::By;
use crate::extract::{Params, Reply, Segment, number};
use crate::refusal::{Answer, Refusal};
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loopd_kernel::{Entry, RunId, Seq};
use loopd_platform::Caller;
use loopd_protocol::{HarnessCallId, Page};
use loopd_store::{RunFilter, RunRow, RunStatus};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How many parents are looked at to find the Run that a call executes.
const GENERATIONS: usize = 16;
/// Bytes of records and payloads after which a page of Entries ends.
const PAGE_BYTES: usize = 4 << 20;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_runs)).routes(routes!(get_run)).routes(routes!(list_entries))
}

/// A Run, as lists show it.
#[derive(Debug, Serialize, ToSchema)]
struct Run {
    /// Its identity, `run_…`.
    id: String,
    /// The Loop.
    loop_name: String,
    /// Its version.
    version: String,
    /// The Run that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// Whether it moves: `running`, `suspended`, `parked` or `ended`.
    status: &'static str,
    /// How it ended, or why it is parked.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// The last seq of its Journal.
    head: u64,
    /// The chain hash there.
    hash: String,
    /// The iteration.
    iteration: u64,
    /// Tokens consumed.
    tokens: u64,
    /// Money spent, in millionths of a US dollar.
    micro_usd: u64,
    /// When it started, in milliseconds since 1970.
    created_at: i64,
    /// The time of its last Entry.
    updated_at: i64,
}

impl From<RunRow> for Run {
    fn from(row: RunRow) -> Self {
        Self {
            id: row.run.to_string(),
            loop_name: row.loop_name,
            version: row.version,
            parent: row.parent.map(|run| run.to_string()),
            status: row.status.name(),
            outcome: row.outcome,
            head: row.head.0,
            hash: row.hash.to_string(),
            iteration: row.iteration,
            tokens: row.tokens,
            micro_usd: row.spent.0,
            created_at: row.created_at.0,
            updated_at: row.updated_at.0,
        }
    }
}

/// One fact of a Journal.
#[derive(Debug, Serialize, ToSchema)]
struct JournalEntry {
    /// Its place, from 1.
    seq: u64,
    /// What it says.
    kind: &'static str,
    /// When, in milliseconds since 1970.
    at: i64,
    /// The record: what it says in particular. Spans in it are offset and length in bytes of the payload.
    #[schema(value_type = Object)]
    record: serde_json::Value,
    /// The payload, where it is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    /// The payload in base64url, where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    /// The chain hash up to here.
    hash: String,
}

impl From<Entry> for JournalEntry {
    fn from(entry: Entry) -> Self {
        let (payload, payload_base64) = match String::from_utf8(entry.payload) {
            Ok(text) => (Some(text), None),
            Err(bytes) => (None, Some(URL_SAFE_NO_PAD.encode(bytes.as_bytes()))),
        };
        Self {
            seq: entry.seq.0,
            kind: entry.kind.name(),
            at: entry.at.0,
            record: serde_json::from_str(&entry.record).unwrap_or(serde_json::Value::Null),
            payload,
            payload_base64,
            hash: entry.hash.to_string(),
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsQuery {
    /// Only those: `running`, `suspended`, `parked` or `ended`.
    status: Option<String>,
    /// Only those of this Loop.
    loop_name: Option<String>,
    /// Only the children of this Run.
    parent: Option<String>,
    /// `next` of the part before.
    cursor: Option<String>,
    /// At most this many items; 0, or nothing, is the usual number.
    limit: Option<u32>,
}

fn run_id(field: &'static str, text: &str) -> Answer<RunId> {
    text.parse::<RunId>().map_err(|wrong| Refusal::invalid(field, wrong.to_string()))
}

/// Lists Runs, newest first: for admins.
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(RunsQuery),
    responses((status = 200, description = "Runs", body = Page<Run>)))]
async fn list_runs(State(app): State<App>, By(by): By, Params(query): Params<RunsQuery>) -> Answer<Reply<Page<Run>>> {
    by.must_be(&[])?;
    let status = query.status.map(|name| {
        let detail = "expected running, suspended, parked or ended";
        RunStatus::from_name(&name).ok_or_else(|| Refusal::invalid("status", detail))
    });
    let filter = RunFilter {
        statuses: status.transpose()?.into_iter().collect(),
        loop_name: query.loop_name,
        parent: query.parent.map(|run| run_id("parent", &run)).transpose()?,
        admission: None,
        before: query.cursor.map(|run| run_id("cursor", &run)).transpose()?,
        limit: app.platform().limit(number(query.limit)),
    };
    let page = app.platform().store().runs(filter).await?;
    let next = page.next.map(|run| run.to_string());
    Ok(Reply::ok(Page { items: page.items.into_iter().map(Run::from).collect(), next }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunQuery {
    /// The call that the Run, or one of its parents, executes: who sees the call sees the Run. Admins need none.
    call: Option<HarnessCallId>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EntriesQuery {
    /// The call that the Run, or one of its parents, executes: who sees the call sees the Run. Admins need none.
    call: Option<HarnessCallId>,
    /// Those after this seq.
    #[serde(default)]
    after: u64,
    /// At most this many items; 0, or nothing, is the usual number.
    limit: Option<u32>,
}

/// Reads a Run.
#[utoipa::path(get, path = "/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "Which one"), RunQuery),
    responses((status = 200, description = "The Run", body = Run)))]
async fn get_run(
    State(app): State<App>,
    By(by): By,
    Segment(run): Segment<RunId>,
    Params(query): Params<RunQuery>,
) -> Answer<Reply<Run>> {
    Ok(Reply::ok(visible(&app, &by, run, query.call).await?.into()))
}

/// Lists the Entries of a Run's Journal in order; `next` is the `after` of the next part.
#[utoipa::path(get, path = "/v1/runs/{run}/entries", tag = "runs",
    params(("run" = String, Path, description = "Which one"), EntriesQuery),
    responses((status = 200, description = "Entries", body = Page<JournalEntry>)))]
async fn list_entries(
    State(app): State<App>,
    By(by): By,
    Segment(run): Segment<RunId>,
    Params(query): Params<EntriesQuery>,
) -> Answer<Reply<Page<JournalEntry>>> {
    let row = visible(&app, &by, run, query.call).await?;
    let limit = app.platform().limit(number(query.limit));
    let entries = app.platform().store().entries(run, Seq(query.after), limit).await?;
    let mut room = PAGE_BYTES;
    let fits = |entry: &Entry| {
        let bytes = entry.record.len() + entry.payload.len();
        // The first one always fits: a page that never moves on would be worse than a large one.
        let fits = room == PAGE_BYTES || bytes <= room;
        room = room.saturating_sub(bytes.max(1));
        fits
    };
    let items: Vec<_> = entries.into_iter().take_while(fits).map(JournalEntry::from).collect();
    let next = items.last().filter(|last| last.seq < row.head.0).map(|last| last.seq.to_string());
    Ok(Reply::ok(Page { items, next }))
}

/// The Run, for an admin and for whoever sees the call that it belongs to.
async fn visible(app: &App, by: &Caller, run: RunId, call: Option<HarnessCallId>) -> Answer<RunRow> {
    let unknown = || {
        Refusal::not_found(format!(
            "there is no run {run} that this caller may see: a member names the call that it belongs to"
        ))
    };
    let top = match call {
        _ if by.is_admin() => None,
        None => return Err(unknown()),
        Some(call) => Some(app.engine.harness_call(by, call).await?.run.ok_or_else(unknown)?),
    };
    let store = app.platform().store();
    let row = store.run(run).await?.ok_or_else(unknown)?;
    let Some(top) = top else { return Ok(row) };
    let mut one = row.clone();
    for _ in 0..GENERATIONS {
        if one.run.to_string() == top {
            return Ok(row);
        }
        let parent = one.parent.ok_or_else(unknown)?;
        one = store.run(parent).await?.ok_or_else(unknown)?;
    }
    Err(unknown())
}
