//! `kind: Agent` manifests: an Agent as data.
//!
//! [`Manifest::parse`] reads YAML and reports what is wrong by file, line and what was expected.
//! [`json_schema`] is the published schema; `docs/agents.md` is the guide.

mod check;
mod context;
mod fallback;
mod helper;
mod list;
mod locate;
mod model;
mod parse;
mod scalar;
mod tool;
mod written;

pub use context::{Context, DEFAULT_RESULT_BYTES};
pub use fallback::{Fallback, Trouble};
pub use helper::Helper;
pub use list::{Ability, ListedModel, ModelList};
pub use model::{Connection, Model, OpenAiApi, Price, Provider};
pub use parse::ManifestError;
pub use scalar::{Dollars, Duration, JsonText, Temperature};
pub use tool::{FileTool, NotLoosened, ToolClass, ToolSource};

use crate::skill::USE_SKILL;
use loopd_kernel::Limits;
use loopd_kernel::transcript::READ_RESULT;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An Agent: its model, instructions, tools and limits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "loopd agent manifest")]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an agent manifest: a mapping with apiVersion, kind, metadata and spec"
)]
pub struct Manifest {
    /// The version of this format.
    pub api_version: ApiVersion,
    /// What the manifest describes.
    pub kind: Kind,
    /// Names.
    pub metadata: Metadata,
    /// The Agent.
    pub spec: Spec,
}

/// The version of the manifest format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum ApiVersion {
    /// The first, free to change until 1.0.
    #[serde(rename = "loopd.dev/v1alpha1")]
    V1Alpha1,
}

/// What a manifest describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// An Agent.
    Agent,
}

/// Names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping with name and, if wanted, version")]
pub struct Metadata {
    /// The Agent's name: lower-case letters, digits and `-`, at most 63 characters.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    pub name: String,
    /// The declared version; the part before the first dot is the major version.
    #[serde(default = "first_version")]
    #[schemars(extend("type" = ["string", "number"]), regex(pattern = r"^[0-9]+(\.[0-9]+)*$"))]
    pub version: String,
    /// What the Agent is for, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

fn first_version() -> String {
    "1".into()
}

/// The Agent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping with model and, if wanted, instructions, tools, agents, limits, output, context and fallbacks"
)]
pub struct Spec {
    /// The model and how it is reached.
    pub model: Model,
    /// What the model is told before everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The models that take over when this one cannot be used, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Fallback>,
    /// The tools that the model may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSource>,
    /// Other Agents that the model may give tasks to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Helper>,
    /// What the model is shown, and what happens when there is too much of it.
    #[serde(default, skip_serializing_if = "Context::is_default")]
    pub context: Context,
    /// Where a Run stops and asks for more.
    #[serde(default)]
    pub limits: AgentLimits,
    /// What the final answer must look like; without it any text is an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}

/// Limits of a Run. One that is reached parks the Run; raising it goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping of iterations, tokens, usd, wall and retries"
)]
pub struct AgentLimits {
    /// Model calls, failed attempts not counted.
    #[serde(default = "default_iterations")]
    #[schemars(range(min = 1))]
    pub iterations: u64,
    /// Tokens of all classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Money. A model whose price is unknown is then refused before the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Dollars>,
    /// Time since the start, waiting included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Duration>,
    /// Failed attempts that are repeated, over all calls of a Run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
}

/// Iterations of a Run whose manifest does not limit them: a model that repeats itself stops somewhere.
pub const DEFAULT_ITERATIONS: u64 = 50;

const fn default_iterations() -> u64 {
    DEFAULT_ITERATIONS
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self { iterations: DEFAULT_ITERATIONS, tokens: None, usd: None, wall: None, retries: None }
    }
}

impl AgentLimits {
    /// The limits as a Run is started with them.
    #[must_use]
    pub fn to_kernel(&self) -> Limits {
        Limits {
            iterations: Some(self.iterations),
            tokens: self.tokens,
            micro_usd: self.usd.map(|dollars| dollars.0),
            wall_ms: self.wall.map(|wall| wall.ms),
            retries: self.retries,
        }
    }
}

/// What the final answer must look like.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "a mapping with schema")]
pub struct Output {
    /// A JSON Schema. References to other documents are not followed.
    pub schema: JsonText,
}

impl Manifest {
    /// The names of all tools, in the order in which they are written.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        self.spec.tools.iter().flat_map(ToolSource::tool_names).collect()
    }

    /// Makes paths that are relative to the manifest's folder, and are still looked at in a Run, relative to another
    /// one. `folder` is this manifest's folder as seen from there.
    pub fn rebase(&mut self, folder: &str) {
        for path in self.paths_in_a_run() {
            if !path.starts_with('/') && !folder.is_empty() {
                *path = format!("{folder}/{path}");
            }
        }
    }

    /// Every path that it names: what is read, and the folders of tools.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut copy = self.clone();
        let mut paths: Vec<String> = copy.paths_once().map(|path| path.clone()).collect();
        paths.extend(copy.paths_in_a_run().map(|path| path.clone()));
        paths
    }

    fn paths_in_a_run(&mut self) -> impl Iterator<Item = &mut String> {
        let spec = &mut self.spec;
        let models =
            std::iter::once(&mut spec.model).chain(spec.fallbacks.iter_mut().map(|fallback| &mut fallback.model));
        let files = models.flat_map(|model| [model.connection.ca_file.as_mut(), model.api_key_file.as_mut()]).flatten();
        spec.tools.iter_mut().filter_map(ToolSource::root_mut).chain(files)
    }

    fn paths_once(&mut self) -> impl Iterator<Item = &mut String> {
        let spec = &mut self.spec;
        let script = match &mut spec.model.provider {
            Provider::Demo { script } => Some(script),
            Provider::OpenAi { .. } | Provider::Anthropic { .. } | Provider::Gemini { .. } => None,
        };
        let helpers = spec.agents.iter_mut().map(|helper| &mut helper.manifest);
        let texts = spec.context.instructions.iter_mut().chain(&mut spec.context.skills);
        script.into_iter().chain(helpers).chain(texts)
    }

    /// The tools that an Agent with this manifest has without naming them.
    #[must_use]
    pub fn built_in_tools(&self) -> Vec<&'static str> {
        let returns = self.spec.tools.iter().any(|source| *source != ToolSource::Ask) || !self.spec.agents.is_empty();
        let skills = !self.spec.context.skills.is_empty();
        [(returns, READ_RESULT), (skills, USE_SKILL)]
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, name)| name)
            .collect()
    }

    /// The model and those that may take over, each with the name under which a Run calls it. Two of one name, at two
    /// servers for example, are told apart by a number.
    #[must_use]
    pub fn models(&self) -> Vec<(String, &Model)> {
        let models =
            std::iter::once(&self.spec.model).chain(self.spec.fallbacks.iter().map(|fallback| &fallback.model));
        let mut named: Vec<(String, &Model)> = Vec::new();
        for model in models {
            let key = model.key();
            let same = named.iter().filter(|(_, earlier)| earlier.key() == key).count();
            named.push((if same == 0 { key } else { format!("{key}#{}", same + 1) }, model));
        }
        named
    }
}

/// The JSON Schema of manifests, as it is published in `docs/schemas/agent.schema.json`.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = schemars::schema_for!(Manifest).to_value();
    // Another crate of the build may have asked serde_json to keep the order of insertion.
    schema.sort_all_objects();
    let mut text = format!("{schema:#}");
    text.push('\n');
    text
}
