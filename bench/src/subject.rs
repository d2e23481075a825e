//! What is measured: the bare Loop, or the built-in agent loop over real HTTP.

use crate::noop::{self, Plan};
use crate::probe::Parameters;
use crate::serve;
use anyhow::Result;
use loopd_agent::{Agent, Manifest};
use loopd_kernel::ErasedLoop;
use loopd_providers::OpenAiConfig;
use loopd_runtime::Program;
use std::sync::Arc;

/// Bytes that each call returns.
const PAYLOAD: usize = 512;

/// A Loop under measurement.
pub enum Subject {
    /// A Loop in Rust whose calls return at once.
    Bare,
    /// The agent loop with a local model server.
    Agent {
        /// The server's address.
        base_url: String,
    },
}

impl Subject {
    /// What the parameters ask for.
    pub async fn of(parameters: &Parameters) -> Result<Self> {
        if parameters.number("agent", 0) == 0 {
            return Ok(Self::Bare);
        }
        Ok(Self::Agent { base_url: serve::start(PAYLOAD).await? })
    }

    /// Its Program.
    pub fn program(&self) -> Result<Arc<Program>> {
        let Self::Agent { base_url } = self else { return Ok(noop::program(PAYLOAD)) };
        // The address is not part of the manifest: a resumed Run has the same definition on another port.
        let manifest = Manifest::parse("bench.yaml", MANIFEST.as_bytes())?;
        let model = manifest.spec.model.key();
        let tools = noop::agent_tools(PAYLOAD);
        let agent = Agent::from_manifest(manifest, tools.iter().map(|tool| tool.offer().clone()).collect())?;
        let client = OpenAiConfig { stream: Some(false), ..OpenAiConfig::new("bench").at(base_url) };
        let definition: Arc<dyn ErasedLoop> = Arc::new(agent);
        let program = Program::new(definition).model(model, Arc::new(client.build(&|_| None)?));
        Ok(Arc::new(tools.into_iter().fold(program, Program::tool)))
    }

    /// The input of one Run.
    pub fn input(&self, iterations: u64, waits: bool) -> String {
        match self {
            Self::Bare => serde_json::to_string(&Plan { iterations, waits }).unwrap_or_default(),
            Self::Agent { .. } if waits => "\"ask\"".into(),
            Self::Agent { .. } => "\"go\"".into(),
        }
    }
}

const MANIFEST: &str = "
apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: { name: bench }
spec:
  model: { provider: openai, name: bench, baseUrl: http://127.0.0.1:1/v1, stream: false, maxOutputTokens: 64 }
  instructions: Use the tool.
  tools:
    - { use: ask }
    - { native: noop }
  limits: { iterations: 1000000 }
";
