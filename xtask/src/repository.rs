//! The files of the repository as the checks see them: what git tracks or would track, read once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::{Attribute, Meta};

/// A text file, by its path relative to the root.
#[derive(Debug, Clone)]
pub struct TextFile {
    /// Path relative to the root, with forward slashes.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// A Rust file, parsed, with the set of lines that hold code.
pub struct RustFile {
    /// Path relative to the root.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// Its syntax tree.
    pub syntax: syn::File,
    /// Lines with at least one token that is not part of a doc comment. Sizes are measured in these, so that
    /// nobody saves on comments to stay under a limit.
    pub code_lines: BTreeSet<usize>,
}

/// Everything a check may look at.
#[derive(Default)]
pub struct Repository {
    /// All files that are UTF-8.
    pub texts: Vec<TextFile>,
    /// The Rust files among them.
    pub rust: Vec<RustFile>,
    /// All paths, binary files included.
    pub paths: Vec<String>,
}

impl Repository {
    /// Reads the repository at `root`.
    pub fn read(root: &Path) -> Result<Self> {
        let Repository { texts, paths, .. } = Repository::read_texts(root)?;
        let mut repository = Repository::from_texts(texts)?;
        repository.paths = paths;
        Ok(repository)
    }

    /// Reads it without parsing anything: for checks that look at text alone.
    pub fn read_texts(root: &Path) -> Result<Self> {
        let mut texts = Vec::new();
        let mut paths = Vec::new();
        for path in tracked(root)? {
            let bytes = std::fs::read(root.join(&path)).with_context(|| format!("cannot read {path}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                texts.push(TextFile { path: path.clone(), text });
            }
            paths.push(path);
        }
        Ok(Repository { texts, rust: Vec::new(), paths })
    }

    /// Builds a repository from texts in memory: the door through which the checks themselves are tested.
    pub fn from_texts(texts: Vec<TextFile>) -> Result<Self> {
        let rust =
            texts.iter().filter(|file| file.path.ends_with(".rs")).map(RustFile::parse).collect::<Result<Vec<_>>>()?;
        let paths = texts.iter().map(|file| file.path.clone()).collect();
        Ok(Repository { texts, rust, paths })
    }

    /// The text of one file, if it is there.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }
}

impl RustFile {
    fn parse(file: &TextFile) -> Result<Self> {
        let tokens: TokenStream =
            file.text.parse().map_err(|error: proc_macro2::LexError| anyhow::anyhow!("{}: {error}", file.path))?;
        let mut code_lines = BTreeSet::new();
        collect_code_lines(tokens.clone(), &mut code_lines);
        let syntax = syn::parse2(tokens)
            .map_err(|error: syn::Error| anyhow::anyhow!("{}:{}: {error}", file.path, error.span().start().line))?;
        Ok(RustFile { path: file.path.clone(), text: file.text.clone(), syntax, code_lines })
    }

    /// Whether the whole file is test code.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// Whether the file is the root of a library or of a binary.
    pub fn is_crate_root(&self) -> bool {
        let mut parts = self.path.rsplit('/');
        let (file, folder, above) = (parts.next(), parts.next(), parts.next());
        matches!((file, folder), (Some("lib.rs" | "main.rs"), Some("src")))
            || (folder == Some("bin") && above == Some("src"))
    }
}

/// The folder that holds the workspace manifest.
pub fn root() -> Result<PathBuf> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").context("start this through cargo: `cargo xtask …`")?;
    match Path::new(&own).parent() {
        Some(root) => Ok(root.to_owned()),
        None => bail!("xtask has no parent folder"),
    }
}

/// Whether an item with these attributes exists in tests only.
pub fn is_test_item(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test_function = attribute.path().segments.last().is_some_and(|last| last.ident == "test");
        let is_test_config = attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| implies_test(&condition));
        is_test_function || is_test_config
    })
}

fn implies_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|parts| parts.iter().any(implies_test)),
        Meta::List(_) | Meta::NameValue(_) => false,
    }
}

fn tracked(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot start git, which tells which files belong to the repository")?;
    let mut paths = BTreeSet::new();
    if output.status.success() {
        let listing = String::from_utf8(output.stdout).context("git lists a path that is not UTF-8")?;
        paths.extend(listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned));
    } else {
        // An unpacked source archive has no history; its files are simply all files.
        walk(root, root, &mut paths)?;
    }
    // A file deleted but not yet committed is still listed.
    Ok(paths.into_iter().filter(|path| root.join(path).is_file()).collect())
}

fn walk(root: &Path, folder: &Path, paths: &mut BTreeSet<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let skipped = path.file_name().is_some_and(|name| name == ".git" || name == "target");
        if path.is_dir() && !skipped {
            walk(root, &path, paths)?;
        } else if path.is_file() {
            paths.insert(path.strip_prefix(root)?.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// Adds the lines of every token, leaving out `#[doc = "…"]`, which is what doc comments become.
fn collect_code_lines(tokens: TokenStream, lines: &mut BTreeSet<usize>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Punct(punct) if punct.as_char() == '#' => {
                while tokens.next_if(|next| matches!(next, TokenTree::Punct(p) if p.as_char() == '!')).is_some() {}
                if tokens.next_if(is_doc_attribute).is_none() {
                    lines.insert(punct.span().start().line);
                }
            }
            TokenTree::Group(group) => {
                lines.insert(group.span_open().start().line);
                lines.insert(group.span_close().end().line);
                collect_code_lines(group.stream(), lines);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {
                lines.extend(token.span().start().line..=token.span().end().line);
            }
        }
    }
}

fn is_doc_attribute(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(ident)) if ident == "doc")
        }
        TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    }
}
