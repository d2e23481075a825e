//! Calls over HTTP: accepted once, bounded, ended, and told only to whoever may know of them.

use crate::things::{Things, until};
use crate::world::{Ask, World};
use loopd_platform::Config;
use serde_json::{Value, json};
use std::time::Duration;

/// What stops calls from being made: two execute, two wait.
fn narrow() -> Config {
    Config { slots: 2, target_slots: 2, queue: 2, ..Config::default() }
}

fn call(world: &World, conversation: &str, prompt: &str) -> Ask {
    let body = json!({"target": "steps", "prompt": prompt});
    Ask::post(format!("/v1/conversations/{conversation}/calls")).by(&world.ann).json(body)
}

async fn read(world: &World, path: String) -> Value {
    let got = world.send(Ask::get(path).by(&world.ann)).await;
    assert_eq!(got.brief(), "200");
    got.json()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_accepted_at_once_and_its_result_is_a_message() {
    let world = World::with_agent(Config::default()).await;
    let conversation = world.conversation(&[]).await;
    let got = world.send(call(&world, &conversation, "speak:hello json:42")).await;
    assert_eq!(got.status.as_u16(), 201, "{}", got.text());
    let called = got.json();
    let id = called["call"]["id"].as_str().unwrap();
    assert_eq!(got.header("location"), format!("/v1/calls/{id}"));
    assert_eq!(called["call"]["phase"], "queued");
    let ended = until(&world, id, "succeeded").await;
    assert_eq!((&ended["result"], &ended["reason"]), (&json!({"answer": "42"}), &json!("Completed")));
    let message = read(&world, format!("/v1/messages/{}", ended["message"].as_str().unwrap())).await;
    assert_eq!((&message["status"], &message["from"]), (&json!("completed"), &json!("harness/steps")));
    assert!(message["blocks"].as_array().unwrap().contains(&json!({"type": "result", "json": {"answer": "42"}})));
    // Whoever sees the call sees its Run.
    let run = format!("/v1/runs/{}", ended["run"].as_str().unwrap());
    assert_eq!(read(&world, format!("{run}?call={id}")).await["status"], "ended");
    let entries = read(&world, format!("{run}/entries?call={id}&limit=2")).await;
    assert_eq!((entries["items"].as_array().unwrap().len(), &entries["next"]), (2, &json!("2")));
    assert_eq!(world.send(Ask::get(&run).by(&world.ann)).await.brief(), "404 not_found");
    assert_eq!(world.send(Ask::get(format!("{run}?call={id}")).by(&world.ben)).await.brief(), "404 not_found");
    assert_eq!(world.send(Ask::get(&run).by(&world.root)).await.brief(), "200");
    let text = world.send(Ask::get("/metrics")).await.text();
    assert!(text.contains("loopd_calls_accepted_total 1\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn beyond_slots_and_queue_nothing_is_accepted_and_a_known_key_still_is() {
    let world = World::with_agent(narrow()).await;
    let conversation = world.conversation(&[]).await;
    let keyed = |key: &str| call(&world, &conversation, "wait done").header("idempotency-key", key);
    let mut ids = Vec::new();
    for key in ["one", "two", "three", "four"] {
        let got = world.send(keyed(key)).await;
        assert_eq!(got.status.as_u16(), 201, "{}", got.text());
        ids.push(got.json()["call"]["id"].as_str().unwrap().to_owned());
    }
    for id in &ids[..2] {
        until(&world, id, "running").await;
    }
    let calls = || read(&world, format!("/v1/conversations/{conversation}/calls"));
    let messages = || read(&world, format!("/v1/conversations/{conversation}/messages"));
    let before = (calls().await, messages().await);
    for ask in [keyed("five"), call(&world, &conversation, "done")] {
        let got = world.send(ask).await;
        assert_eq!((got.brief().as_str(), got.header("retry-after")), ("429 capacity", "2"));
        assert_eq!(got.json()["retryable"], true);
    }
    // A Message that would call is refused whole.
    let say = json!({"blocks": [{"type": "text", "text": "@harness/steps done"}]});
    let say = Ask::post(format!("/v1/conversations/{conversation}/messages")).by(&world.ann).json(say);
    assert_eq!(world.send(say).await.brief(), "429 capacity");
    for (key, id) in ["one", "two", "three", "four"].iter().zip(&ids) {
        let got = world.send(keyed(key)).await;
        assert_eq!((got.brief().as_str(), &got.json()["call"]["id"]), ("200", &json!(id)));
    }
    let other = call(&world, &conversation, "done").header("idempotency-key", "one");
    assert_eq!(world.send(other).await.brief(), "409 key_taken");
    assert_eq!((calls().await, messages().await), before);
    let target = &read(&world, "/v1/targets".to_owned()).await["items"][0];
    assert_eq!((&target["running"], &target["queued"], &target["slots"]), (&json!(2), &json!(2), &json!(2)));
    // One that has not begun ends at once, and leaves its place to another.
    let cancel = Ask::post(format!("/v1/calls/{}/cancel", ids[3])).by(&world.ann);
    assert_eq!(world.send(cancel).await.json()["phase"], "cancelled");
    assert_eq!(world.send(keyed("five")).await.brief(), "201");
    assert_eq!(world.send(keyed("six")).await.brief(), "429 capacity");
}

#[tokio::test(start_paused = true)]
async fn ui_07_a_call_is_stopped_for_good_and_the_next_one_is_not() {
    let world = World::with_agent(narrow()).await;
    let conversation = world.conversation(&[]).await;
    let path = format!("/v1/stream?feed=conversation/{conversation}");
    let mut stream = world.listen(&world.ann, path, None).await;
    let first = world.send(call(&world, &conversation, "wait done")).await.json();
    let id = first["call"]["id"].as_str().unwrap();
    until(&world, id, "running").await;
    let cancel = || Ask::post(format!("/v1/calls/{id}/cancel")).by(&world.ann).json(json!({"reason": "enough"}));
    let got = world.send(cancel()).await.json();
    assert_eq!((&got["phase"], &got["cancel_requested"]), (&json!("running"), &json!(true)));
    // Said at once, it is heard: it begins another Run.
    let next = world.send(call(&world, &conversation, "speak:again done")).await.json();
    let ended = until(&world, id, "cancelled").await;
    assert_eq!(ended["error"]["code"], "call.cancelled");
    until(&world, next["call"]["id"].as_str().unwrap(), "succeeded").await;
    assert_eq!(world.send(cancel()).await.json()["phase"], "cancelled");
    // The stream tells the end of both, of the call and of its Message.
    let mut ends = Vec::new();
    for sent in stream.events().await {
        let event = &sent.json()["event"];
        match sent.event.as_str() {
            "call" if event["call"]["ended_at"].is_i64() => ends.push(event["call"]["phase"].clone()),
            "message_ended" => ends.push(event["message"]["status"].clone()),
            _ => {}
        }
    }
    assert_eq!(ends.len(), 4, "{ends:?}");
    for end in ["cancelled", "succeeded", "completed"] {
        assert!(ends.contains(&json!(end)), "{end} {ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_call_hears_a_text_once_and_says_when() {
    let things = Things::new().await;
    let world = &things.world;
    let mut stream =
        world.listen(&world.ann, format!("/v1/stream?feed=conversation/{}", things.conversation), None).await;
    let steer = |key: &str| {
        let ask = Ask::post(format!("/v1/calls/{}/steer", things.call)).by(&world.ann);
        ask.header("idempotency-key", key).json(json!({"text": "Hurry."}))
    };
    let got = world.send(steer("k")).await;
    assert_eq!(got.status.as_u16(), 202);
    let name = got.json()["steer"].clone();
    assert_eq!(world.send(steer("k")).await.json()["steer"], name);
    things.phase(&things.call, "succeeded").await;
    let seen: Vec<_> = stream.events().await.into_iter().filter(|sent| sent.event == "steered").collect();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].json()["event"]["steer"], name);
}

#[tokio::test(start_paused = true)]
async fn hitl_01_questions_of_parallel_calls_are_answered_in_any_order_each_its_own() {
    let world = World::with_agent(Config::default()).await;
    let conversation = world.conversation(&["person/ben"]).await;
    let mut calls = Vec::new();
    for number in 0..3 {
        let got = world.send(call(&world, &conversation, &format!("confirm:pay-{number} pay:{number} done"))).await;
        calls.push(got.json()["call"]["id"].as_str().unwrap().to_owned());
    }
    for id in &calls {
        let waiting = until(&world, id, "waiting").await;
        assert_eq!(waiting["reason"], "question");
    }
    let open = read(&world, format!("/v1/conversations/{conversation}/questions")).await;
    let of = |number: usize| {
        let run = calls[number].replace("hcl_", "run_");
        let all = open["items"].as_array().unwrap();
        assert_eq!(all.len(), 3);
        all.iter().find(|question| question["run"] == run).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let answer = |number: usize, status: &str| {
        Ask::post(format!("/v1/questions/{}/answer", of(number))).by(&world.ann).json(json!({"status": status}))
    };
    assert_eq!(world.send(answer(1, "answered")).await.brief(), "200");
    assert_eq!(world.send(answer(0, "declined")).await.brief(), "200");
    // HITL-03: pressed twice, it is one consent; and no other one after it.
    assert_eq!(world.send(answer(1, "answered")).await.brief(), "200");
    assert_eq!(world.send(answer(1, "declined")).await.brief(), "409 question_closed");
    assert_eq!(world.send(answer(0, "answered")).await.brief(), "409 question_closed");
    until(&world, &calls[1], "succeeded").await;
    until(&world, &calls[0], "failed").await;
    // HITL-02: what nobody waits for any more takes no answer, and says so.
    assert_eq!(world.send(Ask::post(format!("/v1/calls/{}/cancel", calls[2])).by(&world.ann)).await.brief(), "200");
    until(&world, &calls[2], "cancelled").await;
    assert_eq!(world.send(answer(2, "answered")).await.brief(), "409 question_closed");
    let open = read(&world, "/v1/questions".to_owned()).await;
    assert_eq!(open["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn hitl_04_a_consent_goes_on_with_the_same_run() {
    let world = World::with_agent(Config::default()).await;
    let conversation = world.conversation(&[]).await;
    let got = world.send(call(&world, &conversation, "pay:1 pay:2 confirm:third pay:3 done")).await.json();
    let id = got["call"]["id"].as_str().unwrap();
    let waiting = until(&world, id, "waiting").await;
    let path = format!("/v1/runs/{}/entries?call={id}", waiting["run"].as_str().unwrap());
    let paid =
        |entries: &Value| entries["items"].as_array().unwrap().iter().filter(|one| one["kind"] == "settled").count();
    let before = read(&world, path.clone()).await;
    let question = read(&world, "/v1/questions".to_owned()).await["items"][0]["id"].as_str().unwrap().to_owned();
    let accept =
        Ask::post(format!("/v1/questions/{question}/answer")).by(&world.ann).json(json!({"status": "answered"}));
    assert_eq!(world.send(accept).await.brief(), "200");
    let ended = until(&world, id, "succeeded").await;
    assert_eq!(ended["run"], waiting["run"]);
    let after = read(&world, path).await;
    assert_eq!((paid(&before), paid(&after)), (2, 3));
    let prefix = before["items"].as_array().unwrap();
    assert_eq!(after["items"].as_array().unwrap()[..prefix.len()], prefix[..]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_call_whatever_it_waits_for() {
    let world = World::with_agent(narrow()).await;
    let conversation = world.conversation(&[]).await;
    let with = |prompt: &str, seconds: u64| {
        let body = json!({"target": "steps", "prompt": prompt, "timeout_s": seconds});
        Ask::post(format!("/v1/conversations/{conversation}/calls")).by(&world.ann).json(body)
    };
    let mut ids = Vec::new();
    for prompt in ["wait done", "wait done", "done"] {
        let got = world.send(with(prompt, 5)).await.json();
        ids.push(got["call"]["id"].as_str().unwrap().to_owned());
    }
    world.pass(Duration::from_secs(4)).await;
    assert_eq!(read(&world, format!("/v1/calls/{}", ids[2])).await["phase"], "queued");
    for id in &ids {
        let ended = until(&world, id, "timed_out").await;
        assert_eq!(ended["error"]["code"], "call.timed_out");
        let message = read(&world, format!("/v1/messages/{}", ended["message"].as_str().unwrap())).await;
        assert_eq!(message["status"], "failed");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_call_may_not_have_is_refused_with_its_place() {
    let things = Things::new().await;
    let world = &things.world;
    let new = |more: Value| {
        let mut body = json!({"target": "steps", "prompt": "done"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Ask::post(format!("/v1/conversations/{}/calls", things.conversation)).by(&world.ann).json(body)
    };
    let zeros = "0".repeat(32);
    let table = [
        (json!({"target": "nobody"}), "404 not_found"),
        (json!({"prompt": " \n"}), "422 invalid prompt"),
        (json!({"artifacts": [format!("art_{zeros}")]}), "422 invalid artifacts"),
        (json!({"reply_to": format!("msg_{zeros}")}), "422 invalid reply_to"),
        (json!({"actor": "operator/op"}), "403 forbidden"),
        (json!({"timeout_s": 0}), "422 invalid timeout_s"),
        (json!({"budget": {"tokens": -1}}), "422 invalid budget.tokens"),
        (json!({"budget": {"dollars": 1}}), "422 invalid budget.dollars"),
    ];
    for (more, expected) in table {
        let at = more.to_string();
        assert_eq!(things.refused(new(more)).await.brief(), expected, "{at}");
    }
    // Whoever only reads, and whoever executes, calls nobody.
    let harness = world.token("harness/steps", loopd_protocol::Role::Harness).await;
    for token in [&world.eve, &harness] {
        let ask = Ask::post(format!("/v1/conversations/{}/calls", things.conversation)).by(token);
        let got = things.refused(ask.json(json!({"target": "steps", "prompt": "done"}))).await;
        assert_eq!(got.brief(), "403 forbidden");
    }
}
