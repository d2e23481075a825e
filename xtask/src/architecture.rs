//! The one-way rule: which crate may depend on what, held against `[workspace.metadata.loopd]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::Scan;
use crate::repository::Repository;

/// The part of `cargo metadata --no-deps` that matters here.
#[derive(Debug, Clone, Deserialize)]
pub struct Metadata {
    /// Where the paths of own crates begin.
    pub workspace_root: String,
    /// The members of the workspace.
    pub packages: Vec<Package>,
    /// The tables of the root manifest.
    pub metadata: Tables,
}

/// `[workspace.metadata]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Tables {
    /// `[workspace.metadata.loopd]`.
    pub loopd: Rules,
}

/// What the root manifest declares about its crates. Crates are named by folder; `folder/*` stands for all
/// crates directly under it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rules {
    /// Crates that few may name.
    pub adapters: Vec<String>,
    /// The few.
    pub adapter_users: Vec<String>,
    /// Crates without clock, socket, thread or randomness.
    pub pure: Vec<String>,
    /// Crates that must be `#![no_std]`.
    pub no_std: Vec<String>,
    /// What tests of pure crates may use besides the crate's own list.
    pub pure_dev_dependencies: Vec<String>,
    /// The layer of every crate.
    pub layers: BTreeMap<String, Layer>,
    /// Crate, feature, adapter.
    pub adapter_features: BTreeMap<String, BTreeMap<String, String>>,
    /// External dependency and the only crates that may name it.
    pub confined: BTreeMap<String, Vec<String>>,
    /// Pure crate and the complete list of its external dependencies.
    pub allowed: BTreeMap<String, Vec<String>>,
}

/// A place in the order of dependencies.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Layer {
    /// Depends on smaller numbers only.
    Number(u32),
    /// Stands outside the order: nothing depends on it and it depends on no own crate.
    Outside(String),
}

/// A member of the workspace.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// The absolute path of its manifest.
    pub manifest_path: String,
    /// What it declares to depend on.
    pub dependencies: Vec<Dependency>,
    /// Its features.
    pub features: BTreeMap<String, Vec<String>>,
}

/// A declared dependency.
#[derive(Debug, Clone, Deserialize)]
pub struct Dependency {
    /// The package depended on.
    pub name: String,
    /// `None` for a normal one, else `dev` or `build`.
    pub kind: Option<String>,
    /// Whether only a feature turns it on.
    pub optional: bool,
    /// The absolute path, for own crates.
    pub path: Option<String>,
}

impl Dependency {
    fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}

impl Metadata {
    /// Asks cargo about the workspace at `root`.
    pub fn read(root: &Path) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(root)
            .output()
            .context("cannot start cargo")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("[workspace.metadata.loopd] is incomplete")
    }

    fn rules(&self) -> &Rules {
        &self.metadata.loopd
    }

    fn folder<'a>(&self, absolute: &'a str) -> &'a str {
        absolute.strip_prefix(&self.workspace_root).unwrap_or(absolute).trim_start_matches('/')
    }

    fn folder_of<'a>(&self, package: &'a Package) -> &'a str {
        self.folder(&package.manifest_path).trim_end_matches("Cargo.toml").trim_end_matches('/')
    }

    fn layer(&self, folder: &str) -> Option<&Layer> {
        let layers = &self.rules().layers;
        layers.get(folder).or_else(|| layers.iter().find(|(at, _)| covers(at, folder)).map(|(_, layer)| layer))
    }

    /// Every (member, its folder, dependency).
    fn edges(&self) -> impl Iterator<Item = (&Package, &str, &Dependency)> {
        self.packages.iter().flat_map(|package| {
            let folder = self.folder_of(package);
            package.dependencies.iter().map(move |dependency| (package, folder, dependency))
        })
    }
}

/// Whether a folder pattern of the tables means this folder.
fn covers(pattern: &str, folder: &str) -> bool {
    match pattern.strip_suffix("/*") {
        Some(parent) => folder
            .strip_prefix(parent)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|name| !name.is_empty() && !name.contains('/')),
        None => pattern == folder,
    }
}

fn any_covers<S: AsRef<str>>(patterns: &[S], folder: &str) -> bool {
    patterns.iter().any(|pattern| covers(pattern.as_ref(), folder))
}

/// Runs every check of this module.
pub fn check(metadata: &Metadata, repository: &Repository) -> Vec<Scan> {
    vec![
        listed(metadata, repository),
        direction(metadata),
        adapters(metadata),
        confined(metadata),
        allowed(metadata),
        no_std(metadata, repository),
    ]
}

/// Every crate has a layer, every manifest was seen, and no table speaks of a crate that does not exist.
pub fn listed(metadata: &Metadata, repository: &Repository) -> Scan {
    let mut scan = Scan::of("listed");
    let folders: BTreeSet<&str> = metadata.packages.iter().map(|package| metadata.folder_of(package)).collect();
    for folder in &folders {
        scan.seen += 1;
        match metadata.layer(folder) {
            Some(Layer::Number(_)) => {}
            Some(Layer::Outside(word)) if word == "tool" => {}
            Some(Layer::Outside(word)) => {
                scan.report(*folder, format!("the layer `{word}` is neither a number nor \"tool\""));
            }
            None => scan.report(*folder, "has no layer: add it to [workspace.metadata.loopd.layers]"),
        }
    }
    for path in &repository.paths {
        if let Some(folder) = path.strip_suffix("/Cargo.toml")
            && !folders.contains(folder)
        {
            scan.report(path, "this manifest is no member of the workspace, so no check reaches it");
        }
    }
    let rules = metadata.rules();
    let named = [&rules.adapters, &rules.adapter_users, &rules.pure, &rules.no_std]
        .into_iter()
        .chain(rules.confined.values())
        .flatten()
        .chain(rules.layers.keys())
        .chain(rules.allowed.keys())
        .chain(rules.adapter_features.keys())
        .chain(rules.adapter_features.values().flat_map(BTreeMap::values));
    for pattern in named.collect::<BTreeSet<_>>() {
        if !folders.iter().any(|folder| covers(pattern, folder)) {
            scan.report("Cargo.toml", format!("[workspace.metadata.loopd] names `{pattern}`, where no crate is"));
        }
    }
    scan.finish()
}

