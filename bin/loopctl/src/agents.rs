//! From manifests and stored definitions to Programs: where agents, providers and tools are named together.

use crate::found;
use crate::models;
use crate::problem::{Code, Problem};
use crate::tools::{self, tools, tools_of};
use crate::words;
use loopd_agent::manifest::{Model as ModelSpec, OpenAiApi, Price, Provider};
use loopd_agent::{Agent, AgentError, Manifest};
use loopd_fixture::excerpt;
use loopd_kernel::{Digest, Limits};

use loopd_providers::key::KeyError;
use loopd_providers::price::{DeclaredPrice, DollarsPerMillion};
use loopd_providers::{
    AnthropicConfig, Catalogue, ConfigError, Connection, DemoConfig, DemoScript, GeminiConfig, ModelConfig,
    OpenAiConfig, ResponsesConfig, from_config_in,
};
use loopd_runtime::{CannotRun, Model, Program, Programs, Tool};
use loopd_store::{RunRow, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What to do about a folder that is not there.
const PUT_THERE: &str = "put the folder there, or correct spec.tools";

/// An agent that can be run here.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Its name.
    pub name: String,
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
    /// [`Problem`] under a money limit when the price is unknown.
    pub fn affordable(&self, limits: &Limits) -> Result<(), Problem> {
        self.unpriced.as_deref().map_or(Ok(()), |model| affordable(model, self.near.as_deref(), limits))
    }
}

/// Reads a manifest.
///
/// # Errors
/// [`Problem`] with file, line and what was expected.
pub fn manifest(file: &Path) -> Result<Manifest, Problem> {
    let bytes = std::fs::read(file).map_err(|error| {
        Problem::new(Code::Manifest, format!("{}: {}", file.display(), words::os(&error)))
            .fix("name the file of an agent manifest (YAML); `loopctl agent schema` describes its form")
    })?;
    Manifest::parse(&file.to_string_lossy(), &bytes).map_err(|error| {
        let what = excerpt::lines(&error.to_string());
        Problem::new(Code::Manifest, what).fix("`loopctl agent schema` describes what a manifest may hold")
    })
}

/// Reads a manifest and makes everything ready that it names; a missing key or folder is found now.
///
/// # Errors
/// [`Problem`]; nothing was started.
pub fn load(file: &Path, catalogue: &Catalogue) -> Result<Ready, Problem> {
    let origin = std::path::absolute(file)?;
    let found::Made { agent, tools, unpriced } = found::agent(file, catalogue, false)?;
    Ok(ready(agent, tools, (Some(&folder(&origin)), Some(&origin)), catalogue)?.with_helpers(unpriced))
}

