//! Agents: who may see them, who may change them, and what is refused.

use crate::things::Things;
use crate::world::{Ask, World, plain};
use expect_test::expect;
use serde_json::{Value, json};

fn put(token: &str, name: &str, manifest: &str) -> Ask {
    Ask::new("put", format!("/v1/agents/{name}")).by(token).text("application/yaml", manifest.to_owned())
}

fn delete(token: &str, name: &str) -> Ask {
    Ask::new("delete", format!("/v1/agents/{name}")).by(token)
}

async fn names(world: &World) -> Vec<String> {
    let all = world.send(Ask::get("/v1/agents").by(&world.eve)).await.json();
    let told = |one: &Value| format!("{} {}", one["name"].as_str().unwrap(), one["source"].as_str().unwrap());
    all["items"].as_array().unwrap().iter().map(told).collect()
}

#[tokio::test(start_paused = true)]
async fn a_manifest_is_kept_changed_and_taken_out() {
    let world = World::new().await;
    assert_eq!(names(&world).await, ["brought built_in", "filed file"]);
    let made = world.send(put(&world.root, "one", "name: one")).await;
    assert_eq!((made.brief().as_str(), made.header("location")), ("201", "/v1/agents/one"));
    let agent = json!({"name": "one", "source": "kept", "description": "", "version": "1", "model": "demo"});
    assert_eq!(made.json(), json!({"change": "created", "agent": agent}));
    assert_eq!(world.send(Ask::get("/v1/agents/one").by(&world.eve)).await.json(), agent);
    let before = world.store.commits();
    let same = world.send(put(&world.root, "one", "name: one")).await;
    assert_eq!((same.brief().as_str(), &same.json()["change"]), ("200", &json!("unchanged")));
    assert_eq!(world.store.commits(), before, "the same again writes nothing");
    let changed = world.send(put(&world.root, "one", "name: one\nmore: 1")).await;
    assert_eq!((changed.brief().as_str(), &changed.json()["change"]), ("200", &json!("changed")));
    // What the server brings along makes place.
    assert_eq!(world.send(put(&world.root, "brought", "name: brought")).await.brief(), "201");
    assert_eq!(names(&world).await, ["brought kept", "filed file", "one kept"]);
    for name in ["one", "brought"] {
        assert_eq!(world.send(delete(&world.root, name)).await.brief(), "204");
    }
    assert_eq!(names(&world).await, ["brought built_in", "filed file"]);
    let lines = world.send(Ask::get("/v1/audit?limit=5").by(&world.root)).await.json();
    let lines = lines["items"].as_array().unwrap().iter();
    let lines: Vec<_> =
        lines.map(|line| format!("{} {} {}\n", line["actor"], line["action"], line["subject"])).collect();
    expect![[r#"
        "person/root" "agent.delete" "brought"
        "person/root" "agent.delete" "one"
        "person/root" "agent.apply" "brought"
        "person/root" "agent.apply" "one"
        "person/root" "agent.apply" "one"
    "#]]
    .assert_eq(&plain(&lines.concat()));
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_kept_is_refused_and_says_why() {
    let things = Things::new().await;
    let world = &things.world;
    let named = |name: &str| put(&world.root, name, &format!("name: {name}"));
    let large = format!("name: kept\n{}", "#".repeat(1 << 20));
    let table = [
        (named("filed"), "409 agent_in_file"),
        (put(&world.root, "kept", "name: other"), "422 invalid metadata.name"),
        (put(&world.root, "kept", "nothing"), "422 invalid manifest"),
        (put(&world.root, "kept", ""), "422 invalid manifest"),
        (put(&world.root, "kept", &large), "413 too_large"),
        (named("Kept"), "404 not_found"),
        (Ask::new("put", "/v1/agents/kept").by(&world.root), "415 media_type"),
        (Ask::new("put", "/v1/agents/kept").by(&world.root).json(json!({"name": "kept"})), "415 media_type"),
        (named("kept").header("content-encoding", "gzip"), "415 media_type"),
        (
            Ask::new("put", "/v1/agents/kept")
                .by(&world.root)
                .header("content-type", "application/yaml")
                .bytes(vec![0xff, 0xfe]),
            "422 invalid manifest",
        ),
        (delete(&world.root, "filed"), "409 agent_in_file"),
        (delete(&world.root, "brought"), "409 agent_built_in"),
        (delete(&world.root, "nobody"), "404 not_found"),
        (delete(&world.root, "%FF"), "404 not_found"),
        (Ask::get("/v1/agents/nobody").by(&world.root), "404 not_found"),
        (Ask::get("/v1/agents/Kept").by(&world.root), "404 not_found"),
    ];
    for (ask, expected) in table {
        let shown = format!("{ask:?}");
        let shown = shown.get(..200).unwrap_or(&shown);
        assert_eq!(things.refused(ask).await.brief(), expected, "{shown}");
    }
    let told = things.refused(named("filed")).await.json();
    assert_eq!(told["detail"], "filed is in a file of the server, which goes before: change agents/filed.yaml");
    for token in [&world.ann, &world.op, &world.eve, &things.zoe] {
        for ask in [put(token, "kept", "name: kept\n#"), put(token, "kept", &large), delete(token, "kept")] {
            assert_eq!(things.refused(ask).await.brief(), "403 forbidden");
        }
    }
    assert_eq!(names(world).await, ["brought built_in", "filed file", "kept kept"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_program_says_what_its_targets_are_keeps_none() {
    let mut world = World::new().await;
    world.send(put(&world.root, "one", "name: one")).await;
    world.restart();
    assert_eq!(names(&world).await, [""; 0]);
    assert_eq!(world.send(Ask::get("/v1/agents/one").by(&world.ann)).await.brief(), "404 not_found");
    for ask in [put(&world.root, "one", "name: one"), delete(&world.root, "one")] {
        assert_eq!(world.send(ask).await.brief(), "409 no_agents");
    }
}
