//! `operator new`: the project of an Operator, made of the files in `templates/operator`.

use crate::cli::NewOperatorArgs;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_fixture::excerpt;
use loopd_protocol::{ActorKey, ActorKind};
use serde::Serialize;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The name in the templates, as a package and as a crate.
const NAME: [&str; 2] = ["scaffold-name", "scaffold_name"];

/// Where a template names the checkout.
const CHECKOUT: &str = "{{loopd}}";

/// The files: where they go, and what they hold. The manifest is one of cargo's only where it comes to stand.
const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", include_str!("../../templates/operator/manifest.toml")),
    ("src/lib.rs", include_str!("../../templates/operator/src/lib.rs")),
    ("src/main.rs", include_str!("../../templates/operator/src/main.rs")),
    ("tests/operator.rs", include_str!("../../templates/operator/tests/operator.rs")),
    ("README.md", include_str!("../../templates/operator/README.md")),
    (".gitignore", include_str!("../../templates/operator/gitignore")),
];

/// The crates of a checkout that a project names.
const CRATES: [&str; 4] = ["client", "inside", "operator", "protocol"];

/// The lock file of the checkout comes along: these are the versions that loopd is tested with.
const LOCK: &str = "Cargo.lock";

/// What Rust has words of its own for, and what cargo takes no package under.
const TAKEN: &str = "abstract alloc as async await become box break build const continue core crate deps do dyn else enum \
    examples extern false final fn for gen if impl in incremental let loop macro match mod move mut override priv \
    proc_macro pub ref return self static std struct super test trait true try type typeof unsafe unsized use virtual \
    where while yield anyhow async-trait loopd-client loopd-inside loopd-operator loopd-protocol tokio tokio-util \
    tracing-subscriber";

/// What was made.
#[derive(Serialize)]
struct Made<'a> {
    name: &'a str,
    /// Who it speaks as.
    actor: String,
    folder: &'a Path,
    loopd: String,
    files: Vec<&'a str>,
}

/// Makes the project.
///
/// # Errors
/// [`Problem`]: a name that is none, no checkout, or something that is there already. Nothing is left of it then.
pub fn new(args: &NewOperatorArgs) -> Result<Exit, Problem> {
    let name = name(&args.name)?;
    let checkout = checkout(args.loopd.as_deref())?;
    let path = checkout.to_str().ok_or_else(|| {
        Problem::new(Code::Usage, format!("{}: the path is not UTF-8, which a manifest has to be", checkout.display()))
    })?;
    let folder = Path::new(name);
    std::fs::create_dir(folder).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Problem::new(Code::File, format!("./{name} is there already"))
            .why("nothing is overwritten")
            .fix("choose another name, or another folder to call this in"),
        _ => Problem::new(Code::Io, format!("./{name}: {}", words::os(&error))),
    })?;
    let lock = std::fs::read_to_string(checkout.join(LOCK)).ok();
    let lock = lock.as_deref().map(|text| (LOCK, text.to_owned()));
    let files: Vec<_> = FILES.iter().map(|(file, text)| (*file, filled(text, name, path))).chain(lock).collect();
    for (file, text) in &files {
        write(&folder.join(file), text).map_err(|error| {
            // Half a project helps nobody, and the folder is ours: it was not there.
            let _ = std::fs::remove_dir_all(folder);
            Problem::new(Code::Io, format!("./{name}/{file}: {}", words::os(&error)))
        })?;
    }
    let files = files.iter().map(|(file, _)| *file).collect();
    let made = Made { name, actor: format!("operator/{name}"), folder, loopd: path.to_owned(), files };
    say(&made, args.format.format)?;
    Ok(Exit::Completed)
}

