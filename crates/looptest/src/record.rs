//! Recording a Run out of a store, for tests that drive one and then replay it.

use crate::fail::{fail, must};
use loopd_fixture::{Fixture, named_blobs};
use loopd_kernel::{RunId, Seq};
use loopd_store::Store;
use std::collections::BTreeMap;

/// Entries per read.
const PAGE: usize = 1_000;

/// Reads the Journal of `run`, and the bodies that it names, out of a store.
///
/// # Panics
/// When the store fails, or does not hold a body that the Journal names.
pub async fn record(store: &dyn Store, run: RunId) -> Fixture {
    let mut entries = Vec::new();
    loop {
        let after = entries.last().map_or(Seq(0), |entry: &loopd_kernel::Entry| entry.seq);
        let page = must("the store", store.entries(run, after, PAGE).await);
        let is_last = page.len() < PAGE;
        entries.extend(page);
        if is_last {
            break;
        }
    }
    let mut blobs = BTreeMap::new();
    for entry in &entries {
        for digest in must("the journal", named_blobs(entry)) {
            match must("the store", store.blob(digest).await) {
                Some(body) => drop(blobs.insert(digest, body)),
                None => fail(format!("the store has no blob {digest}, which entry {} names", entry.seq)),
            }
        }
    }
    must("the journal", Fixture::new(entries, blobs))
}
