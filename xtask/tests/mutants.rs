//! The anchor check: every mutant still applies to this repository, and a list that does not is found.

use anyhow::Result;
use xtask::mutants::{self, Mutant, Named};
use xtask::repository::{Repository, TextFile, root};

#[test]
fn every_mutant_applies_once_and_names_a_test() -> Result<()> {
    let repository = Repository::read_texts(&root()?)?;
    let mutants = mutants::read(&repository)?;
    let found = xtask::render(&[mutants::anchors(&repository, &mutants)]);
    assert!(found.is_empty(), "\n{found}");
    assert!(mutants.len() >= 15, "{} mutants", mutants.len());
    Ok(())
}

fn repository(files: &[(&str, &str)]) -> Result<Repository> {
    let file = |&(path, text): &(&str, &str)| TextFile { path: path.to_owned(), text: text.to_owned() };
    Repository::from_texts(files.iter().map(file).collect())
}

const SOURCE: (&str, &str) = ("crates/a/src/lib.rs", "//! A.\nfn a() { one(); two(); two(); }\n");
const TEST: (&str, &str) = ("crates/a/tests/t.rs", "//! T.\n#[test]\nfn red() {}\n");

fn mutant(name: &str, find: &str, replace: &str, path: &str) -> Mutant {
    let test = Named { package: "a".to_owned(), target: "t".to_owned(), path: path.to_owned() };
    let (name, find, replace) = (name.to_owned(), find.to_owned(), replace.to_owned());
    Mutant { name, file: SOURCE.0.to_owned(), find, replace, test }
}

#[track_caller]
fn check(mutants: &[Mutant], expected: &[&str]) -> Result<()> {
    let repository = repository(&[SOURCE, TEST, (mutants::TABLE, "| 1 | tests | `fine` `twice` |\n")])?;
    let scan = mutants::anchors(&repository, mutants);
    let found: Vec<&str> = scan.violations.iter().map(|violation| violation.message.as_str()).collect();
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn a_mutant_that_lost_its_place_its_test_or_its_row_is_found() -> Result<()> {
    check(&[mutant("fine", "one();", "", "red")], &[])?;
    check(&[mutant("fine", "one();", "", "m::red")], &[])?;
    check(&[mutant("fine", "three();", "", "red")], &["`fine` has lost its place in crates/a/src/lib.rs"])?;
    check(&[mutant("fine", "two();", "", "red")], &["`fine` fits 2 places in crates/a/src/lib.rs"])?;
    check(&[mutant("fine", "one();", "one();", "red")], &["changes nothing"])?;
    check(&[mutant("fine", "one();", "", "re")], &["there is no test `a t re`"])?;
    check(&[mutant("new", "one();", "", "red")], &["stands in no row of docs/invariants.md"])?;
    let twice = mutant("twice", "one();", "", "red");
    check(&[twice.clone(), twice], &["is listed twice"])?;
    check(&[], &["the scan looked at nothing: its filter no longer finds the sources"])
}

#[test]
fn a_list_that_does_not_read_is_an_error() -> Result<()> {
    let entry = "[[mutant]]\nname = 'a'\nfile = 'f'\nfind = 'x'\nreplace = ''\n";
    let read = |test: &str| mutants::read(&repository(&[(mutants::LIST, &format!("{entry}{test}"))])?);
    assert_eq!(read("test = 'p t a::b'\n")?.len(), 1);
    for wrong in ["", "test = 'p t'\n", "test = 'p  t'\n", "test = 'p t b'\nmore = 1\n"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    Ok(())
}
