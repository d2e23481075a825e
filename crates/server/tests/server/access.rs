//! Tokens: made once, shown once, revoked at once.

use crate::world::{Ask, World, plain};
use expect_test::expect;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_token_is_shown_once_and_revoked_at_once() {
    let world = World::new().await;
    let made = world
        .send(
            Ask::post("/v1/tokens")
                .by(&world.root)
                .json(json!({"name": "ci", "actor": "operator/ci", "roles": ["operator"], "days": 2})),
        )
        .await;
    assert_eq!(made.brief(), "201");
    let made = made.json();
    let (secret, id) = (made["secret"].as_str().unwrap().to_owned(), made["token"]["id"].as_str().unwrap().to_owned());
    let who = || Ask::get("/v1/whoami").by(&secret);
    assert_eq!(world.send(who()).await.json(), json!({"actor": "operator/ci", "roles": ["operator"]}));
    let list = world.send(Ask::get("/v1/tokens").by(&world.root)).await;
    assert!(list.text().contains(&id) && !list.text().contains(&secret));
    let gone = world.send(Ask::new("delete", format!("/v1/tokens/{id}")).by(&world.root)).await;
    assert!(gone.json()["revoked_at"].is_i64());
    assert_eq!(world.send(who()).await.brief(), "401 unauthenticated");
    assert_eq!(world.send(Ask::new("delete", format!("/v1/tokens/{id}")).by(&world.root)).await.brief(), "200");
    let lines = world.send(Ask::get("/v1/audit?limit=2").by(&world.root)).await.json();
    let lines: Vec<_> = lines["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{} {} {}\n", line["actor"], line["action"], line["detail"]))
        .collect();
    expect![[r#"
        "person/root" "token.revoke" null
        "person/root" "token.create" "operator/ci as operator"
    "#]]
    .assert_eq(&plain(&lines.concat()));
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_with_its_days() {
    let world = World::new().await;
    let made = world
        .send(
            Ask::post("/v1/tokens")
                .by(&world.root)
                .json(json!({"actor": "person/zoe", "roles": ["member"], "days": 1})),
        )
        .await
        .json();
    let who = || Ask::get("/v1/whoami").by(made["secret"].as_str().unwrap());
    assert_eq!(world.send(who()).await.brief(), "200");
    world.clock.pass(std::time::Duration::from_secs(24 * 3600));
    assert_eq!(world.send(who()).await.brief(), "401 unauthenticated");
}

#[tokio::test(start_paused = true)]
async fn only_admins_make_tokens_and_read_the_audit_log() {
    let world = World::new().await;
    let new = json!({"actor": "person/ann", "roles": ["admin"]});
    for token in [&world.ann, &world.eve, &world.op] {
        assert_eq!(world.send(Ask::post("/v1/tokens").by(token).json(new.clone())).await.brief(), "403 forbidden");
        for path in ["/v1/tokens", "/v1/audit", "/v1/runs"] {
            assert_eq!(world.send(Ask::get(path).by(token)).await.brief(), "403 forbidden", "{path}");
        }
    }
    let wrong = [
        (json!({"actor": "person/ann", "roles": []}), "422 invalid roles"),
        (json!({"actor": "person/ann", "roles": ["king"]}), "422 invalid roles[0]"),
        (json!({"actor": "ann", "roles": ["admin"]}), "422 invalid actor"),
        (json!({"actor": "person/ann", "roles": ["admin"], "days": 0}), "422 invalid days"),
        (json!({"actor": "person/ann", "roles": ["admin"], "name": "x".repeat(201)}), "422 invalid name"),
    ];
    for (body, expected) in wrong {
        assert_eq!(world.send(Ask::post("/v1/tokens").by(&world.root).json(body)).await.brief(), expected);
    }
    assert_eq!(world.send(Ask::get("/v1/tokens?cursor=nonsense").by(&world.root)).await.brief(), "422 invalid cursor");
}

#[tokio::test(start_paused = true)]
async fn counters_can_be_private() {
    let world = World::configured(|config| config.private_metrics = true).await;
    assert_eq!(world.send(Ask::get("/metrics")).await.brief(), "401 unauthenticated");
    assert_eq!(world.send(Ask::get("/metrics").by(&world.ann)).await.brief(), "403 forbidden");
    assert_eq!(world.send(Ask::get("/metrics").by(&world.root)).await.brief(), "200");
}
