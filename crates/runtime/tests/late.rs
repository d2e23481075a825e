//! A worker that lost its Run while an effect was under way: what it still had is handed in, and counts once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Cx, Decision, EffectClass, Event, Failure, RunId};
use loopd_runtime::{RunEnd, Runtime, tool_fn};
use loopd_store::{InboxBody, RunStatus, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use world::kin::{Kin, named};
use world::port::Port;
use world::show_end;

fn pays(_: &Cx, _: &mut Vec<String>, event: Event) -> Result<Decision, Failure> {
    Ok(match event {
        Event::IterationStarted { .. } => Decision::tool("pay", &42),
        Event::ToolReturned(returned) => Decision::wait("end").and_label(&returned.output),
        Event::SignalReceived { .. } => Decision::finish(&"paid"),
        other => return Err(Failure::unexpected(&other)),
    })
}
