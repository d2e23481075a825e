//! What calls may be made to: the agents of a folder, and those that the server brings along.

use crate::built_in;
use crate::settings::Settings;
use crate::trouble::{Exit, Trouble};
use loopd_assemble::{Agents, Listed, Manner, Ready, load_folder};
use loopd_fixture::excerpt;
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_protocol::{ActorKey, ActorKind};
use loopd_providers::Catalogue;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// An agent that the server brings along. A manifest of the same name in the folder of agents goes before it.
#[derive(Clone, Debug)]
pub struct BuiltIn {
    /// The agent.
    pub ready: Ready,
    /// It plays a script and knows nothing.
    pub demo: bool,
}

/// Where the targets of a server come from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The folder of agents.
    folder: Option<PathBuf>,
    catalogue: Catalogue,
    built_in: Vec<BuiltIn>,
}

/// The targets of a server, as they are at one moment.
#[derive(Debug)]
pub struct Targets {
    /// All of them, those that take no calls now included.
    pub specs: Vec<TargetSpec>,
    /// Those that can execute.
    pub ready: Vec<Ready>,
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
    /// A folder, when there is one, and what the server brings along.
    pub fn new(folder: Option<PathBuf>, catalogue: Catalogue, built_in: Vec<BuiltIn>) -> Self {
        Self { folder, catalogue, built_in }
    }

    /// Finds the targets. A manifest that does not read hides none of the others.
    ///
    /// # Errors
    /// [`Trouble`] when the folder does not read.
    pub fn find(&self) -> Result<Targets, Trouble> {
        let mut targets = Targets { specs: Vec::new(), ready: Vec::new(), complaints: Vec::new() };
        let listed = self.folder.as_deref().map(|folder| listed(folder, &self.catalogue)).transpose()?;
        let listed = listed.unwrap_or_default();
        let named: BTreeSet<_> = listed.iter().filter_map(|one| one.name.clone()).collect();
        for one in listed {
            targets.add(one);
        }
        for one in self.built_in.iter().filter(|one| !named.contains(&one.ready.name)) {
            targets.take(one.ready.clone(), one.demo);
        }
        Ok(targets)
    }

    /// The agents of Runs that are open: these, and those that Runs bring along.
    pub fn agents(&self, targets: &Targets) -> Agents {
        let brought = self.built_in.iter().map(|one| &one.ready);
        Agents::knowing(brought.chain(&targets.ready), self.catalogue.clone())
    }
}

fn listed(folder: &Path, catalogue: &Catalogue) -> Result<Vec<Listed>, Trouble> {
    load_folder(folder, Manner::Task, catalogue).map_err(|obstacle| {
        Trouble::new(Exit::Usage, format!("the folder of agents: {}", obstacle.what))
            .fix("name a folder with the manifests of agents (*.yaml) with --agents, or leave it out")
    })
}

impl Targets {
    fn take(&mut self, agent: Ready, demo: bool) {
        self.specs.push(TargetSpec {
            name: agent.name.clone(),
            description: agent.description.clone().unwrap_or_default(),
            slots: None,
            executes: Ok(Executes::Loop { program: agent.program.clone(), limits: agent.limits, demo }),
        });
        self.ready.push(agent);
    }

    fn add(&mut self, one: Listed) {
        let file = one.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = excerpt::line(&file, 80);
        let name = one.name.filter(|name| ActorKey::new(ActorKind::Harness, name).is_ok());
        let taken = |name: &str| self.specs.iter().any(|spec| spec.name == name);
        match (one.agent, name) {
            (Ok(agent), Some(name)) if !taken(&name) => {
                let demo = is_demo(&agent);
                self.take(agent, demo);
            }
            (Ok(agent), _) => {
                let name = excerpt::line(&agent.name, 80);
                self.complaints.push(format!("{file}: `{name}` cannot be the key of an actor: a-z, 0-9, -, _ and ."));
            }
            // Known, and only not available now: it is listed with its reason.
            (Err(obstacle), Some(name)) if !taken(&name) => {
                self.complaints.push(format!("{file}: {name} takes no calls: {}", obstacle.what));
                let description = one.description.unwrap_or_default();
                self.specs.push(TargetSpec { name, description, slots: None, executes: Err(obstacle.what) });
            }
            // A reading error names the file, its line, and what stands there.
            (Err(obstacle), _) if obstacle.what.contains(&file) => {
                self.complaints.push(format!("left out: {}", obstacle.what.replace('\n', "\n    ")));
            }
            (Err(obstacle), _) => self.complaints.push(format!("{file}: left out: {}", obstacle.what)),
        }
    }
}

/// An agent on a scripted model knows nothing either, whoever wrote its script.
fn is_demo(agent: &Ready) -> bool {
    agent.model == built_in::DEMO
}
