//! From manifests and stored definitions to Programs: where agents, providers and tools are named together.

use crate::problem::{Code, Problem};
use crate::tools::tools;
use crate::words;
use loopd_agent::manifest::{Model as ModelSpec, Price, Provider};
use loopd_agent::{Agent, AgentError, Manifest};
use loopd_fixture::excerpt;
use loopd_kernel::{Digest, Limits};

use loopd_providers::key::KeyError;
use loopd_providers::price::{DeclaredPrice, DollarsPerMillion};
use loopd_providers::{
    AnthropicConfig, ConfigError, DemoConfig, DemoScript, GeminiConfig, ModelConfig, OpenAiConfig, from_config,
};
use loopd_runtime::{CannotRun, Model, Program, Programs, Tool};
use loopd_store::{RunRow, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// An agent that can be run here.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Its name.
    pub name: String,
    /// The model's name.
    pub model: String,
    /// Whether anybody knows what the model costs.
    pub priced: bool,
    /// The limits of its manifest.
    pub limits: Limits,
    /// The Program.
    pub program: Arc<Program>,
}

impl Ready {
    /// Refuses a Run that could spend money that nobody can count.
    ///
    /// # Errors
    /// [`Problem`] under a money limit when the price is unknown.
    pub fn affordable(&self, limits: &Limits) -> Result<(), Problem> {
        match limits.micro_usd {
            Some(limit) if !self.priced => {
                let what =
                    format!("nobody knows what `{}` costs, and the run may spend", excerpt::line(&self.model, 80));
                Err(Problem::new(Code::ModelPrice, format!("{what} {}", crate::problem::dollars(limit)))
                    .why("an unknown price is never taken for zero; nothing was started")
                    .fix("declare spec.model.price in the manifest (0 for a model that costs nothing), or leave the money limit out"))
            }
            Some(_) | None => Ok(()),
        }
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
pub fn load(file: &Path) -> Result<Ready, Problem> {
    let manifest = manifest(file)?;
    let origin = std::path::absolute(file)?;
    let folder = folder(&origin);
    let script = match &manifest.spec.model.provider {
        Provider::OpenAi { .. } | Provider::Anthropic { .. } | Provider::Gemini { .. } => None,
        Provider::Demo { script } => Some(self::script(&folder.join(script), script)?),
    };
    let tools = tools(&manifest, Some(&folder), "put the folder there, or correct spec.tools")?;
    let offers = tools.iter().map(|tool| tool.offer().clone()).collect();
    let mut agent = Agent::from_manifest(manifest, offers).map_err(|error| not_an_agent(&error))?;
    if let Some(script) = script {
        agent = agent.with_demo_script(&script).map_err(|error| not_an_agent(&error))?;
    }
    ready(agent, tools, Some(&origin))
}

fn script(path: &Path, name: &str) -> Result<String, Problem> {
    std::fs::read_to_string(path).map_err(|error| {
        Problem::new(Code::Model, format!("the demo script `{}`: {}", excerpt::line(name, 200), words::os(&error)))
            .fix("spec.model.script is a path relative to the manifest")
    })
}

fn folder(origin: &Path) -> PathBuf {
    origin.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// An agent as a Run's stored definition has it. `folder` is where its manifest is now.
fn from_definition(definition: &[u8], folder: Option<&Path>) -> Result<Ready, Problem> {
    let agent = Agent::from_definition(definition).map_err(|error| not_an_agent(&error))?;
    let fix = "put the folder there, or say with --agent FILE where the manifest is now";
    let tools = tools(agent.manifest(), folder, fix)?;
    ready(agent, tools, None)
}

fn ready(agent: Agent, tools: Vec<Arc<dyn Tool>>, origin: Option<&Path>) -> Result<Ready, Problem> {
    let spec = &agent.manifest().spec.model;
    let (key, model) = (spec.key(), model(spec, agent.demo_script())?);
    let (name, limits) = (agent.manifest().metadata.name.clone(), agent.limits());
    let priced = model.terms().price.is_some();
    let mut program = Program::new(Arc::new(agent)).model(key.clone(), model);
    for tool in tools {
        program = program.tool(tool);
    }
    if let Some(origin) = origin {
        program = program.origin(origin.to_string_lossy());
    }
    Ok(Ready { name, model: key, priced, limits, program: Arc::new(program) })
}

fn not_an_agent(error: &AgentError) -> Problem {
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
pub fn model(spec: &ModelSpec, demo_script: Option<&str>) -> Result<Arc<dyn Model>, Problem> {
    let price = spec.price.as_ref().map(price);
    let (timeout_ms, max_attempts) = (spec.timeout.map(|timeout| timeout.ms), spec.attempts);
    let config = match &spec.provider {
        Provider::OpenAi { name, base_url, api_key_env } => ModelConfig::Openai(OpenAiConfig {
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            stream: Some(spec.stream),
            price,
            timeout_ms,
            max_attempts,
            ..OpenAiConfig::new(name)
        }),
        Provider::Anthropic { name, base_url, api_key_env } => ModelConfig::Anthropic(AnthropicConfig {
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            stream: Some(spec.stream),
            price,
            timeout_ms,
            max_attempts,
            ..AnthropicConfig::new(name)
        }),
        Provider::Gemini { name, base_url, api_key_env } => ModelConfig::Gemini(GeminiConfig {
            base_url: base_url.clone(),
            api_key_env: api_key_env.clone(),
            stream: Some(spec.stream),
            price,
            timeout_ms,
            max_attempts,
            ..GeminiConfig::new(name)
        }),
        Provider::Demo { .. } => {
            let script = demo_script.map(DemoScript::from_json).transpose();
            let script = script.map_err(|error| Problem::new(Code::Model, format!("the demo script: {error}")))?;
            ModelConfig::Demo(DemoConfig { script, script_file: None, price, timeout_ms, max_attempts })
        }
    };
    from_config(&config).map_err(|error| match error {
        ConfigError::Key(KeyError::Variable(name)) => {
            Problem::new(Code::ModelKey, format!("the API key is missing: the variable {name} is not set"))
                .why(format!("{} needs it; nothing was started", excerpt::line(&spec.key(), 80)))
                .fix(format!("export {name}=…  and try again"))
        }
        ConfigError::Key(error) => Problem::new(Code::ModelKey, error.to_string()),
        other => Problem::new(Code::Model, format!("the model cannot be set up: {other}")),
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

/// Finds the agents of Runs by their stored definitions.
#[derive(Debug, Default)]
pub struct Agents {
    /// Where manifests are, whatever their Runs say.
    folder: Option<PathBuf>,
    known: Mutex<BTreeMap<Digest, Ready>>,
}

impl Agents {
    /// Knows one agent already.
    pub fn knowing(agent: &Ready) -> Self {
        Self { folder: None, known: Mutex::new([(agent.program.digest(), agent.clone())].into()) }
    }

    /// Takes relative paths from the folder of this manifest, when there is one.
    ///
    /// # Errors
    /// [`Problem`] when it is not there.
    pub fn from_folder_of(file: Option<&Path>) -> Result<Self, Problem> {
        let Some(file) = file else { return Ok(Self::default()) };
        if !file.is_file() {
            return Err(Problem::new(Code::File, format!("{}: there is no such file", file.display())));
        }
        Ok(Self { folder: Some(folder(&std::path::absolute(file)?)), known: Mutex::default() })
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
        let origin = row.origin.as_deref().map(|origin| folder(Path::new(origin)));
        let ready = from_definition(definition, self.folder.as_deref().or(origin.as_deref()))?;
        lock().insert(row.definition, ready.clone());
        Ok(ready)
    }
}

impl Programs for Agents {
    fn find(&self, row: &RunRow, definition: &[u8]) -> Result<Arc<Program>, CannotRun> {
        self.make(row, definition).map(|ready| ready.program).map_err(|problem| CannotRun(problem.what))
    }
}
