//! One agent: from its manifest, or its stored definition, to what can be run.

use crate::found;
use crate::model::model;
use crate::models;
use crate::obstacle::{Kind, Obstacle};
use crate::tools::{self, Named};
use crate::words::{self, dollars};
use loopd_agent::manifest::{Metadata, Provider};
use loopd_agent::{Agent, AgentError, Manifest};
use loopd_fixture::excerpt;
use loopd_kernel::Limits;
use loopd_providers::Catalogue;
use loopd_runtime::{Model, Program, Tool};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What an agent is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answer one question: its Run ends with the answer.
    Task,
    /// Talk: its Run waits for the next message until somebody ends it.
    Conversation,
}

/// An agent that can be run here.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Its name, which is that of its Loop.
    pub name: String,
    /// What it is for, in one line, as its manifest says.
    pub description: Option<String>,
    /// The version that its manifest declares.
    pub version: String,
    /// The model's name.
    pub model: String,
    /// A model that it may use, and whose price nobody knows.
    pub unpriced: Option<String>,
    /// A model with a known price whose name is near enough to be meant, where this one's is not known.
    pub near: Option<String>,
    /// The limits of its manifest.
    pub limits: Limits,
    /// The Program.
    pub program: Arc<Program>,
}

impl Ready {
    /// What the agents below it cost is spent by it.
    fn with_helpers(self, unpriced: Option<String>) -> Self {
        Self { unpriced: self.unpriced.or(unpriced), ..self }
    }

    /// Refuses a Run that could spend money that nobody can count.
    ///
    /// # Errors
    /// [`Obstacle`] under a money limit when the price is unknown.
    pub fn affordable(&self, limits: &Limits) -> Result<(), Obstacle> {
        self.unpriced.as_deref().map_or(Ok(()), |model| affordable(model, self.near.as_deref(), limits))
    }
}

/// Reads a manifest.
///
/// # Errors
/// [`Obstacle`] with file, line and what was expected.
pub fn manifest(file: &Path) -> Result<Manifest, Obstacle> {
    let bytes = std::fs::read(file).map_err(|error| {
        Obstacle::new(Kind::Manifest, format!("{}: {}", file.display(), words::os(&error)))
            .fix("name the file of an agent manifest (YAML); `loopctl agent schema` describes its form")
    })?;
    parse(&file.to_string_lossy(), &bytes)
}

/// Reads a manifest that is called like this where something is wrong.
///
/// # Errors
/// As [`manifest`].
pub fn parse(called: &str, bytes: &[u8]) -> Result<Manifest, Obstacle> {
    Manifest::parse(called, bytes).map_err(|error| {
        let what = excerpt::lines(&error.to_string());
        Obstacle::new(Kind::Manifest, what).fix("`loopctl agent schema` describes what a manifest may hold")
    })
}

/// Reads a manifest and makes everything ready that it names; a missing key or folder is found now.
///
/// # Errors
/// [`Obstacle`]; nothing was started.
pub fn load(file: &Path, manner: Manner, catalogue: &Catalogue) -> Result<Ready, Obstacle> {
    load_manifest((manifest(file)?, file), manner, catalogue)
}

/// The same of a manifest that was read already. It need not be a file: `place` is where it would be one, and relative
/// paths are taken from there.
///
/// # Errors
/// As [`load`].
pub fn load_manifest(
    (manifest, place): (Manifest, &Path),
    manner: Manner,
    catalogue: &Catalogue,
) -> Result<Ready, Obstacle> {
    let origin = std::path::absolute(place)?;
    let conversation = manner == Manner::Conversation;
    let found::Made { agent, tools, unpriced } = found::agent(manifest, place, catalogue, conversation)?;
    Ok(ready(agent, tools, (Some(&folder(&origin)), Some(&origin)), catalogue)?.with_helpers(unpriced))
}

