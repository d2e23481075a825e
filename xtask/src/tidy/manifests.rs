//! Manifests take everything shared from the root, and nothing is built that is banned.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::Scan;
use crate::repository::Repository;

const REASONS: &str = "docs/dependencies.md";
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The folders of the pure tier, from the root manifest.
pub fn pure_folders(repository: &Repository) -> Result<Vec<String>> {
    let root = parse(repository, "Cargo.toml")?;
    let list = at(&root, &["workspace", "metadata", "loopd", "pure"]).and_then(Value::as_array);
    let list = list.context("Cargo.toml: [workspace.metadata.loopd] pure is missing")?;
    Ok(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// Every member inherits lints and dependency versions, so that there is one place to change each.
pub fn inherit(repository: &Repository) -> Result<Scan> {
    let mut scan = Scan::of("manifests");
    for path in repository.paths.iter().filter(|path| path.ends_with("/Cargo.toml")) {
        scan.seen += 1;
        let manifest = parse(repository, path)?;
        if at(&manifest, &["lints", "workspace"]).and_then(Value::as_bool) != Some(true) {
            scan.report(path, "must say `[lints] workspace = true`");
        }
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let targets = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
            let tables = targets.filter_map(Value::as_table).chain([&manifest]);
            let dependencies = tables.filter_map(|table| table.get(kind)).filter_map(Value::as_table).flatten();
            for (name, dependency) in dependencies {
                if dependency.get("workspace").and_then(Value::as_bool) != Some(true) {
                    scan.report(path, format!("`{name}` must come from [workspace.dependencies]"));
                }
            }
        }
    }
    Ok(scan.finish())
}

/// Every external dependency is there for a reason that somebody wrote down.
pub fn dependencies_have_reasons(repository: &Repository) -> Result<Scan> {
    let mut scan = Scan::of("dependency reasons");
    let reasons = repository.text(REASONS).with_context(|| format!("{REASONS} is missing"))?;
    // The first column of the tables may name several crates that come together.
    let named: BTreeSet<&str> = reasons
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.split('|').next())
        .flat_map(|cell| cell.split(','))
        .map(str::trim)
        .collect();
    let root = parse(repository, "Cargo.toml")?;
    let declared = at(&root, &["workspace", "dependencies"]).and_then(Value::as_table);
    for (name, dependency) in declared.into_iter().flatten() {
        scan.seen += 1;
        if dependency.get("path").is_none() && !named.contains(name.as_str()) {
            scan.report("Cargo.toml", format!("`{name}` has no line in {REASONS}"));
        }
    }
    Ok(scan.finish())
}

/// The crates of the pure tier share one stricter clippy.toml. Clippy reads the nearest such file only, so a crate
/// without its own would silently fall back to the lists of the root.
pub fn pure_tier_bans(repository: &Repository, pure: &[String]) -> Scan {
    let mut scan = Scan::of("pure tier bans");
    let path_in = |folder: &String| format!("{folder}/clippy.toml");
    let shared = pure.first().and_then(|first| repository.text(&path_in(first)));
    for folder in pure {
        scan.seen += 1;
        match repository.text(&path_in(folder)) {
            None => scan.report(path_in(folder), "is missing: copy it from another crate of the pure tier"),
            text if text != shared => scan.report(path_in(folder), "differs from the rest of the pure tier"),
            Some(text) if !text.contains("std::time::SystemTime::now") => {
                scan.report(path_in(folder), "does not ban the clock");
            }
            Some(_) => {}
        }
    }
    scan.finish()
}

/// None of the packages that are built is banned by deny.toml. The lock file also names packages of features
/// that are off, so the resolved graph is asked.
pub fn banned(repository: &Repository, resolved: &[String]) -> Result<Scan> {
    let mut scan = Scan::of("banned packages");
    let deny = parse(repository, "deny.toml")?;
    let banned: Vec<&str> = at(&deny, &["bans", "deny"])
        .and_then(Value::as_array)
        .context("deny.toml: [bans] deny is missing")?
        .iter()
        .filter_map(|entry| entry.get("crate").and_then(Value::as_str))
        .collect();
    for name in resolved {
        scan.seen += 1;
        if banned.contains(&name.as_str()) {
            scan.report("Cargo.lock", format!("`{name}` is banned by deny.toml"));
        }
    }
    Ok(scan.finish())
}

/// The names of all packages that some crate of this workspace builds, on any target.
pub fn resolved_packages() -> Result<Vec<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["tree", "--workspace", "--all-features", "--target", "all", "--prefix", "none", "--format", "{p}"];
    let output = Command::new(cargo).args(words).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout).context("cargo tree wrote no text")?;
    let names: BTreeSet<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    Ok(names.into_iter().map(String::from).collect())
}

/// The lock file names crates.io only.
pub fn lock_file(repository: &Repository) -> Result<Scan> {
    let mut scan = Scan::of("lock file");
    let lock = parse(repository, "Cargo.lock")?;
    for package in lock.get("package").and_then(Value::as_array).into_iter().flatten() {
        scan.seen += 1;
        let name = package.get("name").and_then(Value::as_str).unwrap_or_default();
        match package.get("source").and_then(Value::as_str) {
            None | Some(CRATES_IO) => {}
            Some(source) => scan.report("Cargo.lock", format!("`{name}` comes from {source}, not from crates.io")),
        }
    }
    Ok(scan.finish())
}

fn parse(repository: &Repository, path: &str) -> Result<Table> {
    let text = repository.text(path).with_context(|| format!("{path} is missing"))?;
    toml::from_str(text).with_context(|| format!("{path} is malformed"))
}

fn at<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}
