//! What a manifest names: scripts, folders, texts, skills and other agents, found on this machine.

use crate::agents::{self, below, not_an_agent};
use crate::model::model;
use crate::models;
use crate::obstacle::{Kind, Obstacle};
use crate::tools::{self, Named};
use crate::words;
use loopd_agent::manifest::Provider;
use loopd_agent::{Agent, Document, Found, Manifest, Skill};
use loopd_fixture::excerpt;
use loopd_kernel::ErasedLoop as _;
use loopd_kernel::child::MAX_DEPTH;
use loopd_providers::Catalogue;
use loopd_runtime::Tool;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest text that joins the instructions, or is a skill, in bytes: a larger one leaves no room for work.
const TEXT: u64 = 256 * 1024;

/// The file of a skill.
const SKILL: &str = "SKILL.md";

/// An agent with what was found for it.
pub struct Made {
    /// The agent.
    pub agent: Agent,
    /// The tools of this program that it uses.
    pub tools: Vec<Arc<dyn Tool>>,
    /// A model of the agents below it whose price nobody knows.
    pub unpriced: Option<String>,
}

/// The Agent of this manifest at `file`.
///
/// # Errors
/// [`Obstacle`] with what is missing; nothing was started.
pub fn agent(manifest: Manifest, file: &Path, catalogue: &Catalogue, conversation: bool) -> Result<Made, Obstacle> {
    let mut finder = Finder { catalogue, above: Vec::new(), prefix: PathBuf::new(), unpriced: None };
    let (agent, tools) = finder.agent(manifest, file, conversation)?;
    Ok(Made { agent, tools, unpriced: finder.unpriced })
}

/// Where the manifest stands that is being read.
struct Finder<'a> {
    catalogue: &'a Catalogue,
    /// The manifests that name it, from the first on.
    above: Vec<PathBuf>,
    /// Its folder as seen from that of the first.
    prefix: PathBuf,
    /// A model of an agent below it whose price nobody knows.
    unpriced: Option<String>,
}

impl Finder<'_> {
    fn agent(
        &mut self,
        mut manifest: Manifest,
        file: &Path,
        conversation: bool,
    ) -> Result<(Agent, Vec<Arc<dyn Tool>>), Obstacle> {
        let folder = agents::folder(&std::path::absolute(file)?);
        let script = match &manifest.spec.model.provider {
            Provider::OpenAi { .. } | Provider::Anthropic { .. } | Provider::Gemini { .. } => None,
            Provider::Demo { script } => Some(self::script(&below(&folder, script), script)?),
        };
        let tools = tools::tools(&manifest, Some(&folder), Named::ByManifest)?;
        let found = Found {
            tools: tools.iter().map(|tool| tool.offer().clone()).collect(),
            windows: self.windows(&manifest),
            agents: self.helpers(&manifest, file, &folder)?,
            documents: documents(&manifest, &folder)?,
            skills: skills(&manifest, &folder)?,
            conversation,
        };
        // A Run knows one folder: that of the manifest with which it was started.
        manifest.rebase(&self.prefix.to_string_lossy());
        let mut agent = Agent::new(manifest, found).map_err(|error| not_an_agent(&error))?;
        if let Some(script) = script {
            agent = agent.with_demo_script(&script).map_err(|error| not_an_agent(&error))?;
        }
        Ok((agent, tools))
    }

    /// The windows of the models that a manifest names, as far as anybody knows them.
    fn windows(&self, manifest: &Manifest) -> Vec<Option<u64>> {
        let models = manifest.models();
        let facts = models.iter().map(|(_, spec)| models::facts(spec, self.catalogue).ok());
        let windows: Vec<_> = facts.map(|facts| facts.and_then(|facts| facts.window())).collect();
        if windows.iter().all(Option::is_none) { Vec::new() } else { windows }
    }

    /// The definitions of the agents that a manifest names.
    fn helpers(&mut self, manifest: &Manifest, file: &Path, folder: &Path) -> Result<Vec<Vec<u8>>, Obstacle> {
        if manifest.spec.agents.is_empty() {
            return Ok(Vec::new());
        }
        // One that is no file can be named by none.
        let here = std::fs::canonicalize(file).or_else(|_| std::path::absolute(file))?;
        let circle = self.above.contains(&here);
        if circle || self.above.len() >= MAX_DEPTH as usize {
            let what = if circle { "name each other in a circle" } else { "are nested too deeply" };
            return Err(Obstacle::new(Kind::Manifest, format!("{}: the agents of spec.agents {what}", file.display()))
                .why("an agent is part of the definition of the one that gives it tasks")
                .fix("take one of them out of spec.agents"));
        }
        self.above.push(here);
        let prefix = self.prefix.clone();
        let definitions = manifest.spec.agents.iter().map(|helper| {
            let named = Path::new(&helper.manifest);
            self.prefix = named.parent().map(|parent| prefix.join(parent)).unwrap_or_default();
            let path = below(folder, &helper.manifest);
            std::fs::metadata(&path).map_err(|error| missing(&path, &words::os(&error), "spec.agents"))?;
            let manifest = agents::manifest(&path)?;
            let (agent, _) = self.agent(manifest.clone(), &path, false)?;
            let own = agents::folder(&std::path::absolute(&path)?);
            // It is the child's own worker that would miss a key, in the middle of the work.
            for (key, spec) in manifest.models() {
                let model = model(spec, agent.demo_script(), Some(&own), self.catalogue)?;
                if model.terms().price.is_none() {
                    self.unpriced.get_or_insert(key);
                }
            }
            Ok(agent.definition().to_vec())
        });
        let definitions = definitions.collect::<Result<_, Obstacle>>();
        self.prefix = prefix;
        self.above.pop();
        definitions
    }
}

