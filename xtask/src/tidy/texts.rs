//! What no file of the repository may hold, whatever its language.

use std::collections::BTreeSet;

use crate::Scan;
use crate::repository::{Repository, TextFile};

/// What `ls` may show a newcomer.
pub const ROOT_LIMIT: usize = 20;

/// Notes to self. The first may stay if it says why; the others are the same note without a reason.
const NOTES: [&str; 3] = ["TODO", "FIXME", "XXX"];
/// Where notes are looked for: code and scripts, not the documents that examples read.
const CODE: [&str; 7] = [".rs", ".toml", ".sh", ".yaml", ".yml", ".ts", ".svelte"];
/// Folders that exist on one machine only. In pieces, so that this file does not report itself.
const MACHINE_FOLDERS: [&str; 5] = [
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("C:\\", "Users"),
];

/// A note to self says why it waits.
pub fn todo_has_reason(repository: &Repository) -> Scan {
    let mut scan = Scan::of("notes");
    for file in repository.texts.iter().filter(|file| is_code(file)) {
        scan.seen += 1;
        for (number, line) in lines(file) {
            for note in NOTES {
                for rest in whole_words(line, note) {
                    if note != "TODO" || !has_reason(rest) {
                        scan.report(format!("{}:{number}", file.path), format!("`{note}`: write TODO(why it waits)"));
                    }
                }
            }
        }
    }
    scan.finish()
}

/// Nothing depends on, or tells of, the machine it was written on.
pub fn no_machine_paths(repository: &Repository) -> Scan {
    let mut scan = Scan::of("machine paths");
    for file in &repository.texts {
        scan.seen += 1;
        for (number, line) in lines(file) {
            for folder in MACHINE_FOLDERS {
                if line.match_indices(folder).any(|(at, _)| begins_path(line, at)) {
                    scan.report(format!("{}:{number}", file.path), format!("names `{folder}`, a path of one machine"));
                }
            }
        }
    }
    scan.finish()
}

/// Packages come from the public registries; a mirror is the business of the machine that uses it.
pub fn no_registry_hosts(repository: &Repository) -> Scan {
    let mut scan = Scan::of("registry hosts");
    for file in &repository.texts {
        scan.seen += 1;
        let name = file.path.rsplit('/').next().unwrap_or_default();
        for (number, line) in lines(file) {
            let trimmed = line.trim_start();
            let foreign = match name {
                "config.toml" if file.path.contains(".cargo/") => {
                    ["[source", "[registries", "[registry", "[http", "replace-with"]
                        .iter()
                        .any(|key| trimmed.starts_with(key))
                }
                "package-lock.json" => {
                    trimmed.starts_with("\"resolved\"") && !trimmed.contains("\"https://registry.npmjs.org/")
                }
                ".npmrc" => trimmed.contains("registry") || trimmed.contains("proxy"),
                _ => false,
            };
            if foreign {
                scan.report(format!("{}:{number}", file.path), "chooses a package registry for everybody");
            }
        }
    }
    scan.finish()
}

/// The root folder can be taken in at a glance. Dot files do not show, and so do not count.
pub fn small_root(repository: &Repository) -> Scan {
    let mut scan = Scan::of("root folder");
    let entries: BTreeSet<&str> = repository
        .paths
        .iter()
        .filter_map(|path| path.split('/').next())
        .filter(|entry| !entry.starts_with('.'))
        .collect();
    scan.seen = entries.len();
    if entries.len() > ROOT_LIMIT {
        scan.report(".", format!("the root holds {} entries, {ROOT_LIMIT} are allowed", entries.len()));
    }
    scan.finish()
}

fn is_code(file: &TextFile) -> bool {
    CODE.iter().any(|ending| file.path.ends_with(ending))
}

fn lines(file: &TextFile) -> impl Iterator<Item = (usize, &str)> {
    file.text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// What follows each occurrence of `word` as a word of its own. A quoted word is spoken about, not used.
fn whole_words<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(word).filter_map(move |(at, _)| {
        let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '"' || c == '`';
        let rest = line.get(at + word.len()..)?;
        let before = line.get(..at)?.chars().next_back();
        (!before.is_some_and(joins) && !rest.starts_with(joins)).then_some(rest)
    })
}

fn has_reason(rest: &str) -> bool {
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside.trim());
    inside.is_some_and(|reason| !reason.is_empty())
}

/// `https://example.org/home/` and `a/work/b` are no paths of a machine.
fn begins_path(line: &str, at: usize) -> bool {
    let before = line.get(..at).and_then(|before| before.chars().next_back());
    !before.is_some_and(|c| c.is_alphanumeric() || "._-~}/*".contains(c))
}
