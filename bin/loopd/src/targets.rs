//! What calls may be made to: the agents of a folder, those that are kept, and those that the server brings along.

use crate::built_in;
use crate::folder::Read;
use crate::settings::Settings;
use crate::trouble::Trouble;
use loopd_assemble::{Listed, Manner, Obstacle, Ready, load_manifest, obstacles_of, parse};
use loopd_fixture::excerpt;
use loopd_platform::Error;
use loopd_platform::agents::Kept;
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_protocol::{ActorKey, ActorKind, Agent, AgentSource};
use loopd_providers::Catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An agent that can execute.
#[derive(Clone, Debug)]
pub struct Offered {
    /// The agent.
    pub ready: Ready,
    /// It plays a script and knows nothing.
    pub demo: bool,
}

/// What makes targets of manifests.
#[derive(Clone, Debug)]
pub struct Source {
    /// What is known of models.
    pub catalogue: Catalogue,
    /// What the server brings along. A manifest of the same name that is kept, or in the folder of agents, goes before it.
    pub built_in: Vec<Offered>,
    /// Where the relative paths of manifests that are kept begin.
    pub base: PathBuf,
}

/// The version of each file that was the last one in order.
pub type Good = BTreeMap<PathBuf, Ready>;

/// The targets of a server, as they are at one moment.
#[derive(Debug, Default)]
pub struct Targets {
    /// All of them, those that take no calls now included.
    pub specs: Vec<TargetSpec>,
    /// Those that can execute.
    pub ready: Vec<Ready>,
    /// Every agent, and every manifest that does not read.
    pub agents: Vec<Agent>,
    /// What the person at the terminal has to know: manifests that are no target, and why.
    pub complaints: Vec<String>,
}

/// What is known of models.
///
/// # Errors
/// [`Trouble`] when the file with facts about models does not read.
pub fn catalogue(settings: &Settings) -> Result<Catalogue, Trouble> {
    let read = |file: &Path| loopd_assemble::models::read(file);
    Ok(settings.models.as_deref().map(read).transpose()?.unwrap_or_default())
}

impl Source {
    /// The targets that all of this comes to. A manifest that does not read hides none of the others, and the version
    /// of its file before that stays in force: `good` has those, and follows.
    pub fn targets(&self, folder: &Read, kept: &[Kept], good: &mut Good) -> Targets {
        let mut targets = Targets::default();
        good.retain(|file, _| folder.listed.iter().any(|one| one.file == *file));
        for one in &folder.listed {
            targets.add(one.clone(), good);
        }
        let named: BTreeSet<_> = targets.specs.iter().map(|spec| spec.name.clone()).collect();
        for kept in kept.iter().filter(|kept| !named.contains(&kept.name)) {
            let manifest = parse(&called(&kept.name), kept.manifest.as_bytes());
            let about = manifest.as_ref().ok().and_then(|manifest| manifest.metadata.description.clone());
            let loaded = manifest
                .and_then(|manifest| load_manifest((manifest, &self.place(&kept.name)), Manner::Task, &self.catalogue))
                .and_then(|ready| ready.affordable(&ready.limits).map(|()| ready));
            let from = (AgentSource::Kept, None);
            match loaded {
                Ok(ready) => targets.take(by_model(ready), from, None),
                Err(obstacle) => targets.close((kept.name.clone(), about.unwrap_or_default()), from, &obstacle),
            }
        }
        let named: BTreeSet<_> = targets.specs.iter().map(|spec| spec.name.clone()).collect();
        for one in self.built_in.iter().filter(|one| !named.contains(&one.ready.name)) {
            targets.take(one.clone(), (AgentSource::BuiltIn, None), None);
        }
        targets
    }

    /// Whether a manifest may be kept under a name.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check(&self, name: &str, manifest: &str) -> Result<(), Error> {
        let invalid = |obstacle: Obstacle| Error::invalid("manifest", obstacle.what);
        let manifest = parse(&called(name), manifest.as_bytes()).map_err(invalid)?;
        if manifest.metadata.name != name {
            let detail = format!("it is that of {}, and is to be kept as {name}", manifest.metadata.name);
            return Err(Error::invalid("metadata.name", detail));
        }
        // What only this machine lacks may come later.
        obstacles_of(manifest, &self.place(name), &self.catalogue).map(drop).map_err(invalid)
    }

    /// Where a manifest that is kept would be a file.
    fn place(&self, name: &str) -> PathBuf {
        self.base.join(called(name))
    }
}

