//! `cargo xtask WORD`: the few words that people and machines use to work on this repository.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod trial;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lexopt::prelude::*;

const HELP: &str = "\
cargo xtask WORD

  check                        formatting, tidy, architecture, clippy
  test                         all tests of the workspace, doc tests included
  demo                         the main job, offline: run, kill, resume, record, replay
  kills [--kills N] [--store sqlite] [--zombies]
                               kill real processes N times at random points (default 20) and count their effects;
                               with --zombies some are paused past their lease instead, and woken when replaced
  e2e [--rounds N] [--real]    the server as real processes: killed in the middle of streams, questions, acceptance and
                               answers of the Router, N times each (default 3); model calls are counted. --real: with a
                               real model, too
  sim [--seeds N | --seed S]   the deterministic simulation, optimised: N seeds (default 2000), or one again
  mutants [NAME…]              break the program on purpose: each fault must turn its named test red
  bench [--quick] [--json F]   speed and memory beside the raw limits of this machine
";

/// What the command line asks for.
enum Word {
    Help,
    Check,
    Test,
    Demo,
    Kills(words::Kills),
    E2e(words::E2e),
    Sim { seeds: words::Seeds },
    Mutants { names: Vec<String> },
    Bench { arguments: Vec<OsString> },
}

fn main() -> ExitCode {
    let result = parse(lexopt::Parser::from_env()).and_then(run);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(word: Word) -> Result<()> {
    let root = xtask::repository::root()?;
    match word {
        Word::Help => print!("{HELP}"),
        Word::Check => words::check(&root)?,
        Word::Test => words::test(&root)?,
        Word::Demo => words::demo(&root)?,
        Word::Kills(kills) => words::kills(&root, kills)?,
        Word::E2e(e2e) => words::e2e(&root, e2e)?,
        Word::Sim { seeds } => words::sim(&root, seeds)?,
        Word::Mutants { names } => trial::mutants(&root, &names)?,
        Word::Bench { arguments } => words::bench(&root, &arguments)?,
    }
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Word> {
    let word = match parser.next()? {
        None | Some(Short('h') | Long("help")) => return Ok(Word::Help),
        Some(Value(word)) => word.string()?,
        Some(other) => return Err(other.unexpected().into()),
    };
    let parsed = match word.as_str() {
        "help" => Word::Help,
        "check" => Word::Check,
        "test" => Word::Test,
        "demo" => Word::Demo,
        "kills" => return Ok(Word::Kills(kills(&mut parser)?)),
        "e2e" => return Ok(Word::E2e(e2e(&mut parser)?)),
        "sim" => Word::Sim { seeds: seeds(&mut parser)? },
        "mutants" => return Ok(Word::Mutants { names: names(&mut parser)? }),
        // The benchmark program knows its own options.
        "bench" => {
            return Ok(Word::Bench { arguments: parser.raw_args()?.collect() });
        }
        _ => bail!("there is no word `{word}`\n\n{HELP}"),
    };
    match parser.next()? {
        None => Ok(parsed),
        Some(extra) => Err(extra.unexpected()).with_context(|| format!("`{word}` takes nothing more")),
    }
}

fn kills(parser: &mut lexopt::Parser) -> Result<words::Kills> {
    let mut kills = words::Kills { count: 20, zombies: false };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("kills" | "count") => kills.count = parser.value()?.parse().context("--kills wants a number")?,
            Long("zombies") => kills.zombies = true,
            Long("store") => {
                let store = parser.value()?.string()?;
                if store != "sqlite" {
                    bail!("there are no kills over a store `{store}`: only --store sqlite is built");
                }
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(kills)
}

fn e2e(parser: &mut lexopt::Parser) -> Result<words::E2e> {
    let mut e2e = words::E2e { rounds: 3, real: false };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("rounds") => e2e.rounds = parser.value()?.parse().context("--rounds wants a number")?,
            Long("real") => e2e.real = true,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(e2e)
}

fn seeds(parser: &mut lexopt::Parser) -> Result<words::Seeds> {
    match parser.next()? {
        None => Ok(words::Seeds::Many(2_000)),
        Some(Long("seeds")) => Ok(words::Seeds::Many(parser.value()?.parse().context("--seeds wants a number")?)),
        Some(Long("seed")) => Ok(words::Seeds::One(parser.value()?.parse().context("--seed wants a number")?)),
        Some(other) => Err(other.unexpected().into()),
    }
}

fn names(parser: &mut lexopt::Parser) -> Result<Vec<String>> {
    let mut names = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(name) => names.push(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kills(arguments: &[&str]) -> Result<words::Kills> {
        match parse(lexopt::Parser::from_args(std::iter::once("kills").chain(arguments.iter().copied())))? {
            Word::Kills(kills) => Ok(kills),
            _ => bail!("another word"),
        }
    }

    #[test]
    fn kills_take_their_options_in_any_order() -> Result<()> {
        let read = |arguments: &[&str]| kills(arguments).map(|kills| (kills.count, kills.zombies));
        assert_eq!(read(&[])?, (20, false));
        assert_eq!(read(&["--store", "sqlite", "--kills", "100"])?, (100, false));
        assert_eq!(read(&["--zombies", "--count=7"])?, (7, true));
        Ok(())
    }

    #[test]
    fn kills_over_a_store_that_is_not_built_are_refused() {
        let said = |arguments: &[&str]| kills(arguments).map_or_else(|error| format!("{error:#}"), |_| String::new());
        assert!(said(&["--store", "postgres"]).contains("only --store sqlite is built"));
        assert!(said(&["--kills", "many"]).starts_with("--kills wants a number"));
        assert!(said(&["--kill", "1"]).contains("--kill"));
    }
}
