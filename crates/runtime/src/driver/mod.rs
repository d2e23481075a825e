//! The driver: one activation drives one Run while it moves.

mod activation;
mod commit;
mod load;
mod perform;
mod transcript;

pub use activation::{Activation, DriveError, Signals};
pub use commit::{CommitError, Holder};
pub use load::{LoadError, Loaded, load};

pub(crate) use commit::{batch, commit, new_row};
pub(crate) use perform::Performer;
