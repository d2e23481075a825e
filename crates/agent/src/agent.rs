//! The Agent: a Loop made of a manifest.

use crate::definition::{Definition, Form, Found};
use crate::manifest::{Manifest, Model, Provider, ToolSource, Trouble};
use crate::output::OutputShape;
use crate::schema::NotASchema;
use crate::state::State;
use crate::toolset::{Ready, Toolset};
use crate::{ask, context, helper, skill, turn};
use loopd_kernel::model::{Constants, ModelCall, ModelConstants, ToolOffer};
use loopd_kernel::transcript::{READ_BYTES, READ_RESULT, read_result_offer};
use loopd_kernel::{Cx, Decision, ErasedLoop, Event, Failure, Limits};
use serde_json::value::RawValue;
use std::fmt;

/// An LLM with tools, as a Loop.
///
/// # Expected flow
/// Each iteration calls the model with the Run's Transcript. Tools that the model asks for run at the same time;
/// what cannot run comes back to the model as a typed error. Without a tool use the reply is the answer.
///
/// # Guarantees
/// Arguments and answers keep their exact text. State does not grow with the Run. The same definition bytes make
/// the same decisions from the same Events.
pub struct Agent {
    definition: Definition,
    bytes: Vec<u8>,
    tools: Toolset,
    output: Option<OutputShape>,
    constants: Constants,
    summary: Constants,
    /// The names of the models, in order.
    models: Vec<String>,
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.definition.agent.metadata.name;
        f.debug_struct("Agent").field("name", name).finish_non_exhaustive()
    }
}

/// Why an Agent cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AgentError {
    /// The manifest names a tool that nobody brought.
    #[error("agent {agent}: there is no tool named `{tool}` in this program")]
    MissingTool {
        /// The Agent.
        agent: String,
        /// The tool.
        tool: String,
    },
    /// Somebody brought a tool that the manifest does not name, or the same one twice.
    #[error("agent {agent}: the manifest does not name the tool `{tool}`")]
    UnexpectedTool {
        /// The Agent.
        agent: String,
        /// The tool.
        tool: String,
    },
    /// The schema of a tool's arguments does not compile.
    #[error("agent {agent}: tool `{tool}`: {error}")]
    ToolSchema {
        /// The Agent.
        agent: String,
        /// The tool.
        tool: String,
        /// What is wrong.
        error: NotASchema,
    },
    /// The output schema does not compile.
    #[error("agent {agent}: spec.output.schema: {error}")]
    OutputSchema {
        /// The Agent.
        agent: String,
        /// What is wrong.
        error: NotASchema,
    },
    /// The demo script is not JSON, or the Agent has none.
    #[error("agent {agent}: demo script: {message}")]
    DemoScript {
        /// The Agent.
        agent: String,
        /// What is wrong.
        message: String,
    },
    /// The bytes are no definition of this form.
    #[error("these bytes are no agent definition: {message}")]
    Definition {
        /// What is wrong.
        message: String,
    },
}

impl Agent {
    /// Makes an Agent of a manifest and the offers of the tools that it names. What the program brings by itself, `ask`
    /// for example, is brought here.
    ///
    /// # Errors
    /// [`AgentError`] when offers and manifest do not name the same tools, or a schema does not compile.
    pub fn from_manifest(manifest: Manifest, offers: Vec<ToolOffer>) -> Result<Self, AgentError> {
        Self::new(manifest, Found { tools: offers, ..Found::default() })
    }

    /// Makes an Agent of a manifest and of everything that was found for it.
    ///
    /// # Errors
    /// [`AgentError`] when manifest and finds do not name the same things, or a schema does not compile.
    pub fn new(manifest: Manifest, found: Found) -> Result<Self, AgentError> {
        let agent = manifest.metadata.name.clone();
        let mut given = found.tools;
        if manifest.spec.tools.contains(&ToolSource::Ask) {
            given.push(ask::offer());
        }
        let mut tools = Vec::with_capacity(given.len());
        for name in manifest.tool_names() {
            let at = given.iter().position(|offer| offer.name == name);
            let at = at.ok_or_else(|| AgentError::MissingTool { agent: agent.clone(), tool: name.into() })?;
            tools.push(given.remove(at));
        }
        if let Some(offer) = given.pop() {
            return Err(AgentError::UnexpectedTool { agent, tool: offer.name });
        }
        let helpers = helpers(&manifest, &found.agents)?;
        tools.extend(helpers.iter().map(|(offer, _)| offer.clone()));
        for name in manifest.built_in_tools() {
            let is_read = name == READ_RESULT;
            let most = manifest.spec.context.tool_result_bytes.max(READ_BYTES);
            tools.push(if is_read { read_result_offer(most) } else { skill::offer(&found.skills) });
        }
        let raw = |bytes: &Vec<u8>| serde_json::from_slice(bytes);
        let agents = found.agents.iter().map(raw).collect::<Result<_, _>>();
        Self::build(Definition {
            form: Form::V2,
            tools,
            demo_script: None,
            windows: found.windows,
            agents: agents.map_err(|error| AgentError::Definition { message: error.to_string() })?,
            documents: found.documents,
            skills: found.skills,
            conversation: found.conversation,
            agent: manifest,
        })
    }

