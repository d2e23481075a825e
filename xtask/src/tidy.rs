//! The habits of the code base that a machine can check, so that reviews can talk about something else.

pub mod glossary;
pub mod manifests;
pub mod size;
pub mod sources;
pub mod texts;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

use crate::Scan;
use crate::repository::Repository;

/// Runs every check of this module.
pub fn check(repository: &Repository) -> Result<Vec<Scan>> {
    let ratchet = settings(repository, "xtask/ratchet.toml")?;
    let words = settings(repository, "xtask/glossary.toml")?;
    let pure = manifests::pure_folders(repository)?;
    Ok(vec![
        size::files(repository, &ratchet),
        size::functions(repository, &ratchet),
        sources::module_docs(repository),
        sources::no_blanket_allow(repository),
        sources::pure_tier_denies_wildcards(repository, &pure),
        manifests::pure_tier_bans(repository, &pure),
        manifests::inherit(repository)?,
        manifests::lock_file(repository)?,
        manifests::banned(repository, &manifests::resolved_packages()?)?,
        manifests::dependencies_have_reasons(repository)?,
        texts::todo_has_reason(repository),
        texts::no_machine_paths(repository),
        texts::no_registry_hosts(repository),
        texts::small_root(repository),
        glossary::identifiers(repository, &words),
        glossary::docs(repository, &words),
        glossary::exceptions_are_needed(repository, &words),
    ])
}

fn settings<T: DeserializeOwned>(repository: &Repository, path: &str) -> Result<T> {
    let text = repository.text(path).with_context(|| format!("{path} is missing"))?;
    toml::from_str(text).with_context(|| format!("{path} is malformed"))
}
