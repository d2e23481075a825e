//! What the in-memory store has beyond the port: faults on demand, and handles to the same rows.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_kernel::{Digest, Epoch, RunId, Seq};
use loopd_store::memory::Fault;
use loopd_store::{Batch, Expect, MemoryStore, Receipt, Store, StoreError, Write};
use std::sync::Arc;

fn put(text: &str) -> Batch {
    let bytes: Arc<[u8]> = text.as_bytes().into();
    Batch { expect: Vec::new(), writes: vec![Write::PutBlob { digest: Digest::sha256(&[&bytes]), bytes }] }
}

async fn has(store: &MemoryStore, text: &str) -> bool {
    store.blob(Digest::sha256(&[text.as_bytes()])).await.unwrap().is_some()
}

#[tokio::test]
async fn each_fault_says_what_it_says_and_writes_what_it_should() {
    let text = || "injected fault".to_owned();
    let table = [
        (Some(Fault::Unavailable), Err(StoreError::Unavailable(text())), false),
        (Some(Fault::Full), Err(StoreError::Full(text())), false),
        (Some(Fault::AmbiguousLost), Err(StoreError::Ambiguous(text())), false),
        (Some(Fault::AmbiguousCommitted), Err(StoreError::Ambiguous(text())), true),
        (Some(Fault::Fenced), Err(StoreError::Fenced(Epoch(0))), false),
        (None, Ok(Receipt { group: 1 }), true),
    ];
    let store = MemoryStore::new();
    let faulty = store.scripted(table.iter().map(|(fault, ..)| *fault));
    for (fault, answer, written) in table {
        let blob = format!("{fault:?}");
        assert_eq!(faulty.commit(put(&blob)).await, answer, "{fault:?}");
        assert_eq!(has(&store, &blob).await, written, "{fault:?}");
    }
    // The script is over, and the other handles never knew of it.
    faulty.commit(put("later")).await.unwrap();
    store.commit(put("elsewhere")).await.unwrap();
    assert!(has(&faulty, "elsewhere").await);
}

#[tokio::test]
async fn a_policy_sees_the_batch_and_may_count() {
    let mut seen = 0;
    let store = MemoryStore::with_faults(move |batch| {
        seen += 1;
        let fails = seen == 2 || batch.writes.is_empty();
        fails.then_some(Fault::Unavailable)
    });
    assert!(store.commit(put("one")).await.is_ok());
    assert!(store.commit(put("two")).await.is_err());
    assert!(store.commit(put("two")).await.is_ok());
    assert!(store.commit(Batch::default()).await.is_err());
}

#[tokio::test]
async fn a_fault_never_hides_a_refusal() {
    let run = RunId([1; 16]);
    let expect = vec![Expect::RunAt { run, seq: Seq(0), epoch: Epoch(3) }];
    let batch = Batch { expect, writes: Vec::new() };
    let store = MemoryStore::with_faults(|_| Some(Fault::AmbiguousCommitted));
    // There is no such Run: nothing can have been committed, and saying so is the better answer.
    assert!(matches!(store.commit(batch.clone()).await, Err(StoreError::Conflict(_))));
    let fenced = MemoryStore::with_faults(|_| Some(Fault::Fenced));
    assert_eq!(fenced.commit(batch.clone()).await, Err(StoreError::Fenced(Epoch(3))));
    let client = MemoryStore::with_faults(|_| Some(Fault::Unavailable)).client();
    assert_eq!(client.commit(batch).await, Err(StoreError::ClientOnly));
}
