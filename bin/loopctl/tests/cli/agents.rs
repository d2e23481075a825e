//! The agents of a server: listed, kept, taken out.

use crate::check;
use crate::served::Served;
use crate::world::World;
use expect_test::expect;

fn manifest(name: &str, script: &str) -> String {
    format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name}, description: Says something. }}\n\
         spec:\n  model: {{ provider: demo, script: {script} }}\n"
    )
}

#[test]
fn manifests_are_kept_at_a_server_and_taken_out() {
    let world = World::new();
    let _served = Served::start(&world);
    world.write("one.yaml", &manifest("one", "quick.json"));
    world.write("two.yaml", &manifest("two", "nowhere.json"));
    check(
        &world,
        &["agent", "list"],
        expect![[r#"
        AGENT STATE FROM MODEL WHAT IT DOES
        asks ready agents/asks.yaml demo
        demo ready built in demo Plays a script, offline, and knows nothing. Shows how answers, questions and too…
        endless ready agents/endless.yaml demo
        quick ready agents/quick.yaml demo
        slow ready agents/slow.yaml demo
    "#]],
    );
    check(
        &world,
        &["agent", "apply", "one.yaml", "two.yaml"],
        expect![[r#"
        err: one created
        err: two created; it takes no calls: the demo script `nowhere.json`: No such file or directory
    "#]],
    );
    check(
        &world,
        &["agent", "apply", "one.yaml", "-o", "json"],
        expect![[r#"
        [
          {
            "change": "unchanged",
            "agent": {
              "name": "one",
              "source": "kept",
              "description": "Says something.",
              "version": "1",
              "model": "demo"
            }
          }
        ]
    "#]],
    );
    check(
        &world,
        &["agent", "apply", "one.yaml", "-o", "name"],
        expect![[r#"
        one
    "#]],
    );
    check(
        &world,
        &["agent", "ls"],
        expect![[r#"
            AGENT STATE FROM MODEL WHAT IT DOES
            asks ready agents/asks.yaml demo
            demo ready built in demo Plays a script, offline, and knows nothing. Shows how answers, questions and too…
            endless ready agents/endless.yaml demo
            one ready kept demo Says something.
            quick ready agents/quick.yaml demo
            slow ready agents/slow.yaml demo
            two takes no calls kept - Says something.
            err: two: the demo script `nowhere.json`: No such file or directory
        "#]],
    );
    check(
        &world,
        &["agent", "list", "-o", "jsonl"],
        expect![[r#"
            {"name":"asks","source":"file","file":"agents/asks.yaml","description":"","version":"1","model":"demo"}
            {"name":"demo","source":"built_in","description":"Plays a script, offline, and knows nothing. Shows how answers, questions and tools look.","version":"1","model":"demo"}
            {"name":"endless","source":"file","file":"agents/endless.yaml","description":"","version":"1","model":"demo"}
            {"name":"one","source":"kept","description":"Says something.","version":"1","model":"demo"}
            {"name":"quick","source":"file","file":"agents/quick.yaml","description":"","version":"1","model":"demo"}
            {"name":"slow","source":"file","file":"agents/slow.yaml","description":"","version":"1","model":"demo"}
            {"name":"two","source":"kept","description":"Says something.","unavailable":"the demo script `nowhere.json`: No such file or directory"}
        "#]],
    );
    check(
        &world,
        &["conv", "new", "Talk"],
        expect![[r#"
        CON1
    "#]],
    );
    check(
        &world,
        &["conv", "send", "last", "Hello.", "--to", "harness/one", "--wait"],
        expect![[r#"
        You said Hello.
    "#]],
    );
    check(
        &world,
        &["agent", "delete", "one"],
        expect![[r#"
        err: one is kept no longer
    "#]],
    );
    check(
        &world,
        &["agent", "delete", "one"],
        expect![[r#"
        err: error[E-SERVER-NOT-FOUND]: there is no agent one
        exit 8
    "#]],
    );
    check(
        &world,
        &["agent", "list", "-o", "name"],
        expect![[r#"
        asks
        demo
        endless
        quick
        slow
        two
    "#]],
    );
}

#[test]
fn what_is_not_applied_says_why() {
    let world = World::new();
    world.write("one.yaml", &manifest("one", "quick.json"));
    world.write("broken.yaml", "not: [yaml");
    check(
        &world,
        &["agent", "apply", "one.yaml"],
        expect![[r#"
        err: error[E-SERVER-UNREACHABLE]: no server runs on ./.loopd
        err: fix: start one with `loopd up`, or name one with --server URL or LOOPD_SERVER
        exit 9
    "#]],
    );
    let _served = Served::start(&world);
    world.write("quick.yaml", &manifest("quick", "quick.json"));
    // Nothing is sent before everything was read.
    check(
        &world,
        &["agent", "apply", "one.yaml", "broken.yaml"],
        expect![[r#"
        err: error[E-MANIFEST]: broken.yaml:1:1: unknown field `not`
        err: 1 | not: [yaml
        err: ^
        err: expected one of: `apiVersion`, `kind`, `metadata`, `spec`
        err: fix: `loopctl agent schema` describes what a manifest may hold
        exit 2
    "#]],
    );
    check(
        &world,
        &["agent", "apply", "one.yaml", "quick.yaml"],
        expect![[r#"
        err: one created
        err: quick is not applied
        err: error[E-SERVER-CONFLICT]: quick is in a file of the server, which goes before: change agents/quick.yaml
        err: why: the server says `agent_in_file`
        exit 8
    "#]],
    );
    check(
        &world,
        &["agent", "apply", "nowhere.yaml"],
        expect![[r#"
        err: error[E-MANIFEST]: nowhere.yaml: No such file or directory
        err: fix: name the file of an agent manifest (YAML); `loopctl agent schema` describes its form
        exit 2
    "#]],
    );
    check(
        &world,
        &["agent", "apply"],
        expect![[r#"
        err: error: the following required arguments were not provided:
        err: <FILE>...
        err:
        err: Usage: loopctl agent apply <FILE>...
        err:
        err: For more information, try '--help'.
        exit 2
    "#]],
    );
    check(
        &world,
        &["agent", "delete", "quick"],
        expect![[r#"
        err: error[E-SERVER-CONFLICT]: quick is in a file of the server, which goes before: change agents/quick.yaml
        err: why: the server says `agent_in_file`
        exit 8
    "#]],
    );
    check(
        &world,
        &["agent", "delete", "demo"],
        expect![[r#"
        err: error[E-SERVER-CONFLICT]: the server brings demo along; keep another of that name in its place
        err: why: the server says `agent_built_in`
        exit 8
    "#]],
    );
    check(
        &world,
        &["agent", "delete", "../tokens/x"],
        expect![[r#"
        err: error[E-USAGE]: `../tokens/x` is no name of an agent: an actor is written `person/KEY`, `operator/KEY`, `operator/KEY/ROLE` or `harness/KEY`; a key has 1 to 64 of a-z, 0-9, -, _ and . and begins with a letter or a digit
        exit 2
    "#]],
    );
    // A token that only reads may list, and no more.
    let made = world.loopctl(&["token", "create", "--actor", "person/eve", "--role", "viewer"]);
    world.write("eve.token", &made.out);
    check(
        &world,
        &["agent", "list", "-o", "name", "--token-file", "eve.token"],
        expect![[r#"
        asks
        demo
        endless
        one
        quick
        slow
    "#]],
    );
    check(
        &world,
        &["agent", "apply", "one.yaml", "--token-file", "eve.token"],
        expect![[r#"
        err: one is not applied
        err: error[E-SERVER-FORBIDDEN]: person/eve may not do this: it needs the role admin
        err: why: the server says `forbidden`
        exit 6
    "#]],
    );
}
