//! Citations: what is exact, what is not and why, and what the program says about it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use research_agent::citations::{Answer, Citation, MAX_DOCUMENT, NotExact, Place};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const POEM: &str = "# Poem\n\nRoses are red.\nViolets are blue.\n\nRoses are red, too.\n";

/// A folder with a document, one in a folder below, and things that must not be cited.
fn library() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join("library").join(name);
    std::fs::create_dir_all(at("more")).expect("folders");
    std::fs::write(at("poem.md"), POEM).expect("poem");
    std::fs::write(at("more/song.md"), "Là, là, là.\r\nSo it goes.\r\n").expect("song");
    std::fs::write(at("picture.md"), b"\xff\xfe picture").expect("picture");
    std::fs::write(folder.path().join("outside.md"), POEM).expect("outside");
    std::fs::File::create(at("large.md")).and_then(|file| file.set_len(MAX_DOCUMENT + 1)).expect("large");
    folder
}

fn check(folder: &TempDir, file: &str, quote: &str) -> Result<Place, NotExact> {
    Citation { file: file.into(), quote: quote.into() }.check(&folder.path().join("library"))
}

#[test]
fn an_exact_span_is_found_with_its_place() {
    let folder = library();
    let place = |start, end, line, times| Ok(Place { start, end, line, times });
    assert_eq!(check(&folder, "poem.md", "Violets are blue."), place(23, 40, 4, 1));
    assert_eq!(check(&folder, "poem.md", "Roses are red"), place(8, 21, 3, 2));
    assert_eq!(check(&folder, "poem.md", "red.\nViolets"), place(18, 30, 3, 1));
    // Bytes, not characters; line ends as they are.
    assert_eq!(check(&folder, "more/song.md", "là.\r\nSo"), place(10, 18, 1, 1));
}

#[test]
fn what_is_not_exact_says_why() {
    let folder = library();
    for (quote, why) in [
        ("Roses are blue.", NotExact::Absent),
        ("roses are red.", NotExact::Absent),
        ("Roses are red.  Violets are blue.", NotExact::Respaced { line: 3 }),
        ("red. Violets", NotExact::Respaced { line: 3 }),
        ("", NotExact::Empty),
        (" \n", NotExact::Empty),
        (".", NotExact::Empty),
    ] {
        assert_eq!(check(&folder, "poem.md", quote), Err(why), "{quote:?}");
    }
}

#[test]
fn a_document_is_a_regular_file_below_the_folder() {
    let folder = library();
    let absolute = folder.path().join("library/poem.md");
    for (file, why) in [
        ("../outside.md", NotExact::Outside),
        ("more/../poem.md", NotExact::Outside),
        ("./poem.md", NotExact::Outside),
        ("more//song.md", NotExact::Outside),
        ("poem.md/", NotExact::Outside),
        ("", NotExact::Outside),
        ("..\\outside.md", NotExact::Outside),
        ("poem.md\0", NotExact::Outside),
        (absolute.to_str().expect("a path"), NotExact::Outside),
        ("prose.md", NotExact::Missing),
        ("poem.md/verse", NotExact::Missing),
        ("more", NotExact::NotAFile),
        ("picture.md", NotExact::NotText),
        ("large.md", NotExact::TooLarge),
    ] {
        assert_eq!(check(&folder, file, "Roses are red."), Err(why), "{file:?}");
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_wherever_they_lead() {
    use std::os::unix::fs::symlink;
    let folder = library();
    let at = |name: &str| folder.path().join("library").join(name);
    symlink("../outside.md", at("out.md")).expect("a link");
    symlink("poem.md", at("inside.md")).expect("a link");
    symlink("more", at("linked")).expect("a link");
    for (file, link) in [("out.md", "out.md"), ("inside.md", "inside.md"), ("linked/song.md", "linked")] {
        assert_eq!(check(&folder, file, "Roses are red."), Err(NotExact::Link(link.into())), "{file}");
    }
}

#[test]
fn an_answer_reads_as_loopctl_prints_it() {
    let bare = r#"{"answer":"Red.","citations":[{"file":"poem.md","quote":"Roses are red."}]}"#;
    let report = format!(r#"{{"run":"run_1","status":"ended","output":{bare},"exit":0}}"#);
    let answer = Answer::from_json(bare).expect("an answer");
    assert_eq!(answer.citations, [Citation { file: "poem.md".into(), quote: "Roses are red.".into() }]);
    assert_eq!(Answer::from_json(&report).expect("a report"), answer);
    for wrong in ["", "[]", r#"{"answer":"Red."}"#, r#"{"run":"run_1","output":null}"#] {
        assert!(Answer::from_json(wrong).is_err(), "{wrong}");
    }
}

/// Runs the program over `answer`.
fn program(library: &Path, answer: &str) -> (Option<i32>, String) {
    let file = library.with_file_name("answer.json");
    std::fs::write(&file, answer).expect("the answer");
    let mut command = Command::new(env!("CARGO_BIN_EXE_research-agent"));
    let Output { status, stdout, .. } =
        command.arg("check-citations").args([library, &file]).output().expect("it runs");
    (status.code(), String::from_utf8(stdout).expect("text"))
}

#[test]
fn the_program_exits_with_0_only_when_all_citations_are_exact() {
    let folder = library();
    let library = folder.path().join("library");
    let answer = |quotes: &[&str]| {
        let citations: Vec<String> =
            quotes.iter().map(|quote| format!(r#"{{"file":"poem.md","quote":"{quote}"}}"#)).collect();
        format!(r#"{{"answer":"Red.","citations":[{}]}}"#, citations.join(","))
    };
    let exact = "  exact      poem.md bytes 23..40, line 4: \"Violets are blue.\"\n";
    assert_eq!(program(&library, &answer(&["Violets are blue."])), (Some(0), exact.into()));
    let wrong = "  NOT EXACT  poem.md: the document does not hold this text: \"Violets are red.\"\n";
    let found = program(&library, &answer(&["Violets are blue.", "Violets are red."]));
    assert_eq!(found, (Some(1), format!("{exact}{wrong}")));
    let nothing = "  NOT EXACT  the answer cites nothing\n";
    assert_eq!(program(&library, &answer(&[])), (Some(1), nothing.into()));
    assert_eq!(program(&library, "no JSON"), (Some(2), String::new()));
    assert_eq!(program(&folder.path().join("nowhere"), &answer(&[])).0, Some(2));
}

#[test]
fn control_characters_of_a_quote_do_not_reach_the_terminal() {
    let folder = library();
    let answer = r#"{"answer":"Red.","citations":[{"file":"poem.md","quote":"Red \u001b[2J\u202e"}]}"#;
    let (code, text) = program(&folder.path().join("library"), answer);
    assert_eq!(code, Some(1));
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
}
