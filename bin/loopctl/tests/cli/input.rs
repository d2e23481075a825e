//! What may be written on the command line and in a manifest, and what is said about the rest.

use crate::check;
use crate::world::{self, World};
use expect_test::expect;

#[test]
fn input_comes_from_the_line_a_file_or_a_pipe() {
    let world = World::new();
    world.write("question.txt", "What is in the files?\n");
    world.write("question.json", r#"{"question": "What is in the files?", "id": 9007199254740993}"#);
    let asked = |run: &str| {
        let shown = world.loopctl(&["run", "show", run, "-o", "json"]).out;
        let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        shown["input"].as_str().expect("text").to_owned()
    };
    assert_eq!(world.loopctl(&["run", "agent.yaml", "-i", "@question.txt"]).code, 0);
    assert_eq!(asked("last"), r#""What is in the files?""#);
    assert_eq!(world.loopctl(&["run", "agent.yaml", "-i", "@question.json"]).code, 0);
    assert_eq!(asked("last"), r#"{"question": "What is in the files?", "id": 9007199254740993}"#);
    assert_eq!(world.piped(&["run", "agent.yaml", "-i", "-"], "From a pipe.\n").code, 0);
    assert_eq!(asked("last"), r#""From a pipe.""#);
    check(
        &world,
        &["run", "agent.yaml"],
        expect![[r#"
        err: error[E-INPUT]: there is no question
        err: fix: loopctl run agent.yaml "your question" or --input @FILE or --input - for stdin
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "agent.yaml", ""],
        expect![[r#"
        err: error[E-INPUT]: the question is empty
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "agent.yaml", "-i", "@nothing.txt"],
        expect![[r#"
        err: error[E-INPUT]: nothing.txt: No such file or directory
        exit 2
    "#]],
    );
}

#[test]
fn what_is_wrong_is_said_before_anything_starts() {
    let world = World::new();
    let with = |name: &str, from: &str, to: &str| world.write(name, &world::AGENT.replace(from, to));
    with("typo.yaml", "limits:", "limit:");
    with("number.yaml", "iterations: 10", "iterations: ten");
    with("root.yaml", "root: docs", "root: nowhere");
    with("script.yaml", "script: demo.json", "script: none.json");
    with("native.yaml", "- use: ask", "- native: send_mail");
    with(
        "key.yaml",
        "provider: demo\n    script: demo.json",
        "provider: openai\n    name: gpt-5-mini\n    apiKeyEnv: MY_KEY",
    );
    let claude = "provider: anthropic\n    name: claude-haiku-4-5\n    apiKeyEnv: MY_KEY";
    with("claude.yaml", "provider: demo\n    script: demo.json", claude);
    let local = "provider: openai\n    name: tiny\n    baseUrl: http://127.0.0.1:9/v1";
    with("price.yaml", "provider: demo\n    script: demo.json", local);
    check(
        &world,
        &["run", "typo.yaml", "x"],
        expect![[r#"
            err: error[E-MANIFEST]: typo.yaml:14:3: unknown field `limit`; did you mean `limits`?
            err: 14 | limit:
            err: ^
            err: expected one of: `model`, `instructions`, `fallbacks`, `tools`, `agents`, `context`, `limits`, `output`
            err: fix: `loopctl agent schema` describes what a manifest may hold
            exit 2
        "#]],
    );
    check(
        &world,
        &["run", "number.yaml", "x"],
        expect![[r#"
        err: error[E-MANIFEST]: number.yaml:15:17: expected a whole number
        err: 15 | iterations: ten
        err: ^
        err: fix: `loopctl agent schema` describes what a manifest may hold
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "root.yaml", "x"],
        expect![[r#"
        err: error[E-TOOL]: the folder DIR/nowhere does not exist
        err: why: spec.tools: root `nowhere` is relative to the manifest's folder
        err: fix: put the folder there, or correct spec.tools
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "script.yaml", "x"],
        expect![[r#"
        err: error[E-MODEL]: the demo script `none.json`: No such file or directory
        err: fix: spec.model.script is a path relative to the manifest
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "native.yaml", "x"],
        expect![[r#"
            err: error[E-TOOL]: there is no tool `send_mail` in loopctl
            err: why: a native tool is a function of a program of its own
            err: fix: run this agent with that program (loopkit), or use the tools `files`, `http`, `shell` and `ask`
            exit 2
        "#]],
    );
    check(
        &world,
        &["run", "key.yaml", "x"],
        expect![[r#"
        err: error[E-MODEL-KEY]: the API key is missing: the variable MY_KEY is not set
        err: why: openai/gpt-5-mini needs it; nothing was started
        err: fix: export MY_KEY=… and try again
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "claude.yaml", "x"],
        expect![[r#"
        err: error[E-MODEL-KEY]: the API key is missing: the variable MY_KEY is not set
        err: why: anthropic/claude-haiku-4-5 needs it; nothing was started
        err: fix: export MY_KEY=… and try again
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "price.yaml", "x", "--max-usd", "0.10"],
        expect![[r#"
        err: error[E-MODEL-PRICE]: nobody knows what `openai/tiny` costs, and the run may spend $0.10
        err: why: an unknown price is never taken for zero; nothing was started
        err: fix: declare spec.model.price in the manifest (0 for a model that costs nothing), or leave the money limit out
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "nothing.yaml", "x"],
        expect![[r#"
        err: error[E-MANIFEST]: nothing.yaml: No such file or directory
        err: fix: name the file of an agent manifest (YAML); `loopctl agent schema` describes its form
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "agent.yaml", "x", "--max-usd", "ten"],
        expect![[r#"
        err: error: invalid value 'ten' for '--max-usd <DOLLARS>': expected dollars with at most six decimals, for example 0.25
        err:
        err: For more information, try '--help'.
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "lst"],
        expect![[r#"
        err: error[E-USAGE]: `lst` is no command of `loopctl run`
        err: why: a manifest is told from a command by a `/` or a `.` in its name
        err: fix: loopctl run --help lists the commands; loopctl run ./lst starts a manifest of that name
        exit 2
    "#]],
    );
    check(
        &world,
        &["agent", "check", "key.yaml"],
        expect![[r#"
            reader 1
              model openai/gpt-5-mini, key in MY_KEY
              price $0.25 in, $2 out per million tokens, from genai-prices 0.2.1
              window 400,000 tokens, from genai-prices 0.2.1
              tool list_files read · files below docs
              tool read_file read · files below docs
              tool search_files read · files below docs
              tool ask asks a person · built in
              tool read_result read · built in
              limits 10 iterations
              state cannot run here: the API key is missing: the variable MY_KEY is not set (E-MODEL-KEY)
              do export MY_KEY=… and try again
            exit 2
        "#]],
    );
    check(
        &world,
        &["agent", "check", "agent.yaml"],
        expect![[r#"
            reader 1
              model demo plays demo.json
              tool list_files read · files below docs
              tool read_file read · files below docs
              tool search_files read · files below docs
              tool ask asks a person · built in
              tool read_result read · built in
              limits 10 iterations
              state ready to run
        "#]],
    );
    assert!(!world::exists(&world.path(".loopd")), "nothing was started");
}
