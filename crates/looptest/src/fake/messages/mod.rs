//! Anthropic Messages.

mod blocks;
mod read;
mod write;

pub(super) use read::{count, read};
pub(super) use write::write;

/// The signature of thinking: what a real one is to whoever cannot read it. It belongs to its text.
fn signature(thinking: &str) -> String {
    let digest = loopd_kernel::Digest::of("looptest-thinking/1", &[thinking.as_bytes()]);
    format!("fake-{}", digest.text())
}
