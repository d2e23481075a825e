//! One worker at a time, each dies: every kind of wait around two payments, over a store that fails.

use crate::chance::Chance;
use crate::world::World;
use crate::world::dying::Death;
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Cx, Decision, EffectClass, Event, Failure, Limits, Outcome};
use loopd_runtime::RunEnd;
use loopd_store::memory::Fault;
use loopd_store::{Batch, InboxBody, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads, pays, asks, sleeps, and pays once more.
fn step(_: &Cx, state: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { iteration: 1 } => {
            Decision::none().and_tool("look", &1).and_tool("pay", &1).and_tool("look", &2)
        }
        Event::IterationStarted { iteration: 2 } => Decision::confirm("go on?"),
        Event::IterationStarted { iteration: 3 } => Decision::sleep(5_000),
        Event::IterationStarted { iteration: 4 } => Decision::tool("pay-again", &2),
        Event::IterationStarted { .. } => {
            state.sort();
            Decision::finish(state)
        }
        Event::ToolReturned(r) => {
            state.push(r.tool);
            Decision::none()
        }
        Event::Answered { .. } | Event::TimerFired { .. } => Decision::none(),
        other => return Err(Failure::unexpected(&other)),
    })
}

fn policy(seed: u64, steps: Arc<AtomicU64>) -> impl FnMut(&Batch) -> Option<Fault> + Send + 'static {
    let mut chance = Chance::new(seed, 1);
    move |batch| {
        let fault = match chance.below(10) {
            0 => Some(Fault::Unavailable),
            1 => Some(Fault::AmbiguousCommitted),
            2 => Some(Fault::AmbiguousLost),
            _ => None,
        };
        let is_step = batch.writes.iter().any(|write| matches!(write, Write::Append { .. }));
        if is_step && matches!(fault, None | Some(Fault::AmbiguousCommitted)) {
            steps.fetch_add(1, Ordering::Relaxed);
        }
        fault
    }
}

/// One life after the other until the Run has ended.
pub async fn live(seed: u64, steps: Arc<AtomicU64>) {
    let mut chance = Chance::new(seed, 0);
    let mut world = World::new(step)
        .tool_taking("look", EffectClass::Read, chance.below(50))
        .tool_taking("pay", EffectClass::Once, chance.below(50))
        .tool_taking("pay-again", EffectClass::Once, chance.below(50))
        .faulty(policy(seed, steps));
    let mut started = false;
    for life in 0..60 {
        // The first lives are short; later ones live long enough to come to the end.
        let death = if chance.one_in(2) { Death::Before } else { Death::After };
        world = world.dying(u32::try_from(1 + chance.below(6 + life)).unwrap(), death);
        if started {
            while let Some(end) = world.try_resume().await {
                match end {
                    RunEnd::Suspended(waits) => answer(&world, &waits).await,
                    // Lives this short look like a Run that kills its workers; a person looks and reopens it.
                    RunEnd::Ended(Outcome::Interrupted { interrupt: Interrupt::Poisoned { .. } }) => {
                        let body = InboxBody::Reopen { actor: "ann".into(), raise: Limits::default() };
                        let _ = world.try_tell(&format!("reopen-{life}"), body).await;
                    }
                    RunEnd::Ended(outcome) => {
                        world = world.take_over().await;
                        world.verify().await;
                        assert!(world.calls("pay") <= 1 && world.calls("pay-again") <= 1, "a payment happened twice");
                        let Outcome::Completed { output } = outcome else { panic!("{outcome:?}") };
                        assert_eq!(output, r#"["look","look","pay","pay-again"]"#);
                        return;
                    }
                    RunEnd::Released | RunEnd::Lost(_) => break,
                }
            }
        } else {
            let _ = world.try_start_and_wait().await;
        }
        world = world.take_over().await;
        started = world.started().await;
        assert!(world.calls("pay") <= 1 && world.calls("pay-again") <= 1, "a payment happened twice");
    }
    panic!("the run never ended");
}

/// People answer; about a lost payment they look at the ledger first.
async fn answer(world: &World, waits: &loopd_kernel::projection::Waits) {
    // Whoever looks at once is sent away by the Run: what was sent may still land.
    tokio::time::advance(std::time::Duration::from_secs(2 * 3600)).await;
    for open in &waits.questions {
        let value = match &open.ask {
            Ask::Resolve { tool, .. } if world.calls(tool) == 0 => r#"{"call":"retry"}"#,
            Ask::Resolve { .. } => r#"{"call":"landed","output":"paid"}"#,
            Ask::Ask { .. } | Ask::Confirm { .. } => "true",
        };
        let end = QuestionEnd::Answered;
        let body = InboxBody::Answer { question: open.id, end, actor: "ann".into(), value: value.into() };
        let _ = world.try_tell(&format!("answer-{}", open.id), body).await;
    }
    if waits.questions.is_empty() {
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
    }
}
