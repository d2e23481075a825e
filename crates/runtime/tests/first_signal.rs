//! A signal that starts its Run when there is none: one Run and one signal, whoever tries and however often.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::machine::Admission;
use loopd_kernel::{Cx, Decision, Event, Failure, Limits, Outcome, RunId};
use loopd_runtime::{FirstSignal, Runtime, StartError, Started};
use loopd_store::memory::Fault;
use loopd_store::{InboxBody, RunStatus, Write};
use std::sync::Arc;
use world::kin::{Kin, named};

/// Collects the bodies of `add` until `end`.
fn collects(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::SignalReceived { name, .. } if name == "end" => {
            state.sort();
            Decision::finish(state)
        }
        Event::SignalReceived { body, .. } => {
            state.push(body);
            waits()
        }
        _ => waits(),
    })
}

fn waits() -> Decision {
    Decision::none().and(loopd_kernel::Action::Wait { signals: vec!["add".into(), "end".into()], timeout_ms: None })
}

fn admission(key: Option<&str>, input: &str) -> Admission {
    let (input, limits) = (format!("\"{input}\""), Limits::default());
    Admission { tenant: "default".into(), input, limits, key: key.map(Into::into) }
}

fn add(n: u32) -> FirstSignal {
    FirstSignal { name: "add".into(), body: n.to_string(), key: format!("add-{n}") }
}

fn kin() -> Kin {
    let other = |_: &Cx, _: &mut Vec<String>, _: Event| Ok(Decision::wait("x"));
    Kin::new([named("collector", collects), named("other", other)])
}

async fn send(kin: &Kin, worker: &Runtime, n: u32) -> Result<RunId, StartError> {
    let sent = worker.signal_with_start(&kin.programs[0], admission(Some("k"), "in"), add(n)).await?;
    Ok(match sent {
        Started::New(driven) => driven.run,
        Started::Already(run) => run,
    })
}

/// Ends the Run and says what it has collected.
async fn collected(kin: &Kin, worker: &Runtime, run: RunId) -> String {
    worker.tell(run, "end", InboxBody::Signal { name: "end".into(), body: "1".into() }).await.unwrap();
    kin.until(run, |row| row.status == RunStatus::Ended).await;
    kin.verify().await;
    let Some(Outcome::Completed { output }) = worker.ended(run).await.unwrap() else { panic!() };
    output
}

#[tokio::test(start_paused = true)]
async fn the_first_signal_starts_the_run_and_the_next_ones_reach_it() {
    let kin = kin();
    let worker = kin.worker(true).await;
    let run = send(&kin, &worker, 1).await.unwrap();
    for n in [2, 1, 2] {
        assert_eq!(send(&kin, &worker, n).await.unwrap(), run);
    }
    assert_eq!(kin.rows().await.len(), 1);
    assert_eq!(collected(&kin, &worker, run).await, r#"["1","2"]"#);
    assert_eq!(send(&kin, &worker, 3).await.unwrap_err(), StartError::Sealed(run));
    assert_eq!(send(&kin, &worker, 2).await.unwrap(), run, "it has heard this one");
}

#[tokio::test(start_paused = true)]
async fn the_run_and_its_first_signal_are_one_commit() {
    let kin = kin();
    let mut batches = Vec::new();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let store = kin.store.faulty(move |batch| {
        let _ = sender.send(batch.clone());
        None
    });
    let worker = kin.worker_over(Arc::new(store), false, &kin.programs).await;
    send(&kin, &worker, 1).await.unwrap();
    while let Ok(batch) = seen.try_recv() {
        batches.push(batch);
    }
    let first = batches.iter().find(|batch| batch.writes.iter().any(|write| matches!(write, Write::CreateRun(_))));
    let signals = first.unwrap().writes.iter().filter(|write| matches!(write, Write::AddInbox(_))).count();
    assert_eq!(signals, 1);
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_nobody_is_sure_of_makes_one_run_and_one_signal() {
    for fault in [Fault::AmbiguousCommitted, Fault::AmbiguousLost, Fault::Unavailable] {
        // The commit that creates the Run, then the one that adds a later signal.
        for start in [true, false] {
            let kin = kin();
            if !start {
                let maker = kin.worker(false).await;
                send(&kin, &maker, 1).await.unwrap();
                maker.shutdown().await;
            }
            let mut met = false;
            let store = kin.store.faulty(move |batch| {
                let meant = |write: &Write| match write {
                    Write::CreateRun(_) => start,
                    Write::AddInbox(_) => !start,
                    _ => false,
                };
                let creates = batch.writes.iter().any(|write| matches!(write, Write::CreateRun(_)));
                let hit = !met && start == creates && batch.writes.iter().any(meant);
                met |= hit;
                hit.then_some(fault)
            });
            let worker = kin.worker_over(Arc::new(store), true, &kin.programs).await;
            let run = send(&kin, &worker, if start { 1 } else { 2 }).await.unwrap();
            assert_eq!(kin.rows().await.len(), 1, "{fault:?}");
            let all = if start { r#"["1"]"# } else { r#"["1","2"]"# };
            assert_eq!(collected(&kin, &worker, run).await, all, "{fault:?} {start}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn two_who_start_at_once_make_one_run_that_hears_both() {
    let kin = kin();
    let (one, two) = (kin.worker(true).await, kin.worker(true).await);
    let (first, second) = tokio::join!(send(&kin, &one, 1), send(&kin, &two, 2));
    let run = first.unwrap();
    assert_eq!(second.unwrap(), run);
    assert_eq!(kin.rows().await.len(), 1);
    assert_eq!(collected(&kin, &one, run).await, r#"["1","2"]"#);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_found_again_or_belongs_to_another_loop_is_refused() {
    let kin = kin();
    let worker = kin.worker(true).await;
    let no_key = worker.signal_with_start(&kin.programs[0], admission(None, "in"), add(1)).await;
    assert_eq!(no_key.unwrap_err(), StartError::NoKey);
    let run = send(&kin, &worker, 1).await.unwrap();
    let other = worker.signal_with_start(&kin.programs[1], admission(Some("k"), "in"), add(2)).await;
    assert_eq!(other.unwrap_err(), StartError::KeyTaken(run));
    // The input is that of whoever starts the Run.
    let again = worker.signal_with_start(&kin.programs[0], admission(Some("k"), "another"), add(3)).await.unwrap();
    assert!(matches!(again, Started::Already(first) if first == run));
    let refused = worker.signal_with_start(&kin.programs[0], admission(Some("new"), "refused"), add(1)).await;
    assert!(matches!(refused, Err(StartError::Machine(_))));
    assert_eq!(kin.rows().await.len(), 1);
    assert_eq!(collected(&kin, &worker, run).await, r#"["1","3"]"#);
}
