//! The Journals of a world, read beside whoever drives them, and what has to hold of each.

use super::world::World;
use loopd_kernel::record::Record;
use loopd_kernel::{CallId, Entry, Kind, RunId, Seq};
use loopd_store::{RunFilter, RunStatus, Store};
use loopd_store_sqlite::SqliteStore;
use std::collections::{BTreeMap, BTreeSet};

/// The Journal of a Run, as any process may read it at any time.
pub fn read_journal(world: &World, run: RunId) -> Vec<Entry> {
    read(world, async |store| store.entries(run, Seq(0), usize::MAX).await.expect("entries"))
}

pub fn newest(world: &World) -> Option<(RunId, RunStatus)> {
    if !world.path(".loopd/store.db").exists() {
        return None;
    }
    read(world, async |store| {
        let page = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await.expect("runs");
        page.items.first().map(|row| (row.run, row.status))
    })
}

/// Reads the store as a client. Right after the first kill there may be a file without a schema: that is no store yet.
fn read<T: Default>(world: &World, work: impl AsyncFnOnce(&SqliteStore) -> T) -> T {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("threads");
    threads.block_on(async {
        match SqliteStore::open_client(world.path(".loopd/store.db")) {
            Ok(store) => work(&store).await,
            Err(loopd_store::StoreError::Unavailable(_)) => T::default(),
            Err(error) => panic!("{error}"),
        }
    })
}

/// What was there is still there: a Journal only grows.
pub fn grown(before: Vec<Entry>, after: Vec<Entry>) -> Vec<Entry> {
    assert!(after.len() >= before.len(), "{} entries became {}", before.len(), after.len());
    let differs = before.iter().zip(&after).find(|(old, new)| old != new);
    assert!(differs.is_none(), "an entry that was acknowledged has changed: {differs:?}");
    after
}

/// Every Call that was decided settled exactly once, and was intended first unless it could not be. Says what was
/// looked at.
pub fn settled_once(entries: &[Entry]) -> String {
    let (mut intended, mut settled) = (BTreeSet::new(), BTreeMap::<CallId, u32>::new());
    let mut recoveries = 0;
    for entry in entries {
        match Record::decode(entry.kind, &entry.record).expect("a record") {
            Record::Intended(record) => {
                assert!(!settled.contains_key(&record.call), "{} was intended after it had settled", record.call);
                intended.insert(record.call);
            }
            Record::Settled(record) => {
                assert!(intended.contains(&record.call), "{} settled without an intent", record.call);
                *settled.entry(record.call).or_default() += 1;
            }
            Record::Recovered(_) => recoveries += 1,
            _ => {}
        }
    }
    assert!(intended.iter().all(|call| settled.get(call) == Some(&1)), "{intended:?} {settled:?}");
    assert_eq!(entries.iter().filter(|entry| entry.kind == Kind::Ended).count(), 1);
    format!("{} entries, {} calls, {recoveries} recoveries", entries.len(), settled.len())
}
