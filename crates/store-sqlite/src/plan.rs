//! How SQLite would run a statement, for tests of what reads cost.

use crate::schema;

/// The plan, a line for each table.
pub(crate) fn plan(sql: &str) -> String {
    let folder = tempfile::TempDir::new().unwrap();
    let mut conn = schema::connect(&folder.path().join("loopd.db"), true).unwrap();
    schema::migrate(&mut conn).unwrap();
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // Nothing is bound: the plan does not depend on the values.
    let details = statement.raw_query().mapped(|row| row.get::<_, String>(3));
    details.map(|detail| detail.unwrap() + "\n").collect()
}
