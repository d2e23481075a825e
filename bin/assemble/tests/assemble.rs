//! From files to agents, and from Runs to the agents that drive them. Nothing here needs a network or a key.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_assemble::{Agents, Kind, Manner, load, load_folder};
use loopd_kernel::{Digest, Epoch, MicroUsd, RunId, Seq, TimeMs};
use loopd_providers::Catalogue;
use loopd_runtime::Programs;
use loopd_store::{RunRow, RunStatus};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SCRIPT: &str = r#"{"turns": [{"say": "yes"}]}"#;

fn agent(name: &str, more: &str) -> String {
    format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name}, description: Says yes }}\n\
         spec:\n  model: {{ provider: demo, script: demo.json }}\n{more}"
    )
}

fn remote(name: &str, model: &str, more: &str) -> String {
    let model = format!("{{ provider: openai, name: no-such-model, {model} }}");
    format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name} }}\nspec:\n  model: {model}\n{more}"
    )
}

/// A folder with these files, and the demo script.
fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("demo.json"), SCRIPT).unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn row(name: &str, definition: Digest, origin: Option<&Path>) -> RunRow {
    RunRow {
        run: RunId([1; 16]),
        tenant: "default".into(),
        admission: None,
        loop_name: name.into(),
        version: "1".into(),
        definition,
        origin: origin.map(|path| path.to_string_lossy().into_owned()),
        parent: None,
        status: RunStatus::Suspended,
        head: Seq(1),
        hash: Digest::default(),
        epoch: Epoch(1),
        worker: None,
        wake_at: None,
        outcome: None,
        iteration: 0,
        tokens: 0,
        spent: MicroUsd(0),
        created_at: TimeMs(0),
        updated_at: TimeMs(0),
    }
}

#[test]
fn a_folder_lists_every_agent_and_says_of_each_whether_it_can_run() {
    let dir = folder(&[
        ("a.yaml", agent("good", "  agents: [{ name: helper, manifest: f.yml }]\n")),
        ("b.yaml", "spec: {".into()),
        ("c.yaml", remote("keyless", "apiKeyEnv: LOOPD_TEST_KEY_THAT_NOBODY_SETS", "")),
        ("d.yaml", agent("good", "")),
        ("e.yaml", remote("unpriced", "baseUrl: 'http://localhost:1/v1'", "  limits: { usd: \"1.00\" }\n")),
        ("f.yml", agent("helper", "  tools: [{ use: files, root: nowhere }]\n")),
        ("g.yaml", agent("toolless", "  tools: [{ native: pay }]\n")),
        ("notes.txt", "no manifest".into()),
    ]);
    std::fs::create_dir(dir.path().join("folder.yaml")).unwrap();
    let kinds = |dir: &Path| {
        let listed = load_folder(dir, Manner::Task, &Catalogue::default()).unwrap();
        let line = |one: loopd_assemble::Listed| {
            let file = one.file.file_name().unwrap().to_string_lossy().into_owned();
            (file, one.name.unwrap_or_default(), one.agent.err().map(|obstacle| obstacle.kind))
        };
        listed.into_iter().map(line).collect::<Vec<_>>()
    };
    let said = |file: &str, name: &str, kind: Option<Kind>| (file.to_owned(), name.to_owned(), kind);
    let rest = [
        said("b.yaml", "", Some(Kind::Manifest)),
        said("c.yaml", "keyless", Some(Kind::Key)),
        said("d.yaml", "good", Some(Kind::Manifest)),
        said("e.yaml", "unpriced", Some(Kind::Price)),
    ];
    let native = said("g.yaml", "toolless", Some(Kind::Native { tool: "pay".into() }));
    let before = kinds(dir.path());
    // Its helper cannot run, so neither can it.
    assert_eq!(before[0], said("a.yaml", "good", Some(Kind::Tool)));
    assert_eq!(before[1..5], rest);
    assert_eq!(before[5..], [said("f.yml", "helper", Some(Kind::Tool)), native.clone()]);
    std::fs::create_dir(dir.path().join("nowhere")).unwrap();
    let after = kinds(dir.path());
    assert_eq!(after[0], said("a.yaml", "good", None));
    assert_eq!(after[5..], [said("f.yml", "helper", None), native]);
    let good = load_folder(dir.path(), Manner::Conversation, &Catalogue::default()).unwrap().remove(0);
    assert_eq!(good.description.as_deref(), Some("Says yes"));
    assert_eq!(good.agent.unwrap().description, good.description);
    let gone = load_folder(&dir.path().join("gone"), Manner::Task, &Catalogue::default()).unwrap_err();
    assert_eq!(gone.kind, Kind::File);
}

/// The manifest, loaded; and its definition as a store has it.
fn loaded(file: &Path) -> (loopd_assemble::Ready, Vec<u8>) {
    let ready = load(file, Manner::Task, &Catalogue::default()).unwrap();
    let definition = ready.program.definition().definition().to_vec();
    (ready, definition)
}

#[test]
fn a_run_goes_on_with_the_agent_that_it_was_started_with_whichever_is_known_now() {
    let dir = folder(&[("a.yaml", agent("one", "")), ("b.yaml", agent("two", ""))]);
    let path = |name: &str| -> PathBuf { dir.path().join(name) };
    let ((one, _), (two, _)) = (loaded(&path("a.yaml")), loaded(&path("b.yaml")));
    let agents = Agents::knowing([&one, &two], Catalogue::default());
    for ready in [&one, &two] {
        let found = agents.find(&row(&ready.name, ready.program.digest(), None), &[]).unwrap();
        assert!(Arc::ptr_eq(&found, &ready.program));
    }
    // The manifest changes while a Run of it is open.
    std::fs::write(path("a.yaml"), agent("one", "  instructions: Say it loudly.\n")).unwrap();
    let (changed, new) = loaded(&path("a.yaml"));
    assert_ne!(changed.program.digest(), one.program.digest());
    agents.know(&changed);
    let old = agents.find(&row("one", one.program.digest(), None), &[]).unwrap();
    assert!(Arc::ptr_eq(&old, &one.program));
    // Somebody who knows none of them finds it by what the store has.
    let others = Agents::new(Catalogue::default());
    let found = others.find(&row("one", changed.program.digest(), Some(&path("a.yaml"))), &new).unwrap();
    assert_eq!(found.digest(), changed.program.digest());
    let again = others.find(&row("one", changed.program.digest(), None), &[]).unwrap();
    assert!(Arc::ptr_eq(&found, &again));
}

#[test]
fn what_nobody_can_run_here_is_said() {
    let dir = folder(&[("a.yaml", agent("reader", "  tools: [{ use: files, root: docs }]\n"))]);
    std::fs::create_dir(dir.path().join("docs")).unwrap();
    let file = dir.path().join("a.yaml");
    let (ready, definition) = loaded(&file);
    let agents = Agents::new(Catalogue::default());
    let in_rust = agents.find(&row("mine", Digest::sha256(&[]), None), &[]).unwrap_err();
    assert_eq!(in_rust.0, "`mine` is a loop in Rust");
    let nowhere = agents.find(&row("reader", ready.program.digest(), None), &definition).unwrap_err();
    assert_eq!(nowhere.0, "nobody knows where `docs` is");
    let moved = Agents::from_folder_of(Some(&file), Catalogue::default()).unwrap();
    assert!(moved.find(&row("reader", ready.program.digest(), None), &definition).is_ok());
    let gone = Agents::from_folder_of(Some(&dir.path().join("gone.yaml")), Catalogue::default()).unwrap_err();
    assert_eq!(gone.kind, Kind::File);
}
