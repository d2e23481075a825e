//! The demo agent, which every server brings along: it plays a script, offline, and is labelled as such.

use crate::targets::BuiltIn;
use crate::trouble::{Exit, Trouble};
use loopd_agent::{Agent, Manifest};
use loopd_assemble::{Ready, model};
use loopd_providers::Catalogue;
use loopd_runtime::Program;
use std::sync::Arc;

/// The name of the model that plays scripts.
pub const MODEL: &str = "demo";

const MANIFEST: &str = include_str!("../demo/agent.yaml");
const SCRIPT: &str = include_str!("../demo/script.json");

/// The agent.
///
/// # Errors
/// None in practice: a test makes it.
pub fn agent(catalogue: &Catalogue) -> Result<Ready, Trouble> {
    let broken = |why: String| Trouble::new(Exit::Failed, format!("the demo agent: {why}"));
    let manifest =
        Manifest::parse("demo/agent.yaml", MANIFEST.as_bytes()).map_err(|error| broken(error.to_string()))?;
    let (about, spec) = (manifest.metadata.clone(), manifest.spec.model.clone());
    let agent = Agent::from_manifest(manifest, Vec::new()).and_then(|agent| agent.with_demo_script(SCRIPT));
    let agent = agent.map_err(|error| broken(error.to_string()))?;
    let (limits, key) = (agent.limits(), spec.key());
    let model = model::model(&spec, Some(SCRIPT), None, catalogue)?;
    let program = Arc::new(Program::new(Arc::new(agent)).model(key.clone(), model));
    let (name, description) = (about.name, about.description);
    Ok(Ready { name, description, model: key, unpriced: None, near: None, limits, program })
}

/// The agent, as servers bring it along.
///
/// # Errors
/// As [`agent`].
pub fn built_in(catalogue: &Catalogue) -> Result<BuiltIn, Trouble> {
    Ok(BuiltIn { ready: agent(catalogue)?, demo: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_agent_is_one() {
        let agent = agent(&Catalogue::default()).map(|ready| (ready.name, ready.model));
        assert_eq!(agent.map_err(|trouble| trouble.to_string()), Ok(("demo".to_owned(), MODEL.to_owned())));
    }
}
