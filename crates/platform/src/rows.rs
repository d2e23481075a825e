//! Records of the store as the platform means them.

use loopd_kernel::Digest;
use loopd_store::RecordId;

/// The identity of what has a name: the same name is the same Record.
pub(crate) fn named(name: &str) -> RecordId {
    let digest = Digest::sha256(name.as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(digest.0.get(..16).unwrap_or(&[0; 16]));
    RecordId(id)
}
