//! Files and functions stay small; the few that are not yet may only shrink.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod, ItemTrait, Signature, Stmt, TraitItemFn, Type};

use crate::Scan;
use crate::repository::{Repository, RustFile, is_test_item};

/// Lines of code in a file, its test modules left out.
pub const FILE_LIMIT: usize = 400;
/// Lines of code in a function.
pub const FUNCTION_LIMIT: usize = 70;
/// The comment that lifts the limit from a function that is one table.
pub const FLAT_MATCH: &str = "// tidy: flat match";
/// What an arm of a flat `match`, and the code around it, may measure.
const FLAT_LIMIT: usize = 10;

/// What is known to be too large, with the size it may not pass.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratchet {
    /// Path to lines.
    #[serde(default)]
    pub files: BTreeMap<String, usize>,
    /// `path::Type::function` to lines.
    #[serde(default)]
    pub functions: BTreeMap<String, usize>,
}

/// Measures every file.
pub fn files(repository: &Repository, ratchet: &Ratchet) -> Scan {
    let mut scan = Scan::of("file size");
    let mut sizes = BTreeMap::new();
    for file in repository.rust.iter().filter(|file| !file.is_test()) {
        scan.seen += 1;
        sizes.insert(file.path.clone(), lines_outside_tests(file));
    }
    hold(&mut scan, &sizes, &ratchet.files, FILE_LIMIT, "the file");
    scan.finish()
}

/// Measures every function.
pub fn functions(repository: &Repository, ratchet: &Ratchet) -> Scan {
    let mut scan = Scan::of("function size");
    let mut sizes = BTreeMap::new();
    for file in repository.rust.iter().filter(|file| !file.is_test()) {
        let mut meter = Meter { file, context: Vec::new(), sizes: BTreeMap::new(), false_tables: Vec::new() };
        meter.visit_file(&file.syntax);
        for name in meter.false_tables {
            scan.report(name, format!("is marked `{FLAT_MATCH}` but is more than one match of short arms"));
        }
        sizes.append(&mut meter.sizes);
    }
    scan.seen = sizes.len();
    hold(&mut scan, &sizes, &ratchet.functions, FUNCTION_LIMIT, "the function");
    scan.finish()
}

/// Compares sizes with the limit and with the ratchet, which must fit exactly: it cannot hide growth and it
/// cannot keep slack.
fn hold(scan: &mut Scan, sizes: &BTreeMap<String, usize>, known: &BTreeMap<String, usize>, limit: usize, what: &str) {
    for (name, &size) in sizes {
        match known.get(name) {
            None if size > limit => {
                scan.report(name, format!("{what} has {size} lines of code, {limit} are allowed: split it"));
            }
            Some(&listed) if size > listed => {
                scan.report(name, format!("{what} grew from {listed} to {size} lines; the ratchet only shrinks"));
            }
            Some(_) if size <= limit => {
                scan.report(name, format!("{what} is within {limit} lines now: remove it from xtask/ratchet.toml"));
            }
            Some(&listed) if size < listed => {
                scan.report(name, format!("{what} shrank to {size} lines: lower {listed} in xtask/ratchet.toml"));
            }
            None | Some(_) => {}
        }
    }
    for name in known.keys().filter(|name| !sizes.contains_key(*name)) {
        scan.report(name, "is gone: remove it from xtask/ratchet.toml");
    }
}

fn lines_outside_tests(file: &RustFile) -> usize {
    let mut test_lines = BTreeSet::new();
    for item in &file.syntax.items {
        if is_test_item(attributes_of(item)) {
            test_lines.extend(lines_of(item.span()));
        }
    }
    file.code_lines.difference(&test_lines).count()
}

// Only the items that this code base puts behind `#[cfg(test)]`; anything else simply counts as code.
fn attributes_of(item: &Item) -> &[syn::Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        _ => &[],
    }
}

fn lines_of(span: Span) -> std::ops::RangeInclusive<usize> {
    span.start().line..=span.end().line
}

struct Meter<'a> {
    file: &'a RustFile,
    context: Vec<String>,
    sizes: BTreeMap<String, usize>,
    false_tables: Vec<String>,
}

impl Meter<'_> {
    fn measure(&mut self, whole: Span, signature: &Signature, block: &Block) {
        let first = signature.span().start().line;
        let last = block.span().end().line;
        let mut name = self.file.path.clone();
        for part in self.context.iter().chain([&signature.ident.to_string()]) {
            name.push_str("::");
            name.push_str(part);
        }
        // The mark stands above the function (its attributes and docs included) or inside it.
        let from = whole.start().line.saturating_sub(2);
        let marked = self.file.text.lines().take(last).skip(from).any(|line| line.trim_start().starts_with(FLAT_MATCH));
        let size = self.code_lines(first, last);
        if !marked {
            self.sizes.insert(name, size);
        } else if self.is_flat(block, size) {
            self.sizes.insert(name, 0);
        } else {
            self.false_tables.push(name);
        }
    }

    fn code_lines(&self, first: usize, last: usize) -> usize {
        self.file.code_lines.range(first..=last).count()
    }

    /// Whether the function is one `match` of short arms with little around it.
    fn is_flat(&self, block: &Block, size: usize) -> bool {
        let table = block.stmts.iter().find_map(|statement| match statement {
            Stmt::Expr(Expr::Match(table), _) => Some(table),
            _ => None,
        });
        table.is_some_and(|table| {
            let lines = lines_of(table.span());
            let around = size.saturating_sub(self.code_lines(*lines.start(), *lines.end()));
            let longest =
                table.arms.iter().map(|arm| lines_of(arm.span())).map(|l| self.code_lines(*l.start(), *l.end()));
            around <= FLAT_LIMIT && longest.max().unwrap_or(0) <= FLAT_LIMIT
        })
    }

    fn within(&mut self, part: String, visit: impl FnOnce(&mut Self)) {
        self.context.push(part);
        visit(self);
        self.context.pop();
    }
}

impl<'ast> Visit<'ast> for Meter<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test_item(&item.attrs) {
            self.within(item.ident.to_string(), |meter| visit::visit_item_mod(meter, item));
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test_item(&item.attrs) {
            let of = type_name(&item.self_ty);
            let name = match item.trait_.as_ref().and_then(|(path, _)| path.segments.last()) {
                Some(of_trait) => format!("<{of} as {}>", of_trait.ident),
                None => of,
            };
            self.within(name, |meter| visit::visit_item_impl(meter, item));
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.within(item.ident.to_string(), |meter| visit::visit_item_trait(meter, item));
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test_item(&item.attrs) {
            self.measure(item.span(), &item.sig, &item.block);
            self.within(item.sig.ident.to_string(), |meter| visit::visit_item_fn(meter, item));
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test_item(&item.attrs) {
            self.measure(item.span(), &item.sig, &item.block);
            self.within(item.sig.ident.to_string(), |meter| visit::visit_impl_item_fn(meter, item));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(item.span(), &item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        Type::Reference(reference) => type_name(&reference.elem),
        _ => "_".to_owned(),
    }
}