/// A crate depends on strictly lower layers only; tests may look upwards, except in the pure tier.
pub fn direction(metadata: &Metadata) -> Scan {
    let mut scan = Scan::of("direction");
    for (_, folder, dependency) in metadata.edges() {
        scan.seen += 1;
        let Some(target) = dependency.path.as_deref().map(|path| metadata.folder(path)) else {
            continue;
        };
        if dependency.is_dev() {
            if any_covers(&metadata.rules().pure, folder) && !any_covers(&metadata.rules().pure, target) {
                scan.report(folder, format!("is pure, and so are its tests: they cannot use {target}"));
            }
            continue;
        }
        match (metadata.layer(folder), metadata.layer(target)) {
            (Some(Layer::Number(own)), Some(Layer::Number(theirs))) if theirs < own => {}
            (Some(Layer::Number(own)), Some(Layer::Number(theirs))) => scan.report(
                folder,
                format!("(layer {own}) depends on {target} (layer {theirs}): only strictly lower layers"),
            ),
            (Some(_), Some(_)) => {
                scan.report(folder, format!("depends on {target}: a tool stands outside the layers"));
            }
            // A missing layer is reported by `listed`.
            (None, _) | (_, None) => {}
        }
    }
    scan.finish()
}

/// Adapters meet only where programs are composed.
pub fn adapters(metadata: &Metadata) -> Scan {
    let mut scan = Scan::of("adapters");
    let rules = metadata.rules();
    for (package, folder, dependency) in metadata.edges() {
        scan.seen += 1;
        let Some(target) = dependency.path.as_deref().map(|path| metadata.folder(path)) else {
            continue;
        };
        let of_no_concern = !any_covers(&rules.adapters, target) || any_covers(&rules.adapter_users, folder);
        if of_no_concern || dependency.is_dev() {
            continue;
        }
        let feature = rules.adapter_features.get(folder).and_then(|features| {
            features.iter().find(|(_, adapter)| adapter.as_str() == target).map(|(feature, _)| feature)
        });
        match feature {
            None => scan.report(
                folder,
                format!("names the adapter {target}: adapters are named only by {}", rules.adapter_users.join(", ")),
            ),
            Some(feature) if !only_behind(package, dependency, feature) => {
                scan.report(folder, format!("{target} must be optional and turned on by the feature `{feature}` alone"))
            }
            Some(_) => {}
        }
    }
    scan.finish()
}

/// Whether exactly this feature turns an optional dependency on.
fn only_behind(package: &Package, dependency: &Dependency, feature: &str) -> bool {
    let switch = format!("dep:{}", dependency.name);
    let turned_on_by: Vec<&String> =
        package.features.iter().filter(|(_, enables)| enables.contains(&switch)).map(|(name, _)| name).collect();
    dependency.optional && turned_on_by == [feature]
}

/// A heavy or telling dependency stays in the crates that exist for it.
pub fn confined(metadata: &Metadata) -> Scan {
    let mut scan = Scan::of("confined");
    for (_, folder, dependency) in metadata.edges() {
        scan.seen += 1;
        let Some(homes) = metadata.rules().confined.get(&dependency.name) else {
            continue;
        };
        if !dependency.is_dev() && !any_covers(homes, folder) {
            scan.report(folder, format!("depends on {}, which is confined to {}", dependency.name, homes.join(", ")));
        }
    }
    scan.finish()
}

/// A pure crate depends on nothing beyond its list.
pub fn allowed(metadata: &Metadata) -> Scan {
    let mut scan = Scan::of("allowed");
    let rules = metadata.rules();
    for folder in &rules.pure {
        if !rules.allowed.contains_key(folder) {
            scan.report(folder, "is pure, but has no list in [workspace.metadata.loopd.allowed]");
        }
    }
    for package in &metadata.packages {
        let folder = metadata.folder_of(package);
        let Some(list) = rules.allowed.get(folder) else {
            continue;
        };
        scan.seen += 1;
        for dependency in package.dependencies.iter().filter(|dependency| dependency.path.is_none()) {
            let for_tests = dependency.is_dev() && rules.pure_dev_dependencies.contains(&dependency.name);
            if !list.contains(&dependency.name) && !for_tests {
                scan.report(folder, format!("is pure: {} is not on its list of dependencies", dependency.name));
            }
        }
    }
    scan.finish()
}

/// The kernel says `#![no_std]` without condition, so that a clock or a socket is a compile error there.
pub fn no_std(metadata: &Metadata, repository: &Repository) -> Scan {
    let mut scan = Scan::of("no_std");
    for folder in &metadata.rules().no_std {
        let path = format!("{folder}/src/lib.rs");
        let Some(root) = repository.rust.iter().find(|file| file.path == path) else {
            continue;
        };
        scan.seen += 1;
        if !root.syntax.attrs.iter().any(|attribute| attribute.path().is_ident("no_std")) {
            scan.report(path, "must say `#![no_std]`");
        }
    }
    scan.finish()
}
