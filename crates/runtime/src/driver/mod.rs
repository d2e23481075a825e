//! The driver: one activation drives one Run while it moves.

mod activation;
mod commit;
mod late;
mod lease;
mod load;
mod patience;
mod perform;
mod transcript;

pub use activation::input_of;
pub use activation::{Activation, DriveError, Signals};
pub use commit::{CommitError, Holder, batch, new_row, status};
pub use lease::Lease;
pub use load::{LoadError, Loaded, load};

pub(crate) use commit::commit;
pub(crate) use patience::{Patience, PatientStore};
pub(crate) use perform::Performer;
