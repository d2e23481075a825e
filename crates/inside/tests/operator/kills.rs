//! An Operator dies, or its line does, at every request; another process of it goes on.

use crate::script::Script;
use crate::steps::Paid;
use crate::world::{ROUTER, World, platform};
use expect_test::expect;
use loopd_inside::kit::{Fate, survives};
use loopd_operator::Error;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn nothing_is_done_twice_and_nothing_is_lost_wherever_it_dies() {
    let all_paid = Mutex::new(Vec::new());
    let make = async || {
        let paid = Paid::default();
        all_paid.lock().unwrap().push(paid.clone());
        platform(loopd_platform::Config::default(), &paid).await
    };
    let story = survives(
        make,
        ROUTER,
        || Script::named("one"),
        async |world, room| {
            let said = world.say(room, ROUTER, "all of it").await;
            world.answer(&world.question(room).await, "one").await;
            world.answer(&world.question(room).await, "because").await;
            world.accept(&world.question(room).await).await;
            world.answer_of(&said).await;
        },
    )
    .await;
    expect![[r#"
        1 person/ann > operator/router [completed]
            text all of it
        2 operator/router [completed]
            markdown I begin.
        3 operator/router [completed]
            ask Which?
        4 person/ann > operator/router [completed]
            reply Answered "one"
        5 operator/router [completed]
            ask Why?
        6 person/ann > operator/router [completed]
            reply Answered "because"
        7 operator/router [completed]
            confirm Sure?
        8 person/ann > operator/router [completed]
            reply Answered 
        9 operator/router > person/ann [completed]
            markdown Done: one because, true.
        at work
        1 harness/steps > operator/router [completed]
            tool pay {"amount":1} Done 1
            result one
        2 harness/steps > operator/router [completed]
            tool pay {"amount":1} Done 1
            result two
        3 harness/steps > operator/router [completed]
            markdown one
        4 harness/steps > operator/router [completed]
            markdown two
        call of steps succeeded
        call of steps succeeded
        operator/router has 0 conversations to look at
        listen unhandled conversation lease poll keyed keyed turn conversation poll keyed keyed keyed turn poll keyed keyed keyed keyed turn poll keyed keyed keyed keyed keyed turn poll keyed keyed keyed keyed keyed turn
    "#]].assert_eq(&format!("{}{}\n", story.told, story.requests.join(" ")));
    let all_paid: Vec<_> = all_paid.lock().unwrap().iter().map(|paid| paid.load(Ordering::SeqCst)).collect();
    assert_eq!(all_paid, vec![2; 1 + 4 * story.requests.len()]);
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_the_stale_one_commits_nothing() {
    let world = World::new().await;
    let first = world.start("one", Script::named("one"), Some(Fate::Hold.at("turn", 0)));
    world.say(world.room, "echo Hello").await;
    first.happened().await;
    let second = world.start("two", Script::named("two"), None);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((second.counted().elsewhere > 0, second.counted().reconciles), (true, 0));
    world.until(world.room, 1).await;
    first.release();
    world.until(world.room, 1).await;
    assert_eq!(world.answers(world.room).await, ["Hello, says two"]);
    assert_eq!((first.counted().fenced, first.counted().turns, second.counted().turns), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn two_processes_at_once_answer_everything_once() {
    let world = World::new().await;
    let mut rooms = vec![world.room];
    for _ in 0..7 {
        rooms.push(world.room().await);
    }
    let running = [("one", "x"), ("one", "y"), ("three", "z")]
        .map(|(holder, name)| world.start(holder, Script::named(name), None));
    for number in 0..3 {
        for room in &rooms {
            world.say(*room, &format!("echo {number}")).await;
        }
    }
    for room in &rooms {
        world.until(*room, 3).await;
        let answers = world.answers(*room).await;
        let numbers: Vec<_> = answers.iter().map(|answer| answer.split(',').next().unwrap().to_owned()).collect();
        assert_eq!(numbers, ["0", "1", "2"]);
    }
    let turns: u64 = running.iter().map(|one| one.counted().turns).sum();
    assert_eq!(turns, 24);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_ends_what_it_began_and_gives_its_leases_back() {
    let world = World::new().await;
    let first = world.start("one", Script::named("one"), Some(Fate::Hold.at("turn", 0)));
    world.say(world.room, "echo a").await;
    first.happened().await;
    first.begin_to_stop();
    world.say(world.room, "echo b").await;
    first.release();
    let ended: Result<(), Error> = first.stop().await;
    assert_eq!(ended, Ok(()));
    assert_eq!(world.answers(world.room).await, ["a, says one"]);
    let second = world.start("two", Script::named("two"), None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.answers(world.room).await, ["a, says one", "b, says two"]);
    assert_eq!(second.counted().elsewhere, 0);
}
