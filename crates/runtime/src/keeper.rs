//! The keeper: renews the worker's lease and wakes what is due. Everything is driven from rows; hints only
//! say when to look.

use crate::adopt::Unfit;
use crate::runtime::Runtime;
use loopd_kernel::RunId;
use loopd_store::{Claim, Hint, RunRow, Runnable, StoreError};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

/// Runs that one claim takes.
const CLAIM: usize = 64;

/// How long nothing is looked for after a look that could do nothing about what is due.
const PAUSE: Duration = Duration::from_secs(1);

/// Renews the lease until nothing is driven here any more. It is a task of its own, so that neither a long
/// recovery nor a drain lets the lease lapse.
pub async fn beat(runtime: Runtime) {
    let inner = runtime.inner.clone();
    let mut beat = tokio::time::interval(inner.performer.config.lease / 3);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beat.tick().await;
    loop {
        let draining = inner.drain.is_cancelled();
        if draining && runtime.with_active(|active| active.is_empty()) {
            return;
        }
        tokio::select! {
            _ = beat.tick() => {}
            () = inner.drain.cancelled(), if !draining => continue,
            // The keeper listens no more; every activation that ends says so.
            () = inner.changed.notified(), if draining => continue,
        }
        match inner.heartbeat().await {
            Ok(()) => {}
            Err(StoreError::Fenced(_)) => {
                tracing::error!("another process has taken the driver role over: stopping");
                inner.drain.cancel();
                return;
            }
            Err(error) => tracing::warn!(%error, "the heartbeat failed"),
        }
        // A hint may have been lost: whoever is driven looks once a beat.
        notify(&runtime, |_| true);
        inner.changed.notify_one();
    }
}

/// Claims and drives what is due until the worker drains.
pub async fn keep(runtime: Runtime, mut children: mpsc::UnboundedReceiver<RunId>) {
    let inner = runtime.inner.clone();
    let mut hints = inner.store.hints();
    let mut look = true;
    let mut wake = None;
    while !inner.drain.is_cancelled() {
        if std::mem::take(&mut look) {
            try_lost(&runtime).await;
            let took = claim_due(&runtime).await;
            wake = next_wake(&runtime).await.map(|at| if took { at } else { at.max(Instant::now() + PAUSE) });
        }
        tokio::select! {
            hint = hints.recv() => match hint {
                // No Run waits for a Feed.
                Ok(Hint::Run(_) | Hint::Feed(_)) => {}
                Ok(Hint::Inbox(run)) => look = !notify(&runtime, |id| id == run),
                Ok(Hint::Foreign) | Err(RecvError::Lagged(_)) => {
                    notify(&runtime, |_| true);
                    look = true;
                }
                Err(RecvError::Closed) => return,
            },
            Some(child) = children.recv() => {
                let runtime = runtime.clone();
                inner.tasks.spawn(async move { runtime.raise(child).await });
            }
            () = sleep_until(wake) => look = true,
            () = inner.changed.notified() => look = true,
            () = inner.drain.cancelled() => {}
        }
    }
}

/// Tells activations to read their inbox. True: at least one was told.
pub fn notify(runtime: &Runtime, which: impl Fn(RunId) -> bool) -> bool {
    runtime.with_active(|active| {
        let mut told = false;
        for (_, one) in active.iter().filter(|(run, _)| which(**run)) {
            one.inbox.notify_one();
            told = true;
        }
        told
    })
}

/// Resumes Runs that were given up: their rows still say that this worker drives them.
async fn try_lost(runtime: &Runtime) {
    if !runtime.inner.performer.config.claims {
        return;
    }
    for run in runtime.inner.due_retries() {
        if let Err(error) = runtime.resume(run).await {
            tracing::warn!(%run, %error, "a run that was given up cannot be resumed");
        }
    }
}

/// Loops that are claimed together, and how many of their Runs may be here.
struct Share {
    loops: Vec<Runnable>,
    most: Option<usize>,
}

/// A Loop that has a limit is claimed by itself, so that no more of its Runs are taken than fit.
fn shares(runtime: &Runtime) -> Vec<Share> {
    let programs = &runtime.inner.programs;
    let all = programs.runnable();
    if all.is_empty() {
        return vec![Share { loops: all, most: None }];
    }
    let most = |one: &Runnable| programs.max_active(&one.loop_name);
    let (limited, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| most(one).is_some());
    let mut shares: Vec<Share> = Vec::new();
    for one in limited {
        match shares.iter_mut().find(|share| share.loops.iter().any(|other| other.loop_name == one.loop_name)) {
            // Several versions of one Loop share its limit.
            Some(share) => share.loops.push(one),
            None => shares.push(Share { most: most(&one), loops: vec![one] }),
        }
    }
    // Without any name the claim would mean every Loop.
    if !others.is_empty() {
        shares.push(Share { loops: others, most: None });
    }
    shares
}

/// How many more Runs of the share fit here.
fn room(runtime: &Runtime, share: &Share) -> usize {
    runtime.with_active(|active| {
        let room = runtime.inner.performer.config.concurrency.saturating_sub(active.len());
        let of_share =
            || active.values().filter(|one| share.loops.iter().any(|of| of.loop_name == one.loop_name)).count();
        share.most.map_or(room, |most| room.min(most.saturating_sub(of_share())))
    })
}

/// Claims and drives due Runs. True: there were some that can be driven.
async fn claim_due(runtime: &Runtime) -> bool {
    let mut took = false;
    if runtime.inner.performer.config.claims {
        for share in shares(runtime) {
            took |= claim_share(runtime, &share).await;
        }
    }
    took
}

async fn claim_share(runtime: &Runtime, share: &Share) -> bool {
    // Given back only at the end: otherwise the next claim would bring them again, and never those behind them.
    let mut unfit = Vec::new();
    let took = take_share(runtime, share, &mut unfit).await;
    for row in &unfit {
        runtime.release(row).await;
    }
    took
}

async fn take_share(runtime: &Runtime, share: &Share, unfit: &mut Vec<RunRow>) -> bool {
    let inner = &runtime.inner;
    let mut took = false;
    loop {
        let room = room(runtime, share);
        if room == 0 || inner.drain.is_cancelled() || !inner.holds_lease().await {
            return took;
        }
        let limit = room.min(CLAIM);
        let loops = share.loops.clone();
        let _turn = inner.claiming.lock().await;
        let claim = Claim { worker: inner.worker, now: inner.performer.clock.now(), loops, limit, only: None };
        let claimed = match inner.store.claim(claim).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "the claim failed");
                return took;
            }
        };
        let full = claimed.len() == limit;
        for one in claimed {
            let run = one.row.run;
            match runtime.adopt(one).await {
                Ok(_) => took = true,
                Err(Unfit { row, error }) => {
                    tracing::warn!(%run, %error, "a claimed run cannot be driven here");
                    unfit.push(row);
                }
            }
        }
        if !full {
            return took;
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