    /// Rebuilds an Agent from [`ErasedLoop::definition`].
    ///
    /// # Errors
    /// [`AgentError`] when the bytes are not a definition that this build reads.
    pub fn from_definition(bytes: &[u8]) -> Result<Self, AgentError> {
        let definition =
            serde_json::from_slice(bytes).map_err(|error| AgentError::Definition { message: error.to_string() })?;
        // A later build may write a definition otherwise; the digest that a Run recorded is of these bytes.
        Ok(Self { bytes: bytes.to_vec(), ..Self::build(definition)? })
    }

    /// Puts the content of the demo script into the definition, so that a Run goes on where the file is not.
    ///
    /// # Errors
    /// [`AgentError::DemoScript`] when it is not JSON or the provider is not `demo`.
    pub fn with_demo_script(self, json: &str) -> Result<Self, AgentError> {
        let mut definition = self.definition;
        let agent = definition.agent.metadata.name.clone();
        match definition.agent.spec.model.provider {
            Provider::Demo { .. } => {}
            Provider::OpenAi { .. } | Provider::Anthropic { .. } | Provider::Gemini { .. } => {
                return Err(AgentError::DemoScript { agent, message: "the model's provider is not `demo`".into() });
            }
        }
        let script = serde_json::from_str::<Box<RawValue>>(json)
            .map_err(|error| AgentError::DemoScript { agent, message: error.to_string() })?;
        definition.demo_script = Some(script);
        Self::build(definition)
    }

    fn build(definition: Definition) -> Result<Self, AgentError> {
        let name = || definition.agent.metadata.name.clone();
        let wrong = |error: serde_json::Error| AgentError::Definition { message: error.to_string() };
        let spec = &definition.agent.spec;
        let cap = (definition.form != Form::V1).then_some(spec.context.tool_result_bytes);
        let tools = Toolset::new(&definition.tools, cap);
        let tools = tools.map_err(|(tool, error)| AgentError::ToolSchema { agent: name(), tool, error })?;
        let bytes: Vec<Vec<u8>> = definition.agents.iter().map(|raw| raw.get().as_bytes().to_vec()).collect();
        let helpers = helpers(&definition.agent, &bytes)?.into_iter();
        let helpers = helpers.map(|(offer, ready)| (offer.name, ready)).collect();
        let tools = tools.with(helpers, &definition.skills);
        let output = spec.output.as_ref().map(|output| OutputShape::new(output.schema.as_str())).transpose();
        let output = output.map_err(|error| AgentError::OutputSchema { agent: name(), error })?;
        let documents = definition.documents.iter().map(|document| format!("{}:\n{}", document.name, document.text));
        let before = spec.instructions.clone().into_iter().chain(documents);
        let after =
            skill::instruction(&definition.skills).into_iter().chain(output.as_ref().map(OutputShape::instruction));
        let system: Vec<String> = before.chain(after).collect();
        let constants = Constants::new(&ModelConstants {
            system: (!system.is_empty()).then(|| system.join("\n\n")),
            tools: definition.tools.clone(),
            output_schema: output.as_ref().map(|shape| shape.text().into()),
        });
        let summary = ModelConstants { system: Some(context::SYSTEM.into()), ..ModelConstants::default() };
        let summary = Constants::new(&summary).map_err(wrong)?;
        let models = definition.agent.models().into_iter().map(|(key, _)| key).collect();
        let bytes = serde_json::to_vec(&definition).map_err(wrong)?;
        Ok(Self { tools, output, constants: constants.map_err(wrong)?, summary, models, bytes, definition })
    }