/// The same for a conversation with it.
///
/// # Errors
/// [`Problem`]; nothing was started.
pub fn load_conversation(file: &Path, catalogue: &Catalogue) -> Result<Ready, Problem> {
    let origin = std::path::absolute(file)?;
    let found::Made { agent, tools, unpriced } = found::agent(file, catalogue, true)?;
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
fn from_definition(
    definition: &[u8],
    folder: Option<&Path>,
    origin: Option<&Path>,
    catalogue: &Catalogue,
) -> Result<Ready, Problem> {
    let agent = Agent::from_definition(definition).map_err(|error| not_an_agent(&error))?;
    let fix = "put the folder there, or say with --agent FILE where the manifest is now";
    let tools = tools(agent.manifest(), folder, fix)?;
    ready(agent, tools, (folder, origin), catalogue)
}

fn ready(
    agent: Agent,
    tools: Vec<Arc<dyn Tool>>,
    (folder, origin): (Option<&Path>, Option<&Path>),
    catalogue: &Catalogue,
) -> Result<Ready, Problem> {
    let named = agent.manifest().models();
    let made = |spec| model(spec, agent.demo_script(), folder, catalogue);
    let models = named.iter().map(|(key, spec)| Ok((key.clone(), made(spec)?)));
    let models: Vec<(String, Arc<dyn Model>)> = models.collect::<Result<_, Problem>>()?;
    let (name, limits) = (agent.manifest().metadata.name.clone(), agent.limits());
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
    Ok(Ready { name, model: key, unpriced, near, limits, program: Arc::new(program) })
}

pub(crate) fn not_an_agent(error: &AgentError) -> Problem {
    let code = match error {
        AgentError::DemoScript { .. } => Code::Model,
        AgentError::Definition { .. } => Code::CannotRun,
        AgentError::MissingTool { .. } | AgentError::UnexpectedTool { .. } | AgentError::ToolSchema { .. } => {
            Code::Tool
        }
        AgentError::OutputSchema { .. } => Code::Manifest,
    };
    Problem::new(code, excerpt::lines(&error.to_string()))
}

/// The model that a manifest describes.
///
/// # Errors
/// [`Problem`]; a missing key is named by its variable.
pub fn model(
    spec: &ModelSpec,
    demo_script: Option<&str>,
    folder: Option<&Path>,
    catalogue: &Catalogue,
) -> Result<Arc<dyn Model>, Problem> {
    let ca_file = spec.connection.ca_file.as_deref().map(|file| tools::place(file, folder)).transpose()?;
    let (proxy, keep_exchange) = (spec.connection.proxy.clone(), spec.connection.keep_exchange);
    let key_file = spec.api_key_file.as_deref().map(|file| tools::place(file, folder)).transpose()?;
    let config = config(spec, demo_script)?.reached(Connection { ca_file, proxy, keep_exchange }).key_in(key_file);
    let variable = |name: &str| std::env::var(name).ok();
    from_config_in(&config, &variable, catalogue).map_err(|error| match error {
        ConfigError::Key(KeyError::Variable(name)) => {
            Problem::new(Code::ModelKey, format!("the API key is missing: the variable {name} is not set"))
                .why(format!("{} needs it; nothing was started", excerpt::line(&spec.key(), 80)))
                .fix(format!("export {name}=…  and try again"))
        }
        ConfigError::Key(error) => Problem::new(Code::ModelKey, error.to_string()),
        other => cannot_set_up(&other),
    })
}

/// A model that cannot be made, whatever its key is.
pub fn cannot_set_up(error: &ConfigError) -> Problem {
    Problem::new(Code::Model, format!("the model cannot be set up: {error}"))
}

/// The settings of the model that a manifest describes.
///
/// # Errors
/// [`Problem`] when the demo script does not read.
pub fn config(spec: &ModelSpec, demo_script: Option<&str>) -> Result<ModelConfig, Problem> {
    let context_window = spec.context_window;
    let price = spec.price.as_ref().map(price);
    let (timeout_ms, max_attempts) = (spec.timeout.map(|timeout| timeout.ms), spec.attempts);
    Ok(match &spec.provider {
        Provider::OpenAi { api: OpenAiApi::Completions, name, base_url, api_key_env } => {
            ModelConfig::Openai(OpenAiConfig {
                base_url: base_url.clone(),
                api_key_env: api_key_env.clone(),
                stream: Some(spec.stream),
                price,
                context_window,
                timeout_ms,
                max_attempts,
                ..OpenAiConfig::new(name)
            })
        }
        Provider::OpenAi { api: OpenAiApi::Responses, name, base_url, api_key_env } => {
            ModelConfig::Responses(ResponsesConfig {
                base_url: base_url.clone(),
                api_key_env: api_key_env.clone(),
                stream: Some(spec.stream),
                price,
                context_window,
                timeout_ms,
                max_attempts,
                ..ResponsesConfig::new(name)
            })
        }
        Provider::Anthropic { name, base_url, api_key_env } => ModelConfig::Anthropic(AnthropicConfig {
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            stream: Some(spec.stream),
            price,
            context_window,
            timeout_ms,
            max_attempts,
            ..AnthropicConfig::new(name)
        }),
        Provider::Gemini { name, base_url, api_key_env } => ModelConfig::Gemini(GeminiConfig {
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            stream: Some(spec.stream),
            price,
            context_window,
            timeout_ms,
            max_attempts,
            ..GeminiConfig::new(name)
        }),
        Provider::Demo { .. } => {
            let script = demo_script.map(DemoScript::from_json).transpose();
            let script = script.map_err(|error| Problem::new(Code::Model, format!("the demo script: {error}")))?;
            ModelConfig::Demo(DemoConfig { script, script_file: None, price, context_window, timeout_ms, max_attempts })
        }
    })
}

fn price(price: &Price) -> DeclaredPrice {
    let dollars = |amount: loopd_agent::manifest::Dollars| DollarsPerMillion(amount.0);
    DeclaredPrice {
        input: dollars(price.input_per_million),
        output: dollars(price.output_per_million),
        cache_read: price.cache_read_per_million.map(dollars),
        cache_write: price.cache_write_per_million.map(dollars),
        reasoning: price.reasoning_per_million.map(dollars),
    }
}

/// Everything that stands in the way of a Run of this agent here, not only the first thing. Nothing is started and
/// nothing is sent.
///
/// # Errors
/// [`Problem`] when the manifest itself is wrong.
pub fn obstacles(file: &Path, catalogue: &Catalogue) -> Result<Vec<Problem>, Problem> {
    let manifest = manifest(file)?;
    let folder = folder(&std::path::absolute(file)?);
    let spec = &manifest.spec.model;
    let mut lacks: Vec<Problem> = Vec::new();
    let fallbacks = manifest.spec.fallbacks.iter();
    let script = match &spec.provider {
        Provider::OpenAi { .. } | Provider::Anthropic { .. } | Provider::Gemini { .. } => Ok(None),
        Provider::Demo { script } => found::script(&below(&folder, script), script).map(Some),
    };
    match script {
        Ok(script) => lacks.extend(model(spec, script.as_deref(), Some(&folder), catalogue).err()),
        Err(problem) => lacks.push(problem),
    }
    lacks.extend(fallbacks.filter_map(|fallback| model(&fallback.model, None, Some(&folder), catalogue).err()));
    lacks.extend(manifest.spec.tools.iter().filter_map(|source| tools_of(source, Some(&folder), PUT_THERE).err()));
    let limits = manifest.spec.limits.to_kernel();
    let of_ones_own = matches!(spec.provider, Provider::Demo { .. });
    let is_priced = of_ones_own || models::facts(spec, catalogue).is_ok_and(|facts| facts.price.is_some());
    if !is_priced {
        lacks.extend(affordable(&spec.key(), models::near(spec, catalogue).as_deref(), &limits).err());
    }
    if lacks.is_empty() {
        // What only shows when all parts meet, for example a tool that is there twice.
        lacks.extend(load(file, catalogue).and_then(|ready| ready.affordable(&limits)).err());
    }
    match lacks.iter().position(|problem| !is_of_this_machine(problem)) {
        Some(at) => Err(lacks.swap_remove(at)),
        None => Ok(lacks),
    }
}

/// Whether a manifest is right and only this machine lacks something.
const fn is_of_this_machine(problem: &Problem) -> bool {
    matches!(problem.code, Code::ModelKey | Code::Tool | Code::Model | Code::ModelPrice)
}

fn affordable(model: &str, near: Option<&str>, limits: &Limits) -> Result<(), Problem> {
    let Some(limit) = limits.micro_usd else { return Ok(()) };
    let what = format!("nobody knows what `{}` costs, and the run may spend", excerpt::line(model, 80));
    let near = near.map(|near| format!("; there is a model `{near}`")).unwrap_or_default();
    Err(Problem::new(Code::ModelPrice, format!("{what} {}", crate::problem::dollars(limit)))
        .why(format!("an unknown price is never taken for zero{near}; nothing was started"))
        .fix(
            "declare spec.model.price in the manifest (0 for a model that costs nothing), or leave the money limit out",
        ))
}

/// Finds the agents of Runs by their stored definitions.
#[derive(Debug, Default)]
pub struct Agents {
    /// Where manifests are, whatever their Runs say.
    folder: Option<PathBuf>,
    catalogue: Catalogue,
    known: Mutex<BTreeMap<Digest, Ready>>,
}

impl Agents {
    /// Knows one agent already.
    pub fn knowing(agent: &Ready, catalogue: Catalogue) -> Self {
        Self { folder: None, catalogue, known: Mutex::new([(agent.program.digest(), agent.clone())].into()) }
    }

    /// Takes relative paths from the folder of this manifest, when there is one.
    ///
    /// # Errors
    /// [`Problem`] when it is not there.
    pub fn from_folder_of(file: Option<&Path>, catalogue: Catalogue) -> Result<Self, Problem> {
        let known = Mutex::default();
        let Some(file) = file else { return Ok(Self { folder: None, catalogue, known }) };
        if !file.is_file() {
            return Err(Problem::new(Code::File, format!("{}: there is no such file", file.display())));
        }
        Ok(Self { folder: Some(folder(&std::path::absolute(file)?)), catalogue, known })
    }

    /// The agent of a Run.
    ///
    /// # Errors
    /// [`Problem`] with what is missing here.
    pub async fn resolve(&self, store: &dyn Store, row: &RunRow) -> Result<Ready, Problem> {
        let definition = store.blob(row.definition).await?.unwrap_or_default();
        self.make(row, &definition)
    }

    fn make(&self, row: &RunRow, definition: &[u8]) -> Result<Ready, Problem> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&row.definition) {
            return Ok(known.clone());
        }
        if definition.is_empty() {
            let name = excerpt::line(&row.loop_name, 60);
            return Err(Problem::new(Code::CannotRun, format!("`{name}` is a loop in Rust"))
                .why("its code is in the program that started it, not in the store")
                .fix(format!("start that program again; it goes on with {}", words::short(row.run))));
        }
        let origin = row.origin.as_deref().map(Path::new);
        let from = origin.map(folder);
        let folder = self.folder.as_deref().or(from.as_deref());
        let ready = from_definition(definition, folder, origin, &self.catalogue)?;
        lock().insert(row.definition, ready.clone());
        Ok(ready)
    }
}

impl Programs for Agents {
    fn find(&self, row: &RunRow, definition: &[u8]) -> Result<Arc<Program>, CannotRun> {
        self.make(row, definition).map(|ready| ready.program).map_err(|problem| CannotRun(problem.what))
    }
}
