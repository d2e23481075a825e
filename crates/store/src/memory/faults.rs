//! Failures on demand.

use crate::batch::{Batch, Expect};
use crate::error::StoreError;
use loopd_kernel::Epoch;

/// Decides the fate of a commit; `None` lets it through.
pub(super) type Policy = Box<dyn FnMut(&Batch) -> Option<Fault> + Send>;

/// What happens to a commit instead of succeeding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written; [`StoreError::Unavailable`].
    Unavailable,
    /// Nothing is written; [`StoreError::Full`].
    Full,
    /// It is written; [`StoreError::Ambiguous`]. A Batch that conflicts still reports its conflict.
    AmbiguousCommitted,
    /// Nothing is written; [`StoreError::Ambiguous`].
    AmbiguousLost,
    /// Nothing is written; [`StoreError::Fenced`].
    Fenced,
}

impl Fault {
    pub(super) fn error(self, batch: &Batch) -> StoreError {
        let text = || "injected fault".to_owned();
        match self {
            Self::Unavailable => StoreError::Unavailable(text()),
            Self::Full => StoreError::Full(text()),
            Self::AmbiguousCommitted | Self::AmbiguousLost => StoreError::Ambiguous(text()),
            Self::Fenced => StoreError::Fenced(expected_epoch(batch)),
        }
    }
}

fn expected_epoch(batch: &Batch) -> Epoch {
    let epoch = |expect: &Expect| match expect {
        Expect::RunAt { epoch, .. } => Some(*epoch),
        Expect::RunAbsent(_) | Expect::Record { .. } => None,
    };
    batch.expect.iter().find_map(epoch).unwrap_or_default()
}
