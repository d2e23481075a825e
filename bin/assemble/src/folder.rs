//! All agents of a folder: one that cannot be run, or does not even read, hides none of the others.

use crate::agents::{self, Manner, Ready};
use crate::obstacle::{Kind, Obstacle};
use crate::words;
use loopd_providers::Catalogue;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The endings of manifests.
const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// A manifest of a folder, and what came of it.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The file.
    pub file: PathBuf,
    /// The agent's name; `None` when the manifest does not read.
    pub name: Option<String>,
    /// What the agent is for, as the manifest says.
    pub description: Option<String>,
    /// The agent, able to start under the limits of its manifest; or why it is not available. An obstacle whose kind
    /// [is of this machine](Kind::is_of_this_machine) leaves nothing wrong with the manifest: a key is missing, or a
    /// folder, a price.
    pub agent: Result<Ready, Obstacle>,
}

/// Every agent whose manifest is directly in the folder (`*.yaml`, `*.yml`), in the order of the files' names. Of two
/// with one name the first has it.
///
/// # Errors
/// [`Obstacle`] when the folder itself does not read.
pub fn load_folder(folder: &Path, manner: Manner, catalogue: &Catalogue) -> Result<Vec<Listed>, Obstacle> {
    let unreadable =
        |error: std::io::Error| Obstacle::new(Kind::File, format!("{}: {}", folder.display(), words::os(&error)));
    let inside = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut files = inside.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    files.retain(|file| is_manifest(file));
    files.sort();
    let mut names = BTreeSet::new();
    Ok(files.into_iter().map(|file| listed(file, manner, catalogue, &mut names)).collect())
}

fn is_manifest(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known)) && file.is_file()
}

fn listed(file: PathBuf, manner: Manner, catalogue: &Catalogue, names: &mut BTreeSet<String>) -> Listed {
    let about = match agents::manifest(&file) {
        Ok(manifest) => manifest.metadata,
        Err(obstacle) => return Listed { file, name: None, description: None, agent: Err(obstacle) },
    };
    let (name, description) = (about.name, about.description);
    let agent = if names.insert(name.clone()) {
        let affordable = |ready: Ready| ready.affordable(&ready.limits).map(|()| ready);
        agents::load(&file, manner, catalogue).and_then(affordable)
    } else {
        let what = format!("{}: another manifest of this folder has the name `{name}`", file.display());
        Err(Obstacle::new(Kind::Manifest, what).fix("give one of them another name"))
    };
    Listed { file, name: Some(name), description, agent }
}
