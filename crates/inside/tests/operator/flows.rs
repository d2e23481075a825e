//! What an Operator does when nothing goes wrong, and when something does.

use crate::script::Script;
use crate::world::{ROUTER, World, person, registration, router};
use loopd_inside::kit::{Fate, Fated};
use loopd_operator::{Call, Config, Operator};
use loopd_platform::Caller;
use loopd_protocol::{CallPhase, NewCall, Role};
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is answered to what is said, one after the other.
async fn check(said: &[&str], fated: Option<Fated>, expected: &[&str]) -> World {
    let world = World::new().await;
    let _running = world.start("one", Script::named("one"), fated);
    for (number, text) in said.iter().enumerate() {
        world.say(world.room, text).await;
        world.until(world.room, number + 1).await;
    }
    assert_eq!(world.answers(world.room).await, expected);
    assert!(world.desk().unhandled(None).await.unwrap().items.is_empty());
    world
}

#[tokio::test(start_paused = true)]
async fn it_answers() {
    check(&["echo a", "?", "echo b"], None, &["a, says one", "What?", "b, says one"]).await;
    check(&["work speak:x well"], None, &["succeeded: well"]).await;
    check(&["work fail"], None, &["failed: nothing"]).await;
    check(&["later"], None, &["Now."]).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_it_came_is_answered() {
    let world = World::new().await;
    for number in 0..80 {
        world.say(world.room, &format!("echo {number}")).await;
    }
    let running = world.start("one", Script::named("one"), None);
    world.until(world.room, 80).await;
    assert_eq!(world.answers(world.room).await.len(), 80);
    let counted = running.counted();
    assert_eq!((counted.turns, counted.acts, counted.failures), (80, 80, 0));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_told_once_however_its_writes_are_lost() {
    for fate in [Fate::LoseBefore, Fate::LoseAfter] {
        for (name, count) in [("begin", 1), ("update", 3), ("end", 1)] {
            for number in 0..count {
                let world = check(&["tell"], Some(fate.at(name, number)), &["abc"]).await;
                let told = world.messages(world.room).await.pop().unwrap();
                assert_eq!(told.revision, 5, "{fate:?} {name} {number}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_gone_on_with_by_the_next_process() {
    for (name, number) in [("begin", 0), ("update", 0), ("update", 1), ("update", 2), ("end", 0)] {
        for fate in [Fate::DieBefore, Fate::DieAfter] {
            let world = World::new().await;
            let first = world.start("one", Script::named("one"), Some(fate.at(name, number)));
            world.say(world.room, "tell").await;
            first.happened().await;
            first.kill();
            let _second = world.start("one", Script::named("two"), None);
            world.until(world.room, 1).await;
            assert_eq!(world.answers(world.room).await, ["abc"], "{fate:?} {name} {number}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_fails_or_panics_is_tried_again_later_each_time() {
    let world = World::new().await;
    let script = Script { name: "one", fails: AtomicU32::new(4) };
    let running = world.start("one", script, None);
    let begun = tokio::time::Instant::now();
    world.say(world.room, "echo a").await;
    let mut failures = Vec::new();
    while running.counted().turns == 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let counted = running.counted().failures;
        if failures.last().is_none_or(|(_, known)| *known != counted) && counted > 0 {
            failures.push((begun.elapsed().as_millis(), counted));
        }
    }
    assert_eq!(failures, [(50, 1), (250, 2), (650, 3), (1450, 4)]);
    world.until(world.room, 1).await;
    assert_eq!(world.answers(world.room).await, ["a, says one"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_room_is_tried_until_there_is() {
    let config = loopd_platform::Config { slots: 1, queue: 0, ..loopd_platform::Config::default() };
    let world = World::with(config).await;
    let other: NewCall = loopd_operator::call("steps", "sleep:3000 done");
    world.engine().call(&person("bob"), world.room, "", other).await.unwrap();
    let running = world.start("one", Script::named("one"), None);
    world.say(world.room, "work well").await;
    world.until(world.room, 1).await;
    assert_eq!(world.answers(world.room).await, ["succeeded: well"]);
    assert!(running.counted().failures > 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_known_by_its_id_and_goes_on_without_its_handle() {
    let world = World::new().await;
    world.say(world.room, "Hello").await;
    let desk = world.desk();
    let router = Caller::new(router(), Role::Operator);
    let made = async |prompt: &str| {
        let new = loopd_operator::call("steps", prompt);
        world.engine().call(&router, world.room, "", new).await.unwrap().call.id
    };
    let id = made("sleep:2000 well").await;
    let mut call = Call::of(desk.clone(), id).await.unwrap();
    // Giving up waiting ends nothing.
    assert!(tokio::time::timeout(Duration::from_secs(1), call.wait()).await.is_err());
    drop(call);
    let mut call = Call::of(desk.clone(), id).await.unwrap();
    assert_eq!(call.wait().await.unwrap().phase, CallPhase::Succeeded);
    assert_eq!(call.text().as_deref(), Some("well"));
    let mut call = Call::of(desk.clone(), made("wait speak:heard well").await).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let steered = call.steer("k", "Go on.").await.unwrap();
    assert_eq!(call.steer("k", "Go on.").await.unwrap(), steered);
    assert_eq!(call.wait().await.unwrap().phase, CallPhase::Succeeded);
    let mut call = Call::of(desk, made("wait").await).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    call.cancel("enough").await.unwrap();
    assert_eq!(call.wait().await.unwrap().phase, CallPhase::Cancelled);
    assert_eq!(call.steer("k", "x").await.unwrap_err().code(), "call_final");
}

#[tokio::test(start_paused = true)]
async fn it_is_announced_while_it_runs_and_not_for_long_after() {
    let world = World::new().await;
    let running = world.start("one", Script::named("one"), None);
    let online = async || world.platform().actor(&router()).await.is_ok_and(|actor| actor.online);
    for _ in 0..10 {
        world.pass(Duration::from_secs(50)).await;
        assert!(online().await);
    }
    running.stop().await.unwrap();
    world.pass(Duration::from_secs(61)).await;
    assert!(!online().await);
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_is_not_in_order_ends_it_at_once() {
    let world = World::new().await;
    let wrong = loopd_protocol::Registration { name: " ".into(), ..registration() };
    let operator = Operator::new(world.desk(), router(), wrong, Script::named("one"), Config::new("one"));
    let refused = operator.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(refused.code(), "invalid");
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_deleted_is_forgotten() {
    let world = World::new().await;
    let running = world.start("one", Script::named("one"), None);
    world.say(world.room, "echo a").await;
    world.until(world.room, 1).await;
    world.kit.say(world.room, ROUTER, "echo b").await;
    world.platform().delete(&person("ann"), world.room).await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let counted = running.counted();
    assert_eq!((counted.waiting, counted.running), (0, 0));
}
