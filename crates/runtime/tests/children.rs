//! Parents and children end to end: who drives them, what a parent hears, and what a death in between leaves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::{Expect, expect};
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Action, Cx, Decision, EffectClass, Event, Failure, Outcome, RunId, Spawn};
use loopd_runtime::{Program, RunEnd, Runtime, tool_fn};
use loopd_store::{InboxBody, RunStatus, Store};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use world::dying::{Death, Dying};
use world::kin::{Kin, answer, cancel, named};
use world::{Step, show_end};

/// Spawns `slow` and `quick`, and says in which order they came back.
fn two(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => {
            Decision::spawn("first", "slow", &"in").and(Action::Spawn(Spawn::new("second", "quick", "\"in\"")))
        }
        Event::ChildEnded { name, outcome, .. } => {
            state.push(format!("{name} {}", told(&outcome)));
            if state.len() == 2 { Decision::finish(state) } else { Decision::none() }
        }
        other => return Err(Failure::unexpected(&other)),
    })
}

/// Spawns one child of the Loop `child` with the input `I`.
fn one<const I: usize>(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => Decision::spawn("one", "child", &["in", "refused", "panics"][I]),
        Event::ChildEnded { outcome, .. } => Decision::finish(&told(&outcome)),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed { output } => output.clone(),
        Outcome::Failed { failure } => failure.code.clone(),
        other => other.name().into(),
    }
}

fn sleeps<const MS: u64>(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::TimerFired { .. } => Decision::finish(&MS),
        _ => Decision::sleep(MS),
    })
}

fn asks(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::Answered { value, .. } => Decision::finish(&value),
        _ => Decision::confirm("go on?"),
    })
}

/// Starts the first of the Loops, waits until its Run is sealed, and compares what is in the store.
async fn check(claims: bool, programs: impl IntoIterator<Item = Program>, expect: Expect) -> Kin {
    let kin = Kin::new(programs);
    let runtime = kin.worker(claims).await;
    let driven = kin.start(&runtime).await;
    let run = driven.run;
    let first = driven.wait().await;
    let rested = matches!(first, RunEnd::Suspended(_));
    assert_eq!(rested, claims, "without claims a parent stays for its children: {first:?}");
    kin.until(run, |row| row.status == RunStatus::Ended).await;
    let mut table = kin.table().await;
    let end = runtime.ended(run).await.unwrap().map(RunEnd::Ended).unwrap();
    writeln!(table, "{}", show_end(&end)).unwrap();
    expect.assert_eq(&table);
    kin.verify().await;
    runtime.shutdown().await;
    kin
}

fn family() -> [Program; 3] {
    [named("parent", two), named("slow", sleeps::<2000>), named("quick", sleeps::<1000>)]
}

