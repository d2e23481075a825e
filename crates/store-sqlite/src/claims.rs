//! Claims and leases, inside a transaction that somebody else began.

use crate::failure::Result;
use crate::role;
use crate::rows::{self, run_columns, run_row};
use loopd_kernel::{Digest, TimeMs};
use loopd_store::{Claim, Claimed, RunStatus, Runnable, StoreError, WorkerId};
use rusqlite::{Connection, Row, named_params, params};
use serde_json::json;

/// What the worker can drive, from `:loops`; parsed once per claim, not once per Run.
macro_rules! wanted {
    () => {
        "wanted (loop_name, major, version, definition) AS MATERIALIZED (
           SELECT value ->> 'loop_name', value ->> 'major', value ->> 'version', value ->> 'definition'
           FROM json_each(:loops)
         )"
    };
}

/// Whether one of `wanted` fits the row. The dots keep `1` from fitting `10.2`; no version has a major with a dot in it,
/// though it may begin like one.
macro_rules! fits {
    () => {
        "(:loops IS NULL OR EXISTS (
           SELECT 1 FROM wanted
           WHERE wanted.loop_name = run.loop_name
             AND (run.version = '' OR wanted.major IS NULL
               OR (instr(wanted.major, '.') = 0 AND instr(run.version || '.', wanted.major || '.') = 1))
             AND (run.version = '' OR wanted.version IS NULL OR wanted.version = run.version)
             AND (wanted.definition IS NULL OR wanted.definition = lower(hex(run.definition))
               OR (run.version = '' AND run.definition = :unnamed))
         ))"
    };
}

/// Runs that nobody live drives and that have something to do. Three searches, each with an index of its own.
const DUE: &str = concat!(
    "WITH live (id) AS MATERIALIZED (SELECT id FROM worker WHERE until > :now),
  due (id) AS (
    SELECT id FROM run WHERE status = 0
    UNION
    SELECT id FROM run WHERE status = 1 AND wake_at <= :now
    UNION
    SELECT run.id FROM inbox JOIN run ON run.id = inbox.run
    WHERE inbox.size > 0 AND (run.status = 1 OR (run.status = 2 AND inbox.moves = 1))
  ), ",
    wanted!(),
    "
  SELECT run.id, run.status, run.worker FROM due JOIN run ON run.id = due.id
  WHERE (run.worker IS NULL OR run.worker NOT IN (SELECT id FROM live)) AND ",
    fits!(),
    " ORDER BY run.updated_at, run.id LIMIT :limit"
);

/// One Run, due or not, unless it is sealed or a live other worker drives it.
const ONLY: &str = concat!(
    "WITH ",
    wanted!(),
    "
  SELECT id, status, worker FROM run
  WHERE run = :run AND status <> 3
    AND (worker IS NULL OR worker = :worker OR worker NOT IN (SELECT id FROM worker WHERE until > :now)) AND ",
    fits!(),
    " LIMIT :limit"
);

const TAKE: &str = concat!(
    "UPDATE run SET epoch = epoch + 1, worker = ?2, status = CASE status WHEN 2 THEN 2 ELSE 0 END
     WHERE id = ?1 RETURNING ",
    run_columns!()
);

struct Due {
    key: i64,
    status: i64,
    worker: Option<i64>,
}

impl Due {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { key: row.get(0)?, status: row.get(1)?, worker: row.get(2)? })
    }

    const fn crashed(&self) -> bool {
        self.status == rows::status_number(RunStatus::Running) && self.worker.is_some()
    }
}

/// Gives the due Runs to the claiming worker.
pub(crate) fn claim(conn: &Connection, claim: &Claim) -> Result<Vec<Claimed>> {
    let due = due(conn, claim)?;
    let mut take = conn.prepare_cached(TAKE)?;
    let mut claimed = Vec::with_capacity(due.len());
    for found in due {
        let mut rows = take.query(params![found.key, claim.worker.0 as i64])?;
        if let Some(row) = rows.next()? {
            claimed.push(Claimed { row: run_row(row)?, crashed: found.crashed() });
        }
    }
    Ok(claimed)
}

fn due(conn: &Connection, claim: &Claim) -> Result<Vec<Due>> {
    let loops = if claim.loops.is_empty() { None } else { Some(wanted(&claim.loops)?) };
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let unnamed = Digest::sha256(&[]).0;
    let mut due = Vec::new();
    if let Some(run) = claim.only {
        let mut statement = conn.prepare_cached(ONLY)?;
        let values = named_params! {
            ":run": run.0, ":worker": claim.worker.0 as i64, ":now": claim.now.0, ":loops": loops, ":limit": limit,
            ":unnamed": unnamed,
        };
        for row in statement.query_map(values, Due::read)? {
            due.push(row?);
        }
    } else {
        let mut statement = conn.prepare_cached(DUE)?;
        let values = named_params! { ":now": claim.now.0, ":loops": loops, ":limit": limit, ":unnamed": unnamed };
        for row in statement.query_map(values, Due::read)? {
            due.push(row?);
        }
    }
    Ok(due)
}

/// What [`DUE`] and [`ONLY`] bind as `:loops`.
fn wanted(loops: &[Runnable]) -> Result<String> {
    let hex = |digest: Digest| digest.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let object = |runnable: &Runnable| {
        json!({
            "loop_name": runnable.loop_name, "major": runnable.major, "version": runnable.version,
            "definition": runnable.definition.map(hex),
        })
    };
    let objects: Vec<_> = loops.iter().map(object).collect();
    serde_json::to_string(&objects).map_err(|error| StoreError::Unavailable(error.to_string()).into())
}

/// Extends the lease of the worker, and with it the driver role of this process.
pub(crate) fn heartbeat(conn: &Connection, worker: WorkerId, until: TimeMs) -> Result<()> {
    let sql = "INSERT INTO worker (id, until) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET until = ?2";
    conn.prepare_cached(sql)?.execute(params![worker.0 as i64, until.0])?;
    role::extend(conn, until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plan;

    #[test]
    fn what_waits_and_who_is_a_child_is_known_from_an_index_alone() {
        for sql in [crate::apply::WAITING, DUE] {
            let plan = plan(sql);
            assert!(plan.contains("inbox USING COVERING INDEX inbox_waiting"), "{plan}");
        }
        let plan = plan(crate::queries::CHILDREN);
        assert!(plan.contains("SEARCH run USING INDEX run_parent (parent=?"), "{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "the index has the order of the list: {plan}");
    }

    #[test]
    fn a_claim_reads_no_run_that_is_not_due() {
        for sql in [DUE, ONLY, crate::queries::NEXT_WAKE, crate::queries::CHILDREN] {
            let plan = plan(sql);
            assert!(plan.contains("run"), "{plan}");
            // A search of an index; a scan only of an index that holds nothing else, of leases, or of arguments.
            for line in plan.lines().filter(|line| line.contains("SCAN")) {
                let fine = ["inbox_waiting", "worker", "live", "due", "json_each", "wanted", "run_wake"];
                assert!(fine.iter().any(|name| line.contains(name)), "{line}\nin\n{plan}");
            }
        }
    }
}
