//! Streams: what they say first, what they say later, and when they end.

use crate::listening::{Listening, Sent};
use crate::stores::Watched;
use crate::world::{Ask, Options, World, plain};
use axum::http::StatusCode;
use serde_json::json;
use std::time::Duration;

fn names(events: &[Sent]) -> Vec<&str> {
    events.iter().map(|sent| sent.event.as_str()).collect()
}

fn feed(conversation: &str) -> String {
    format!("/v1/stream?feed=conversation/{conversation}")
}

#[tokio::test(start_paused = true)]
async fn a_stream_says_at_once_where_it_begins_and_proxies_let_it_pass() {
    let world = World::new().await;
    let conversation = world.conversation(&[]).await;
    world.say(&world.ann, &conversation, "before").await;
    let mut stream = world.listen(&world.ann, feed(&conversation), None).await;
    let said = |name: &str| stream.headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert_eq!(said("content-type"), "text/event-stream");
    assert_eq!(said("cache-control"), "no-cache, no-transform");
    assert_eq!(said("x-accel-buffering"), "no");
    assert_eq!(said("x-content-type-options"), "nosniff");
    assert!(!stream.headers.contains_key("content-encoding") && !stream.headers.contains_key("content-length"));
    let events = stream.events().await;
    assert_eq!(names(&events), ["hello"]);
    assert_eq!(events[0].json(), json!({"positions": {format!("conversation/{conversation}"): 2}}));
    assert!(stream.raw.starts_with("retry: 2000\nevent: hello\nid: "), "{}", stream.raw);
    world.say(&world.ann, &conversation, "now\ndata: not yours\n\nevent: forged").await;
    let events = stream.events().await;
    assert_eq!(names(&events), ["message"]);
    let data = events[0].json();
    assert_eq!(
        (&data["position"], &data["event"]["message"]["blocks"][0]["text"]),
        (&json!(3), &json!("now\ndata: not yours\n\nevent: forged"))
    );
    // Nothing happens: it still says that it lives.
    tokio::time::advance(Duration::from_secs(16)).await;
    stream.raw.clear();
    assert_eq!(stream.events().await, []);
    assert_eq!(stream.raw, ":\n\n");
}

