//! Records: how their rows are written and read.

pub(crate) mod apply;
pub(crate) mod queries;

use crate::failure::Result;
use crate::rows::corrupt;
use loopd_kernel::TimeMs;
use loopd_store::records::words;
use loopd_store::{Record, RecordId, Table};
use rusqlite::Row;

/// A place as it is stored: SQLite's numbers have a sign, and the order of the index is to be that of places.
pub(crate) const fn stored_place(place: u64) -> i64 {
    (place ^ (1 << 63)) as i64
}

/// The place that was stored as this number.
pub(crate) const fn place(stored: i64) -> u64 {
    stored as u64 ^ (1 << 63)
}

pub(crate) fn hex(id: RecordId) -> String {
    id.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What stands in the index of words for all Records that a table has of a scope. No word begins like it.
fn scope_token(table: Table, scope: RecordId) -> String {
    format!("§{}x{}", table.number(), hex(scope))
}

/// What the index of words holds for a Record; `None` when there is no word in the text.
fn tokens(record: &Record) -> Option<String> {
    let words = words(record.words.as_deref()?);
    let add = |tokens: String, word: &String| tokens + " " + word;
    (!words.is_empty()).then(|| words.iter().fold(scope_token(record.table, record.scope), add))
}

/// What asks the index for Records of these scopes that hold all words of a text; `None` when nothing can be found.
/// Each part is quoted and there is no quote in it, so that nothing of the text is taken for an operator.
fn expression(table: Table, scopes: &[RecordId], text: &str) -> Option<String> {
    let words = words(text);
    if words.is_empty() || scopes.is_empty() {
        return None;
    }
    let quoted = |part: String| format!("\"{part}\"");
    let scopes: Vec<_> = scopes.iter().map(|scope| quoted(scope_token(table, *scope))).collect();
    let words: Vec<_> = words.into_iter().map(quoted).collect();
    Some(format!("({}) AND {}", scopes.join(" OR "), words.join(" AND ")))
}

/// The columns that [`record_row`] reads, in its order.
macro_rules! record_columns {
    () => {
        "record.rid, record.scope, record.place, record.key, record.due, record.rev, record.body"
    };
}
use record_columns;

/// Reads [`record_columns`].
fn record_row(row: &Row<'_>, table: Table) -> Result<Record> {
    let id = row.get(0).map_err(|error| corrupt(format!("a {table:?} without its identity: {error}")))?;
    let id = RecordId(id);
    decode(row, table, id).map_err(|error| corrupt(format!("{table:?} {}: {error}", hex(id))))
}

fn decode(row: &Row<'_>, table: Table, id: RecordId) -> rusqlite::Result<Record> {
    Ok(Record {
        table,
        id,
        scope: RecordId(row.get(1)?),
        place: place(row.get(2)?),
        key: row.get(3)?,
        due: row.get::<_, Option<i64>>(4)?.map(TimeMs),
        rev: row.get::<_, i64>(5)? as u64,
        words: None,
        body: row.get(6)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds;
    use crate::plan::plan;

    #[test]
    fn places_keep_their_order_when_they_are_stored() {
        let places = [0, 1, 2, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
        assert!(places.map(stored_place).is_sorted());
        assert_eq!(places.map(|number| place(stored_place(number))), places);
    }

    #[test]
    fn each_read_and_each_write_searches_an_index() {
        let list = "record USING INDEX record_list (tbl=? AND scope=?";
        let table = [
            (queries::ONE, "record USING INDEX record_identity (tbl=? AND rid=?)"),
            (queries::THESE, "record USING INDEX record_identity (tbl=? AND rid=?)"),
            (queries::KEY, "record USING INDEX record_key (tbl=? AND key=? AND scope=?)"),
            (queries::OLDEST, "record USING INDEX record_list (tbl=? AND scope=? AND (place,rid)>(?,?))"),
            (queries::NEWEST, "record USING INDEX record_list (tbl=? AND scope=? AND (place,rid)<(?,?))"),
            (queries::DUE, "record USING INDEX record_due (tbl=? AND due<?)"),
            (queries::SEARCH, "record USING INTEGER PRIMARY KEY (rowid=?)"),
            (apply::HOLDER, "record USING INDEX record_key (tbl=? AND key=? AND scope=?)"),
            (apply::TOUCH, "record USING INDEX record_key (tbl=? AND key=?)"),
            (apply::FORGET_SCOPE, list),
            (apply::DELETE_SCOPE, list),
            (feeds::ITEMS, "feed_item USING INDEX feed_position (feed=? AND position>?)"),
            (feeds::HEADS, "feed USING INDEX feed_identity (kind=? AND fid=?)"),
            (feeds::ERASE, "feed_item USING COVERING INDEX feed_position (feed=?)"),
            (feeds::COUNTER, "counter USING PRIMARY KEY (name=?)"),
        ];
        for (sql, search) in table {
            let plan = plan(sql);
            assert!(plan.contains(&format!("SEARCH {search}")), "{sql}\n{plan}");
            // A scan only of arguments, of what a search found, and of what the index of words gives.
            for line in plan.lines().filter(|line| line.contains("SCAN")) {
                let fine = ["SCAN wanted VIRTUAL TABLE", "SCAN (subquery", "SCAN record_words VIRTUAL TABLE INDEX"];
                assert!(fine.iter().any(|start| line.starts_with(start)), "{line}\nin\n{plan}");
            }
        }
        for sql in [queries::OLDEST, queries::NEWEST, queries::DUE, feeds::ITEMS] {
            assert!(!plan(sql).contains("TEMP B-TREE"), "the index has the order of the list: {}", plan(sql));
        }
    }
}
