//! Conversations, agents that give tasks to others, and what a manifest brings along.

use crate::world::World;
use expect_test::{Expect, expect};

const CHATTY: &str = "\
apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: { name: chatty }
spec:
  model: { provider: demo, script: chatty.json }
  tools: [ { use: files, root: docs }, { use: ask } ]
  limits: { iterations: 9 }
";

const CHAT: &str = r#"{"label": "", "turns": [
  {"when": {"last_tool": "list_files"}, "say": "{{tool.list_files/path}} it is."},
  {"when": {"last_tool": "ask"}, "say": "So be it: {{tool.ask}}."},
  {"when": {"user_contains": "folder"}, "use": [{"tool": "list_files"}]},
  {"when": {"user_contains": "colour"}, "use": [{"tool": "ask", "args": {"question": "Which colour?", "choices": ["red", "blue"]}}]},
  {"say": "You said: {{input}}"}
 ]}"#;

fn chatty() -> World {
    let world = World::new();
    world.write("chatty.yaml", CHATTY);
    world.write("chatty.json", CHAT);
    world
}

/// Types `lines` into a conversation and compares what comes to stdout, what comes to stderr, and the exit code.
#[track_caller]
fn check(world: &World, args: &[&str], lines: &str, expected: Expect) {
    let done = world.piped(&[&["agent", "chat"], args].concat(), lines);
    let notes: String = done.err.lines().map(|line| format!("err: {line}\n")).collect();
    expected.assert_eq(&world.normal(&format!("{}{notes}exit {}\n", done.out, done.code)));
}

