//! The keeper: one task per worker that renews its lease and wakes what is due. Everything is driven
//! from rows; hints only say when to look.

use crate::runtime::Runtime;
use loopd_store::{Claim, Hint, StoreError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior};

/// Runs that one claim takes.
const CLAIM: usize = 64;

/// Runs until the worker drains.
pub async fn keep(runtime: Runtime) {
    let inner = runtime.inner.clone();
    let mut hints = inner.store.hints();
    let mut beat = tokio::time::interval(inner.performer.config.lease / 3);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.tick().await;
    let mut look = true;
    while !inner.drain.is_cancelled() {
        if std::mem::take(&mut look) {
            claim_due(&runtime).await;
        }
        let wake = next_wake(&runtime).await;
        tokio::select! {
            hint = hints.recv() => match hint {
                Ok(Hint::Run(_)) => {}
                Ok(Hint::Inbox(run)) => look = !notify(&runtime, |id| id == run),
                Ok(Hint::Foreign) | Err(RecvError::Lagged(_)) => {
                    notify(&runtime, |_| true);
                    look = true;
                }
                Err(RecvError::Closed) => return,
            },
            () = sleep_until(wake) => look = true,
            () = inner.changed.notified() => look = true,
            _ = beat.tick() => {
                // The beat also finds Runs of workers whose lease has lapsed.
                look = true;
                match inner.heartbeat().await {
                    Ok(()) => {}
                    Err(StoreError::Fenced(_)) => {
                        tracing::error!("another process has taken the driver role over: stopping");
                        inner.drain.cancel();
                    }
                    Err(error) => tracing::warn!(%error, "the heartbeat failed"),
                }
            }
            () = inner.drain.cancelled() => {}
        }
    }
}

/// Tells activations to read their inbox. True: at least one was told.
fn notify(runtime: &Runtime, which: impl Fn(loopd_kernel::RunId) -> bool) -> bool {
    runtime.with_active(|active| {
        let mut told = false;
        for (_, one) in active.iter().filter(|(run, _)| which(**run)) {
            one.inbox.notify_one();
            told = true;
        }
        told
    })
}

async fn claim_due(runtime: &Runtime) {
    let inner = &runtime.inner;
    if !inner.performer.config.claims {
        return;
    }
    loop {
        let room = inner.performer.config.concurrency.saturating_sub(runtime.with_active(|active| active.len()));
        if room == 0 || inner.drain.is_cancelled() {
            return;
        }
        let limit = room.min(CLAIM);
        let loops = inner.programs.names();
        let claim = Claim { worker: inner.worker, now: inner.performer.clock.now(), loops, limit, only: None };
        let claimed = match inner.store.claim(claim).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "the claim failed");
                return;
            }
        };
        let full = claimed.len() == limit;
        for one in claimed {
            let run = one.row.run;
            if let Err(error) = runtime.adopt(one).await {
                tracing::warn!(%run, %error, "a claimed run cannot be driven here");
            }
        }
        if !full {
            return;
        }
    }
}

async fn next_wake(runtime: &Runtime) -> Option<Instant> {
    if !runtime.inner.performer.config.claims {
        return None;
    }
    let at = runtime.inner.store.next_wake().await.ok().flatten()?;
    let wait = at.since(runtime.inner.performer.clock.now());
    Some(Instant::now() + Duration::from_millis(wait))
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
