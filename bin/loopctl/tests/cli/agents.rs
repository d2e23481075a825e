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
    check(&world, &["agent", "list"], expect![[""]]);
    check(&world, &["agent", "apply", "one.yaml", "two.yaml"], expect![[""]]);
    check(&world, &["agent", "apply", "one.yaml", "-o", "json"], expect![[""]]);
    check(&world, &["agent", "apply", "one.yaml", "-o", "name"], expect![[""]]);
    check(&world, &["agent", "ls"], expect![[""]]);
    check(&world, &["agent", "list", "-o", "jsonl"], expect![[""]]);
    check(&world, &["conv", "new", "Talk"], expect![[""]]);
    check(&world, &["conv", "send", "last", "Hello.", "--to", "harness/one", "--wait"], expect![[""]]);
    check(&world, &["agent", "delete", "one"], expect![[""]]);
    check(&world, &["agent", "delete", "one"], expect![[""]]);
    check(&world, &["agent", "list", "-o", "name"], expect![[""]]);
}

#[test]
fn what_is_not_applied_says_why() {
    let world = World::new();
    world.write("one.yaml", &manifest("one", "quick.json"));
    world.write("broken.yaml", "not: [yaml");
    check(&world, &["agent", "apply", "one.yaml"], expect![[""]]);
    let _served = Served::start(&world);
    world.write("quick.yaml", &manifest("quick", "quick.json"));
    // Nothing is sent before everything was read.
    check(&world, &["agent", "apply", "one.yaml", "broken.yaml"], expect![[""]]);
    check(&world, &["agent", "apply", "one.yaml", "quick.yaml"], expect![[""]]);
    check(&world, &["agent", "apply", "nowhere.yaml"], expect![[""]]);
    check(&world, &["agent", "apply"], expect![[""]]);
    check(&world, &["agent", "delete", "quick"], expect![[""]]);
    check(&world, &["agent", "delete", "demo"], expect![[""]]);
    check(&world, &["agent", "delete", "../tokens/x"], expect![[""]]);
    // A token that only reads may list, and no more.
    let made = world.loopctl(&["token", "create", "--actor", "person/eve", "--role", "viewer"]);
    world.write("eve.token", &made.out);
    check(&world, &["agent", "list", "-o", "name", "--token-file", "eve.token"], expect![[""]]);
    check(&world, &["agent", "apply", "one.yaml", "--token-file", "eve.token"], expect![[""]]);
}
