//! Requests in the wrong order, twice, or about something that stands differently by now.

use crate::things::Things;
use crate::world::{Ask, Got};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::time::Duration;

/// A request in short: who, method, path behind `/v1/`, key or revision, body.
struct Line<'a>(&'a str, &'a str, String, &'a str, Value);

impl Line<'_> {
    fn ask(&self, things: &Things) -> Ask {
        let world = &things.world;
        let token = match self.0 {
            "root" => &world.root,
            "ann" => &world.ann,
            "ben" => &world.ben,
            "op" => &world.op,
            name => panic!("who is {name}?"),
        };
        let ask = Ask::new(self.1, format!("/v1/{}", self.2)).by(token);
        let ask = match self.3 {
            "" => ask,
            revision if revision.ends_with('"') || revision == "*" => ask.header("if-match", revision),
            key => ask.header("idempotency-key", key),
        };
        if self.4.is_null() { ask } else { ask.json(self.4.clone()) }
    }
}

/// Sends the requests in order, and renders what came back. What is refused writes nothing.
async fn check(things: &Things, lines: &[Line<'_>], expect: Expect) -> Vec<Got> {
    let mut out = String::new();
    let mut all = Vec::new();
    for line in lines {
        let before = things.world.store.commits();
        let got = things.world.send(line.ask(things)).await;
        let wrote = things.world.store.commits() > before;
        assert!(!(wrote && got.status.as_u16() >= 400), "refused, and something was written: {}", got.text());
        let path = line.2.split('/').filter(|part| !part.contains('_')).collect::<Vec<_>>().join("/");
        let what = [line.0, line.1, &path, line.3].join(" ");
        let wrote = if wrote { " wrote" } else { "" };
        out.push_str(&format!("{}: {}{wrote}\n", what.trim_end(), got.brief()));
        all.push(got);
    }
    expect.assert_eq(&out);
    all
}

fn text(words: &str) -> Value {
    json!({"blocks": [{"type": "text", "text": words}]})
}

#[tokio::test(start_paused = true)]
async fn a_key_means_one_request_in_one_conversation_of_one_actor() {
    let things = Things::new().await;
    let within = |end: &str| format!("conversations/{}/{end}", things.conversation);
    let ask = |prompt: &str| json!({"kind": "confirm", "prompt": prompt, "timeout_s": 60});
    let call = |prompt: &str| json!({"target": "steps", "prompt": prompt});
    let got = check(
        &things,
        &[
            Line("ann", "post", "conversations".into(), "k", json!({"title": "t"})),
            Line("ann", "post", "conversations".into(), "k", json!({"title": "t"})),
            Line("ann", "post", "conversations".into(), "k", json!({"title": "u"})),
            Line("ben", "post", "conversations".into(), "k", json!({"title": "u"})),
            Line("ann", "post", within("messages"), "k", text("x")),
            Line("ann", "post", within("messages"), "k", text("x")),
            Line("ann", "post", within("messages"), "k", text("y")),
            Line("ben", "post", within("messages"), "k", text("y")),
            Line("op", "post", within("messages/begin"), "b", json!({})),
            Line("op", "post", within("messages/begin"), "b", json!({})),
            Line("op", "post", within("messages/begin"), "b", json!({"to": ["person/ann"]})),
            Line("op", "post", within("questions"), "k", ask("Sure?")),
            Line("op", "post", within("questions"), "k", ask("Sure?")),
            Line("op", "post", within("questions"), "k", ask("Really?")),
            Line("ann", "post", within("calls"), "k", call("wait done")),
            Line("ann", "post", within("calls"), "k", call("wait done")),
            Line("ann", "post", within("calls"), "k", call("done")),
            Line("ann", "post", within("artifacts?name=a"), "k", json!("bytes")),
            Line("ann", "post", within("artifacts?name=a"), "k", json!("bytes")),
            Line("ann", "post", within("artifacts?name=a"), "k", json!("other bytes")),
            Line("ann", "post", within("artifacts?name=b"), "k", json!("bytes")),
            Line("ben", "post", within("artifacts?name=b"), "k", json!("bytes")),
            Line("root", "post", "tokens".into(), "k", json!({"actor": "person/zoe", "roles": ["member"]})),
            Line("root", "post", "tokens".into(), "k", json!({"actor": "person/zoe", "roles": ["member"]})),
            Line("root", "post", "tokens".into(), "l", json!({"actor": "person/zoe", "roles": ["member"]})),
        ],
        expect![[r#"
            ann post conversations k: 201 wrote
            ann post conversations k: 200
            ann post conversations k: 409 key_taken
            ben post conversations k: 201 wrote
            ann post conversations/messages k: 201 wrote
            ann post conversations/messages k: 200
            ann post conversations/messages k: 409 key_taken
            ben post conversations/messages k: 201 wrote
            op post conversations/messages/begin b: 201 wrote
            op post conversations/messages/begin b: 200
            op post conversations/messages/begin b: 409 key_taken
            op post conversations/questions k: 201 wrote
            op post conversations/questions k: 200
            op post conversations/questions k: 409 key_taken
            ann post conversations/calls k: 201 wrote
            ann post conversations/calls k: 200
            ann post conversations/calls k: 409 key_taken
            ann post conversations/artifacts?name=a k: 201 wrote
            ann post conversations/artifacts?name=a k: 200
            ann post conversations/artifacts?name=a k: 409 key_taken
            ann post conversations/artifacts?name=b k: 409 key_taken
            ben post conversations/artifacts?name=b k: 201 wrote
            root post tokens k: 201 wrote
            root post tokens k: 409 key_taken
            root post tokens l: 201 wrote
        "#]],
    )
    .await;
    // A secret is shown once: the key can only tell which token is to be revoked.
    let (made, refused) = (got[22].json(), got[23].json());
    assert!(refused["detail"].as_str().unwrap().contains(made["token"]["id"].as_str().unwrap()), "{refused}");
    for (first, again) in [(0, 1), (4, 5), (8, 9), (11, 12), (14, 15), (17, 18)] {
        assert_eq!(got[first].header("location"), got[again].header("location"));
    }
    let ids = |number: usize, pointer: &str| got[number].json().pointer(pointer).unwrap().clone();
    assert_eq!(ids(4, "/message/id"), ids(5, "/message/id"));
    assert_eq!(ids(14, "/call/id"), ids(15, "/call/id"));
    assert_eq!((ids(4, "/already"), ids(5, "/already")), (json!(false), json!(true)));
}

#[tokio::test(start_paused = true)]
async fn keys_and_revisions_that_cannot_be_are_refused() {
    let things = Things::new().await;
    let long = "k".repeat(201);
    for key in ["", " ", "a b", "\u{e9}", "a\tb", &long] {
        let ask = Ask::post("/v1/conversations").by(&things.world.ann).header("idempotency-key", key).json(json!({}));
        assert_eq!(things.refused(ask).await.brief(), "400 malformed Idempotency-Key", "{key}");
    }
    let twice = Ask::post("/v1/conversations").by(&things.world.ann).json(json!({}));
    let twice = twice.header("idempotency-key", "a").header("idempotency-key", "a");
    assert_eq!(things.refused(twice).await.brief(), "400 malformed idempotency-key");
    let longest = Ask::post("/v1/conversations").by(&things.world.ann).json(json!({}));
    assert_eq!(things.world.send(longest.header("idempotency-key", &long[1..])).await.brief(), "201");
    for revision in ["1", "", "\"x\"", "\"-1\"", "\"1", "\"1\", \"2\"", "\"18446744073709551616\""] {
        let ask = Ask::new("patch", format!("/v1/conversations/{}", things.conversation)).by(&things.world.ann);
        let got = things.refused(ask.header("if-match", revision).json(json!({"title": "x"}))).await;
        assert_eq!(got.brief(), "400 malformed If-Match", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_about_the_revision_that_it_names() {
    let things = Things::new().await;
    let conversation = format!("conversations/{}", things.conversation);
    let members = format!("{conversation}/members");
    let title = |text: &str| json!({"title": text});
    let got = check(
        &things,
        &[
            Line("ann", "get", conversation.clone(), "", json!(null)),
            Line("ann", "patch", conversation.clone(), "\"1\"", title("one")),
            Line("ann", "patch", conversation.clone(), "\"1\"", title("two")),
            Line("ann", "patch", conversation.clone(), "\"9\"", title("two")),
            Line("ann", "patch", conversation.clone(), "W/\"2\"", title("two")),
            Line("ann", "patch", conversation.clone(), "*", title("three")),
            Line("ann", "patch", conversation.clone(), "", title("four")),
            Line("ann", "post", members.clone(), "\"1\"", json!({"add": ["person/zoe"]})),
            Line("ann", "post", members.clone(), "\"5\"", json!({"add": ["person/zoe"]})),
            Line("ann", "post", members.clone(), "", json!({"remove": ["person/ann"]})),
            Line("ben", "post", members.clone(), "", json!({"remove": ["person/zoe"]})),
            Line("ben", "delete", conversation.clone(), "", json!(null)),
            Line("ben", "post", members.clone(), "", json!({"remove": ["person/ben"]})),
            Line("ben", "get", conversation.clone(), "", json!(null)),
        ],
        expect![[r#"
            ann get conversations: 200
            ann patch conversations "1": 200 wrote
            ann patch conversations "1": 412 revision
            ann patch conversations "9": 412 revision
            ann patch conversations W/"2": 200 wrote
            ann patch conversations *: 200 wrote
            ann patch conversations: 200 wrote
            ann post conversations/members "1": 412 revision
            ann post conversations/members "5": 200 wrote
            ann post conversations/members: 422 invalid remove
            ben post conversations/members: 403 forbidden
            ben delete conversations: 403 forbidden
            ben post conversations/members: 200 wrote
            ben get conversations: 404 not_found
        "#]],
    )
    .await;
    assert_eq!((got[0].header("etag"), got[1].header("etag")), ("\"1\"", "\"2\""));
}

#[tokio::test(start_paused = true)]
async fn a_message_goes_on_by_its_revisions_and_ends_once() {
    let things = Things::new().await;
    let (open, whole) = (format!("messages/{}", things.open), format!("messages/{}", things.message));
    let end = format!("{open}/end");
    let append =
        |revision: u64, text: &str| json!({"revision": revision, "ops": [{"op": "append", "index": 0, "text": text}]});
    let op = |op: Value| json!({"revision": 2, "ops": [op]});
    check(
        &things,
        &[
            Line("op", "patch", open.clone(), "", append(1, "a")),
            Line("op", "patch", open.clone(), "", append(1, "a")),
            Line("op", "patch", open.clone(), "", append(1, "b")),
            Line("op", "patch", open.clone(), "", append(3, "c")),
            Line("ann", "patch", open.clone(), "", append(2, "not mine")),
            Line("op", "patch", open.clone(), "", op(json!({"op": "append", "index": 7, "text": "x"}))),
            Line(
                "op",
                "patch",
                open.clone(),
                "",
                op(json!({"op": "set", "index": 7, "block": {"type": "text", "text": "x"}})),
            ),
            Line(
                "op",
                "patch",
                open.clone(),
                "",
                op(json!({"op": "push", "block": {"type": "confirm", "question": "x"}})),
            ),
            Line("op", "patch", open.clone(), "", op(json!({"op": "cut", "index": 0}))),
            Line("op", "post", end.clone(), "", json!({"status": "streaming"})),
            Line("ann", "post", end.clone(), "", json!({"status": "completed"})),
            Line("op", "post", end.clone(), "", json!({"status": "completed"})),
            Line("op", "post", end.clone(), "", json!({"status": "completed"})),
            Line("op", "post", end.clone(), "", json!({"status": "failed"})),
            Line("op", "patch", open.clone(), "", append(3, "late")),
            Line("ann", "patch", whole.clone(), "", append(1, "later")),
            Line("ann", "post", format!("{whole}/end"), "", json!({"status": "cancelled"})),
            Line("ann", "post", format!("conversations/{}/commit", things.conversation), "", json!({"seq": 99})),
            Line(
                "ann",
                "post",
                format!("conversations/{}/messages", things.conversation),
                "",
                json!({"blocks": [{"type": "text", "text": "x"}], "reply_to": format!("msg_{}", "0".repeat(32))}),
            ),
            Line(
                "ann",
                "post",
                format!("conversations/{}/messages", things.conversation),
                "",
                json!({"blocks": [{"type": "text", "text": "x"}], "to": ["person/nobody"]}),
            ),
            Line(
                "ann",
                "post",
                format!("conversations/{}/messages", things.conversation),
                "",
                json!({"blocks": [{"type": "text", "text": "x"}], "actor": "person/ben"}),
            ),
        ],
        expect![[r#"
            op patch messages: 200 wrote
            op patch messages: 200
            op patch messages: 409 revision
            op patch messages: 409 revision
            ann patch messages: 403 forbidden
            op patch messages: 422 invalid ops
            op patch messages: 422 invalid ops
            op patch messages: 422 invalid ops
            op patch messages: 422 invalid ops[0].op
            op post messages/end: 422 invalid status
            ann post messages/end: 403 forbidden
            op post messages/end: 200 wrote
            op post messages/end: 200
            op post messages/end: 409 message_final
            op patch messages: 409 message_final
            ann patch messages: 409 message_final
            ann post messages/end: 409 message_final
            ann post conversations/commit: 422 invalid seq
            ann post conversations/messages: 422 invalid reply_to
            ann post conversations/messages: 422 invalid to
            ann post conversations/messages: 403 forbidden
        "#]],
    )
    .await;
    let got = things.world.send(Ask::get(format!("/v1/{open}")).by(&things.world.ann)).await.json();
    assert_eq!((&got["blocks"][0]["text"], &got["revision"]), (&json!("a"), &json!(3)));
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_once_and_only_a_person_ends_it() {
    let things = Things::new().await;
    let question = format!("questions/{}", things.question);
    let answer = format!("{question}/answer");
    let with = |value: &str| json!({"status": "answered", "value": value});
    let zeros = "0".repeat(32);
    check(
        &things,
        &[
            Line("ann", "post", format!("questions/qst_{zeros}/answer"), "", with("a")),
            Line("op", "post", answer.clone(), "", with("a")),
            Line("ann", "post", answer.clone(), "", with("c")),
            Line("ann", "post", answer.clone(), "", json!({"status": "answered"})),
            Line("ann", "post", answer.clone(), "", json!({"status": "answered", "value": {"a": 1}})),
            Line("ann", "post", answer.clone(), "", json!({"status": "open"})),
            Line("ann", "post", answer.clone(), "", json!({"status": "timed_out"})),
            Line("ann", "post", answer.clone(), "", json!({"status": "declined", "value": "a"})),
            Line("ann", "post", format!("{question}/withdraw"), "", json!(null)),
            Line("ann", "post", answer.clone(), "", with("a")),
            Line("ann", "post", answer.clone(), "", with("a")),
            Line("ann", "post", answer.clone(), "", with("b")),
            Line("ann", "post", answer.clone(), "", json!({"status": "declined"})),
            Line("ben", "post", answer.clone(), "", with("a")),
            Line("op", "post", format!("{question}/withdraw"), "", json!(null)),
        ],
        expect![[r#"
            ann post questions/answer: 404 not_found
            op post questions/answer: 403 forbidden
            ann post questions/answer: 422 invalid value
            ann post questions/answer: 422 invalid value
            ann post questions/answer: 422 invalid value
            ann post questions/answer: 422 invalid status
            ann post questions/answer: 422 invalid status
            ann post questions/answer: 422 invalid value
            ann post questions/withdraw: 403 forbidden
            ann post questions/answer: 200 wrote
            ann post questions/answer: 200
            ann post questions/answer: 409 question_closed
            ann post questions/answer: 409 question_closed
            ben post questions/answer: 409 question_closed
            op post questions/withdraw: 409 question_closed
        "#]],
    )
    .await;
    let got = things.world.send(Ask::get(format!("/v1/{question}")).by(&things.world.ben)).await.json();
    assert_eq!((&got["answer"]["by"], &got["answer"]["value"]), (&json!("person/ann"), &json!("a")));
}

#[tokio::test(start_paused = true)]
async fn hitl_06_a_question_that_nobody_answers_times_out_and_late_consent_is_none() {
    let things = Things::new().await;
    let within = format!("conversations/{}/questions", things.conversation);
    let confirm = json!({"kind": "confirm", "prompt": "Delete it?", "timeout_s": 2, "to": "person/ben"});
    let got = check(
        &things,
        &[Line("op", "post", within.clone(), "q", confirm.clone())],
        expect![[r#"
            op post conversations/questions q: 201 wrote
        "#]],
    )
    .await;
    let asked = got[0].json();
    let question = format!("questions/{}", asked["id"].as_str().unwrap());
    // Where it was asked shows at once that somebody is waited for, and for whom.
    let inbox = things.world.send(Ask::get("/v1/questions").by(&things.world.ben)).await.json();
    assert!(inbox["items"].as_array().unwrap().iter().any(|one| one["id"] == asked["id"]));
    let accept = json!({"status": "answered"});
    check(
        &things,
        &[
            Line("ann", "post", format!("{question}/answer"), "", accept.clone()),
            // Asking again moves no deadline.
            Line("op", "post", within, "q", confirm),
        ],
        expect![[r#"
            ann post questions/answer: 403 forbidden
            op post conversations/questions q: 200
        "#]],
    )
    .await;
    things.world.pass(Duration::from_millis(1500)).await;
    let again = things.world.send(Ask::get(format!("/v1/{question}")).by(&things.world.ben)).await.json();
    assert_eq!((&again["deadline"], &again["status"]), (&asked["deadline"], &json!("open")));
    things.world.pass(Duration::from_millis(1100)).await;
    check(
        &things,
        &[
            Line("ben", "post", format!("{question}/answer"), "", accept.clone()),
            Line("op", "post", format!("{question}/withdraw"), "", json!(null)),
        ],
        expect![[r#"
            ben post questions/answer: 409 question_closed
            op post questions/withdraw: 409 question_closed
        "#]],
    )
    .await;
    let ended = things.world.send(Ask::get(format!("/v1/{question}")).by(&things.world.ben)).await.json();
    assert_eq!((&ended["status"], ended.get("answer")), (&json!("timed_out"), None));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_ended_takes_nothing_more() {
    let things = Things::new().await;
    let (call, parked) = (format!("calls/{}", things.call), format!("calls/{}", things.parked));
    let within = format!("conversations/{}", things.conversation);
    check(
        &things,
        &[
            Line("ann", "post", format!("{call}/resume"), "", json!({})),
            Line("ann", "post", format!("{call}/steer"), "", json!({"text": " "})),
            Line("ann", "delete", within.clone(), "", json!(null)),
            Line("ann", "post", format!("{call}/cancel"), "", json!({"reason": "enough"})),
            Line("ann", "post", format!("{parked}/cancel"), "", json!(null)),
        ],
        expect![[r#"
            ann post calls/resume: 409 call_not_parked
            ann post calls/steer: 422 invalid text
            ann delete conversations: 409 calls_open
            ann post calls/cancel: 200 wrote
            ann post calls/cancel: 200 wrote
        "#]],
    )
    .await;
    for call in [&things.call, &things.parked] {
        things.phase(call, "cancelled").await;
    }
    check(
        &things,
        &[
            Line("ann", "post", format!("{call}/cancel"), "", json!(null)),
            Line("ann", "post", format!("{call}/steer"), "s", json!({"text": "x"})),
            Line("ann", "post", format!("{call}/resume"), "", json!({"iterations": 9})),
            Line("ann", "post", format!("{parked}/resume"), "", json!({"iterations": 9})),
            Line("ann", "delete", within.clone(), "", json!(null)),
            Line("ann", "delete", within.clone(), "", json!(null)),
            Line("ann", "get", call.clone(), "", json!(null)),
        ],
        expect![[r#"
            ann post calls/cancel: 200
            ann post calls/steer s: 409 call_final
            ann post calls/resume: 409 call_not_parked
            ann post calls/resume: 409 call_not_parked
            ann delete conversations: 204 wrote
            ann delete conversations: 404 not_found
            ann get calls: 404 not_found
        "#]],
    )
    .await;
}
