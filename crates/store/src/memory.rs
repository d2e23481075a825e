//! The in-memory store.

/// Placeholder.
pub struct MemoryStore;
