//! The Operator on a platform in memory. Time is paused, so nothing here waits.

use scaffold_name::Relay;

use loopd_inside::kit::{Agent, Fate, Process, Script, Turn, World, survives};
use loopd_operator::Reconcile;

const ME: &str = "operator/scaffold-name";

fn relay() -> impl Reconcile {
    let agent = "demo".to_owned();
    Relay { agent }
}

/// A platform with an agent that always says the same.
async fn world() -> World {
    World::new([Agent::says("demo", "I am fine.")]).await
}

#[tokio::test(start_paused = true)]
async fn it_answers_with_what_the_agent_says() {
    let world = world().await;
    let room = world.room().await;
    let _running = world.start(ME, relay());
    let said = world.say(room, ME, "How are you?").await;
    assert_eq!(world.answer_of(&said).await, "I am fine.");
    assert_eq!(world.asked("demo").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_says_so_when_the_agent_fails() {
    // No turn of this script fits, so the model refuses.
    let script = Script::empty().when("nothing that is asked here", Turn::says("?"));
    let world = World::new([Agent::new("demo", script)]).await;
    let room = world.room().await;
    let _running = world.start(ME, relay());
    let said = world.say(room, ME, "How are you?").await;
    let answer = world.answer_of(&said).await;
    assert!(answer.starts_with("demo could not answer: "), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn killed_in_the_middle_it_goes_on_and_calls_nobody_twice() {
    let world = world().await;
    let room = world.room().await;
    // The call is made, and the process dies before it hears of it.
    let dies = Process::named("one").fated(Fate::DieAfter.at("turn", 0));
    let first = world.start_as(ME, relay(), dies);
    let said = world.say(room, ME, "How are you?").await;
    first.happened().await;
    first.kill();
    let _second = world.start(ME, relay());
    assert_eq!(world.answer_of(&said).await, "I am fine.");
    assert_eq!(world.asked("demo").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_comes_to_the_same_wherever_it_dies() {
    let story = survives(world, ME, relay, async |world, room| {
        let said = world.say(room, ME, "How are you?").await;
        assert_eq!(world.answer_of(&said).await, "I am fine.");
    });
    // It was told once in peace, and then with each request failing in four ways.
    assert!(story.await.requests.contains(&"turn"));
}
