//! A code becomes a cookie, once and soon; a cookie is good for what the server's own page does.

use crate::world::{Ask, Got, World};
use axum::http::StatusCode;
use serde_json::json;
use std::time::Duration;

const HOST: &str = "localhost:7777";
const ORIGIN: &str = "http://localhost:7777";

fn exchange(code: &str) -> Ask {
    Ask::post("/v1/sign-in").json(json!({"code": code}))
}

/// `name=value` of the cookie that an answer sets.
fn cookie(got: &Got) -> String {
    got.header("set-cookie").split(';').next().unwrap().to_owned()
}

async fn signed_in(world: &World) -> String {
    let got = world.send(exchange(&world.server.sign_in_code().unwrap())).await;
    assert_eq!(got.status, StatusCode::OK, "{}", got.text());
    cookie(&got)
}

#[tokio::test(start_paused = true)]
async fn a_code_is_good_once_and_for_a_minute() {
    let world = World::new().await;
    let code = world.server.sign_in_code().unwrap();
    assert_eq!(code.len(), 22);
    let got = world.send(exchange(&code)).await;
    assert_eq!(got.json(), json!({"actor": "person/me", "roles": ["admin"]}));
    let said = got.header("set-cookie").to_owned();
    assert!(said.starts_with("loopd_abababab="), "{said}");
    assert!(said.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict"), "{said}");
    assert_eq!(world.send(exchange(&code)).await.brief(), "401 unauthenticated");
    let code = world.server.sign_in_code().unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(world.send(exchange(&code)).await.brief(), "401 unauthenticated");
    // Newer codes push the oldest out.
    let first = world.server.sign_in_code().unwrap();
    for _ in 0..16 {
        world.server.sign_in_code().unwrap();
    }
    assert_eq!(world.send(exchange(&first)).await.brief(), "401 unauthenticated");
}

#[tokio::test(start_paused = true)]
async fn of_many_who_show_one_code_at_once_one_comes_in() {
    let world = World::configured(|config| config.limits.failures_per_minute = 1000).await;
    let (code, other) = (world.server.sign_in_code().unwrap(), world.server.sign_in_code().unwrap());
    let all = (0..50).map(|number| {
        let ask = if number % 2 == 0 { exchange(&code) } else { Ask::get(format!("/sign-in?code={code}")) };
        world.send(ask)
    });
    let got = futures::future::join_all(all).await;
    let came_in = got.iter().filter(|got| got.headers.contains_key("set-cookie")).count();
    let refused = got.iter().filter(|got| got.status == StatusCode::UNAUTHORIZED).count();
    assert_eq!((came_in, refused), (1, 49));
    // What becomes of one code is nothing to another; and something like a code is none.
    for wrong in ["", " ", &other[1..], &format!("{other}x"), &other.to_uppercase(), &"x".repeat(100_000)] {
        assert_eq!(world.send(exchange(wrong)).await.brief(), "401 unauthenticated");
    }
    assert_eq!(world.send(exchange(&other)).await.brief(), "200");
}

#[tokio::test(start_paused = true)]
async fn the_address_loses_its_code_by_a_redirect() {
    let world = World::new().await;
    let page = |code: &str, method: &str| {
        Ask::new(method, format!("/sign-in?code={code}")).header("accept", "text/html,*/*;q=0.8")
    };
    let code = world.server.sign_in_code().unwrap();
    // A look at whether there is something uses nothing up.
    assert_eq!(world.send_unchecked(page(&code, "head")).await.status, StatusCode::NO_CONTENT);
    let got = world.send(page(&code, "get")).await;
    assert_eq!((got.status, got.header("location")), (StatusCode::SEE_OTHER, "/"));
    assert!(got.header("set-cookie").starts_with("loopd_abababab="));
    let got = world.send(page(&code, "get")).await;
    assert_eq!(
        (got.status, got.header("location"), got.header("set-cookie")),
        (StatusCode::SEE_OTHER, "/#expired", "")
    );
    assert_eq!(world.send(Ask::get(format!("/sign-in?code={code}"))).await.brief(), "401 unauthenticated");
    assert_eq!(world.send(Ask::get("/sign-in")).await.brief(), "422 invalid");
    let remote = World::configured(|config| config.hosts = vec!["loopd.example.org".to_owned()]).await;
    let code = remote.server.sign_in_code().unwrap();
    let got = remote.send(exchange(&code).header("host", "loopd.example.org")).await;
    assert!(got.header("set-cookie").ends_with("; Secure"), "{}", got.header("set-cookie"));
}

#[tokio::test(start_paused = true)]
async fn a_cookie_is_for_the_servers_own_page() {
    let world = World::new().await;
    let cookie = signed_in(&world).await;
    let read = || Ask::get("/v1/whoami").header("cookie", format!("theme=dark; {cookie}"));
    let write = || Ask::post("/v1/conversations").header("cookie", &cookie).json(json!({}));
    let table = [
        (read(), "200"),
        (read().header("sec-fetch-site", "same-origin"), "200"),
        (read().header("sec-fetch-site", "none"), "200"),
        (read().header("sec-fetch-site", "same-site"), "403 origin"),
        (read().header("sec-fetch-site", "cross-site"), "403 origin"),
        (read().header("origin", ORIGIN), "200"),
        (write(), "403 origin"),
        (write().header("origin", ORIGIN), "201"),
        (write().header("origin", "http://localhost:3000"), "403 origin"),
        (write().header("sec-fetch-site", "same-origin"), "201"),
        (write().header("sec-fetch-site", "none"), "201"),
        (write().header("sec-fetch-site", "same-site"), "403 origin"),
        (write().header("sec-fetch-site", "same-site").header("origin", ORIGIN), "403 origin"),
        // A token that is shown is what counts, good or not.
        (read().by("loopd_wrong"), "401 unauthenticated"),
        (write().by(&world.ann), "201"),
    ];
    for (number, (ask, expected)) in table.into_iter().enumerate() {
        assert_eq!(world.send(ask.header("host", HOST)).await.brief(), expected, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn cookies_of_others_and_of_nobody_open_nothing() {
    let world = World::new().await;
    let good = signed_in(&world).await;
    let (name, value) = good.split_once('=').unwrap();
    let other = World::configured(|config| config.instance = [0xac; 16]).await;
    other.send(Ask::get("/v1/whoami").by(&other.ann)).await;
    let table = [
        format!("{name}={value}"),
        format!("x=1; {name}=a.b; {name}={value}"),
        // The secret of any token is one.
        format!("{name}={}", world.ann),
        format!("{name}={}", &value[..20]),
        format!("{name}={value}x"),
        format!("{name}="),
        format!("{name}=loopd_"),
        format!("other={value}"),
        format!("loopd_acacacac={value}"),
        format!("{}{name}={value}", format!("{name}=x; ").repeat(8)),
        signed_in(&other).await,
        signed_in(&other).await.replace("loopd_acacacac", name).replacen("=loopd_", "=loopd_X", 1),
    ];
    for (number, cookie) in table.into_iter().enumerate() {
        let got = world.send(Ask::get("/v1/whoami").header("cookie", &cookie)).await;
        assert_eq!(got.status == StatusCode::OK, number < 3, "{cookie}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_outlives_a_restart_and_so_does_that_it_is_signed_out() {
    let mut world = World::new().await;
    let (stays, goes, late) = (signed_in(&world).await, signed_in(&world).await, signed_in(&world).await);
    let who = |cookie: &str| Ask::get("/v1/whoami").header("cookie", cookie);
    world.send(Ask::post("/v1/sign-out").header("cookie", &goes).header("origin", ORIGIN)).await;
    world.restart();
    assert_eq!(world.send(who(&stays)).await.brief(), "200");
    assert_eq!(world.send(who(&goes)).await.brief(), "401 unauthenticated");
    // Whoever administers tokens sees browsers, and can throw each of them out.
    let listed = world.send(Ask::get("/v1/tokens").by(&world.root)).await.json();
    let browsers: Vec<_> = listed["items"].as_array().unwrap().iter().filter(|one| one["name"] == "browser").collect();
    let states: Vec<_> = browsers.iter().map(|one| (&one["actor"], one["revoked_at"].is_i64())).collect();
    assert_eq!(states, [(&json!("person/me"), false), (&json!("person/me"), true), (&json!("person/me"), false)]);
    let path = format!("/v1/tokens/{}", browsers[2]["id"].as_str().unwrap());
    assert_eq!(world.send(Ask::new("delete", path).by(&world.root)).await.brief(), "200");
    assert_eq!(world.send(who(&late)).await.brief(), "401 unauthenticated");
    world.clock.pass(Duration::from_secs(30 * 24 * 3600 - 1));
    assert_eq!(world.send(who(&stays)).await.brief(), "200");
    world.clock.pass(Duration::from_secs(1));
    assert_eq!(world.send(who(&stays)).await.brief(), "401 unauthenticated");
}

#[tokio::test(start_paused = true)]
async fn who_guesses_cookies_waits_as_who_guesses_tokens_does() {
    let world = World::configured(|config| config.limits.failures_per_minute = 5).await;
    let (known, fresh) = (signed_in(&world).await, signed_in(&world).await);
    let name = known.split_once('=').unwrap().0;
    let who = |cookie: &str| Ask::get("/v1/whoami").header("cookie", cookie);
    assert_eq!(world.send(who(&known)).await.brief(), "200");
    // Somebody else's cookies beside a good one are nothing against it.
    for _ in 0..10 {
        assert_eq!(world.send(who(&format!("{name}=loopd_x; {known}"))).await.brief(), "200");
        assert_eq!(world.send(who("other=loopd_x")).await.brief(), "401 unauthenticated");
    }
    for _ in 0..5 {
        assert_eq!(world.send(who(&format!("{name}=loopd_guessed"))).await.brief(), "401 unauthenticated");
    }
    assert_eq!(world.send(who(&format!("{name}=loopd_guessed"))).await.brief(), "429 rate");
    assert_eq!(world.send(who(&fresh)).await.brief(), "429 rate");
    assert_eq!(world.send(who(&known)).await.brief(), "200");
    tokio::time::advance(Duration::from_secs(12)).await;
    assert_eq!(world.send(who(&fresh)).await.brief(), "200");
}

#[tokio::test(start_paused = true)]
async fn signing_out_makes_the_cookie_and_its_copies_worthless() {
    let world = World::new().await;
    let (mine, other) = (signed_in(&world).await, signed_in(&world).await);
    let out = Ask::post("/v1/sign-out").header("cookie", &mine).header("origin", ORIGIN);
    let got = world.send(out).await;
    assert_eq!(got.status, StatusCode::NO_CONTENT);
    assert!(
        got.header("set-cookie").starts_with("loopd_abababab=; Path=/; Max-Age=0;"),
        "{}",
        got.header("set-cookie")
    );
    assert_eq!(world.send(Ask::get("/v1/whoami").header("cookie", &mine)).await.brief(), "401 unauthenticated");
    assert_eq!(world.send(Ask::get("/v1/whoami").header("cookie", &other)).await.brief(), "200");
    let audit = world.send(Ask::get("/v1/audit").by(&world.root)).await.json();
    let actions: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(|line| line["action"].as_str().unwrap()).take(3).collect();
    assert_eq!(actions, ["sign_out", "sign_in", "sign_in"]);
}

#[tokio::test(start_paused = true)]
async fn who_guesses_waits_and_their_neighbours_do_not() {
    let world = World::configured(|config| config.limits.failures_per_minute = 5).await;
    let good = world.server.sign_in_code().unwrap();
    world.send(Ask::get("/v1/whoami").by(&world.ann).peer("192.0.2.7")).await;
    for _ in 0..5 {
        let got = world.send(exchange("guessed").peer("192.0.2.7")).await;
        assert_eq!(got.brief(), "401 unauthenticated");
    }
    let got = world.send(exchange("guessed").peer("192.0.2.7")).await;
    assert_eq!((got.brief().as_str(), got.header("retry-after")), ("429 rate", "12"));
    // The limit holds for right codes and for tokens alike, and also behind a mapped address.
    assert_eq!(world.send(exchange(&good).peer("::ffff:192.0.2.7")).await.brief(), "429 rate");
    let stranger = Ask::get("/v1/whoami").by("loopd_guessed").peer("192.0.2.7");
    assert_eq!(world.send(stranger).await.brief(), "429 rate");
    // Whom the server knows from before is not held up, and neither is another address.
    assert_eq!(world.send(Ask::get("/v1/whoami").by(&world.ann).peer("192.0.2.7")).await.brief(), "200");
    assert_eq!(world.send(Ask::get("/v1/whoami").by(&world.ben).peer("192.0.2.8")).await.brief(), "200");
    assert_eq!(world.send(exchange(&good).peer("192.0.2.8")).await.brief(), "200");
    tokio::time::advance(Duration::from_secs(12)).await;
    assert_eq!(world.send(exchange("guessed").peer("192.0.2.7")).await.brief(), "401 unauthenticated");
    let audit = world.send(Ask::get("/v1/audit").by(&world.root)).await.json();
    let refused = audit["items"].as_array().unwrap().iter().filter(|line| line["action"] == "sign_in.refused");
    assert!(refused.clone().all(|line| line["detail"] == "from 192.0.2.7"));
    assert_eq!(refused.count(), 6);
}

#[tokio::test(start_paused = true)]
async fn secrets_are_not_told_back() {
    let world = World::new().await;
    let bodies = [
        json!({"code": 123_456_789}),
        json!({"code": "x", "secret_123456789": 1}),
        json!({"123456789": 1}),
        json!(["123456789"]),
    ];
    for body in bodies {
        let got = world.send(Ask::post("/v1/sign-in").json(body)).await;
        assert_eq!(got.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(!got.text().contains("123456789"), "{}", got.text());
    }
    let got = world.send(Ask::get("/v1/whoami").by("loopd_123456789")).await;
    assert!(!got.text().contains("123456789"), "{}", got.text());
}
