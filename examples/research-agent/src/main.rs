//! The checks of the research agent as a program; `demo.sh` uses it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use loopd_fixture::excerpt;
use research_agent::again::{Performed, performed};
use research_agent::citations::Answer;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
Checks what a research agent did.

  research-agent check-citations FOLDER [ANSWER]   every citation is an exact span of a document in FOLDER;
                                                   ANSWER is what loopctl run printed: a file, or stdin
  research-agent ran-again FILE.loopfix            what a recorded run performed more than once, and why

Exit codes: 0 everything is as it has to be · 1 something is not · 2 wrong usage, or a file does not read
";

/// Characters of a quote that are shown.
const SHOWN: usize = 64;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["check-citations", folder] => check_citations(Path::new(folder), None),
        ["check-citations", folder, "-"] => check_citations(Path::new(folder), None),
        ["check-citations", folder, answer] => check_citations(Path::new(folder), Some(Path::new(answer))),
        ["ran-again", file] => ran_again(Path::new(file)),
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(true)
        }
        _ => Err(format!("wrong usage\n\n{HELP}")),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("research-agent: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints what became of each citation. True: all are exact.
fn check_citations(folder: &Path, answer: Option<&Path>) -> Result<bool, String> {
    if !folder.is_dir() {
        return Err(format!("{} is not a folder", folder.display()));
    }
    let text = match answer {
        Some(path) => std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?,
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(|error| format!("stdin: {error}"))?;
            text
        }
    };
    let answer = Answer::from_json(&text).map_err(|error| format!("this is no answer with citations: {error}"))?;
    for (citation, found) in answer.check(folder) {
        let (file, quote) = (excerpt::line(&citation.file, SHOWN), excerpt::line(&citation.quote, SHOWN));
        match found {
            Ok(place) => println!("  exact      {file} {place}: \"{quote}\""),
            Err(why) => println!("  NOT EXACT  {file}: {}: \"{quote}\"", excerpt::line(&why.to_string(), 200)),
        }
    }
    if answer.citations.is_empty() {
        println!("  NOT EXACT  the answer cites nothing");
    }
    Ok(answer.is_exact(folder))
}

/// Prints what a recorded Run performed more than once. True: all of it was allowed.
fn ran_again(file: &Path) -> Result<bool, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let bytes = std::fs::read(file).map_err(|error| wrong(&error))?;
    let fixture = loopd_fixture::read(&bytes).map_err(|error| wrong(&error))?;
    let calls = performed(&fixture.entries).map_err(|error| wrong(&error))?;
    let again: Vec<&Performed> = calls.iter().filter(|call| call.ran_again()).collect();
    if !again.is_empty() {
        println!("  {:<7} {:<13} {:<9} {:<5} why again", "call", "target", "class", "sent");
    }
    for call in &again {
        let class = call.class.map_or("", |class| class.name());
        let (name, target) = (call.call.to_string(), excerpt::line(&call.target, SHOWN));
        println!("  {name:<7} {target:<13} {class:<9} {:<5} {}", call.intents.len(), call.why());
    }
    let mut allowed = true;
    for call in &calls {
        for fault in call.faults() {
            allowed = false;
            println!("  WRONG: {} {}: {fault}", call.call, excerpt::line(&call.target, SHOWN));
        }
    }
    let settled = calls.iter().filter(|call| call.settled.len() == 1).count();
    println!(
        "  {} calls: {} ran once, {} ran again; {settled} have exactly one settlement",
        calls.len(),
        calls.iter().filter(|call| call.intents.len() == 1).count(),
        again.len(),
    );
    Ok(allowed)
}
