//! The folder of agents: what is in it, and whether that is still the same.

use crate::trouble::{Exit, Trouble};
use loopd_assemble::{Listed, Manner, load_folder, manifest};
use loopd_providers::Catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a file may be away and count as there: whoever replaces one may do it in two steps.
const AWAY: Duration = Duration::from_secs(2);

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

/// Files that are away, and since when.
pub type Away = BTreeMap<PathBuf, Instant>;

impl Read {
    /// The same, with what was there before and is away for a moment only; `away` follows. What waits for an agent does
    /// not end because its file is just being replaced.
    pub fn patient(mut self, before: &Self, away: &mut Away, now: Instant) -> Self {
        let is_there = |one: &Listed| {
            let is_it = |other: &Listed| other.file == one.file || (other.name.is_some() && other.name == one.name);
            self.listed.iter().any(is_it)
        };
        let missing: Vec<_> = before.listed.iter().filter(|one| !is_there(one)).cloned().collect();
        let since = |file: &PathBuf| away.get(file).copied().unwrap_or(now);
        let still: Vec<_> = missing.into_iter().map(|one| (since(&one.file), one)).collect();
        away.clear();
        for (since, one) in still.into_iter().filter(|(since, _)| now.duration_since(*since) < AWAY) {
            away.insert(one.file.clone(), since);
            self.listed.push(one);
        }
        self.listed.sort_by(|one, other| one.file.cmp(&other.file));
        self
    }
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
    fn a_file_that_is_away_for_a_moment_is_not_gone() {
        // FILE:AGENT.
        let listed = |files: &str| {
            let listed = files.split_whitespace().map(|one| {
                let (file, name) = one.split_once(':').expect("a file and its agent");
                let agent = Err(manifest(Path::new("nowhere.yaml")).expect_err("there is none"));
                Listed { file: file.into(), name: Some(name.to_owned()), description: None, agent }
            });
            Read { listed: listed.collect(), ..Read::default() }
        };
        let (start, mut away, mut read) = (Instant::now(), Away::new(), listed("a:x b:y"));
        let mut check = |ms: u64, found: &str, expected: &str| {
            read = listed(found).patient(&read, &mut away, start + Duration::from_millis(ms));
            let there: Vec<_> = read.listed.iter().map(|one| one.file.to_string_lossy()).collect();
            assert_eq!(format!("{}, {} away", there.join(" "), away.len()), expected);
        };
        check(0, "b:y", "a b, 1 away");
        check(1000, "a:x b:y", "a b, 0 away");
        check(2000, "b:y", "a b, 1 away");
        check(3999, "b:y", "a b, 1 away");
        check(4000, "b:y", "b, 0 away");
        check(4001, "a:x b:y", "a b, 0 away");
        // The same agent in another file.
        check(5000, "b:y c:x", "b c, 0 away");
    }

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
