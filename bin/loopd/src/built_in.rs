//! The agents that a server brings along: one that plays a script, and one on the model that was found here.

use crate::targets::Offered;
use crate::trouble::{Exit, Trouble};
use loopd_agent::manifest::Metadata;
use loopd_agent::{Agent, Manifest};
use loopd_assemble::machine::Choice;
use loopd_assemble::{Ready, model};
use loopd_providers::Catalogue;
use loopd_runtime::Program;
use std::sync::Arc;

/// The name of the model that plays scripts.
pub const DEMO: &str = "demo";

const DEMO_AGENT: &str = include_str!("../demo/agent.yaml");
const SCRIPT: &str = include_str!("../demo/script.json");
const ASSISTANT: &str = include_str!("../assistant/agent.yaml");

/// The most that one Run of the assistant may spend, where it costs anything.
const USD: &str = "0.50";

/// The agent that plays a script: offline, and labelled as such.
///
/// # Errors
/// None in practice: a test makes it.
pub fn demo(catalogue: &Catalogue) -> Result<Offered, Trouble> {
    let ready = agent("demo/agent.yaml", DEMO_AGENT, Some(SCRIPT), catalogue)?;
    Ok(Offered { ready, demo: true })
}

/// The agent on this model.
///
/// # Errors
/// [`Trouble`] when the model cannot be set up here.
pub fn assistant(choice: &Choice, catalogue: &Catalogue) -> Result<Offered, Trouble> {
    // JSON is YAML.
    let limits =
        if choice.costs { format!("{{ iterations: 20, usd: \"{USD}\" }}") } else { "{ iterations: 20 }".to_owned() };
    let manifest = ASSISTANT.replace("model: MODEL", &format!("model: {}", choice.model));
    let manifest = manifest.replace("limits: LIMITS", &format!("limits: {limits}"));
    let ready = agent("assistant/agent.yaml", &manifest, None, catalogue)?;
    ready.affordable(&ready.limits)?;
    Ok(Offered { ready, demo: false })
}

fn agent(file: &str, manifest: &str, script: Option<&str>, catalogue: &Catalogue) -> Result<Ready, Trouble> {
    let broken = |why: String| Trouble::new(Exit::Failed, format!("{file}: {why}"));
    let manifest = Manifest::parse(file, manifest.as_bytes()).map_err(|error| broken(error.to_string()))?;
    let (about, spec) = (manifest.metadata.clone(), manifest.spec.model.clone());
    let mut agent = Agent::from_manifest(manifest, Vec::new()).map_err(|error| broken(error.to_string()))?;
    if let Some(script) = script {
        agent = agent.with_demo_script(script).map_err(|error| broken(error.to_string()))?;
    }
    let (limits, key) = (agent.limits(), spec.key());
    let model = model::model(&spec, script, None, catalogue)?;
    let unpriced = model.terms().price.is_none().then(|| key.clone());
    let program = Arc::new(Program::new(Arc::new(agent)).model(key.clone(), model));
    let Metadata { name, description, version } = about;
    Ok(Ready { name, description, version, model: key, unpriced, near: None, limits, program })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_demo_agent_is_one() {
        let built = demo(&Catalogue::default()).map(|one| (one.ready.name, one.ready.model, one.demo));
        assert_eq!(built.map_err(|trouble| trouble.to_string()), Ok(("demo".to_owned(), DEMO.to_owned(), true)));
    }

    #[test]
    fn the_assistant_has_the_model_that_was_found_and_a_limit_where_it_costs_something() {
        let local = json!({"provider": "openai", "name": "a: \"b\" #c", "baseUrl": "http://127.0.0.1:1/v1"});
        let choice = Choice { model: local, costs: false, told: String::new() };
        let built = assistant(&choice, &Catalogue::default()).expect("an agent").ready;
        assert_eq!(
            (built.name.as_str(), built.model.as_str(), built.limits.micro_usd),
            ("assistant", "openai/a: \"b\" #c", None)
        );
        let unknown = json!({"provider": "openai", "name": "nobody-knows", "baseUrl": "http://127.0.0.1:1/v1"});
        let refused = assistant(&Choice { model: unknown, costs: true, told: String::new() }, &Catalogue::default());
        let refused = refused.map(|one| one.ready.name).map_err(|trouble| trouble.to_string());
        assert!(refused.clone().is_err_and(|said| said.contains("nobody knows what")), "{refused:?}");
    }
}
