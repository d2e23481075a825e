//! What the server makes of wrong settings, and of a folder that is not as it should be.

use crate::world::World;
use expect_test::{Expect, expect};
use std::os::unix::fs::PermissionsExt;

#[track_caller]
fn check(world: &World, args: &[&str], code: i32, expected: Expect) {
    let mut all = vec!["serve"];
    all.extend(args);
    let done = world.run(&all);
    expected.assert_eq(&done.err);
    assert_eq!(done.code, code);
    assert!(!world.path(".loopd").exists(), "nothing was touched");
}

#[test]
fn settings_that_are_wrong_are_named_and_nothing_is_touched() {
    let world = World::new();
    world.write("one.toml", "slots = 1\nports = 2\n");
    world.write("two.toml", "addr = \"nonsense\"\n");
    world.write("three.toml", [0xff, 0xfe, 0, 1]);
    world.write("file", "x");
    check(
        &world,
        &["--config", "one.toml"],
        2,
        expect![[r#"
            loopd: one.toml: line 2: unknown field `ports`, expected one of `addr`, `data`, `agents`, `person`, `allow-hosts`, `slots`, `queue`, `models`, `demo`, `origins`, `private-metrics`, `limits`, `router`
              fix: `loopd serve --help` names what may be set
        "#]],
    );
    check(
        &world,
        &["--config", "two.toml"],
        2,
        expect![[r#"
            loopd: two.toml: line 1: invalid socket address syntax
              fix: `loopd serve --help` names what may be set
        "#]],
    );
    check(
        &world,
        &["--config", "three.toml"],
        2,
        expect![[r#"
        loopd: three.toml: stream did not contain valid UTF-8
    "#]],
    );
    check(
        &world,
        &["--config", "none.toml"],
        2,
        expect![[r#"
        loopd: none.toml: No such file or directory
    "#]],
    );
    check(
        &world,
        &["--agents", "nowhere"],
        2,
        expect![[r#"
            loopd: the folder of agents: nowhere: No such file or directory
              fix: name a folder with the manifests of agents (*.yaml) with --agents, or leave it out
        "#]],
    );
    check(
        &world,
        &["--data", "file", "--addr", "127.0.0.1:0"],
        2,
        expect![[r#"
            loopd: file is no folder
              fix: name another with --data: the server keeps everything in it
        "#]],
    );
    check(
        &world,
        &["--addr", "0.0.0.0:0"],
        2,
        expect![[r#"
            loopd: 0.0.0.0:0 is reached from other machines
              why: requests are taken only under names that were named, and the connection is not encrypted
              fix: name the server with --allow-host NAME and put a proxy with TLS before it, or listen on 127.0.0.1
        "#]],
    );
}

#[test]
fn a_port_that_is_taken_is_said_before_anything_is_touched() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = taken.local_addr().expect("an address").to_string();
    let done = world.run(&["serve", "--addr", &addr]);
    expect![[r#"
        loopd: ADDR is taken: another program listens there
          fix: choose another with --addr 127.0.0.1:PORT; port 0 takes a free one
    "#]]
    .assert_eq(&done.err.replace(&addr, "ADDR"));
    assert_eq!(done.code, 8);
    assert!(!world.path(".loopd").exists());
}

#[test]
fn good_agents_serve_and_bad_ones_are_named() {
    let world = World::new();
    world.agent("good", r#"{"turns": [{"say": "Hello."}]}"#);
    world.write("agents/broken.yaml", "not: [yaml");
    world.write("agents/random.yaml", [0xff, 0, 0x9b]);
    world.write(
        "agents/keyed.yaml",
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: { name: keyed }\n\
         spec: { model: { provider: openai, name: gpt-5-mini, apiKeyEnv: NO_SUCH_KEY } }\n",
    );
    let served = world.serve(&["--agents", "agents"]);
    let greeting = served.greeting[..served.greeting.len() - 1].join("\n") + "\n";
    expect![[r#"
        loopd 0.1.0 serves URL with harness/demo, harness/good
          left out: agents/broken.yaml:1:1: unknown field `not`
               1 | not: [yaml
                   ^
            expected one of: `apiVersion`, `kind`, `metadata`, `spec`
          keyed.yaml: keyed takes no calls: the API key is missing: the variable NO_SUCH_KEY is not set
          left out: agents/random.yaml: line 1 is not UTF-8 text; a manifest is YAML in UTF-8
        talk with it:  loopctl conv new "First try"
    "#]]
    .assert_eq(&greeting.replace(&served.url, "URL"));
}

#[test]
fn a_store_that_is_none_is_left_as_it_is() {
    let world = World::new();
    let rubbish: Vec<u8> = (0..5000_u32).map(|byte| (byte * 7919 % 251) as u8).collect();
    world.write(".loopd/store.db", &rubbish);
    let done = world.run(&["serve", "--addr", "127.0.0.1:0"]);
    expect![[r#"
        loopd: the store is corrupt: ./.loopd/store.db is not a database
          fix: `loopctl store verify` says what is affected; restore a backup
    "#]]
    .assert_eq(&done.err);
    assert_eq!(done.code, 1);
    assert_eq!(std::fs::read(world.path(".loopd/store.db")).expect("reads"), rubbish);
}

#[test]
fn the_folder_is_for_its_owner_alone_and_one_that_is_not_is_named() {
    let world = World::new();
    drop(world.serve(&[]));
    let mode = |name: &str| std::fs::metadata(world.path(name)).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(".loopd"), 0o700);
    for name in ["store.db", "store.db-wal", "admin.token", "instance", "server.json"] {
        assert_eq!(mode(&format!(".loopd/{name}")), 0o600, "{name}");
    }
    std::fs::set_permissions(world.path(".loopd"), PermissionsExt::from_mode(0o755)).expect("changed");
    let served = world.serve(&[]);
    let warned = "  ./.loopd can be looked into by others on this machine; `chmod 700 ./.loopd` ends that";
    assert!(served.greeting.iter().any(|line| line == warned), "{:?}", served.greeting);
}