/// A name that is a key of an Actor and the name of a package at once.
fn name(name: &str) -> Result<&str, Problem> {
    let wrong = |why: &str| {
        Problem::new(Code::Usage, format!("`{}` is no name for an operator: {why}", excerpt::line(name, 80)))
            .fix("a-z, 0-9, - and _, at most 64, a letter first: loopctl operator new triage")
    };
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
    if name.is_empty() {
        return Err(wrong("it is empty"));
    }
    if name.len() > 64 {
        return Err(wrong("it has more than 64 characters"));
    }
    if !is_plain || ActorKey::new(ActorKind::Operator, name).is_err() {
        return Err(wrong("it is the key of an actor, the name of a crate and of a folder at once"));
    }
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(wrong("the name of a crate begins with a letter"));
    }
    if TAKEN.split_whitespace().any(|taken| taken.replace('_', "-") == name.replace('_', "-")) {
        return Err(wrong("Rust, cargo or one of its dependencies has that name"));
    }
    Ok(name)
}

/// The checkout that was named; else the one around this folder, or the one that this program was built in.
fn checkout(named: Option<&Path>) -> Result<PathBuf, Problem> {
    if let Some(named) = named {
        let found = std::fs::canonicalize(named).ok().filter(|folder| is_checkout(folder));
        return found.ok_or_else(|| {
            let named = excerpt::line(&named.display().to_string(), 200);
            Problem::new(Code::File, format!("{named} is no checkout of loopd"))
                .why("there is no crates/operator with the toolkit in it")
                .fix("name the folder that `git clone` made of loopd with --loopd DIR")
        });
    }
    let here = std::env::current_dir().ok();
    let program = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    let around = here.iter().chain(&program).flat_map(|place| place.ancestors());
    around.map(Path::to_path_buf).find(|folder| is_checkout(folder)).ok_or_else(|| {
        Problem::new(Code::File, "there is no checkout of loopd here")
            .why("loopd's crates are in no registry, so that a project names a folder that has them")
            .fix("git clone loopd, and name its folder:  loopctl operator new NAME --loopd DIR")
    })
}

fn is_checkout(folder: &Path) -> bool {
    CRATES.iter().all(|name| folder.join("crates").join(name).join("Cargo.toml").is_file())
}

/// The text of a template for this project.
fn filled(text: &str, name: &str, checkout: &str) -> String {
    let [package, library] = NAME;
    // In a manifest it stands between quotes, where these two mean something.
    let quoted = checkout.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace(package, name).replace(library, &name.replace('-', "_")).replace(CHECKOUT, &quoted)
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::File::create_new(path)?.write_all(text.as_bytes())
}

fn say(made: &Made<'_>, format: Format) -> Result<(), Problem> {
    match format {
        Format::Json | Format::Jsonl => output::json(format, made)?,
        Format::Name => output::line(made.name)?,
        Format::Table => {
            output::line(&format!("./{} is an operator that speaks as {}", made.name, made.actor))?;
            output::note(&format!("built with loopd in {}", excerpt::line(&made.loopd, 200)));
            output::note(&format!("next:  cd {} && cargo test    (README.md says how to run it)", made.name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_key_a_crate_and_a_folder() {
        let longest = "a".repeat(64);
        for good in ["triage", "a", "review-board", "b_2", "tests", &longest] {
            assert!(name(good).is_ok(), "{good}");
        }
        let long = "a".repeat(65);
        let bad = [
            "",
            ".",
            "..",
            "a/b",
            "../a",
            "a.b",
            "A",
            "Triage",
            "ä",
            "a b",
            "-a",
            "_a",
            "2a",
            "fn",
            "self",
            "test",
            "std",
            "tokio",
            "loopd_operator",
            "proc-macro",
            "a\u{202e}",
            "a\n",
            &long,
        ];
        for bad in bad {
            let code = name(bad).map_err(|problem| (problem.code, problem.code.exit().code()));
            assert_eq!(code, Err((Code::Usage, 2)), "{bad}");
        }
    }

    #[test]
    fn a_template_is_filled_whole() {
        for (file, text) in FILES {
            let filled = filled(text, "my-own", r#"C:\a "b""#);
            assert!(!filled.contains("scaffold") && !filled.contains("{{"), "{file}");
        }
        assert_eq!(filled(r#"path = "{{loopd}}/x""#, "a", r#"\"#), r#"path = "\\/x""#);
        assert_eq!(filled("scaffold-name scaffold_name", "a-b", ""), "a-b a_b");
    }
}
