//! The Agent: a Loop made of a manifest.

use crate::ask;
use crate::definition::{Definition, Form};
use crate::manifest::{Manifest, Provider, ToolSource};
use crate::output::OutputShape;
use crate::reply;
use crate::schema::NotASchema;
use crate::state::{Phase, State};
use crate::toolset::Toolset;
use loopd_kernel::model::{Constants, ModelCall, ModelConstants, ToolOffer};
use loopd_kernel::transcript::MESSAGE_SIGNAL;
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
    /// Makes an Agent of a manifest and the offers of the tools that it names. The `ask` tool is brought here.
    ///
    /// # Errors
    /// [`AgentError`] when offers and manifest do not name the same tools, or a schema does not compile.
    pub fn from_manifest(manifest: Manifest, offers: Vec<ToolOffer>) -> Result<Self, AgentError> {
        let agent = manifest.metadata.name.clone();
        let mut given = offers;
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
        Self::build(Definition { form: Form::V1, agent: manifest, tools, demo_script: None })
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
        let tools = Toolset::new(&definition.tools).map_err(|(tool, error)| AgentError::ToolSchema {
            agent: name(),
            tool,
            error,
        })?;
        let spec = &definition.agent.spec;
        let output = spec.output.as_ref().map(|output| OutputShape::new(output.schema.as_str())).transpose();
        let output = output.map_err(|error| AgentError::OutputSchema { agent: name(), error })?;
        let parts = [spec.instructions.clone(), output.as_ref().map(OutputShape::instruction)];
        let system: Vec<String> = parts.into_iter().flatten().collect();
        let constants = Constants::new(&ModelConstants {
            system: (!system.is_empty()).then(|| system.join("\n\n")),
            tools: definition.tools.clone(),
            output_schema: output.as_ref().map(|shape| shape.text().into()),
        });
        let bytes = serde_json::to_vec(&definition).map_err(wrong)?;
        Ok(Self { tools, output, constants: constants.map_err(wrong)?, bytes, definition })
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

    fn call_model(&self) -> Decision {
        let model = &self.definition.agent.spec.model;
        let call = ModelCall {
            max_output_tokens: model.max_output_tokens,
            temperature_milli: model.temperature.map(|temperature| temperature.milli),
            ..ModelCall::transcript(model.key())
        };
        Decision::model_with(call, &self.constants)
    }

    fn decide(&self, state: &mut State, event: Event) -> Decision {
        match event {
            Event::IterationStarted { .. } => {
                state.phase = Phase::Model;
                state.unread = false;
                self.call_model()
            }
            Event::ModelReplied { reply, clamped, .. } => reply::decide(self, state, &reply, clamped),
            Event::CallFailed { failure, .. } | Event::CallDenied { failure, .. } if state.phase == Phase::Model => {
                Decision::fail(failure)
            }
            Event::SignalReceived { name, .. } => {
                state.unread |= name == MESSAGE_SIGNAL && state.phase == Phase::Model;
                Decision::none()
            }
            // These join the Transcript by themselves, and the next iteration starts once none is in flight.
            Event::ToolReturned(_)
            | Event::CallFailed { .. }
            | Event::CallDenied { .. }
            | Event::CallUnknown { .. }
            | Event::Answered { .. }
            | Event::ChildEnded { .. }
            | Event::ChildParked { .. }
            | Event::TimerFired { .. } => Decision::none(),
        }
    }
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

    fn transition(&self, _: &Cx, state: &str, event: Event) -> Result<(Decision, String), Failure> {
        let mut state = decode(state)?;
        let decision = self.decide(&mut state, event);
        Ok((decision, serde_json::to_string(&state)?))
    }
}
