//! An Operator dies, or its line does, at every request; another process of it goes on.

use crate::fate::Fate;
use crate::script::Script;
use crate::world::{Running, World};
use expect_test::expect;
use loopd_operator::Error;
use std::time::Duration;

/// The story in which everything happens.
const STORY: &str = "all of it";

async fn told(fate: Option<(&'static str, usize, Fate)>, next: &str) -> (String, Vec<&'static str>) {
    let world = World::new().await;
    let first = world.start("one", Script::named("one"), fate);
    world.say(world.room, STORY).await;
    let dies = matches!(fate, Some((_, _, Fate::DieBefore | Fate::DieAfter)));
    let mut second: Option<Running> = None;
    if dies {
        tokio::select! {
            () = first.desk.happened.notified() => {}
            () = world.until(world.room, 1) => panic!("it does not come that far: {fate:?}"),
        }
        first.task.abort();
        second = Some(world.start(next, Script::named("two"), None));
    }
    world.until(world.room, 1).await;
    let seen = first.desk.seen();
    drop((first, second));
    (world.there(world.room).await, seen)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_twice_and_nothing_is_lost_wherever_it_dies() {
    let (expected, seen) = told(None, "").await;
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
        at work, 2 calls
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
        paid 2, unhandled 0
        listen unhandled conversation lease poll keyed keyed turn conversation poll keyed keyed keyed turn poll keyed keyed keyed keyed turn poll keyed keyed keyed keyed keyed turn poll keyed keyed keyed keyed keyed turn
    "#]].assert_eq(&format!("{expected}{}\n", seen.join(" ")));
    for (number, name) in seen.iter().enumerate() {
        for fate in [Fate::DieBefore, Fate::DieAfter, Fate::LoseBefore, Fate::LoseAfter] {
            // The next process has the name of the first, or waits until the lease is over.
            let next = if number % 2 == 0 { "one" } else { "other" };
            let (there, _) = told(Some(("", number, fate)), next).await;
            assert_eq!(there, expected, "{fate:?} at request {number}, {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_the_stale_one_commits_nothing() {
    let world = World::new().await;
    let first = world.start("one", Script::named("one"), Some(("turn", 0, Fate::Hold)));
    world.say(world.room, "echo Hello").await;
    first.desk.happened.notified().await;
    let second = world.start("two", Script::named("two"), None);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((second.counted().elsewhere > 0, second.counted().reconciles), (true, 0));
    world.until(world.room, 1).await;
    first.desk.release.notify_one();
    world.until(world.room, 1).await;
    assert_eq!(world.answers(world.room).await, ["Hello, says two"]);
    assert_eq!((first.counted().fenced, first.counted().turns, second.counted().turns), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn two_processes_at_once_answer_everything_once() {
    let world = World::new().await;
    let mut rooms = vec![world.room];
    for _ in 0..7 {
        rooms.push(world.stage.open("ann", &["operator/router"]).await.id);
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
    let first = world.start("one", Script::named("one"), Some(("turn", 0, Fate::Hold)));
    world.say(world.room, "echo a").await;
    first.desk.happened.notified().await;
    first.stop.cancel();
    world.say(world.room, "echo b").await;
    first.desk.release.notify_one();
    let mut first = first;
    let ended: Result<(), Error> = (&mut first.task).await.unwrap();
    assert_eq!(ended, Ok(()));
    assert_eq!(world.answers(world.room).await, ["a, says one"]);
    let second = world.start("two", Script::named("two"), None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.answers(world.room).await, ["a, says one", "b, says two"]);
    assert_eq!(second.counted().elsewhere, 0);
}
