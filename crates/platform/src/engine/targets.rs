//! What calls may be made to, and how that changes while the server runs.

use super::queue::{Offer, Slots};
use super::{Engine, Harness};
use crate::{Error, Paging};
use loopd_kernel::Limits;
use loopd_protocol::{ActorKey, ActorKind, Target};
use loopd_runtime::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

/// What a target executes.
#[derive(Clone)]
pub enum Executes {
    /// One of our own agents.
    Loop {
        /// The agent.
        program: Arc<Program>,
        /// Its limits, unless a call has smaller ones.
        limits: Limits,
        /// It plays a script and knows nothing: pages label it.
        demo: bool,
    },
    /// Something outside.
    External(Arc<dyn Harness>),
}

/// What calls may be made to.
#[derive(Clone)]
pub struct TargetSpec {
    /// Its name: letters, digits, `-`, `_` and `.`, as in an Actor's key.
    pub name: String,
    /// What it does.
    pub description: String,
    /// How many of its calls execute at once; `None` is [`crate::Config::target_slots`].
    pub slots: Option<u32>,
    /// What it executes; `Err` says why it takes no calls now.
    pub executes: Result<Executes, String>,
}

impl std::fmt::Debug for TargetSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetSpec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TargetSpec {
    fn adapter(&self) -> &str {
        match &self.executes {
            Ok(Executes::Loop { demo: false, .. }) | Err(_) => "loop",
            Ok(Executes::Loop { demo: true, .. }) => "demo",
            Ok(Executes::External(harness)) => harness.name(),
        }
    }

    const fn is_demo(&self) -> bool {
        matches!(self.executes, Ok(Executes::Loop { demo: true, .. }))
    }
}

/// A target, and the Actor that speaks for it.
#[derive(Debug)]
pub(super) struct Known {
    pub spec: TargetSpec,
    pub actor: ActorKey,
}

type ByName = BTreeMap<String, Arc<Known>>;

/// The targets of one process. Whoever holds one has it as it was when they asked.
#[derive(Default)]
pub(super) struct Targets {
    now: RwLock<ByName>,
    /// Held while they change, so that what is announced last is what is there.
    changing: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.all().iter().map(|known| &known.spec.name)).finish()
    }
}

/// The targets by their names.
pub(super) fn known(specs: Vec<TargetSpec>) -> Result<ByName, Error> {
    let mut known = ByName::new();
    for spec in specs {
        let actor = ActorKey::new(ActorKind::Harness, &spec.name)
            .map_err(|error| Error::invalid("target", format!("{}: {error}", spec.name)))?;
        let name = spec.name.clone();
        if known.insert(name.clone(), Arc::new(Known { spec, actor })).is_some() {
            return Err(Error::invalid("target", format!("there are two named {name}")));
        }
    }
    Ok(known)
}

impl Targets {
    pub fn get(&self, name: &str) -> Option<Arc<Known>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn all(&self) -> Vec<Arc<Known>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// These are the targets from now on, and the slots follow. Returns those that there were before.
    pub fn replace(&self, next: ByName, slots: &mut Slots, usual: u32) -> ByName {
        for Known { spec, .. } in next.values().map(|known| &**known) {
            slots.target(&spec.name, Offer { most: spec.slots.unwrap_or(usual), open: spec.executes.is_ok() });
        }
        std::mem::replace(&mut *self.now.write().unwrap_or_else(PoisonError::into_inner), next)
    }
}

impl Engine {
    /// These are the targets from now on, in place of those before. The same ones again change nothing.
    ///
    /// # Guarantees
    /// What executes goes on with the definition that it began with, whatever becomes of its target. A call that waits
    /// for its slot begins with the definition that its target has then. It waits on while its target takes no calls,
    /// until its time is over; when the target is gone, it ends as failed with `call.cannot_begin`.
    ///
    /// # Errors
    /// [`Error::Invalid`] as [`Engine::new`], and nothing has changed; [`Error::Store`] when the targets have changed,
    /// and who can be addressed could not be written down: the same ones again do what is missing.
    pub async fn set_targets(&self, specs: Vec<TargetSpec>) -> Result<(), Error> {
        let next = known(specs)?;
        let _changing = self.inner.targets.changing.lock().await;
        let names: BTreeSet<_> = next.keys().cloned().collect();
        let before = self.inner.targets.replace(next, &mut self.lock_slots(), self.platform().config().target_slots);
        for name in before.keys().filter(|name| !names.contains(*name)) {
            self.is_gone(name);
        }
        // Those that waited for a target that takes calls again.
        self.inner.changed.notify_one();
        self.announce().await
    }

    /// Gives those that wait for a target that there is no more their turn at once: they are told.
    fn is_gone(&self, name: &str) {
        let waiting = self.lock_slots().close(name);
        for call in waiting {
            self.lock_slots().enter(call, name);
            self.turn_of(call);
        }
    }

    /// Says who can be addressed: those that can execute, for as long as this process is, and of those before that they
    /// cannot any more.
    pub(super) async fn announce(&self) -> Result<(), Error> {
        let platform = self.platform();
        for known in self.inner.targets.all() {
            let (target, actor) = (&known.spec, &known.actor);
            let (name, description) = (target.name.clone(), target.description.chars().take(2000).collect());
            // What can execute is there for as long as this process is; what cannot was never there.
            let lease = (target.executes.is_err().then_some(0), target.is_demo());
            platform.announce(actor, name, description, lease).await?;
        }
        let mut cursor = None;
        loop {
            let page = platform.actors(Some(ActorKind::Harness), Paging { cursor, limit: 0 }).await?;
            // One that announced itself has a lease, which ends by itself.
            let ours = page.items.into_iter().filter(|actor| actor.online_until.is_none());
            for actor in ours.filter(|actor| self.inner.targets.get(actor.key.key()).is_none()) {
                platform.announce(&actor.key, actor.name, actor.description, (Some(0), actor.demo)).await?;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// What calls may be made to, by name.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        let known = self.inner.targets.all();
        let slots = self.lock_slots();
        let target = |known: &Arc<Known>| {
            let spec = &known.spec;
            let (most, running, queued) = slots.of(&spec.name);
            Target {
                name: spec.name.clone(),
                description: spec.description.clone(),
                adapter: spec.adapter().to_owned(),
                actor: known.actor.clone(),
                slots: most,
                running,
                queued,
                unavailable: spec.executes.as_ref().err().cloned(),
            }
        };
        known.iter().map(target).collect()
    }

    pub(super) fn target(&self, name: &str) -> Result<Arc<Known>, Error> {
        self.inner.targets.get(name).ok_or_else(|| Error::not_found("target", name))
    }
}
