//! Rows to values and back. What does not decode is named.

use crate::failure::{Failure, Result};
use loopd_kernel::entry::{Kind, SALT_LEN};
use loopd_kernel::{Digest, Entry, Epoch, MicroUsd, RunId, Salt, Seq, TimeMs};
use loopd_store::{InboxItem, RunRow, RunStatus, StoreError, WorkerId};
use rusqlite::Row;

/// The columns that [`run_row`] reads, in its order.
macro_rules! run_columns {
    () => {
        "run, tenant, admission, loop_name, version, definition, origin, parent, status, head, hash, epoch, \
         worker, wake_at, outcome, iteration, tokens, spent, created_at, updated_at"
    };
}
pub(crate) use run_columns;

const SALT: usize = SALT_LEN;

pub(crate) fn corrupt(text: String) -> Failure {
    Failure::Store(StoreError::Corrupt(text))
}

/// The stored number of a status.
pub(crate) const fn status_number(status: RunStatus) -> i64 {
    match status {
        RunStatus::Running => 0,
        RunStatus::Suspended => 1,
        RunStatus::Parked => 2,
        RunStatus::Ended => 3,
    }
}

/// The status with this stored number.
pub(crate) fn status(number: i64) -> Option<RunStatus> {
    RunStatus::ALL.into_iter().find(|status| status_number(*status) == number)
}

/// The kind of an Entry and its format, as one number.
pub(crate) fn kind_number(entry: &Entry) -> i64 {
    (i64::from(entry.format) << 16) | i64::from(entry.kind.number())
}

/// Salt, record and payload, as one body.
pub(crate) fn body(entry: &Entry) -> Vec<u8> {
    let mut body = Vec::with_capacity(entry.body_len());
    body.extend_from_slice(&entry.salt.0);
    body.extend_from_slice(entry.record.as_bytes());
    body.extend_from_slice(&entry.payload);
    body
}

/// Reads [`run_columns`].
pub(crate) fn run_row(row: &Row<'_>) -> Result<RunRow> {
    let run = RunId(row.get(0).map_err(|error| corrupt(format!("a run row without its identity: {error}")))?);
    decode_run(row, run).map_err(|error| corrupt(format!("{run}: {error}")))
}

fn decode_run(row: &Row<'_>, run: RunId) -> rusqlite::Result<RunRow> {
    let number: i64 = row.get(8)?;
    let status = status(number).ok_or(rusqlite::Error::IntegralValueOutOfRange(8, number))?;
    let unsigned = |column| row.get::<_, i64>(column).map(|number| number as u64);
    Ok(RunRow {
        run,
        tenant: row.get(1)?,
        admission: row.get(2)?,
        loop_name: row.get(3)?,
        version: row.get(4)?,
        definition: Digest(row.get(5)?),
        origin: row.get(6)?,
        parent: row.get::<_, Option<[u8; 16]>>(7)?.map(RunId),
        status,
        head: Seq(unsigned(9)?),
        hash: Digest(row.get(10)?),
        epoch: Epoch(unsigned(11)?),
        worker: row.get::<_, Option<i64>>(12)?.map(|worker| WorkerId(worker as u64)),
        wake_at: row.get::<_, Option<i64>>(13)?.map(TimeMs),
        outcome: row.get(14)?,
        iteration: unsigned(15)?,
        tokens: unsigned(16)?,
        spent: MicroUsd(unsigned(17)?),
        created_at: TimeMs(row.get(18)?),
        updated_at: TimeMs(row.get(19)?),
    })
}

/// Reads `seq, kind, at, record_len, hash, body`.
pub(crate) fn entry(row: &Row<'_>, run: RunId) -> Result<Entry> {
    let seq = row.get::<_, i64>(0).map_err(|error| corrupt(format!("{run}: an entry without its seq: {error}")))?;
    let seq = Seq(seq as u64);
    decode_entry(row, run, seq).map_err(|text| corrupt(format!("{run} entry {seq}: {text}")))
}

fn decode_entry(row: &Row<'_>, run: RunId, seq: Seq) -> std::result::Result<Entry, String> {
    let number = |column| row.get::<_, i64>(column).map_err(|error| error.to_string());
    let (kind_and_format, at, record_len) = (number(1)?, number(2)?, number(3)?);
    let kind = u16::try_from(kind_and_format & 0xffff).ok().and_then(Kind::from_number);
    let kind = kind.ok_or_else(|| format!("unknown kind {kind_and_format}"))?;
    let format = u16::try_from(kind_and_format >> 16).map_err(|_| format!("unknown format {kind_and_format}"))?;
    let hash = Digest(row.get(4).map_err(|error| error.to_string())?);
    let body = row.get_ref(5).and_then(|value| value.as_blob().map_err(Into::into));
    let body = body.map_err(|error| error.to_string())?;
    let (salt, rest) = body.split_first_chunk::<SALT>().ok_or("the body is shorter than its salt")?;
    let record_len = usize::try_from(record_len).map_err(|_| "the length of the record is negative")?;
    let (record, payload) = rest.split_at_checked(record_len).ok_or("the body is shorter than its record")?;
    let record = std::str::from_utf8(record).map_err(|_| "the record is not text")?;
    let (record, payload) = (record.to_owned(), payload.to_vec());
    Ok(Entry { run, seq, kind, format, at: TimeMs(at), salt: Salt(*salt), record, payload, hash })
}

/// Reads `id, key, at, body`.
pub(crate) fn inbox_item(row: &Row<'_>, run: RunId) -> Result<InboxItem> {
    let (id, body): (i64, String) = (row.get(0)?, row.get(3)?);
    let body = serde_json::from_str(&body).map_err(|error| corrupt(format!("{run} inbox item {id}: {error}")))?;
    Ok(InboxItem { id, run, key: row.get(1)?, at: TimeMs(row.get(2)?), body })
}
