//! Targets that follow their manifests while the server runs.

use crate::folder::{self, Away, Read};
use crate::says;
use crate::targets::{Good, Source, Targets};
use async_trait::async_trait;
use loopd_assemble::Agents;
use loopd_platform::agents::{Kept, Roster, in_file};
use loopd_platform::engine::TargetSpec;
use loopd_platform::{Engine, Error, Platform};
use loopd_protocol::{Agent, AgentSource};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Mutex as AsyncMutex;

/// How often manifests are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// The agents of a server.
#[derive(Debug)]
pub struct Live {
    folder: Option<PathBuf>,
    source: Arc<Source>,
    /// Those of Runs that are open.
    agents: Arc<Agents>,
    state: AsyncMutex<State>,
    now: Mutex<Vec<Agent>>,
    /// Set once there is one.
    engine: OnceLock<Engine>,
}

#[derive(Debug)]
struct State {
    read: Read,
    away: Away,
    kept: Vec<Kept>,
    good: Good,
    /// The definition of each target.
    known: BTreeMap<String, Option<String>>,
    said: BTreeSet<String>,
    /// The engine has these targets.
    is_set: bool,
}

/// What is to be told of the targets that a server begins with.
#[derive(Debug)]
pub struct First {
    /// The targets.
    pub specs: Vec<TargetSpec>,
    /// What the person at the terminal has to know.
    pub complaints: Vec<String>,
}

impl Live {
    /// The agents that this comes to now.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn begin(
        folder: Option<PathBuf>,
        source: Source,
        read: Read,
        platform: &Platform,
    ) -> Result<(Self, First), Error> {
        let (kept, mut good) = (platform.kept_agents().await?, Good::new());
        let targets = source.targets(&read, &kept, &mut good);
        let brought = source.built_in.iter().map(|one| &one.ready);
        let agents = Agents::knowing(brought.chain(&targets.ready), source.catalogue.clone());
        let known = known(&targets);
        let Targets { specs, agents: now, complaints, .. } = targets;
        let said = complaints.iter().cloned().collect();
        let live = Self {
            folder,
            source: Arc::new(source),
            agents: Arc::new(agents),
            state: AsyncMutex::new(State { read, away: Away::new(), kept, good, known, said, is_set: true }),
            now: Mutex::new(now),
            engine: OnceLock::new(),
        };
        Ok((live, First { specs, complaints }))
    }

    /// The agents of Runs.
    pub fn agents(&self) -> Arc<Agents> {
        self.agents.clone()
    }

    /// Changes the targets of this engine from now on, and looks at manifests until it drains.
    pub fn start(self: &Arc<Self>, engine: Engine) {
        // It is started once.
        let _ = self.engine.set(engine.clone());
        let live = self.clone();
        tokio::spawn(async move {
            let mut said = None;
            while !engine.is_draining() {
                tokio::time::sleep(LOOK).await;
                let wrong = live.follow().await.err().map(|error| error.to_string());
                if wrong != said {
                    wrong.iter().for_each(|wrong| says::note(&format!("agents are not followed now: {wrong}")));
                    said = wrong;
                }
            }
        });
    }

    /// Reads what has changed since the last time; `None` when nothing has.
    async fn changed(&self, state: &State, kept: Vec<Kept>) -> Option<(Result<Read, String>, Vec<Kept>)> {
        let (folder, named) = (self.folder.clone(), state.read.named.clone());
        let (source, before) = (self.source.clone(), state.read.look.clone());
        let is_same = state.is_set && state.away.is_empty() && kept == state.kept;
        let read = move || {
            let same = is_same && folder::look(folder.as_deref(), &named) == before;
            (!same).then(|| folder::read(folder.as_deref(), &named, &source.catalogue))
        };
        let read = tokio::task::spawn_blocking(read).await.ok()??;
        Some((read.map_err(|trouble| trouble.to_string()), kept))
    }
}

#[async_trait]
impl Roster for Live {
    fn list(&self) -> Vec<Agent> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn check(&self, name: &str, manifest: &str) -> Result<(), Error> {
        // A file that came just now has the name already.
        self.follow().await?;
        let of_file = |agent: &Agent| agent.name == name && agent.source == AgentSource::File;
        if let Some(agent) = self.list().into_iter().find(of_file) {
            return Err(in_file(&agent));
        }
        let (source, name, manifest) = (self.source.clone(), name.to_owned(), manifest.to_owned());
        let checked = tokio::task::spawn_blocking(move || source.check(&name, &manifest)).await;
        checked.unwrap_or_else(|_| Err(Error::invalid("manifest", "it could not be read")))
    }

    async fn follow(&self) -> Result<(), Error> {
        let Some(engine) = self.engine.get() else { return Ok(()) };
        let mut state = self.state.lock().await;
        let kept = engine.platform().kept_agents().await?;
        let Some((read, kept)) = self.changed(&state, kept).await else { return Ok(()) };
        let mut complaints = BTreeSet::new();
        match read {
            Ok(read) => {
                let State { read: before, away, .. } = &mut *state;
                *before = read.patient(before, away, Instant::now());
            }
            // Its agents stay what they are until it reads again.
            Err(why) => {
                complaints.insert(why);
            }
        }
        let mut good = std::mem::take(&mut state.good);
        let (source, read) = (self.source.clone(), state.read.clone());
        let of = kept.clone();
        let made = tokio::task::spawn_blocking(move || {
            let targets = source.targets(&read, &of, &mut good);
            (targets, good)
        });
        let Ok((targets, good)) = made.await else { return Ok(()) };
        state.good = good;
        state.is_set = false;
        targets.ready.iter().for_each(|ready| self.agents.know(ready));
        let known = known(&targets);
        let Targets { specs, agents, complaints: more, .. } = targets;
        engine.set_targets(specs).await?;
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = agents;
        complaints.extend(more);
        tell(&state, &known, &complaints);
        (state.kept, state.known, state.said, state.is_set) = (kept, known, complaints, true);
        Ok(())
    }
}

fn known(targets: &Targets) -> BTreeMap<String, Option<String>> {
    let digest =
        |name: &String| targets.ready.iter().find(|one| one.name == *name).map(|one| one.program.digest().to_string());
    targets.specs.iter().map(|spec| (spec.name.clone(), digest(&spec.name))).collect()
}

/// Says what is another thing than before.
fn tell(before: &State, known: &BTreeMap<String, Option<String>>, complaints: &BTreeSet<String>) {
    for (name, digest) in known {
        match before.known.get(name) {
            None => says::note(&format!("harness/{name} is there")),
            Some(other) if other != digest => says::note(&format!("harness/{name} has changed")),
            Some(_) => {}
        }
    }
    for name in before.known.keys().filter(|name| !known.contains_key(*name)) {
        says::note(&format!("harness/{name} is gone"));
    }
    for complaint in complaints.difference(&before.said) {
        says::note(&format!("  {complaint}"));
    }
}