fn called(name: &str) -> String {
    format!("{name}.yaml")
}

/// An agent on a scripted model knows nothing, whoever wrote its script.
fn by_model(ready: Ready) -> Offered {
    Offered { demo: ready.model == built_in::DEMO, ready }
}

/// Where an agent is from, and its file.
type From = (AgentSource, Option<String>);

impl Targets {
    fn has(&self, name: &str) -> bool {
        self.specs.iter().any(|spec| spec.name == name)
    }

    /// An agent that can execute; `error` is what is wrong with a newer version of it.
    fn take(&mut self, Offered { ready, demo }: Offered, (source, file): From, error: Option<String>) {
        let (name, description) = (ready.name.clone(), ready.description.clone().unwrap_or_default());
        self.agents.push(Agent {
            name: name.clone(),
            source,
            file,
            description: description.clone(),
            version: Some(ready.version.clone()),
            model: Some(ready.model.clone()),
            error,
            unavailable: None,
        });
        let executes = Ok(Executes::Loop { program: ready.program.clone(), limits: ready.limits, demo });
        self.specs.push(TargetSpec { name, description, slots: None, executes });
        self.ready.push(ready);
    }

    /// An agent that is known, and takes no calls now.
    fn close(&mut self, (name, description): (String, String), (source, file): From, obstacle: &Obstacle) {
        let why = &obstacle.what;
        let short = file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("kept");
        self.complaints.push(format!("{short}: {name} takes no calls: {why}"));
        self.agents.push(Agent {
            name: name.clone(),
            source,
            file,
            description: description.clone(),
            version: None,
            model: None,
            error: (!obstacle.kind.is_of_this_machine()).then(|| why.clone()),
            unavailable: Some(why.clone()),
        });
        self.specs.push(TargetSpec { name, description, slots: None, executes: Err(why.clone()) });
    }

    /// A file of which no target comes.
    fn leave_out(&mut self, file: &Path, (short, why): (String, String)) {
        let shown = excerpt::line(&file.display().to_string(), 400);
        // A reading error names the file, its line, and what stands there.
        let complaint = if why.contains(&short) {
            format!("left out: {}", why.replace('\n', "\n    "))
        } else {
            format!("{short}: left out: {why}")
        };
        self.complaints.push(complaint);
        self.agents.push(Agent {
            name: short,
            source: AgentSource::File,
            file: Some(shown),
            description: String::new(),
            version: None,
            model: None,
            error: Some(why.clone()),
            unavailable: Some(why),
        });
    }

    fn add(&mut self, one: Listed, good: &mut Good) {
        let short = one.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let short = excerpt::line(&short, 80);
        let from = (AgentSource::File, Some(excerpt::line(&one.file.display().to_string(), 400)));
        let name = one.name.filter(|name| ActorKey::new(ActorKind::Harness, name).is_ok());
        let obstacle = match one.agent {
            Ok(ready) if name.is_some() => {
                good.insert(one.file, ready.clone());
                return self.take(by_model(ready), from, None);
            }
            Ok(ready) => {
                let name = excerpt::line(&ready.name, 80);
                let why = format!("`{name}` cannot be the key of an actor: a-z, 0-9, -, _ and .");
                return self.leave_out(&one.file, (short, why));
            }
            Err(obstacle) => obstacle,
        };
        // What only this machine lacks makes the manifest no worse: it is the one in force.
        if obstacle.kind.is_of_this_machine() {
            good.remove(&one.file);
        }
        match (good.get(&one.file).cloned(), name) {
            (Some(before), _) if !self.has(&before.name) => {
                let why = obstacle.what.replace('\n', "\n    ");
                self.complaints.push(format!("{short}: the version before stays in force: {why}"));
                self.take(by_model(before), from, Some(obstacle.what));
            }
            (_, Some(name)) if !self.has(&name) => {
                self.close((name, one.description.unwrap_or_default()), from, &obstacle);
            }
            (_, _) => self.leave_out(&one.file, (short, obstacle.what)),
        }
    }
}