    /// The manifest.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.definition.agent
    }

    /// The tools as the model is offered them, `ask` included.
    #[must_use]
    pub fn offers(&self) -> &[ToolOffer] {
        &self.definition.tools
    }

    /// The content of the demo script.
    #[must_use]
    pub fn demo_script(&self) -> Option<&str> {
        self.definition.demo_script.as_deref().map(RawValue::get)
    }

    /// The limits that a Run starts with, unless its starter says otherwise.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.definition.agent.spec.limits.to_kernel()
    }

    pub(crate) const fn tools(&self) -> &Toolset {
        &self.tools
    }

    pub(crate) const fn output(&self) -> Option<&OutputShape> {
        self.output.as_ref()
    }

    /// True when an answer ends a turn and not the Run.
    #[must_use]
    pub const fn converses(&self) -> bool {
        self.definition.conversation
    }

    /// The same Agent, in a conversation: see [`Found::conversation`].
    ///
    /// # Errors
    /// [`AgentError`] as for [`Agent::new`].
    pub fn conversing(self) -> Result<Self, AgentError> {
        Self::build(Definition { conversation: true, ..self.definition })
    }

    /// True for all but definitions of the first form, whose Runs know neither summaries nor interrupts.
    pub(crate) fn works_long(&self) -> bool {
        self.definition.form != Form::V1
    }

    /// True when a summary may take the place of the conversation.
    pub(crate) fn compacts(&self) -> bool {
        self.works_long() && self.definition.agent.spec.context.compact
    }

    pub(crate) const fn constants(&self) -> &Constants {
        &self.constants
    }

    pub(crate) const fn summary_constants(&self) -> &Constants {
        &self.summary
    }

    /// The window of a model in tokens, where it is known.
    pub(crate) fn window(&self, model: u32) -> Option<u64> {
        self.definition.windows.get(model as usize).copied().flatten()
    }

    /// A model: the first, or one of its fallbacks.
    pub(crate) fn model(&self, model: u32) -> &Model {
        let spec = &self.definition.agent.spec;
        let fallback = (model as usize).checked_sub(1).and_then(|at| spec.fallbacks.get(at));
        fallback.map_or(&spec.model, |fallback| &fallback.model)
    }

    /// The model that takes over from `model` when it meets `trouble`.
    pub(crate) fn fallback(&self, model: u32, trouble: Trouble) -> Option<u32> {
        let later = self.definition.agent.spec.fallbacks.iter().zip(1..).skip(model as usize);
        later.filter(|(fallback, _)| fallback.on.contains(&trouble)).map(|(_, at)| at).next()
    }

    /// A request to a model with the conversation.
    pub(crate) fn request(&self, model: u32) -> ModelCall {
        let key = self.models.get(model as usize).or(self.models.first()).cloned().unwrap_or_default();
        let model = self.model(model);
        ModelCall {
            max_output_tokens: model.max_output_tokens,
            temperature_milli: model.temperature.map(|temperature| temperature.milli),
            ..ModelCall::transcript(key)
        }
    }

    pub(crate) fn call_model(&self, state: &State) -> Decision {
        Decision::model_with(self.request(state.model), &self.constants)
    }
}

/// The Agents that a manifest names, each with the tool by which it gets a task.
fn helpers(manifest: &Manifest, definitions: &[Vec<u8>]) -> Result<Vec<(ToolOffer, Ready)>, AgentError> {
    let named = &manifest.spec.agents;
    if named.len() != definitions.len() {
        let message = format!("the manifest names {} agents, and {} are here", named.len(), definitions.len());
        return Err(AgentError::Definition { message });
    }
    let wrong = |error: String| AgentError::Definition { message: error };
    named
        .iter()
        .zip(definitions)
        .map(|(named, bytes)| {
            let of: Definition = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
            let own = of.agent.metadata.description.unwrap_or_default();
            let offer = helper::offer(&named.name, named.description.as_deref().unwrap_or(&own));
            let limits = named.limits.unwrap_or(of.agent.spec.limits).to_kernel();
            let ready = Ready { loop_name: of.agent.metadata.name, definition: Constants::of_bytes(bytes), limits };
            Ok((offer, ready))
        })
        .collect()
}

fn decode(state: &str) -> Result<State, Failure> {
    serde_json::from_str(state)
        .map_err(|error| Failure::new("loop.state", format!("the State does not decode: {error}")))
}

impl ErasedLoop for Agent {
    fn name(&self) -> &str {
        &self.definition.agent.metadata.name
    }

    fn version(&self) -> &str {
        &self.definition.agent.metadata.version
    }

    fn definition(&self) -> &[u8] {
        &self.bytes
    }

    fn reads(&self, state: &str) -> Result<(), Failure> {
        decode(state).map(drop)
    }

    fn init(&self, input: &str) -> Result<String, Failure> {
        let expected = "expected a question as a JSON string, or a JSON object";
        let text = input.trim_start();
        let fits = match text.bytes().next() {
            Some(b'"') => serde_json::from_str::<String>(text).map(|question| !question.trim().is_empty()),
            Some(b'{') => serde_json::from_str::<&RawValue>(text).map(|_| true),
            Some(_) | None => Ok(false),
        };
        match fits {
            Ok(true) => Ok(serde_json::to_string(&State::default())?),
            Ok(false) => Err(Failure::new("agent.input", expected)),
            Err(error) => Err(Failure::new("agent.input", format!("{expected}: {error}"))),
        }
    }

    fn transition(&self, cx: &Cx, state: &str, event: Event) -> Result<(Decision, String), Failure> {
        let mut state = decode(state)?;
        let decision = turn::decide(self, &mut state, cx, event);
        Ok((decision, serde_json::to_string(&state)?))
    }
}
