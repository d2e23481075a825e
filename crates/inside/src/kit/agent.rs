//! Agents whose models play scripts.

use super::fail::must;
use super::{Script, Turn};
use async_trait::async_trait;
use loopd_agent::{Agent as Defined, Manifest};
use loopd_kernel::machine::ModelTerms;
use loopd_kernel::model::Message;
use loopd_platform::engine::{Executes, TargetSpec};
use loopd_providers::Demo;
use loopd_runtime::{CallContext, Model, ModelAnswer, ModelError, ModelRequest, Program};
use std::sync::{Arc, Mutex, PoisonError};

/// What the model of an agent was asked, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A target of calls: an agent on the demo model, as `docs/demo-model.md` describes it. It has no tools but `ask`; a
/// target that does more is [`super::Builder::target`].
#[derive(Debug, Clone)]
pub struct Agent {
    pub(super) spec: TargetSpec,
    pub(super) program: Arc<Program>,
    pub(super) heard: Heard,
}

impl Agent {
    /// One that plays a script. Its texts have no label but that of the script.
    ///
    /// # Panics
    /// When the name is none of an agent, or the script does not play.
    #[must_use]
    pub fn new(name: &str, script: Script) -> Self {
        let script = Script { label: script.label.or(Some(String::new())), ..script };
        let manifest = format!(
            "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name} }}\n\
             spec: {{ model: {{ provider: demo, script: script.json }}, tools: [{{ use: ask }}] }}\n"
        );
        Self::from_manifest(&manifest, &must("the script", serde_json::to_string(&script)))
    }

    /// One that says the same whatever it is asked.
    ///
    /// # Panics
    /// As [`Agent::new`].
    #[must_use]
    pub fn says(name: &str, text: &str) -> Self {
        Self::new(name, Script { turns: vec![Turn::says(text)], ..Script::empty() })
    }

    /// The one of a manifest and its script, as files of an agent's folder hold them.
    ///
    /// # Panics
    /// When they do not read, the model is not the demo model, or the agent has other tools than `ask`.
    #[must_use]
    pub fn from_manifest(manifest: &str, script: &str) -> Self {
        let manifest = must("the manifest", Manifest::parse("agent.yaml", manifest.as_bytes()));
        let (about, key) = (manifest.metadata.clone(), manifest.spec.model.key());
        let agent = Defined::from_manifest(manifest, Vec::new()).and_then(|agent| agent.with_demo_script(script));
        let agent = must("the agent", agent);
        let (limits, heard) = (agent.limits(), Heard::default());
        let demo = must("the script", Script::from_json(script).and_then(Demo::new));
        let model = Arc::new(Listening { demo, heard: heard.clone() });
        let program = Arc::new(Program::new(Arc::new(agent)).model(key, model));
        let executes = Ok(Executes::Loop { program: program.clone(), limits, demo: true });
        let description = about.description.unwrap_or_default();
        Self { spec: TargetSpec { name: about.name, description, slots: None, executes }, program, heard }
    }
}

/// The demo model, and what it was asked.
#[derive(Debug)]
struct Listening {
    demo: Demo,
    heard: Heard,
}

#[async_trait]
impl Model for Listening {
    fn terms(&self) -> ModelTerms {
        self.demo.terms()
    }

    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        let last = request.messages.iter().rev().find_map(|message| match message.as_ref() {
            Message::User { text, .. } => Some(text.clone()),
            Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        self.heard.0.lock().unwrap_or_else(PoisonError::into_inner).push(last.unwrap_or_default());
        self.demo.call(request, context).await
    }
}