#[tokio::test(start_paused = true)]
async fn a_stream_from_the_start_tells_everything_in_order() {
    let world = World::new().await;
    let conversation = world.conversation(&["person/ben"]).await;
    let said = world.say(&world.ann, &conversation, "one").await;
    let begun = world
        .send(
            Ask::post(format!("/v1/conversations/{conversation}/messages/begin"))
                .by(&world.ben)
                .json(json!({"reply_to": said["id"]})),
        )
        .await
        .json();
    let message = format!("/v1/messages/{}", begun["message"]["id"].as_str().unwrap());
    let update = json!({"revision": 1, "ops": [{"op": "push", "block": {"type": "markdown", "text": "two"}}]});
    world.send(Ask::new("patch", &message).by(&world.ben).json(update)).await;
    world.send(Ask::post(format!("{message}/end")).by(&world.ben)).await;
    world
        .send(Ask::post(format!("/v1/conversations/{conversation}/commit")).by(&world.ann).json(json!({"seq": 2})))
        .await;
    let mut stream = world.listen(&world.ben, format!("{}&from=start", feed(&conversation)), None).await;
    let events = stream.events().await;
    assert_eq!(
        names(&events),
        ["hello", "conversation", "message", "message", "message_updated", "message_ended", "read"]
    );
    let positions: Vec<_> = events[1..].iter().map(|sent| sent.json()["position"].as_u64().unwrap()).collect();
    assert_eq!(positions, [1, 2, 3, 4, 5, 6]);
    // An event that is known by its id begins right behind it.
    for (number, sent) in events.iter().enumerate() {
        let mut again = world.listen(&world.ben, feed(&conversation), sent.id.as_deref()).await;
        let rest = again.events().await;
        assert_eq!(rest[1..], events[number + 1..], "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_feeds_are_one_stream_and_a_cursor_may_know_only_some() {
    let world = World::new().await;
    let (one, two) = (world.conversation(&["person/ben"]).await, world.conversation(&["person/ben"]).await);
    let path = format!("/v1/stream?feed=conversation/{one}&feed=actor/person/ben&feed=conversation/{one}");
    let mut stream = world.listen(&world.ben, path, None).await;
    let hello = stream.events().await;
    assert_eq!(hello[0].json()["positions"].as_object().unwrap().len(), 2);
    world.say(&world.ann, &one, "a").await;
    world.say(&world.ann, &two, "b").await;
    let events = stream.events().await;
    let mut seen = names(&events);
    seen.sort_unstable();
    assert_eq!(seen, ["message", "wake", "wake"]);
    let last = events.last().unwrap().id.clone().unwrap();
    world.say(&world.ann, &one, "c").await;
    let path = format!("/v1/stream?feed=conversation/{one}&feed=conversation/{two}&from=start&cursor={last}");
    let events = world.listen(&world.ben, path, None).await.events().await;
    let texts: Vec<_> = events
        .iter()
        .filter(|sent| sent.event == "message")
        .map(|sent| sent.json()["event"]["message"]["blocks"][0]["text"].clone())
        .collect();
    assert_eq!(texts, ["c", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_followed_is_refused() {
    let world = World::configured(|config| config.limits.feeds = 3).await;
    let conversation = world.conversation(&[]).await;
    let zeros = "0".repeat(32);
    let mut hello = world.listen(&world.ann, feed(&conversation), None).await;
    let cursor = hello.events().await[0].id.clone().unwrap();
    let beyond = cursor_beyond(&world, &conversation).await;
    let table = [
        ("/v1/stream".to_owned(), "422 invalid feed"),
        ("/v1/stream?feed=conversation/x".to_owned(), "422 invalid feed"),
        ("/v1/stream?feed=nonsense".to_owned(), "422 invalid feed"),
        (format!("/v1/stream?feed=conversation/con_{zeros}"), "404 not_found"),
        ("/v1/stream?feed=actor/person/ben".to_owned(), "403 forbidden"),
        (
            "/v1/stream?feed=actor/person/a&feed=actor/person/b&feed=actor/person/c&feed=actor/person/d".to_owned(),
            "422 invalid feed",
        ),
        (format!("{}&from=yesterday", feed(&conversation)), "422 invalid from"),
        (format!("{}&from=now&from=now", feed(&conversation)), "422 invalid from"),
        (format!("{}&surprise=1", feed(&conversation)), "422 invalid query"),
        (format!("{}&cursor=nonsense", feed(&conversation)), "400 cursor cursor"),
        (format!("{}&cursor={cursor}&cursor={cursor}", feed(&conversation)), "422 invalid query"),
        (format!("{}&cursor={beyond}", feed(&conversation)), "400 cursor cursor"),
        ("/v1/wakes?actor=person/ben".to_owned(), "403 forbidden"),
        ("/v1/wakes?actor=Ben".to_owned(), "422 invalid actor"),
        ("/v1/wakes?actor=person/ann&actor=person/ben".to_owned(), "422 invalid query"),
        ("/v1/wakes?feed=actor/person/ann".to_owned(), "422 invalid query"),
    ];
    for (path, expected) in table {
        assert_eq!(world.send(Ask::get(&path).by(&world.ann)).await.brief(), expected, "{path}");
    }
    for id in ["nonsense", "\u{e9}", &beyond] {
        let got = world.send(Ask::get(feed(&conversation)).by(&world.ann).header("last-event-id", id)).await;
        assert_eq!(got.brief(), "400 cursor cursor", "{id}");
    }
}

/// A cursor of a store that had more.
async fn cursor_beyond(world: &World, conversation: &str) -> String {
    use base64::Engine as _;
    let mut hello = world.listen(&world.ann, feed(conversation), None).await;
    let cursor = hello.events().await[0].id.clone().unwrap();
    let code = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let text = String::from_utf8(code.decode(cursor).unwrap()).unwrap();
    code.encode(text.replace("=1", "=7"))
}

#[tokio::test(start_paused = true)]
async fn a_member_who_is_removed_hears_nothing_more_and_keeps_the_other_feeds() {
    let world = World::new().await;
    let conversation = world.conversation(&["person/ben"]).await;
    let both = format!("{}&feed=actor/person/ben", feed(&conversation));
    let mut stream = world.listen(&world.ben, &both, None).await;
    let mut alone = world.listen(&world.ben, feed(&conversation), None).await;
    world.say(&world.ann, &conversation, "all hear this").await;
    assert_eq!(names(&alone.events().await), ["hello", "message"]);
    stream.events().await;
    world
        .send(
            Ask::post(format!("/v1/conversations/{conversation}/members"))
                .by(&world.ann)
                .json(json!({"remove": ["person/ben"]})),
        )
        .await;
    world.say(&world.ann, &conversation, "ben does not hear this").await;
    let events = stream.events().await;
    assert_eq!(names(&events), ["closed"]);
    assert_eq!(plain(&events[0].data), r#"{"feed":"conversation/con_1","code":"not_found"}"#);
    assert_eq!(names(&alone.events().await), ["closed"]);
    assert!(alone.over && !stream.over);
    // Who comes back with an old id is told, and goes on with the rest; with nothing left there is nothing to stream.
    let old = alone.raw.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    let mut again = world.listen(&world.ben, &both, Some(&old)).await;
    assert_eq!(names(&again.events().await), ["hello", "closed"]);
    let got = world.send(Ask::get(feed(&conversation)).by(&world.ben).header("last-event-id", &old)).await;
    assert_eq!(got.brief(), "404 not_found");
    // A change that leaves them in ends nothing.
    let mut ann = world.listen(&world.ann, feed(&conversation), None).await;
    world
        .send(
            Ask::new("patch", format!("/v1/conversations/{conversation}")).by(&world.ann).json(json!({"title": "new"})),
        )
        .await;
    assert_eq!(names(&ann.events().await), ["hello", "conversation"]);
}

#[tokio::test(start_paused = true)]
async fn an_erased_feed_is_said_to_be_gone() {
    let world = World::new().await;
    let conversation = world.conversation(&[]).await;
    let mut stream = world.listen(&world.ann, format!("{}&from=start", feed(&conversation)), None).await;
    stream.events().await;
    // Three events that the stream has not read yet when they are erased.
    for text in ["1", "2", "3"] {
        world.say(&world.ann, &conversation, text).await;
    }
    assert_eq!(
        world.send(Ask::new("delete", format!("/v1/conversations/{conversation}")).by(&world.ann)).await.status,
        StatusCode::NO_CONTENT
    );
    let events = stream.events().await;
    assert_eq!(names(&events), ["reset", "conversation_deleted", "closed"]);
    let (reset, deleted, closed) = (events[0].json(), events[1].json(), events[2].json());
    let name = format!("conversation/{conversation}");
    // Everything before the last event is gone, and the last one is there.
    let last = deleted["position"].as_u64().unwrap();
    assert!(last >= 5, "{last}");
    assert_eq!(reset, json!({"positions": {name.as_str(): last - 1}}));
    assert_eq!(deleted["event"], json!({"type": "conversation_deleted", "conversation": conversation}));
    assert_eq!(closed, json!({"feed": name, "code": "deleted"}));
    assert!(stream.over);
}

#[tokio::test(start_paused = true)]
async fn streams_are_counted_per_token_and_in_total() {
    let world = World::configured(|config| (config.limits.streams_per_token, config.limits.streams) = (2, 3)).await;
    let path = |actor: &str| format!("/v1/wakes?actor={actor}");
    let one = world.listen(&world.ann, path("person/ann"), None).await;
    let two = world.listen(&world.ann, path("person/ann"), None).await;
    let got = world.send(Ask::get(path("person/ann")).by(&world.ann)).await;
    assert_eq!((got.brief().as_str(), got.header("retry-after")), ("429 streams", "5"));
    let three = world.listen(&world.ben, path("person/ben"), None).await;
    assert_eq!(world.send(Ask::get(path("operator/op")).by(&world.op)).await.brief(), "429 streams");
    let text = world.send(Ask::get("/metrics")).await.text();
    assert!(text.contains("loopd_streams_open 3\n"), "{text}");
    drop((one, three));
    let again = world.listen(&world.ann, path("person/ann"), None).await;
    drop((two, again));
    // A request that is refused later gives its place back, too.
    for _ in 0..5 {
        assert_eq!(
            world.send(Ask::get("/v1/stream?feed=actor/person/x").by(&world.ann)).await.brief(),
            "403 forbidden"
        );
    }
    assert!(world.send(Ask::get("/metrics")).await.text().contains("loopd_streams_open 0\n"));
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_ends_its_streams_and_a_signed_out_cookie_too() {
    let world = World::new().await;
    let made = world
        .send(Ask::post("/v1/tokens").by(&world.root).json(json!({"actor": "person/zoe", "roles": ["member"]})))
        .await
        .json();
    let mut stream = world.listen(made["secret"].as_str().unwrap(), "/v1/wakes", None).await;
    let signed_in =
        world.send(Ask::post("/v1/sign-in").json(json!({"code": world.server.sign_in_code().unwrap()}))).await;
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    let mut browser = Listening::of(world.response(Ask::get("/v1/wakes").header("cookie", &cookie)).await).await;
    tokio::time::advance(Duration::from_secs(16)).await;
    stream.events().await;
    browser.events().await;
    assert!(!stream.over && !browser.over);
    world
        .send(Ask::new("delete", format!("/v1/tokens/{}", made["token"]["id"].as_str().unwrap())).by(&world.root))
        .await;
    world.send(Ask::post("/v1/sign-out").header("cookie", &cookie).header("origin", "http://localhost:7777")).await;
    tokio::time::advance(Duration::from_secs(16)).await;
    stream.events().await;
    browser.events().await;
    assert!(stream.over && browser.over);
}

#[tokio::test(start_paused = true)]
async fn a_lost_hint_is_made_up_for_by_the_next_heartbeat() {
    let world = World::with(Options { store: Watched::deaf(), ..Options::default() }).await;
    let conversation = world.conversation(&[]).await;
    let mut early = world.listen(&world.ann, feed(&conversation), None).await;
    early.events().await;
    for _ in 0..3 {
        let mut late = world.listen(&world.ann, feed(&conversation), None).await;
        late.events().await;
        world.say(&world.ann, &conversation, "x").await;
        assert_eq!(names(&early.events().await), [""; 0]);
        tokio::time::advance(Duration::from_secs(16)).await;
        assert_eq!(names(&early.events().await), ["message"]);
        assert_eq!(names(&late.events().await), ["message"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_feed_is_read_in_pages_and_a_busy_one_does_not_keep_the_others_waiting() {
    let world = World::configured(|config| config.limits.requests_burst = 1000).await;
    let (busy, quiet) = (world.conversation(&[]).await, world.conversation(&[]).await);
    for number in 0..100 {
        world.say(&world.ann, &busy, &number.to_string()).await;
    }
    world.say(&world.ann, &quiet, "quiet").await;
    let path = format!("{}&feed=conversation/{quiet}&from=start", feed(&busy));
    let mut stream = world.listen(&world.ann, path, None).await;
    let mut pieces = Vec::new();
    while let Some(piece) = stream.piece().await {
        pieces.push(piece);
    }
    let of_quiet = pieces.iter().position(|piece| piece.contains("\"text\":\"quiet\"")).unwrap();
    assert!(of_quiet <= 2, "{of_quiet} of {}", pieces.len());
    assert_eq!(pieces.concat().matches("event: message\n").count(), 101);
    assert!(pieces.iter().all(|piece| piece.matches("event: message\n").count() <= 32));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_costs_no_memory_but_a_page() {
    let world = World::configured(|config| config.limits.requests_burst = 10_000).await;
    let conversation = world.conversation(&[]).await;
    let mut slow = world.listen(&world.ann, feed(&conversation), None).await;
    slow.piece().await;
    for number in 0..500 {
        world.say(&world.ann, &conversation, &number.to_string()).await;
    }
    // Nothing is read for whoever takes nothing, and one page for whoever takes one piece.
    assert_eq!(world.store.reads(), 0);
    let piece = slow.piece().await.unwrap();
    assert_eq!((world.store.reads(), piece.matches("event: message\n").count()), (1, 32));
    assert_eq!(names(&slow.events().await).len(), 500 - 32);
    assert!(world.store.reads() < 40, "{}", world.store.reads());
}

#[tokio::test(start_paused = true)]
async fn cursors_of_others_and_of_nobody_open_nothing_more() {
    let world = World::new().await;
    let conversation = world.conversation(&["person/ben"]).await;
    let mut mine = world.listen(&world.ann, format!("{}&feed=actor/person/ann", feed(&conversation)), None).await;
    let cursor = mine.events().await[0].id.clone().unwrap();
    // A cursor is a place, and no right: of Feeds that are not asked for it says nothing.
    let mut his = world.listen(&world.ben, feed(&conversation), Some(&cursor)).await;
    assert_eq!(his.events().await[0].json()["positions"].as_object().unwrap().len(), 1);
    let got = world.send(Ask::get("/v1/wakes?actor=person/ann").by(&world.ben).header("last-event-id", &cursor)).await;
    assert_eq!(got.brief(), "403 forbidden");
    let texts = ["A", "MTs", "MTtjPTE", "%", "=", "....", "null", "-1", "0"].map(str::to_owned);
    for rubbish in texts.into_iter().chain([cursor[1..].to_owned(), cursor.repeat(2), "A".repeat(20_000)]) {
        let got = world.send(Ask::get(feed(&conversation)).by(&world.ann).header("last-event-id", &rubbish)).await;
        assert_eq!(got.brief(), "400 cursor cursor", "{rubbish}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_sees_the_work_through_its_conversation_sees_it_no_longer_than_that() {
    let world = World::with_agent(loopd_platform::Config::default()).await;
    let register = Ask::new("put", "/v1/actors/operator/op").by(&world.op).json(json!({"name": "Op"}));
    assert_eq!(world.send(register).await.brief(), "200");
    let conversation = world.conversation(&[]).await;
    world.say(&world.ann, &conversation, "@operator/op do it").await;
    let work = world.send(Ask::get(format!("/v1/conversations/{conversation}/work")).by(&world.ann)).await.json();
    let work = work["items"][0]["id"].as_str().unwrap().to_owned();
    let members = |change: serde_json::Value| {
        Ask::post(format!("/v1/conversations/{conversation}/members")).by(&world.ann).json(change)
    };
    world.send(members(json!({"add": ["person/ben"]}))).await;
    let mut all = Vec::new();
    for _ in 0..2 {
        all.push(world.listen(&world.ben, format!("{}&feed=actor/person/ben", feed(&work)), None).await);
    }
    world.say(&world.op, &work, "ben sees this").await;
    for stream in &mut all {
        assert_eq!(names(&stream.events().await), ["hello", "message"]);
    }
    let run = world.send(
        Ask::post(format!("/v1/conversations/{work}/calls"))
            .by(&world.op)
            .json(json!({"target": "steps", "prompt": "wait"})),
    );
    let call = run.await.json()["call"].clone();
    crate::things::until(&world, call["id"].as_str().unwrap(), "running").await;
    for stream in &mut all {
        stream.events().await;
    }
    world.send(members(json!({"remove": ["person/ben"]}))).await;
    // Neither what is said from now on, nor text as it arrives.
    let delta = loopd_runtime::Delta {
        run: call["run"].as_str().unwrap().parse().unwrap(),
        call: loopd_kernel::CallId(1),
        attempt: 1,
        text: "not for ben".to_owned(),
    };
    world.deltas.send(delta).unwrap();
    let events = all[0].events().await;
    assert_eq!(names(&events), ["closed"], "{}", all[0].raw);
    world.say(&world.op, &work, "ben does not see this").await;
    assert_eq!(names(&all[1].events().await), ["closed"]);
    assert!(!all[0].over && !all[1].over);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_hears_nothing_more_after_a_second() {
    let world = World::new().await;
    let conversation = world.conversation(&["person/ben"]).await;
    let mut stream = world.listen(&world.ben, feed(&conversation), None).await;
    world.say(&world.ann, &conversation, "ben hears this").await;
    assert_eq!(names(&stream.events().await), ["hello", "message"]);
    let listed = world.send(Ask::get("/v1/tokens").by(&world.root)).await.json();
    let his = listed["items"].as_array().unwrap().iter().find(|one| one["actor"] == "person/ben").unwrap();
    world.send(Ask::new("delete", format!("/v1/tokens/{}", his["id"].as_str().unwrap())).by(&world.root)).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    world.say(&world.ann, &conversation, "ben does not hear this").await;
    assert_eq!(names(&stream.events().await), [""; 0]);
    assert!(stream.over);
}

#[tokio::test(start_paused = true)]
async fn whoever_may_follow_no_more_is_told_with_the_next_heartbeat_though_nothing_happens() {
    let world = World::with_agent(loopd_platform::Config::default()).await;
    let register = Ask::new("put", "/v1/actors/operator/op").by(&world.op).json(json!({"name": "Op"}));
    assert_eq!(world.send(register).await.brief(), "200");
    let conversation = world.conversation(&["person/ben"]).await;
    world.say(&world.ann, &conversation, "@operator/op do it").await;
    let work = world.send(Ask::get(format!("/v1/conversations/{conversation}/work")).by(&world.ann)).await.json();
    let work = work["items"][0]["id"].as_str().unwrap().to_owned();
    let mut alone = world.listen(&world.ben, feed(&work), None).await;
    let mut both = world.listen(&world.ben, format!("{}&feed=actor/person/ben", feed(&work)), None).await;
    alone.events().await;
    both.events().await;
    // The first look at the heads rings for all feeds; the next one only where something happened.
    tokio::time::advance(Duration::from_secs(16)).await;
    alone.events().await;
    both.events().await;
    let reads = world.store.reads();
    let members = Ask::post(format!("/v1/conversations/{conversation}/members"));
    world.send(members.by(&world.ann).json(json!({"remove": ["person/ben"]}))).await;
    tokio::time::advance(Duration::from_secs(16)).await;
    assert_eq!(names(&alone.events().await), ["closed"]);
    assert_eq!(names(&both.events().await), ["closed"]);
    assert!(alone.over && !both.over);
    assert_eq!(world.store.reads(), reads, "nothing had happened");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_large_events_ends_at_its_bytes() {
    let world = World::new().await;
    let conversation = world.conversation(&[]).await;
    for number in 0..9 {
        let large = format!("{number}{}", "x".repeat(400_000));
        world.say(&world.ann, &conversation, &large).await;
    }
    let mut stream = world.listen(&world.ann, format!("{}&from=start", feed(&conversation)), None).await;
    let mut pages = Vec::new();
    while let Some(piece) = stream.piece().await {
        pages.push(piece.matches("event: message\n").count());
    }
    // Three of them are more than a mebibyte.
    assert_eq!(pages, [0, 3, 3, 3]);
}
