//! An admission key names one Loop on one input; a sleeping Run hears a cancel; stores are private.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

use loopkit::prelude::*;
use loopkit::{MemoryStore, Store};
use std::sync::Arc;
struct Named(&'static str);
impl Loop for Named {
    type Input = String;
    type State = String;
    type Output = String;
    fn name(&self) -> &str {
        self.0
    }
    fn init(&self, s: String) -> Result<String, Failure> {
        Ok(s)
    }
    fn transition(&self, _: &Cx, s: &mut String, _: Event) -> Result<Decision, Failure> {
        Ok(Decision::finish(&format!("{} of {s}", self.0)))
    }
}
fn out(end: End<String>) -> String {
    match end {
        End::Ended(Outcome::Completed { output }) => output,
        other => format!("{other:?}"),
    }
}
#[tokio::test]
async fn another_input_or_loop_is_not_the_same_run() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let run = |name, input: &str| loopkit::run(Named(name), input.to_owned()).key("k").store_in(store.clone());
    assert_eq!(out(run("pay", "alice").await.unwrap()), "pay of alice");
    let other_input = run("pay", "bob").await.map(out);
    let other_loop = run("refund", "carol").await.map(out);
    println!("{other_input:?} {other_loop:?}");
    assert!(other_input.is_err() && other_loop.is_err());
}
struct Sleeps;
impl Loop for Sleeps {
    type Input = String;
    type State = String;
    type Output = String;
    fn name(&self) -> &str {
        "sleeps"
    }
    fn init(&self, s: String) -> Result<String, Failure> {
        Ok(s)
    }
    fn transition(&self, _: &Cx, _: &mut String, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::sleep(3_600_000),
            _ => Decision::finish(&"woke"),
        })
    }
}
#[tokio::test(flavor = "multi_thread")]
async fn a_sleeping_run_hears_a_cancel() {
    let dir = std::env::temp_dir().join(format!("loopkit-keys-{}", std::process::id()));
    let path = dir.join("x.db");
    let at = path.clone();
    let task = tokio::spawn(async move { loopkit::run(Sleeps, "x".into()).store(at).await.map(out) });
    tokio::time::sleep(std::time::Duration::from_millis(800)).await;
    let client = loopkit::SqliteStore::open_client(&path).unwrap();
    let row = client.runs(loopd_store::RunFilter { limit: 1, ..Default::default() }).await.unwrap().items.pop();
    println!("{row:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions()) & 0o777;
    let run = row.expect("a run").run;
    let body = loopd_store::InboxBody::Cancel { actor: "ann".into(), reason: "enough".into() };
    loopd_runtime::tell(&client, run, "c".into(), loopkit::TimeMs(0), body).await.unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(5), task).await;
    println!("{ended:?}");
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(ended.is_ok(), "the cancel is not heard before the timer");
    assert_eq!(mode, 0o600);
}
