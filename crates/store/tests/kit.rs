//! The conformance kit on the in-memory store.

use async_trait::async_trait;
use loopd_store::kit::{Features, Handle, Subject};
use loopd_store::{MemoryStore, StoreError};
use std::sync::Arc;

struct Memory(MemoryStore);

#[async_trait]
impl Subject for Memory {
    fn features(&self) -> Features {
        // Another handle to the same rows is what reopening comes to in memory.
        Features { durable: true, clients: true, damage: false }
    }

    async fn open(&self) -> Result<Handle, StoreError> {
        Ok(Arc::new(self.0.clone()))
    }

    async fn client(&self) -> Result<Handle, StoreError> {
        Ok(Arc::new(self.0.client()))
    }
}

mod memory {
    loopd_store::conformance!(super::Memory(loopd_store::MemoryStore::new()));
}