/// The text of a demo script.
///
/// # Errors
/// [`Obstacle`] when it does not read.
pub fn script(path: &Path, name: &str) -> Result<String, Obstacle> {
    std::fs::read_to_string(path).map_err(|error| {
        Obstacle::new(Kind::Model, format!("the demo script `{}`: {}", excerpt::line(name, 200), words::os(&error)))
            .fix("spec.model.script is a path relative to the manifest")
    })
}

/// The texts that a manifest names as instructions.
fn documents(manifest: &Manifest, folder: &Path) -> Result<Vec<Document>, Obstacle> {
    let named = manifest.spec.context.instructions.iter();
    let read = named.map(|name| {
        let text = text(&below(folder, name), "spec.context.instructions")?;
        Ok(Document { name: name.clone(), text: text.trim_end().into() })
    });
    read.collect()
}

/// The skills of the folders that a manifest names, in the order of their names.
fn skills(manifest: &Manifest, folder: &Path) -> Result<Vec<Skill>, Obstacle> {
    let mut skills: Vec<Skill> = Vec::new();
    for name in &manifest.spec.context.skills {
        let root = below(folder, name);
        let mut folders = vec![root.clone()];
        if !root.join(SKILL).is_file() {
            let wrong = |error: std::io::Error| missing(&root, &words::os(&error), "spec.context.skills");
            let inside = std::fs::read_dir(&root).map_err(wrong)?;
            folders = inside.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(wrong)?;
            folders.retain(|folder| folder.join(SKILL).is_file());
            folders.sort();
        }
        if folders.is_empty() {
            return Err(missing(&root, "no SKILL.md is in it", "spec.context.skills"));
        }
        for folder in folders {
            let file = folder.join(SKILL);
            let bytes = text(&file, "spec.context.skills")?;
            let own = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let skill = Skill::parse(&file.to_string_lossy(), &own, bytes.as_bytes())
                .map_err(|error| Obstacle::new(Kind::Manifest, excerpt::lines(&error.to_string())))?;
            if skills.iter().any(|other| other.name == skill.name) {
                let what = format!("{}: there is another skill `{}`", file.display(), excerpt::line(&skill.name, 64));
                return Err(Obstacle::new(Kind::Manifest, what).fix("give one of them another name"));
            }
            skills.push(skill);
        }
    }
    Ok(skills)
}

fn text(path: &Path, field: &str) -> Result<String, Obstacle> {
    let size = std::fs::metadata(path).map_err(|error| missing(path, &words::os(&error), field))?.len();
    if size > TEXT {
        let what = format!("it has {size} bytes, and at most {TEXT} are read");
        return Err(missing(path, &what, field));
    }
    std::fs::read_to_string(path).map_err(|error| missing(path, &words::os(&error), field))
}

fn missing(path: &Path, why: &str, field: &str) -> Obstacle {
    Obstacle::new(Kind::Manifest, format!("{}: {why}", path.display()))
        .why(format!("{field} names it, relative to the manifest's folder"))
        .fix(format!("put it there, or correct {field}"))
}
