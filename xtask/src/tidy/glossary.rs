//! One word, one meaning: the words that GLOSSARY.md replaced stay out of names and documentation.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::Scan;
use crate::repository::{Repository, RustFile};

/// The contents of `xtask/glossary.toml`.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// What may not be said.
    #[serde(default)]
    pub banned: Vec<Banned>,
    /// Where it may be said all the same.
    #[serde(default)]
    pub exception: Vec<Exception>,
}

/// A group of words that one glossary word replaces.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banned {
    /// Banned as a part of any name, and in documentation.
    #[serde(default)]
    pub words: Vec<String>,
    /// Banned as a whole name only, because the word has honest uses as a part.
    #[serde(default)]
    pub names: Vec<String>,
    /// The word to use.
    pub instead: String,
}

/// A word that one file needs, with the reason.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The word or name.
    pub word: String,
    /// The file that may use it.
    pub file: String,
    /// Why: usually that somebody else's protocol says so.
    pub reason: String,
}

/// A use of a banned word.
struct Use {
    word: String,
    line: usize,
    text: String,
    instead: String,
}

/// Looks at every name that our code defines. Names that it merely uses belong to somebody else.
pub fn identifiers(repository: &Repository, words: &Words) -> Scan {
    let mut scan = Scan::of("glossary names");
    for file in &repository.rust {
        let names = defined_names(file);
        scan.seen += names.len();
        let found = names.iter().flat_map(|name| uses_in_name(name, words));
        report(&mut scan, file, words, found, "the name");
    }
    scan.finish()
}

/// Looks at every documentation comment.
pub fn docs(repository: &Repository, words: &Words) -> Scan {
    let mut scan = Scan::of("glossary docs");
    for file in &repository.rust {
        let lines = doc_lines(file);
        scan.seen += lines.len();
        let found = lines.iter().flat_map(|(line, text)| uses_in_text(*line, text, words));
        report(&mut scan, file, words, found, "the documentation");
    }
    scan.finish()
}

/// An exception that nothing needs any more would excuse the next mistake; one without a reason excuses nothing.
pub fn exceptions_are_needed(repository: &Repository, words: &Words) -> Scan {
    let mut scan = Scan::of("glossary exceptions");
    // There may well be no exception at all, but never no rule.
    scan.seen = words.banned.len();
    for exception in &words.exception {
        if exception.reason.trim().is_empty() {
            scan.report(&exception.file, format!("the exception for `{}` gives no reason", exception.word));
        }
        let used = repository.rust.iter().filter(|file| file.path == exception.file).any(|file| {
            let in_names = defined_names(file).iter().flat_map(|name| uses_in_name(name, words)).collect::<Vec<_>>();
            let in_docs = doc_lines(file).into_iter().flat_map(|(line, text)| uses_in_text(line, &text, words));
            in_names.into_iter().chain(in_docs).any(|found| found.word == exception.word)
        });
        if !used {
            scan.report(&exception.file, format!("the exception for `{}` is not needed any more", exception.word));
        }
    }
    scan.finish()
}

fn report(scan: &mut Scan, file: &RustFile, words: &Words, found: impl Iterator<Item = Use>, what: &str) {
    for one in found {
        let excused = words.exception.iter().any(|e| e.file == file.path && e.word == one.word);
        if !excused {
            let message = format!("{what} `{}` says `{}`; GLOSSARY.md says {}", one.text, one.word, one.instead);
            scan.report(format!("{}:{}", file.path, one.line), message);
        }
    }
}

fn uses_in_name(name: &Ident, words: &Words) -> Vec<Use> {
    let text = name.to_string();
    let parts = name_parts(&text);
    let mut found = Vec::new();
    for banned in &words.banned {
        let by_part = banned.words.iter().filter(|word| parts.contains(*word));
        let by_name = banned.names.iter().filter(|whole| **whole == text);
        for word in by_part.chain(by_name) {
            found.push(Use {
                word: word.clone(),
                line: name.span().start().line,
                text: text.clone(),
                instead: banned.instead.clone(),
            });
        }
    }
    found
}

fn uses_in_text(line: usize, text: &str, words: &Words) -> Vec<Use> {
    let said: BTreeSet<String> =
        text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).filter(|word| !word.is_empty()).collect();
    let of_group = |banned: &Banned| {
        let instead = banned.instead.clone();
        let hits: Vec<String> = banned.words.iter().filter(|word| said.contains(*word)).cloned().collect();
        hits.into_iter().map(move |word| Use { word, line, text: text.trim().to_owned(), instead: instead.clone() })
    };
    words.banned.iter().flat_map(of_group).collect()
}

/// `EffectKey` and `effect_key` both have the parts `effect` and `key`.
fn name_parts(name: &str) -> BTreeSet<String> {
    let mut parts = BTreeSet::new();
    let mut part = String::new();
    for c in name.chars() {
        if (c == '_' || c.is_uppercase()) && part.chars().any(char::is_lowercase) {
            parts.insert(std::mem::take(&mut part).to_lowercase());
        }
        if c != '_' {
            part.push(c);
        } else {
            parts.insert(std::mem::take(&mut part).to_lowercase());
        }
    }
    parts.insert(part.to_lowercase());
    parts.remove("");
    parts
}

fn defined_names(file: &RustFile) -> Vec<Ident> {
    let mut names = Names(Vec::new());
    names.visit_file(&file.syntax);
    names.0
}

struct Names(Vec<Ident>);

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let name = match item {
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            syn::Item::Mod(item) => Some(&item.ident),
            syn::Item::Static(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Trait(item) => Some(&item.ident),
            syn::Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.0.extend(name.cloned());
        visit::visit_item(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.push(signature.ident.clone());
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.0.extend(field.ident.clone());
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.0.push(variant.ident.clone());
        visit::visit_variant(self, variant);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.0.push(pattern.ident.clone());
        visit::visit_pat_ident(self, pattern);
    }
}

fn doc_lines(file: &RustFile) -> Vec<(usize, String)> {
    let mut docs = Docs(Vec::new());
    docs.visit_file(&file.syntax);
    docs.0
}

struct Docs(Vec<(usize, String)>);

impl<'ast> Visit<'ast> for Docs {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if !attribute.path().is_ident("doc") {
            return;
        }
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value
        {
            self.0.push((attribute.span().start().line, text.value()));
        }
    }
}