#[tokio::test(start_paused = true)]
async fn a_parent_hears_of_its_children_in_the_order_in_which_they_end() {
    for claims in [false, true] {
        check(
            claims,
            family(),
            expect![[r#"
                parent: ended Completed: started iteration_started decided intended intended child_ended decided child_ended decided ended
                quick: ended Completed: started iteration_started decided timer_fired decided ended
                slow: ended Completed: started iteration_started decided timer_fired decided ended
                Ended Completed {"output":"[\"second 1000\",\"first 2000\"]"}
            "#]],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn children_that_outlast_the_linger_time_are_waited_for_all_the_same() {
    for claims in [false, true] {
        check(
            claims,
            [named("parent", two), named("slow", sleeps::<90_000>), named("quick", sleeps::<60_000>)],
            expect![[r#"
                parent: ended Completed: started iteration_started decided intended intended child_ended decided child_ended decided ended
                quick: ended Completed: started iteration_started decided timer_fired decided ended
                slow: ended Completed: started iteration_started decided timer_fired decided ended
                Ended Completed {"output":"[\"second 60000\",\"first 90000\"]"}
            "#]],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_cannot_begin_tells_its_parent_why() {
    let child = || named("child", |_, _, _| Ok(Decision::finish(&1)));
    for claims in [false, true] {
        check(
            claims,
            [named("parent", one::<1>), child()],
            expect![[r#"
                parent: ended Completed: started iteration_started decided intended child_ended decided ended
                child: ended Failed: started ended
                Ended Completed {"output":"\"loop.input\""}
            "#]],
        )
        .await;
        check(
            claims,
            [named("parent", one::<2>), child()],
            expect![[r#"
                parent: ended Completed: started iteration_started decided intended child_ended decided ended
                child: ended Failed: started ended
                Ended Completed {"output":"\"loop.panicked\""}
            "#]],
        )
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_waits_for_a_person_lets_its_parent_rest_and_is_brought_along_later() {
    let kin = Kin::new([named("parent", one::<0>), named("child", asks)]);
    let runtime = kin.worker(false).await;
    let driven = kin.start(&runtime).await;
    let run = driven.run;
    let RunEnd::Suspended(waits) = driven.wait().await else { panic!() };
    let child = kin.child(run).await;
    assert_eq!(waits.children, [child.run]);
    assert_eq!((child.status, kin.row(run).await.status), (RunStatus::Suspended, RunStatus::Suspended));
    answer(&runtime, child.run, "a1", "true").await;
    let end = runtime.resume(run).await.unwrap().wait().await;
    assert_eq!(show_end(&end), r#"Ended Completed {"output":"\"\\\"true\\\"\""}"#);
    kin.verify().await;
}

fn asks_then_pays(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::confirm("pay?"),
        Event::Answered { .. } => Decision::tool("pay", &42),
        Event::ToolReturned(returned) => Decision::finish(&returned.output),
        other => return Err(Failure::unexpected(&other)),
    })
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_comes_back_does_not_take_a_child_that_is_driven_already() {
    let pay = tool_fn("pay", "Pays.", |_: u64| async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok("paid")
    });
    let kin = Kin::new([named("parent", one::<0>), named("child", asks_then_pays).tool(Arc::new(pay))]);
    let runtime = kin.worker(false).await;
    let driven = kin.start(&runtime).await;
    let run = driven.run;
    let _ = driven.wait().await;
    let child = kin.child(run).await.run;
    answer(&runtime, child, "a1", "true").await;
    let paying = runtime.resume(child).await.unwrap();
    let row = kin.until(child, |row| row.head.0 >= 6).await;
    let end = runtime.resume(run).await.unwrap().wait().await;
    assert_eq!(show_end(&end), r#"Ended Completed {"output":"\"\\\"\\\\\\\"paid\\\\\\\"\\\"\""}"#);
    assert_eq!(kin.row(child).await.epoch, row.epoch, "it was claimed once more while it paid");
    assert!(matches!(paying.wait().await, RunEnd::Ended(_)));
    kin.verify().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_while_the_parent_is_away_is_heard_by_whoever_claims_the_child() {
    let kin = Kin::new([named("parent", one::<0>), named("child", asks)]);
    let runtime = kin.worker(true).await;
    let run = kin.start(&runtime).await.run;
    kin.until(run, |row| row.status == RunStatus::Suspended).await;
    let child = kin.child(run).await.run;
    kin.until(child, |row| row.status == RunStatus::Suspended).await;
    runtime.shutdown().await;
    let second = kin.worker(true).await;
    answer(&second, child, "a1", "true").await;
    kin.until(run, |row| row.status == RunStatus::Ended).await;
    kin.verify().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_loop_nobody_here_knows_waits_for_a_worker_that_does() {
    for claims in [false, true] {
        let kin = Kin::new([named("parent", one::<0>), named("child", sleeps::<10>)]);
        let partial = kin.worker_over(Arc::new(kin.store.clone()), claims, &kin.programs[..1]).await;
        let driven = kin.start(&partial).await;
        let run = driven.run;
        let RunEnd::Suspended(waits) = driven.wait().await else { panic!() };
        assert_eq!(waits.children.len(), 1);
        let child = kin.child(run).await;
        assert_eq!((child.head.0, child.worker, child.epoch.0), (0, None, 0), "nobody has touched it");
        assert!(partial.resume(child.run).await.unwrap_err().to_string().contains("no loop named `child` here"));
        partial.shutdown().await;
        let whole = kin.worker(claims).await;
        if !claims {
            let _ = whole.resume(run).await.unwrap();
        }
        kin.until(run, |row| row.status == RunStatus::Ended).await;
        kin.verify().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_parent_cancels_its_children() {
    for (claims, child) in [(false, asks as Step), (true, asks), (false, sleeps::<1000>), (true, sleeps::<1000>)] {
        let kin = Kin::new([named("parent", one::<0>), named("child", child)]);
        let runtime = kin.worker(claims).await;
        let run = kin.start(&runtime).await.run;
        kin.until(run, |row| row.head.0 >= 3).await;
        let child = kin.child(run).await.run;
        kin.until(child, |row| row.head.0 >= 3).await;
        runtime.tell(run, "c1", cancel()).await.unwrap();
        if !claims {
            // Whoever cancels drives the parent, which brings its children along.
            let _ = runtime.resume(run).await;
        }
        kin.until(run, |row| row.status == RunStatus::Ended).await;
        let child = kin.until(child, |row| row.status == RunStatus::Ended).await;
        assert_eq!(child.outcome.as_deref(), Some("Interrupted"));
        kin.verify().await;
        runtime.shutdown().await;
    }
}

/// Brings the parent and its child to their ends; whoever is asked what became of the payment looks and says so.
async fn finish(kin: &Kin, runtime: &Runtime, claims: bool, run: RunId, paid: &AtomicU32) -> (u32, String) {
    let (mut asked, mut hints) = (0, kin.store.hints());
    loop {
        if let Some(outcome) = runtime.ended(run).await.unwrap() {
            return (asked, show_end(&RunEnd::Ended(outcome)));
        }
        if !claims {
            let _ = runtime.resume(run).await.unwrap().wait().await;
        }
        let questions = kin.store.questions(None, 10).await.unwrap();
        if questions.is_empty() && claims {
            let heard = tokio::time::timeout(Duration::from_secs(86_400), hints.recv()).await;
            assert!(heard.is_ok(), "it stands still: {}", kin.table().await);
        } else if questions.is_empty() {
            assert!(runtime.ended(run).await.unwrap().is_some(), "it stands still: {}", kin.table().await);
        }
        for open in questions {
            asked += 1;
            let Ask::Resolve { .. } = &open.question.ask else { panic!() };
            tokio::time::advance(Duration::from_secs(2 * 3600)).await;
            let landed = paid.load(Ordering::SeqCst) > 0;
            let value = if landed { r#"{"call":"landed","output":"1"}"# } else { r#"{"call":"retry"}"# };
            let (question, end) = (open.question.id, QuestionEnd::Answered);
            let body = InboxBody::Answer { question, end, actor: "ann".into(), value: value.into() };
            runtime.tell(open.run, format!("answer-{question}"), body).await.unwrap();
            kin.until(open.run, |row| row.status != RunStatus::Suspended || !claims).await;
        }
    }
}

/// Drives until the parent has ended or the process is dead.
async fn live(kin: &Kin, dying: &Arc<Dying>, claims: bool) {
    let Some(runtime) = kin.try_worker(dying.clone(), claims, &kin.programs).await else { return };
    let mut hints = kin.store.hints();
    if let Some(driven) = kin.try_start(&runtime).await {
        let run = driven.run;
        let _ = driven.wait().await;
        while claims && !dying.is_dead() && kin.row(run).await.status != RunStatus::Ended {
            let _ = tokio::time::timeout(Duration::from_secs(1), hints.recv()).await;
        }
    }
    runtime.shutdown().await;
}

fn pays(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("pay", &42),
        Event::ToolReturned(returned) => Decision::finish(&returned.output),
        other => return Err(Failure::unexpected(&other)),
    })
}

async fn matrix(claims: bool) -> String {
    let mut table = String::new();
    for death in [Death::Before, Death::After] {
        for cut in 1.. {
            let paid = Arc::new(AtomicU32::new(0));
            let counter = paid.clone();
            let pay = tool_fn("pay", "Pays.", move |_: u64| {
                let n = counter.fetch_add(1, Ordering::SeqCst) + 1;
                async move { Ok(n) }
            });
            let child = named("child", pays).tool(Arc::new(pay.class(EffectClass::Once)));
            let kin = Kin::new([named("parent", one::<0>), child]);
            let dying = kin.dying(cut, death);
            live(&kin, &dying, claims).await;
            if !dying.is_dead() {
                break;
            }
            tokio::time::advance(Duration::from_secs(60)).await;
            let rows = kin.rows().await;
            let Some(parent) = rows.iter().find(|row| row.parent.is_none()) else {
                writeln!(table, "{death:?} {cut}: never started").unwrap();
                continue;
            };
            let next = kin.worker(claims).await;
            let (asked, end) = finish(&kin, &next, claims, parent.run, &paid).await;
            let (children, paid) = (kin.children(parent.run).await.len(), paid.load(Ordering::SeqCst));
            assert_eq!((children, paid), (1, 1), "{death:?} {cut}");
            assert!(kin.rows().await.iter().all(|row| row.status == RunStatus::Ended), "{death:?} {cut}");
            writeln!(table, "{death:?} {cut}: asked={asked} {end}").unwrap();
            kin.verify().await;
        }
    }
    table
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_anywhere_leaves_one_child_with_one_payment() {
    // Whether parents stay for their children or are woken as rows, a death leaves the same.
    let table = expect![[r#"
        Before 1: never started
        Before 2: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        Before 3: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        Before 4: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        Before 5: asked=1 Ended Completed {"output":"\"\\\"1\\\"\""}
        Before 6: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        After 1: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        After 2: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        After 3: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        After 4: asked=1 Ended Completed {"output":"\"\\\"1\\\"\""}
        After 5: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
        After 6: asked=0 Ended Completed {"output":"\"\\\"1\\\"\""}
    "#]];
    for claims in [false, true] {
        table.assert_eq(&matrix(claims).await);
    }
}
