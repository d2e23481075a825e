//! The folder of agents: what is in it, and whether that is still the same.

use crate::trouble::{Exit, Trouble};
use loopd_assemble::{Listed, Manner, load_folder, manifest};
use loopd_providers::Catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What tells one state of a file from another without reading it: its identity, its length, and when it was changed.
type State = (u64, u64, i64, i64);

/// What files looked like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look(BTreeMap<PathBuf, Option<State>>);

/// The manifests of a folder.
#[derive(Debug, Clone, Default)]
pub struct Read {
    /// What the files looked like before they were read, so that no change is missed.
    pub look: Look,
    /// Each manifest, and what came of it.
    pub listed: Vec<Listed>,
    /// The files that they name.
    pub named: BTreeSet<PathBuf>,
}

/// What a folder looks like, and with it the files that its manifests name. One that does not read looks like nothing.
pub fn look(folder: Option<&Path>, named: &BTreeSet<PathBuf>) -> Look {
    let inside = |folder: &Path| -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
    };
    let inside = folder.and_then(|folder| inside(folder).ok()).unwrap_or_default();
    let state = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ino(), found.len(), found.ctime(), found.ctime_nsec()))
    };
    Look(inside.iter().chain(named).map(|path| (path.clone(), state(path))).collect())
}

/// Reads a folder. A manifest that does not read hides none of the others.
///
/// # Errors
/// [`Trouble`] when the folder does not read.
pub fn read(folder: Option<&Path>, named: &BTreeSet<PathBuf>, catalogue: &Catalogue) -> Result<Read, Trouble> {
    let look = look(folder, named);
    let Some(folder) = folder else { return Ok(Read { look, ..Read::default() }) };
    let listed = load_folder(folder, Manner::Task, catalogue).map_err(|obstacle| {
        Trouble::new(Exit::Usage, format!("the folder of agents: {}", obstacle.what))
            .fix("name a folder with the manifests of agents (*.yaml) with --agents, or leave it out")
    })?;
    let manifests = listed.iter().filter_map(|one| manifest(&one.file).ok());
    let named = manifests.flat_map(|manifest| manifest.paths()).map(|path| folder.join(path)).collect();
    Ok(Read { look, listed, named })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_looks_different_when_anything_in_it_changes() {
        let dir = tempfile::tempdir().expect("a folder");
        let beside = tempfile::tempdir().expect("a folder");
        let named = BTreeSet::from([beside.path().join("script.json")]);
        let now = || look(Some(dir.path()), &named);
        let mut seen = vec![now()];
        let file = dir.path().join("a.yaml");
        let put = |text: &str| std::fs::write(&file, text).expect("written");
        let steps: [&dyn Fn(); 4] = [
            &|| put("one"),
            &|| put("three"),
            &|| std::fs::write(beside.path().join("script.json"), "x").expect("written"),
            &|| std::fs::remove_file(&file).expect("removed"),
        ];
        for step in steps {
            step();
            assert_eq!(now(), now());
            assert!(!seen.contains(&now()), "{:?}", now());
            seen.push(now());
        }
        assert_eq!(look(None, &BTreeSet::new()), Look::default());
    }
}
