//! Gates: places where a response waits until a test says go. No time is involved.

use std::collections::BTreeMap;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, Default)]
struct Gate {
    open: bool,
    reached: bool,
}

/// All gates by name. A gate exists as soon as anybody names it.
#[derive(Debug)]
pub(super) struct Gates(watch::Sender<BTreeMap<String, Gate>>);

impl Default for Gates {
    fn default() -> Self {
        Self(watch::channel(BTreeMap::new()).0)
    }
}

impl Gates {
    pub(super) fn open(&self, name: &str) {
        self.0.send_modify(|gates| gates.entry(name.to_owned()).or_default().open = true);
    }

    /// Says that somebody is here, and waits until the gate is open.
    pub(super) async fn pass(&self, name: &str) {
        self.0.send_modify(|gates| gates.entry(name.to_owned()).or_default().reached = true);
        self.until(name, |gate| gate.open).await;
    }

    pub(super) async fn reached(&self, name: &str) {
        self.until(name, |gate| gate.reached).await;
    }

    async fn until(&self, name: &str, holds: impl Fn(&Gate) -> bool) {
        // It fails only when the sender is gone, which is here.
        let _ = self.0.subscribe().wait_for(|gates| gates.get(name).is_some_and(&holds)).await;
    }
}
