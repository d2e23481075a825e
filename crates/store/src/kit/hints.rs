//! Hints: useful when they come, harmless when they do not.

use super::world::{create, row, run_id, signal, writes};
use super::{Finding, Outcome, Subject, Verdict, ensure};
use crate::batch::Write;
use crate::port::{Hint, Hints};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Long enough for a busy machine. A hint may be lost, but not on a quiet store with a listener that waits.
const WAIT: Duration = Duration::from_secs(5);

/// Waits until one of these hints comes.
pub(super) async fn hear(hints: &mut Hints, wanted: &[Hint]) -> Result<(), Finding> {
    let heard = tokio::time::timeout(WAIT, async {
        loop {
            match hints.recv().await {
                Ok(hint) if wanted.contains(&hint) => return Ok(()),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => {
                    return Err(Finding::new("the hints ended while the store is open"));
                }
            }
        }
    });
    heard.await.map_err(|_| Finding::new(format!("no hint of {wanted:?}")))?
}

pub(super) async fn listeners_hear_what_was_committed(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let (mut first, mut second) = (store.hints(), store.hints());
    let mut pen = create(&store, &row(1)).await?;
    for hints in [&mut first, &mut second] {
        hear(hints, &[Hint::Run(run_id(1))]).await?;
    }
    store.commit(writes([Write::AddInbox(signal(run_id(1), "key"))])).await?;
    hear(&mut first, &[Hint::Inbox(run_id(1))]).await?;
    store.commit(pen.step(1)).await?;
    hear(&mut first, &[Hint::Run(run_id(1))]).await?;
    store.commit(writes([Write::Notify(signal(run_id(1), "notice"))])).await?;
    hear(&mut first, &[Hint::Inbox(run_id(1))]).await?;
    let (version, definition) = ("2.0".to_owned(), row(1).definition);
    store.commit(writes([Write::ChangeDefinition { run: run_id(1), version, definition }])).await?;
    hear(&mut first, &[Hint::Run(run_id(1))]).await?;
    if subject.features().clients {
        let client = subject.client().await?;
        client.commit(writes([Write::AddInbox(signal(run_id(1), "from a client"))])).await?;
        hear(&mut first, &[Hint::Foreign, Hint::Inbox(run_id(1))]).await?;
    }
    Ok(Verdict::Passed)
}

pub(super) async fn a_slow_listener_holds_up_nobody(subject: Arc<dyn Subject>) -> Outcome {
    let store = subject.open().await?;
    let mut slow = store.hints();
    drop(store.hints());
    let mut pen = create(&store, &row(1)).await?;
    // Far more than any buffer holds; nobody reads meanwhile.
    let keys = 0..5_000;
    let mut commits = tokio::task::JoinSet::new();
    for keys in keys.collect::<Vec<_>>().chunks(100).map(<[i32]>::to_vec) {
        let store = Arc::clone(&store);
        commits.spawn(async move {
            for key in keys {
                store.commit(writes([Write::AddInbox(signal(run_id(1), &key.to_string()))])).await?;
            }
            Ok::<_, Finding>(())
        });
    }
    while let Some(done) = commits.join_next().await {
        done.map_err(|error| Finding::new(error.to_string()))??;
    }
    let waiting = store.inbox(run_id(1), usize::MAX).await?.len();
    ensure(waiting == 5_000, || format!("{waiting} of 5000 items are there"))?;
    store.commit(pen.step(1)).await?;
    hear(&mut slow, &[Hint::Run(run_id(1))]).await?;
    Ok(Verdict::Passed)
}
