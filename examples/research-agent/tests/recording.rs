//! The committed recordings, as everybody can test an agent: they replay offline, and code checks what they say.
//!
//! `bash demo.sh --fixture` records them anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_agent::Agent;
use loopd_agent::manifest::{FileTool, Manifest};
use loopd_fixture::Secrets;
use loopd_kernel::EffectClass;
use loopd_kernel::ErasedLoop;
use research_agent::again::{Performed, performed};
use research_agent::citations::Answer;
use std::path::Path;

const FIXTURE: &str = "testdata/research.loopfix";
/// Its worker was killed three times.
const KILLED: &str = "testdata/killed.loopfix";
const RECORD: &str = "`bash demo.sh --fixture` records it anew";
const TOOLS: [&str; 4] = ["list_files", "search_files", "read_file", "read_file"];

/// A file of this package.
fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The agent of the files as they are now.
fn agent() -> Agent {
    let manifest = Manifest::parse("agent.yaml", text("agent.yaml").as_bytes()).expect("agent.yaml");
    let tools = FileTool::READING.map(|tool| loopd_tools::FileTool::from_name(tool.tool_name()).expect("a file tool"));
    let agent = Agent::from_manifest(manifest, loopd_tools::file_offers(&tools)).expect("agent.yaml");
    agent.with_demo_script(&text("demo.json")).expect("demo.json")
}

#[test]
fn the_recording_replays_and_every_citation_is_exact() {
    let run = looptest::replay(FIXTURE).strict();
    run.expect_tools(&TOOLS)
        .expect_tool_args(1, r#"{"text":"waits for a person","ignore_case":true}"#)
        .expect_tool_args(2, r#"{"path":"effects.md"}"#)
        .expect_tool_args(3, r#"{"path":"questions.md"}"#)
        .expect_iterations_at_most(4)
        .expect_tokens_at_most(20_000);
    let answer: Answer = run.expect_completed();
    assert_eq!(answer.citations.len(), 5);
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("library");
    for (citation, found) in answer.check(&library) {
        assert!(found.is_ok(), "{citation:?}: {found:?}; {RECORD}");
    }
}

#[test]
fn each_call_of_the_recording_was_performed_once() {
    let recorded = looptest::replay(FIXTURE);
    let calls = performed(&recorded.fixture().entries).expect("the entries read");
    let classes: Vec<_> = calls.iter().map(|call| (call.class, call.intents.len(), call.settled.len())).collect();
    let (model, read) = ((Some(EffectClass::Billable), 1, 1), (Some(EffectClass::Read), 1, 1));
    assert_eq!(classes, [model, read, model, read, read, model, read, model]);
    assert!(calls.iter().all(|call| call.faults().is_empty()), "{calls:?}");
}

#[test]
fn the_killed_run_came_to_the_same_and_repeated_only_what_it_may() {
    let (killed, whole) = (looptest::replay(KILLED), looptest::replay(FIXTURE));
    let calls = performed(&killed.fixture().entries).expect("the entries read");
    let faults: Vec<String> = calls.iter().flat_map(Performed::faults).collect();
    assert_eq!(faults, [""; 0]);
    let again: Vec<_> = calls.iter().filter(|call| call.ran_again()).map(|call| call.class).collect();
    assert!(again.contains(&Some(EffectClass::Billable)) && again.contains(&Some(EffectClass::Read)), "{again:?}");
    let (killed, whole) = (killed.strict(), whole.strict());
    killed.expect_tools(&TOOLS).expect_iterations_at_most(4);
    assert_eq!(killed.expect_completed::<Answer>(), whole.expect_completed::<Answer>());
    let diff = loopd_fixture::diff(killed.trajectory(), whole.trajectory());
    assert!(diff.is_same(), "{:?}", diff.changes);
    assert_eq!((diff.a.incidents, diff.b.incidents), (3, 0));
}

#[test]
fn the_recording_is_of_the_agent_as_it_is_now() {
    let agent = agent();
    for fixture in [FIXTURE, KILLED] {
        let recorded = looptest::replay(fixture);
        let recorded = String::from_utf8_lossy(recorded.fixture().definition());
        assert_eq!(recorded, String::from_utf8_lossy(agent.definition()), "agent.yaml or demo.json changed; {RECORD}");
    }
}

#[test]
fn the_recording_holds_no_secret_and_no_path_of_a_machine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::to_str).expect("a path");
    for fixture in [FIXTURE, KILLED] {
        let text = text(fixture);
        assert_eq!(Secrets::patterns().scan(text.as_bytes()), []);
        assert!(!text.contains(folder) && !text.contains("/tmp/"), "{fixture}");
    }
}