pub(crate) fn folder(origin: &Path) -> PathBuf {
    origin.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// A path as a manifest names it, from the manifest's folder, without the `.` that nobody has to read.
pub(crate) fn below(folder: &Path, named: &str) -> PathBuf {
    folder.join(named).components().collect()
}

/// An agent as a Run's stored definition has it. `folder` is where its manifest is now.
pub(crate) fn from_definition(
    definition: &[u8],
    folder: Option<&Path>,
    origin: Option<&Path>,
    catalogue: &Catalogue,
) -> Result<Ready, Obstacle> {
    let agent = Agent::from_definition(definition).map_err(|error| not_an_agent(&error))?;
    let tools = tools::tools(agent.manifest(), folder, Named::ByRun)?;
    ready(agent, tools, (folder, origin), catalogue)
}

fn ready(
    agent: Agent,
    tools: Vec<Arc<dyn Tool>>,
    (folder, origin): (Option<&Path>, Option<&Path>),
    catalogue: &Catalogue,
) -> Result<Ready, Obstacle> {
    let named = agent.manifest().models();
    let made = |spec| model(spec, agent.demo_script(), folder, catalogue);
    let models = named.iter().map(|(key, spec)| Ok((key.clone(), made(spec)?)));
    let models: Vec<(String, Arc<dyn Model>)> = models.collect::<Result<_, Obstacle>>()?;
    let (about, limits) = (agent.manifest().metadata.clone(), agent.limits());
    // One that takes over spends as well.
    let unpriced = models.iter().position(|(_, model)| model.terms().price.is_none());
    let near = unpriced.and_then(|at| models::near(named.get(at)?.1, catalogue));
    let unpriced = unpriced.and_then(|at| named.get(at)).map(|(key, _)| key.clone());
    let key = agent.manifest().spec.model.key();
    let mut program = Program::new(Arc::new(agent));
    for (key, model) in models {
        program = program.model(key, model);
    }
    for tool in tools {
        program = program.tool(tool);
    }
    if let Some(origin) = origin {
        program = program.origin(origin.to_string_lossy());
    }
    let Metadata { name, description, version } = about;
    Ok(Ready { name, description, version, model: key, unpriced, near, limits, program: Arc::new(program) })
}

pub(crate) fn not_an_agent(error: &AgentError) -> Obstacle {
    let kind = match error {
        AgentError::DemoScript { .. } => Kind::Model,
        AgentError::Definition { .. } => Kind::CannotRun,
        AgentError::MissingTool { .. } | AgentError::UnexpectedTool { .. } | AgentError::ToolSchema { .. } => {
            Kind::Tool
        }
        AgentError::OutputSchema { .. } => Kind::Manifest,
    };
    Obstacle::new(kind, excerpt::lines(&error.to_string()))
}

/// Everything that stands in the way of a Run of this agent here, not only the first thing. Nothing is started and
/// nothing is sent.
///
/// # Errors
/// [`Obstacle`] when the manifest itself is wrong.
pub fn obstacles(file: &Path, catalogue: &Catalogue) -> Result<Vec<Obstacle>, Obstacle> {
    obstacles_of(manifest(file)?, file, catalogue)
}

/// The same of a manifest that was read already, as [`load_manifest`] takes it.
///
/// # Errors
/// As [`obstacles`].
pub fn obstacles_of(manifest: Manifest, place: &Path, catalogue: &Catalogue) -> Result<Vec<Obstacle>, Obstacle> {
    let folder = folder(&std::path::absolute(place)?);
    let spec = &manifest.spec.model;
    let mut lacks: Vec<Obstacle> = Vec::new();
    let fallbacks = manifest.spec.fallbacks.iter();
    let script = match &spec.provider {
        Provider::OpenAi { .. } | Provider::Anthropic { .. } | Provider::Gemini { .. } => Ok(None),
        Provider::Demo { script } => found::script(&below(&folder, script), script).map(Some),
    };
    match script {
        Ok(script) => lacks.extend(model(spec, script.as_deref(), Some(&folder), catalogue).err()),
        Err(obstacle) => lacks.push(obstacle),
    }
    lacks.extend(fallbacks.filter_map(|fallback| model(&fallback.model, None, Some(&folder), catalogue).err()));
    lacks.extend(
        manifest.spec.tools.iter().filter_map(|source| tools::tools_of(source, Some(&folder), Named::ByManifest).err()),
    );
    let limits = manifest.spec.limits.to_kernel();
    let of_ones_own = matches!(spec.provider, Provider::Demo { .. });
    let is_priced = of_ones_own || models::facts(spec, catalogue).is_ok_and(|facts| facts.price.is_some());
    if !is_priced {
        lacks.extend(affordable(&spec.key(), models::near(spec, catalogue).as_deref(), &limits).err());
    }
    if lacks.is_empty() {
        // What only shows when all parts meet, for example a tool that is there twice.
        lacks.extend(
            load_manifest((manifest, place), Manner::Task, catalogue).and_then(|ready| ready.affordable(&limits)).err(),
        );
    }
    match lacks.iter().position(|obstacle| !obstacle.kind.is_of_this_machine()) {
        Some(at) => Err(lacks.swap_remove(at)),
        None => Ok(lacks),
    }
}

fn affordable(model: &str, near: Option<&str>, limits: &Limits) -> Result<(), Obstacle> {
    let Some(limit) = limits.micro_usd else { return Ok(()) };
    let what = format!("nobody knows what `{}` costs, and the run may spend", excerpt::line(model, 80));
    let near = near.map(|near| format!("; there is a model `{near}`")).unwrap_or_default();
    Err(Obstacle::new(Kind::Price, format!("{what} {}", dollars(limit)))
        .why(format!("an unknown price is never taken for zero{near}; nothing was started"))
        .fix(
            "declare spec.model.price in the manifest (0 for a model that costs nothing), or leave the money limit out",
        ))
}
