//! A store in which something happens between a decision and its commit.

use async_trait::async_trait;
use loopd_store::{Batch, MemoryStore, Receipt, Store, StoreError, Through};
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;

type Happening = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Something happens once, before the first commit that is meant.
pub struct Between {
    inner: MemoryStore,
    meant: fn(&Batch) -> bool,
    happening: Mutex<Option<Happening>>,
}

impl Between {
    pub fn new(
        inner: &MemoryStore,
        meant: fn(&Batch) -> bool,
        happening: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { inner: inner.clone(), meant, happening: Mutex::new(Some(Box::pin(happening))) }
    }

    pub fn has_happened(&self) -> bool {
        self.happening.lock().unwrap().is_none()
    }
}

#[async_trait]
impl Through for Between {
    fn through(&self) -> &dyn Store {
        &self.inner
    }

    async fn commit(&self, batch: Batch) -> Result<Receipt, StoreError> {
        if (self.meant)(&batch) {
            let happening = self.happening.lock().unwrap().take();
            if let Some(happening) = happening {
                happening.await;
            }
        }
        self.inner.commit(batch).await
    }
}
