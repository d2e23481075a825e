//! Agents for tests: their manifests are a line with their name.

use async_trait::async_trait;
use loopd_platform::agents::{Roster, in_file};
use loopd_platform::{Engine, Error, Platform};
use loopd_protocol::{Agent, AgentSource};
use std::sync::Mutex;

/// One agent is in a file, one is brought along, and the others are kept.
#[derive(Debug)]
pub struct Shelf {
    platform: Platform,
    now: Mutex<Vec<Agent>>,
}

fn agent(name: &str, source: AgentSource, file: Option<&str>) -> Agent {
    Agent {
        name: name.to_owned(),
        source,
        file: file.map(str::to_owned),
        description: String::new(),
        version: Some("1".to_owned()),
        model: Some("demo".to_owned()),
        error: None,
        unavailable: None,
    }
}

fn usual() -> Vec<Agent> {
    vec![agent("filed", AgentSource::File, Some("agents/filed.yaml")), agent("brought", AgentSource::BuiltIn, None)]
}

impl Shelf {
    pub fn of(engine: &Engine) -> Self {
        Self { platform: engine.platform().clone(), now: Mutex::new(usual()) }
    }
}

#[async_trait]
impl Roster for Shelf {
    fn list(&self) -> Vec<Agent> {
        self.now.lock().unwrap().clone()
    }

    async fn check(&self, name: &str, manifest: &str) -> Result<(), Error> {
        let usual = usual();
        if let Some(filed) = usual.iter().find(|one| one.name == name && one.source == AgentSource::File) {
            return Err(in_file(filed));
        }
        let named = manifest.lines().next().and_then(|line| line.strip_prefix("name: "));
        match named {
            Some(named) if named == name => Ok(()),
            Some(_) => Err(Error::invalid("metadata.name", "it is that of another")),
            None => Err(Error::invalid("manifest", "line 1: expected a name")),
        }
    }

    async fn follow(&self) -> Result<(), Error> {
        let kept = self.platform.kept_agents().await?;
        let mut now: Vec<_> = kept.iter().map(|kept| agent(&kept.name, AgentSource::Kept, None)).collect();
        let named = |name: &String| kept.iter().any(|kept| kept.name == *name);
        now.extend(usual().into_iter().filter(|one| !named(&one.name)));
        *self.now.lock().unwrap() = now;
        Ok(())
    }
}
