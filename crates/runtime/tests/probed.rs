//! A target that can be asked whether a Call happened: what a crash, a silent target and a request that lands late
//! lead to. However often the target is asked, the effect happens once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::question::Ask;
use loopd_kernel::{Cx, Decision, Event, Failure, RunId};
use loopd_runtime::{Program, RunEnd, ToolError, probed_tool_fn};
use loopd_store::{RunStatus, Store};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use world::dying::Death;
use world::kin::{Kin, named};
use world::port::Port;

/// How late a request of this target may land.
const BOUND: Duration = Duration::from_secs(30);
/// The timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A target, as it is beyond the network.
#[derive(Default)]
struct Target {
    sent: Vec<Instant>,
    /// Every effect and its key.
    landed: Vec<(Instant, String)>,
    /// What was answered to which question.
    asked: Vec<(Instant, bool)>,
    /// How long each request is under way; at once without an entry.
    late: BTreeMap<usize, Duration>,
    /// It cannot say what it has.
    silent: bool,
}

fn step(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("move", &42),
        Event::ToolReturned(returned) => Decision::finish(&returned.output),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn program(target: &Arc<Mutex<Target>>, bound: Option<Duration>) -> Program {
    let (sends, asks) = (target.clone(), target.clone());
    let send = move |_: u64, key: loopd_kernel::EffectKey| {
        let target = sends.clone();
        async move {
            let late = {
                let mut inside = target.lock().unwrap();
                inside.sent.push(Instant::now());
                inside.late.get(&inside.sent.len()).copied().unwrap_or_default()
            };
            let arrives = target.clone();
            // What is on the wire arrives whatever becomes of whoever sent it.
            let arrival = tokio::spawn(async move {
                tokio::time::sleep(late).await;
                arrives.lock().unwrap().landed.push((Instant::now(), key.0.text()));
            });
            arrival.await.unwrap();
            Ok::<_, ToolError>("moved".to_owned())
        }
    };
    let probe = move |_: u64, key: loopd_kernel::EffectKey| {
        let target = asks.clone();
        async move {
            let mut inside = target.lock().unwrap();
            let has = inside.landed.iter().any(|(_, landed)| *landed == key.0.text());
            inside.asked.push((Instant::now(), has));
            if inside.silent {
                return Err(ToolError::in_doubt("net.down", "nobody answers"));
            }
            Ok(has.then(|| "moved".to_owned()))
        }
    };
    let tool = probed_tool_fn("move", "Moves.", bound, send, probe).timeout_ms(TIMEOUT.as_millis() as u64);
    named("mover", step).tool(Arc::new(tool))
}

/// A worker dies at its commit `at`; another takes over and drives the Run until it is sealed or waits for a person.
async fn after_a_death(target: &Arc<Mutex<Target>>, bound: Option<Duration>, at: u32, death: Death) -> (Kin, RunId) {
    let kin = Kin::new([program(target, bound)]);
    let dying = kin.dying(at, death);
    let first = kin.worker_over(dying.clone(), false, &kin.programs).await;
    let driven = kin.start(&first).await;
    let run = driven.run;
    let _ = driven.wait().await;
    assert!(dying.is_dead());
    let _second = kin.worker(true).await;
    loop {
        let row = kin.until(run, |row| row.worker.is_none()).await;
        if row.status == RunStatus::Ended || !kin.store.questions(Some(run), 10).await.unwrap().is_empty() {
            break;
        }
        let _ = kin.store.hints().recv().await;
    }
    kin.verify().await;
    (kin, run)
}

fn counts(target: &Mutex<Target>) -> (usize, usize) {
    let inside = target.lock().unwrap();
    (inside.sent.len(), inside.landed.len())
}

#[tokio::test(start_paused = true)]
async fn what_has_happened_before_a_crash_is_settled_from_the_target() {
    let target = Arc::default();
    // Commit 3 settles the Call.
    let (kin, run) = after_a_death(&target, Some(BOUND), 3, Death::Before).await;
    assert_eq!(kin.row(run).await.outcome.as_deref(), Some("Completed"));
    assert_eq!(counts(&target), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_has_not_happened_is_sent_again_only_once_nothing_can_land_any_more() {
    let target = Arc::default();
    // Commit 2 intends the Call, and nothing is sent.
    let (kin, run) = after_a_death(&target, Some(BOUND), 2, Death::After).await;
    assert_eq!(kin.row(run).await.outcome.as_deref(), Some("Completed"));
    assert_eq!(counts(&target), (1, 1));
    let inside = target.lock().unwrap();
    let quiet = kin.clock_start() + TIMEOUT + BOUND;
    assert!(inside.sent[0] > quiet, "sent again while the first request might still have landed");
    assert!(inside.asked.iter().all(|(_, has)| !has));
    assert!(inside.asked.last().unwrap().0 > quiet, "the last word of the target came too early to be believed");
}

#[tokio::test(start_paused = true)]
async fn a_target_without_a_landing_bound_is_asked_once_and_then_a_person() {
    let target = Arc::default();
    let (kin, run) = after_a_death(&target, None, 2, Death::After).await;
    let question = kin.store.questions(Some(run), 10).await.unwrap().remove(0).question;
    assert!(matches!(question.ask, Ask::Resolve { .. }));
    assert_eq!((counts(&target), target.lock().unwrap().asked.len()), ((0, 0), 1));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_cannot_say_is_asked_three_times_and_then_a_person() {
    let target = Arc::new(Mutex::new(Target { silent: true, ..Target::default() }));
    let (kin, run) = after_a_death(&target, Some(BOUND), 3, Death::Before).await;
    let question = kin.store.questions(Some(run), 10).await.unwrap().remove(0).question;
    assert!(matches!(question.ask, Ask::Resolve { .. }));
    assert_eq!((counts(&target), target.lock().unwrap().asked.len()), ((1, 1), 3));
}

/// The first worker sends and is cut off from the store; its request is under way for `late`, while the second worker
/// takes the Run over and asks the target.
async fn cut_off(late: Duration) -> Arc<Mutex<Target>> {
    let target = Arc::new(Mutex::new(Target { late: [(1, late)].into(), ..Target::default() }));
    let kin = Kin::new([program(&target, Some(BOUND))]);
    let port = Port::new(kin.store.clone());
    let (unheard, gate) = (port.unheard.clone(), port.gate.clone());
    let first = kin.worker_over(Arc::new(port), false, &kin.programs).await;
    let run = kin.start(&first).await.run;
    kin.until(run, |row| row.head.0 >= 4).await;
    unheard.store(true, Ordering::SeqCst);
    // The whole process stands still; only what is on the wire already goes on.
    gate.close_for(Duration::from_secs(3600));
    let _second = kin.worker(true).await;
    kin.until(run, |row| row.status == RunStatus::Ended).await;
    kin.verify().await;
    assert_eq!(kin.row(run).await.outcome.as_deref(), Some("Completed"));
    target
}

#[tokio::test(start_paused = true)]
async fn a_request_that_lands_after_the_target_has_denied_it_is_not_sent_again() {
    // The attempt is given up after 20 seconds, and may land for 30 more.
    for late in [16, 19, 30, 49].map(Duration::from_secs) {
        let target = cut_off(late).await;
        assert_eq!(counts(&target), (1, 1), "{late:?}");
        let asked: Vec<bool> = target.lock().unwrap().asked.iter().map(|(_, has)| *has).collect();
        assert_eq!(asked.first(), Some(&false), "{late:?}: the second worker asked before it landed");
        assert_eq!(asked.last(), Some(&true), "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_lands_beyond_its_declared_bound_is_what_no_probe_can_know() {
    let target = cut_off(TIMEOUT + BOUND + Duration::from_secs(60)).await;
    assert_eq!(target.lock().unwrap().sent.len(), 2, "the bound was not kept, so it was believed that nothing lands");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_paused_between_intent_and_request_sends_nothing_any_more() {
    let target: Arc<Mutex<Target>> = Arc::default();
    let kin = Kin::new([program(&target, Some(BOUND))]);
    // Commit 2 intends the Call; its answer comes long after the second worker has taken over.
    let port = Port::new(kin.store.clone()).answering_late(2, Duration::from_secs(600));
    let unheard = port.unheard.clone();
    let first = kin.worker_over(Arc::new(port), false, &kin.programs).await;
    let driven = kin.start(&first).await;
    unheard.store(true, Ordering::SeqCst);
    let run = driven.run;
    let _second = kin.worker(true).await;
    kin.until(run, |row| row.status == RunStatus::Ended).await;
    assert_eq!(counts(&target), (1, 1));
    assert!(matches!(driven.wait().await, RunEnd::Lost(_)));
    first.shutdown().await;
    assert_eq!(counts(&target), (1, 1), "the paused worker came back and sent");
    kin.verify().await;
}
