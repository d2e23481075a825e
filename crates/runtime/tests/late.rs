//! A worker that lost its Run while an effect was under way: what it still had is handed in, and counts once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::{Expect, expect};
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Cx, Decision, EffectClass, Event, Failure, RunId};
use loopd_runtime::{RunEnd, Runtime, tool_fn};
use loopd_store::{InboxBody, RunStatus, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use world::kin::{Kin, named};
use world::port::Port;
use world::show_end;

/// Pays, then waits for a signal: an answer that comes too late still finds the Run open.
fn pays(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("pay", &42),
        Event::ToolReturned(returned) => {
            state.push(returned.output);
            Decision::wait("end")
        }
        Event::SignalReceived { .. } => Decision::finish(state),
        other => return Err(Failure::unexpected(&other)),
    })
}

/// What happens while the first worker, which nobody hears any more, still pays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    SomebodySaysItLanded,
    SomebodyCancels,
}

/// The first worker pays for 40 seconds and loses its lease after 15; the second one asks a person.
async fn check(meanwhile: Meanwhile, expect: Expect) {
    let paid = Arc::new(AtomicU32::new(0));
    let done = Arc::new(Notify::new());
    let (counter, ends) = (paid.clone(), done.clone());
    let pay = tool_fn("pay", "Pays.", move |_: u64| {
        let n = counter.fetch_add(1, Ordering::SeqCst) + 1;
        let ends = ends.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(40)).await;
            ends.notify_one();
            Ok(format!("receipt {n}"))
        }
    });
    let kin = Kin::new([named("payer", pays).tool(Arc::new(pay.class(EffectClass::Once)))]);
    let port = Port::new(kin.store.clone());
    let unheard = port.unheard.clone();
    let first = kin.worker_over(Arc::new(port), false, &kin.programs).await;
    let driven = kin.start(&first).await;
    let run = driven.run;
    unheard.store(true, Ordering::SeqCst);
    let second = kin.worker(true).await;
    kin.until(run, |row| row.status == RunStatus::Suspended).await;
    let question = kin.store.questions(Some(run), 10).await.unwrap().remove(0).question;
    assert!(matches!(question.ask, Ask::Resolve { .. }));
    act(&second, run, question.id, meanwhile).await;
    assert!(matches!(driven.wait().await, RunEnd::Lost(_)), "the first worker is fenced");
    done.notified().await;
    // All that it still hands in.
    first.shutdown().await;
    if meanwhile != Meanwhile::SomebodyCancels {
        kin.until(run, |row| row.status == RunStatus::Suspended).await;
        assert_eq!(kin.store.questions(Some(run), 10).await.unwrap(), [], "nobody is asked any more");
        let body = InboxBody::Signal { name: "end".into(), body: "1".into() };
        second.tell(run, "end", body).await.unwrap();
    }
    kin.until(run, |row| row.status == RunStatus::Ended).await;
    let end = RunEnd::Ended(second.ended(run).await.unwrap().unwrap());
    let paid = paid.load(Ordering::SeqCst);
    expect.assert_eq(&format!("{}\n{}\npaid {paid}", kin.kinds(run).await.replace(' ', "\n"), show_end(&end)));
    kin.verify().await;
}

async fn act(worker: &Runtime, run: RunId, question: loopd_kernel::QuestionId, meanwhile: Meanwhile) {
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::SomebodySaysItLanded => {
            let value = r#"{"call":"landed","output":"\"seen\""}"#.into();
            let (end, actor) = (QuestionEnd::Answered, "ann".into());
            worker.tell(run, "a1", InboxBody::Answer { question, end, actor, value }).await.unwrap();
        }
        Meanwhile::SomebodyCancels => worker.tell(run, "c1", world::kin::cancel()).await.unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_late_goes_before_the_person_who_was_asked() {
    check(
        Meanwhile::Nothing,
        expect![[r#"
        started
        iteration_started
        decided
        intended
        recovered
        settled
        late_result
        question_ended
        resolved
        decided
        signal
        decided
        ended
        Ended Completed {"output":"[\"\\\"receipt 1\\\"\"]"}
        paid 1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_late_result_of_a_call_that_somebody_has_answered_changes_nothing() {
    check(
        Meanwhile::SomebodySaysItLanded,
        expect![[r#"
        started
        iteration_started
        decided
        intended
        recovered
        settled
        question_ended
        resolved
        decided
        signal
        decided
        ended
        Ended Completed {"output":"[\"\\\"seen\\\"\"]"}
        paid 1"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_late_result_lets_a_cancelled_run_end_without_asking() {
    check(
        Meanwhile::SomebodyCancels,
        expect![[r#"
        started
        iteration_started
        decided
        intended
        recovered
        settled
        cancel_requested
        late_result
        question_ended
        resolved
        ended
        Ended Interrupted {"interrupt":{"actor":"ann","by":"cancelled","reason":"enough"}}
        paid 1"#]],
    )
    .await;
}
