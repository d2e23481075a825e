//! What the top of a source file must say and must not say.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

use crate::Scan;
use crate::repository::Repository;

/// Lints that a program, whose trade is talking to a terminal, may switch off for its whole crate.
const TALKING: [&str; 2] = ["clippy::print_stdout", "clippy::print_stderr"];
/// Where programs live.
const PROGRAMS: [&str; 4] = ["bin/", "examples/", "bench/", "xtask/"];
const WILDCARD_LINT: &str = "clippy::wildcard_enum_match_arm";

/// Every file opens by saying what it is for.
pub fn module_docs(repository: &Repository) -> Scan {
    let mut scan = Scan::of("module docs");
    for file in &repository.rust {
        scan.seen += 1;
        if !file.text.starts_with("//!") {
            scan.report(&file.path, "must begin with a `//!` comment that says what this module is for");
        }
    }
    scan.finish()
}

/// A lint is switched off where it hurts, with a reason, never for a whole crate.
pub fn no_blanket_allow(repository: &Repository) -> Scan {
    let mut scan = Scan::of("blanket allow");
    for file in repository.rust.iter().filter(|file| file.is_crate_root() && !file.is_test()) {
        scan.seen += 1;
        let is_program = PROGRAMS.iter().any(|folder| file.path.starts_with(folder));
        for lint in file.syntax.attrs.iter().flat_map(|attribute| lints(attribute, &["allow", "expect", "warn"])) {
            if !(is_program && TALKING.contains(&lint.as_str())) {
                scan.report(&file.path, format!("switches `{lint}` off for the whole crate: do it at the item"));
            }
        }
    }
    scan.finish()
}

/// A new variant must make the pure tier fail to compile, not fall through a wildcard.
pub fn pure_tier_denies_wildcards(repository: &Repository, pure: &[String]) -> Scan {
    let mut scan = Scan::of("pure tier lints");
    for folder in pure {
        let path = format!("{folder}/src/lib.rs");
        let Some(file) = repository.rust.iter().find(|file| file.path == path) else {
            continue;
        };
        scan.seen += 1;
        let denied = |attribute| lints(attribute, &["deny", "forbid"]).iter().any(|lint| lint == WILDCARD_LINT);
        if !file.syntax.attrs.iter().any(denied) {
            scan.report(path, format!("must say `#![deny({WILDCARD_LINT})]`"));
        }
    }
    scan.finish()
}

/// The lints named by an attribute of one of these levels. `cfg_attr(test, …)` concerns tests only and names none.
fn lints(attribute: &Attribute, levels: &[&str]) -> Vec<String> {
    lints_of(&attribute.meta, levels)
}

fn lints_of(meta: &Meta, levels: &[&str]) -> Vec<String> {
    let Meta::List(list) = meta else { return Vec::new() };
    let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
        return Vec::new();
    };
    if list.path.is_ident("cfg_attr") {
        let for_tests = parts.first().is_some_and(|condition| condition.path().is_ident("test"));
        return if for_tests {
            Vec::new()
        } else {
            parts.iter().skip(1).flat_map(|part| lints_of(part, levels)).collect()
        };
    }
    if !levels.iter().any(|level| list.path.is_ident(level)) {
        return Vec::new();
    }
    // `reason = "…"` is no lint.
    parts.iter().filter(|part| matches!(part, Meta::Path(_))).map(|part| path_text(part.path())).collect()
}

fn path_text(path: &syn::Path) -> String {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>().join("::")
}
