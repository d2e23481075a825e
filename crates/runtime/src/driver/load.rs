//! Recovering a Run from the store: the latest snapshot and the Entries after it.

use loopd_kernel::projection::FoldError;
use loopd_kernel::{Digest, Projection, Seq};
use loopd_store::{RunRow, Snapshot, Store, StoreError};

/// Entries that one read brings.
const PAGE: usize = 1024;

/// Why a Run cannot be recovered. It is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An Entry does not fold.
    #[error("the journal does not fold: {0}")]
    Fold(FoldError),
    /// The chain is broken at this Entry.
    #[error("entry {0} is not what was committed")]
    Chain(Seq),
    /// The Journal ends before the head that the row names.
    #[error("the journal ends at entry {found}, the run's head is {head}")]
    Truncated {
        /// The last Entry.
        found: Seq,
        /// The head.
        head: Seq,
    },
}

/// A recovered Run.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The fold up to the head.
    pub projection: Projection,
    /// The caller's key for starting it once.
    pub admission: Option<String>,
    /// Entries since the snapshot that it began with.
    pub since_snapshot: u64,
}

/// Folds a Run up to its head and checks the chain on the way.
///
/// # Errors
/// [`LoadError`]. A snapshot that does not read or does not fit the chain is not trusted: the Journal is
/// folded from its beginning instead.
pub async fn load(store: &dyn Store, row: &RunRow) -> Result<Loaded, LoadError> {
    if let Some(base) = store.snapshot(row.run).await?.and_then(|snapshot| open(&snapshot))
        && base.head.seq <= row.head
        && let Ok(loaded) = fold_from(store, row, base).await
    {
        return Ok(loaded);
    }
    fold_from(store, row, Projection::new(row.run)).await
}

async fn fold_from(store: &dyn Store, row: &RunRow, mut projection: Projection) -> Result<Loaded, LoadError> {
    let since_snapshot = row.head.0 - projection.head.seq.0;
    while projection.head.seq < row.head {
        let page = store.entries(row.run, projection.head.seq, PAGE).await?;
        if page.is_empty() {
            return Err(LoadError::Truncated { found: projection.head.seq, head: row.head });
        }
        for entry in page.into_iter().take_while(|entry| entry.seq <= row.head) {
            if entry.hash_after(&projection.head.hash) != entry.hash {
                return Err(LoadError::Chain(entry.seq));
            }
            projection.fold(&entry).map_err(LoadError::Fold)?;
        }
    }
    if projection.head.hash != row.hash {
        return Err(LoadError::Chain(row.head));
    }
    Ok(Loaded { projection, admission: row.admission.clone(), since_snapshot })
}

/// The version of what a snapshot holds. A snapshot of another version is not read: the Journal is.
const SNAPSHOT: u8 = 2;

/// The snapshot of a Projection: a version, a digest, then its JSON.
#[must_use]
pub fn snapshot(projection: &Projection) -> Option<Snapshot> {
    let json = serde_json::to_vec(projection).ok()?;
    let mut body = vec![SNAPSHOT];
    body.extend_from_slice(&Digest::sha256(&[&json]).0);
    body.extend_from_slice(&json);
    Some(Snapshot { run: projection.run, seq: projection.head.seq, body })
}

fn open(snapshot: &Snapshot) -> Option<Projection> {
    let (version, rest) = snapshot.body.split_first()?;
    let (digest, json) = rest.split_at_checked(32).filter(|_| *version == SNAPSHOT)?;
    let intact = Digest::sha256(&[json]).0 == digest;
    let projection: Projection = intact.then(|| serde_json::from_slice(json).ok()).flatten()?;
    (projection.run == snapshot.run && projection.head.seq == snapshot.seq).then_some(projection)
}
