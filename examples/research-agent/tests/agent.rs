//! The files of the example agree with each other: manifests, script, documents, README and `demo.sh`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_agent::manifest::{Manifest, Provider};
use loopd_providers::{Demo, DemoScript};
use std::path::{Path, PathBuf};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(here(path)).expect(path)
}

fn manifest(path: &str) -> Manifest {
    Manifest::parse(path, text(path).as_bytes()).expect(path)
}

/// The first code block of this language.
fn code_block<'a>(markdown: &'a str, language: &str) -> &'a str {
    let (_, rest) = markdown.split_once(&format!("```{language}\n")).expect("a code block");
    rest.split_once("```").expect("its end").0
}

#[test]
fn the_demo_script_plays() {
    let Provider::Demo { script } = manifest("agent.yaml").spec.model.provider else {
        panic!("agent.yaml needs no network");
    };
    let script = DemoScript::from_json(&text(&script)).expect("it reads");
    Demo::new(script).expect("it plays");
}

#[test]
fn the_local_model_gets_the_same_agent() {
    let (demo, mut local) = (manifest("agent.yaml"), manifest("agent.local.yaml"));
    assert!(matches!(local.spec.model.provider, Provider::OpenAi { .. }));
    local.spec.model = demo.spec.model.clone();
    assert_eq!(local, demo);
}

#[test]
fn the_readme_shows_the_agent_and_asks_the_question_of_the_demo() {
    let readme = text("README.md");
    let shown = Manifest::parse("README.md", code_block(&readme, "yaml").as_bytes()).expect("it is a manifest");
    assert_eq!(shown, manifest("agent.yaml"));
    let script = text("demo.sh");
    let (_, rest) = script.split_once("\nquestion='").expect("the question");
    let (question, _) = rest.split_once('\'').expect("its end");
    assert!(readme.contains(question), "README.md does not ask: {question}");
}

#[test]
fn the_documents_are_short_and_named_by_the_readme() {
    let readme = text("README.md");
    let mut seen = 0;
    for entry in std::fs::read_dir(here("library")).expect("library") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let lines = std::fs::read_to_string(&path).expect(name).lines().count();
        assert!((60..=150).contains(&lines), "{name} has {lines} lines");
        assert!(readme.contains(&format!("`{name}`")), "README.md does not name {name}");
        seen += 1;
    }
    assert_eq!(seen, 7);
}