#[test]
fn a_conversation_is_one_run_that_can_be_taken_up_again() {
    let world = chatty();
    check(
        &world,
        &["chatty.yaml", "Hello"],
        "and the folder?\n/nonsense\n",
        expect![[r#"
            You said: Hello
            . it is.
            err: 6 tool list_files {} read · TIME
            err: {"path":".","entries":[{"path":"coffee.md","kind":"file","bytes":25},{"path"… (113 B)
            err: /nonsense is no command; /help lists them
            err: take it up again with loopctl agent chat --run RUN1
            exit 0
        "#]],
    );
    check(
        &world,
        &["--run", "last"],
        "two\nlines \\\nin one\n/end\n",
        expect![[r#"
        You said: two
        You said: lines
        in one
        err: RUN1 with chatty
        err: RUN1 has ended
        exit 0
    "#]],
    );
    check(
        &world,
        &["--run", "last"],
        "hello?\n",
        expect![[r#"
        err: RUN1 with chatty
        err: error[E-RUN-STATE]: the run cannot be taken over now: it is ended
        err: fix: loopctl run why
        exit 8
    "#]],
    );
}

#[test]
fn questions_are_answered_in_the_conversation() {
    let world = chatty();
    check(
        &world,
        &["chatty.yaml"],
        "a colour, please\ngreen\nblue\n/usage\n",
        expect![[r#"
            So be it: blue.
            err: ? RUN1/q1 Which colour?
            err: one of red | blue
            err: answer loopctl ask answer RUN1/q1 red
            err: error[E-ANSWER]: the answer does not fit RUN1/q1: "green" is not one of "red" or "blue"
            err: why: its schema is {"enum":["red","blue"]}
            err: fix: give an answer that fits; --json takes any JSON value
            err: 2 ask q1 Which colour? TIME
            err: ada: blue
            err: 1,352 tokens · iteration 2
            err: take it up again with loopctl agent chat --run RUN1
            exit 0
        "#]],
    );
}

#[test]
fn a_limit_is_raised_in_the_conversation() {
    let world = chatty();
    check(
        &world,
        &["chatty.yaml", "--max-iterations", "1"],
        "one\ntwo\nthree\n/raise\nfour\n",
        expect![[r#"
            You said: one
            You said: two
            err: 5 park the run stopped
            err: BudgetExceeded: iterations limit 1, used 1, 1 more needed
            err: stopped at a limit: the limit is 1 iteration; 1 iteration used; /raise goes on with twice as much
            err: that was not sent: only /raise goes on; /exit leaves
            err: 6 reopen reopened by ada: iterations to 2
            err: 11 park the run stopped
            err: BudgetExceeded: iterations limit 2, used 2, 1 more needed
            err: stopped at a limit: the limit is 2 iterations; 2 iterations used; /raise goes on with twice as much
            err: take it up again with loopctl agent chat --run RUN1
            exit 3
        "#]],
    );
}

#[test]
fn a_run_that_is_no_conversation_is_not_talked_to() {
    let world = chatty();
    world.loopctl(&["run", "agent.yaml", "Compare"]);
    check(
        &world,
        &["--run", "last"],
        "hello\n",
        expect![[r#"
        err: error[E-RUN-STATE]: RUN1 is no conversation
        err: why: it was started to answer one question
        err: fix: loopctl run show RUN1
        exit 8
    "#]],
    );
    check(
        &world,
        &["nothing.yaml"],
        "hello\n",
        expect![[r#"
        err: error[E-MANIFEST]: nothing.yaml: No such file or directory
        err: fix: name the file of an agent manifest (YAML); `loopctl agent schema` describes its form
        exit 2
    "#]],
    );
    check(
        &world,
        &["chatty.yaml"],
        "",
        expect![[r#"
        exit 0
    "#]],
    );
}

const LEAD: &str = "\
apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: { name: lead }
spec:
  model: { provider: demo, script: lead.json }
  agents:
    - { name: scout, manifest: sub/scout.yaml, limits: { iterations: 3 } }
";

const SCOUT: &str = "\
apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: { name: scout, description: Looks at files. }
spec:
  model: { provider: demo, script: scout.json }
  tools: [ { use: files, root: docs } ]
";

fn family() -> World {
    let world = World::new();
    world.write("lead.yaml", LEAD);
    world.write("sub/scout.yaml", SCOUT);
    world.write("sub/docs/a.md", "hi\n");
    world.write(
        "lead.json",
        r#"{"label": "", "turns": [
          {"when": {"last_tool": "scout"}, "say": "The scout says: {{tool.scout}}"},
          {"use": [{"tool": "scout", "args": {"task": "{{input}}"}}]}
         ]}"#,
    );
    world.write(
        "sub/scout.json",
        r#"{"label": "", "turns": [
          {"when": {"user_contains": "forever"}, "use": [{"tool": "list_files"}]},
          {"when": {"user_contains": "ask", "turn": 1}, "use": [{"tool": "read_file", "args": {"path": "gone.md"}}]},
          {"when": {"last_tool": "list_files"}, "say": "{{tool.list_files/entries/0/path}}"},
          {"when": {"last_tool": "read_file"}, "say": "not there"},
          {"use": [{"tool": "list_files"}]}
         ]}"#,
    );
    world
}

#[test]
fn an_agent_gives_a_task_to_another_one() {
    let world = family();
    crate::check(
        &world,
        &["run", "lead.yaml", "What is there?"],
        expect![[r#"
        The scout says: a.md
    "#]],
    );
    crate::check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 scout 1
              asked What is there?
              started MOMENT MOMENT took TIME
              spent 2 iterations · 1,119 tokens limits: 3 iterations
              chain verified, 15 entries, head HASH
              parent RUN2

               1 model demo 551 tok · TIME
                          → list_files {}
               2 tool list_files {} read · TIME
                          {"path":".","entries":[{"path":"a.md","kind":"file","bytes":3}]}
               3 model demo 568 tok · TIME

            completed
              a.md
        "#]],
    );
    crate::check(
        &world,
        &["run", "lead.yaml", "Go on forever"],
        expect![[r#"
        The scout says: it was stopped: its limits for this task are used up, and what it found is lost
    "#]],
    );
    crate::check(
        &world,
        &["agent", "check", "lead.yaml"],
        expect![[r#"
            lead 1
              model demo plays lead.json
              tool scout a run of its own · the agent in sub/scout.yaml
              tool read_result read · built in
              limits 50 iterations
              state ready to run
        "#]],
    );
    let verified = world.loopctl(&["store", "verify"]);
    assert_eq!((verified.code, verified.out.lines().count()), (0, 4), "two runs and their children");
}

#[test]
fn a_recorded_run_of_a_family_replays_without_the_files() {
    let world = family();
    world.loopctl(&["run", "lead.yaml", "What is there?"]);
    let lead = world.loopctl(&["run", "list", "--loop", "lead", "-o", "name"]).out;
    assert_eq!(world.loopctl(&["record", lead.trim(), "-o", "lead.loopfix"]).code, 0);
    std::fs::remove_dir_all(world.path("sub")).unwrap();
    crate::check(
        &world,
        &["replay", "lead.loopfix"],
        expect![[r#"
        agrees lead.loopfix strict: 5 decisions over 15 entries
    "#]],
    );
}

#[test]
fn agents_that_name_each_other_in_a_circle_are_refused() {
    let world = family();
    world.write("sub/scout.yaml", &format!("{SCOUT}  agents: [ {{ name: lead, manifest: ../lead.yaml }} ]\n"));
    crate::check(
        &world,
        &["run", "lead.yaml", "Go"],
        expect![[r#"
        err: error[E-MANIFEST]: DIR/sub/../lead.yaml: the agents of spec.agents name each other in a circle
        err: why: an agent is part of the definition of the one that gives it tasks
        err: fix: take one of them out of spec.agents
        exit 2
    "#]],
    );
    world.write("sub/scout.yaml", "kind: Agent");
    crate::check(
        &world,
        &["run", "lead.yaml", "Go"],
        expect![[r#"
        err: error[E-MANIFEST]: DIR/sub/scout.yaml:1:1: the field `apiVersion` is missing here
        err: 1 | kind: Agent
        err: ^
        err: fix: `loopctl agent schema` describes what a manifest may hold
        exit 2
    "#]],
    );
}

#[test]
fn instructions_and_skills_come_from_files() {
    let world = chatty();
    let context = "  context: { instructions: [ AGENTS.md ], skills: [ skills ] }\n";
    world.write("chatty.yaml", &format!("{CHATTY}{context}"));
    crate::check(
        &world,
        &["run", "chatty.yaml", "Hello"],
        expect![[r#"
        err: error[E-MANIFEST]: DIR/AGENTS.md: No such file or directory
        err: why: spec.context.instructions names it, relative to the manifest's folder
        err: fix: put it there, or correct spec.context.instructions
        exit 2
    "#]],
    );
    world.write("AGENTS.md", "Always say please.\n");
    crate::check(
        &world,
        &["run", "chatty.yaml", "Hello"],
        expect![[r#"
        err: error[E-MANIFEST]: DIR/skills: No such file or directory
        err: why: spec.context.skills names it, relative to the manifest's folder
        err: fix: put it there, or correct spec.context.skills
        exit 2
    "#]],
    );
    world.write("skills/tidy/SKILL.md", "Sweep.\n");
    crate::check(
        &world,
        &["run", "chatty.yaml", "Hello"],
        expect![[r#"
        err: error[E-MANIFEST]: DIR/skills/tidy/SKILL.md:1:1: expected a head HASH two lines `---`
        err: a SKILL.md begins with `---`, name and description, `---`; the text follows
        exit 2
    "#]],
    );
    world.write("skills/tidy/SKILL.md", "---\nname: tidy\n---\nSweep.\n");
    crate::check(
        &world,
        &["run", "chatty.yaml", "Hello"],
        expect![[r#"
        err: error[E-MANIFEST]: DIR/skills/tidy/SKILL.md:2:1: expected a description: the model chooses by it
        err: a SKILL.md begins with `---`, name and description, `---`; the text follows
        exit 2
    "#]],
    );
    world.write("skills/tidy/SKILL.md", "---\ndescription: when it is untidy\nlicense: MIT\n---\nSweep.\n");
    world.write(
        "chatty.json",
        r#"{"label": "", "turns": [
          {"when": {"last_tool": "use_skill"}, "say": "It says: {{tool.use_skill}}"},
          {"when": {"system_contains": "- tidy: when it is untidy"}, "use": [{"tool": "use_skill", "args": {"name": "tidy"}}]}
         ]}"#,
    );
    crate::check(
        &world,
        &["run", "chatty.yaml", "Hello"],
        expect![[r#"
        It says: Sweep.
    "#]],
    );
}

#[test]
fn files_come_with_a_question() {
    let world = chatty();
    world.write("a.csv", "a,b\n");
    std::fs::write(world.path("b.bin"), [0xff, 0xfe, 0]).unwrap();
    crate::check(
        &world,
        &["run", "chatty.yaml", "Look", "--attach", "a.csv"],
        expect![[r#"
        You said: Look
    "#]],
    );
    crate::check(
        &world,
        &["run", "show", "last"],
        expect![[r#"
            RUN1 chatty 1
              asked Look + a.csv
              started MOMENT MOMENT took TIME
              spent 1 iteration · 660 tokens limits: 9 iterations
              chain verified, 7 entries, head HASH

               1 model demo 660 tok · TIME

            completed
              You said: Look
        "#]],
    );
    crate::check(
        &world,
        &["run", "chatty.yaml", "Look", "--attach", "b.bin"],
        expect![[r#"
        err: error[E-INPUT]: b.bin: nobody knows what kind of file this is
        err: why: it is no text, and its ending is that of no image, document or recording which models take
        exit 2
    "#]],
    );
    crate::check(
        &world,
        &["run", "chatty.yaml", "Look", "--attach", "none.png"],
        expect![[r#"
        err: error[E-INPUT]: none.png: No such file or directory
        exit 2
    "#]],
    );
}

#[test]
fn a_key_may_stand_in_a_file() {
    let world = chatty();
    let manifest = |more: &str| {
        format!(
            "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: k }}\nspec:\n  model: {{ provider: anthropic, \
             name: m, apiKeyFile: key.txt{more} }}\n"
        )
    };
    world.write("k.yaml", &manifest(", apiKeyEnv: KEY"));
    crate::check(
        &world,
        &["agent", "check", "k.yaml"],
        expect![[r#"
        err: error[E-MANIFEST]: k.yaml:5:10: the key is in `apiKeyEnv` or in `apiKeyFile`, not in both
        err: 5 | model: { provider: anthropic, name: m, apiKeyFile: key.txt, apiKeyEnv: KEY }
        err: ^
        err: fix: `loopctl agent schema` describes what a manifest may hold
        exit 2
    "#]],
    );
    world.write("k.yaml", &manifest(""));
    crate::check(
        &world,
        &["agent", "check", "k.yaml"],
        expect![[r#"
            k 1
              model anthropic/m, key in key.txt
              price unknown, so no money is counted; spec.model.price declares it
              limits 50 iterations
              state cannot run here: no API key: DIR/key.txt cannot be read (E-MODEL-KEY)
            exit 2
        "#]],
    );
    world.write("key.txt", "sk-secret-1\n");
    crate::check(
        &world,
        &["agent", "check", "k.yaml"],
        expect![[r#"
            k 1
              model anthropic/m, key in key.txt
              price unknown, so no money is counted; spec.model.price declares it
              limits 50 iterations
              state ready to run
        "#]],
    );
}

/// A family whose helper asks a person.
fn asking() -> World {
    let world = family();
    world.write("sub/scout.yaml", &SCOUT.replace("tools: [ {", "tools: [ { use: ask }, {"));
    world.write(
        "sub/scout.json",
        r#"{"label": "", "turns": [
          {"when": {"last_tool": "ask"}, "say": "{{tool.ask}} it is"},
          {"use": [{"tool": "ask", "args": {"question": "Which one?"}}]}
         ]}"#,
    );
    world
}

#[test]
fn what_a_helper_asks_is_asked_where_somebody_sits() {
    let world = asking();
    check(
        &world,
        &["lead.yaml"],
        "Find one\nthe left one\n",
        expect![[r#"
        The scout says: the left one it is
        err: ? RUN1/q1 Which one?
        err: answer loopctl ask answer RUN1/q1 '…'
        err: 2 child scout:demo_1_0 scout "Find one" 1,337 tok · TIME
        err: "the left one it is"
        err: take it up again with loopctl agent chat --run RUN2
        exit 0
    "#]],
    );
    let world = asking();
    crate::check(
        &world,
        &["run", "lead.yaml", "Find one"],
        expect![[r#"
        err: ? RUN1/q1 Which one?
        err: answer loopctl ask answer RUN1/q1 '…'
        err: then loopctl run resume RUN2
        exit 5
    "#]],
    );
    let question = world.loopctl(&["ask", "list", "-o", "json"]).out;
    let question: serde_json::Value = serde_json::from_str(&question).unwrap();
    let name = format!("{}/{}", question[0]["run"].as_str().unwrap(), question[0]["question"].as_str().unwrap_or("q1"));
    assert_eq!(world.loopctl(&["ask", "answer", &name, "the right one"]).code, 0);
    let lead = world.loopctl(&["run", "list", "--loop", "lead", "-o", "name"]).out;
    crate::check(
        &world,
        &["run", "resume", lead.trim()],
        expect![[r#"
        The scout says: the right one it is
    "#]],
    );
}

#[test]
fn a_conversation_ends_wherever_it_stands() {
    let world = asking();
    check(
        &world,
        &["lead.yaml"],
        "Find one\n/end\n",
        expect![[r#"
        err: ? RUN1/q1 Which one?
        err: answer loopctl ask answer RUN1/q1 '…'
        err: 2 child scout:demo_1_0 scout "Find one" cancelled · child.cancelled · TIME
        err: its parent ended first
        err: 5 tell scout:demo_1_0 cancel: the person whom it works for interrupted the work
        err: RUN2 has ended
        exit 0
    "#]],
    );
    let world = chatty();
    check(
        &world,
        &["chatty.yaml", "--max-iterations", "1"],
        "one\ntwo\n/end\n",
        expect![[r#"
        You said: one
        err: 5 park the run stopped
        err: BudgetExceeded: iterations limit 1, used 1, 1 more needed
        err: stopped at a limit: the limit is 1 iteration; 1 iteration used; /raise goes on with twice as much
        err: 6 cancel asked by ada: the conversation was ended
        err: RUN1 cancelled by ada: the conversation was ended
        exit 5
    "#]],
    );
}

#[test]
fn what_a_helper_lacks_is_found_before_anything_starts() {
    let world = family();
    let model = "model: { provider: anthropic, name: claude-x, apiKeyEnv: HELPER_KEY }";
    world.write("sub/scout.yaml", &SCOUT.replace("model: { provider: demo, script: scout.json }", model));
    crate::check(
        &world,
        &["run", "lead.yaml", "Go"],
        expect![[r#"
        err: error[E-MODEL-KEY]: the API key is missing: the variable HELPER_KEY is not set
        err: why: anthropic/claude-x needs it; nothing was started
        err: fix: export HELPER_KEY=… and try again
        exit 2
    "#]],
    );
    let model = "model: { provider: openai, name: m, baseUrl: http://127.0.0.1:9/v1 }";
    world.write("sub/scout.yaml", &SCOUT.replace("model: { provider: demo, script: scout.json }", model));
    crate::check(
        &world,
        &["run", "lead.yaml", "Go", "--max-usd", "1"],
        expect![[r#"
        err: error[E-MODEL-PRICE]: nobody knows what `openai/m` costs, and the run may spend $1.00
        err: why: an unknown price is never taken for zero; nothing was started
        err: fix: declare spec.model.price in the manifest (0 for a model that costs nothing), or leave the money limit out
        exit 2
    "#]],
    );
}
