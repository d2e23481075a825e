//! The kit itself: agents on scripts, people who say yes and no, and tests that fail as they should.

use async_trait::async_trait;
use expect_test::expect;
use loopd_inside::kit::{Agent, Fate, Script, Turn, World, survives};
use loopd_operator::{Asked, Cx, Error, Next, Place, Reconcile, call, choose, markdown};
use loopd_protocol::ConversationId;
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const OPERATOR: &str = "operator/brief";

/// Calls `sum`, asks whether that will do, and answers with both.
#[derive(Debug, Default)]
struct Brief {
    /// It says each time how often it was called, as it should not.
    counts: bool,
    called: AtomicU32,
}

#[async_trait]
impl Reconcile for Brief {
    async fn reconcile(&self, cx: &mut Cx, _: ConversationId) -> Result<Next, Error> {
        let called = self.called.fetch_add(1, Ordering::SeqCst);
        let inputs = cx.inputs();
        let Some(input) = inputs.first() else { return Ok(Next::Done) };
        if self.counts {
            cx.speak(Place::Here, format!("{}/{called}", input.id), markdown("I look."));
        }
        let key = |step: &str| format!("{}/{step}", input.id);
        let made = cx.prompt(Place::Work, &key("sum"), call("sum", "the text")).await?;
        let Some(made) = made.filter(|made| made.is_over()) else { return Ok(Next::Done) };
        let asked = cx.ask(Place::Here, &key("ok"), choose("Will it do?", &["yes", "no"], 3600)).await?;
        let Some(asked) = asked.filter(Asked::is_over) else { return Ok(Next::Done) };
        let sum = made.text().unwrap_or_else(|| format!("nothing, {}", made.state().phase.name()));
        let will = asked.text().unwrap_or_else(|| format!("{:?}", asked.state().status));
        cx.answer(input, key("answer"), format!("{sum}: {will}"));
        cx.handle(input);
        Ok(Next::Done)
    }
}

async fn world(agent: Agent) -> World {
    World::new([agent]).await
}

#[tokio::test(start_paused = true)]
async fn people_answer_decline_dismiss_or_let_it_pass() {
    for (number, expected) in ["yes", "Declined", "Dismissed", "TimedOut"].into_iter().enumerate() {
        let world = world(Agent::says("sum", "All is well.")).await;
        let room = world.room().await;
        let running = world.start(OPERATOR, Brief::default());
        let said = world.say(room, OPERATOR, "How is it?").await;
        let question = world.question(room).await;
        assert_eq!((question.prompt.as_str(), world.answers_of(&said).await.len()), ("Will it do?", 0));
        match number {
            0 => world.answer(&question, "yes").await,
            1 => world.decline(&question).await,
            2 => world.dismiss(&question).await,
            _ => world.pass(Duration::from_secs(3700)).await,
        }
        assert_eq!(world.answer_of(&said).await, format!("All is well.: {expected}"));
        assert_eq!((world.asked("sum").len(), world.calls(room).await.len(), running.counted().failures), (1, 1, 0));
        assert!(world.asked("sum")[0].ends_with("the text"));
        assert_eq!(running.stop().await, Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_story_is_told_the_same_with_each_death_in_it() {
    let manifest = "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: { name: sum }\n\
                    spec: { model: { provider: demo, script: s.json }, limits: { iterations: 3 } }\n";
    let script = r#"{"label": "", "turns": [
        {"say": "Fine.", "faults": [{"attempt": 1, "error": "rate_limited", "retry_after_ms": 900}]}
    ]}"#;
    let story = survives(
        async || world(Agent::from_manifest(manifest, script)).await,
        OPERATOR,
        Brief::default,
        async |world, room| {
            let said = world.say(room, OPERATOR, "How is it?").await;
            world.answer(&world.question(room).await, "no").await;
            assert_eq!(world.answer_of(&said).await, "Fine.: no");
        },
    )
    .await;
    expect![[r#"
        1 person/ann > operator/brief [completed]
            text How is it?
        2 operator/brief [completed]
            ask Will it do?
        3 person/ann > operator/brief [completed]
            reply Answered "no"
        4 operator/brief > person/ann [completed]
            markdown Fine.: no
        at work
        1 harness/sum > operator/brief [completed]
            result Fine.
        call of sum succeeded
        sum was asked 2 times
        operator/brief has 0 conversations to look at
    "#]]
    .assert_eq(&story.told);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_does_something_twice_does_not_pass() {
    let telling = tokio::task::LocalSet::new();
    let told = telling.run_until(async {
        let story = tokio::task::spawn_local(survives(
            async || world(Agent::says("sum", "Fine.")).await,
            OPERATOR,
            || Brief { counts: true, ..Brief::default() },
            async |world, room| {
                let said = world.say(room, OPERATOR, "How is it?").await;
                world.answer(&world.question(room).await, "no").await;
                world.answer_of(&said).await;
            },
        ));
        story.await.unwrap_err()
    });
    let why = *told.await.into_panic().downcast::<String>().unwrap();
    assert!(why.contains("is told otherwise") && why.contains("I look."), "{why}");
}

#[tokio::test(start_paused = true)]
async fn waiting_in_vain_ends_with_what_was_said() {
    let builder = World::builder().patience(Duration::from_secs(9)).agent(Agent::says("sum", "Fine."));
    let world = builder.start().await;
    let room = world.room().await;
    let running = world.start_as(
        OPERATOR,
        Brief::default(),
        loopd_inside::kit::Process::named("one").fated(Fate::Hold.at("turn", 0)),
    );
    let said = world.say(room, OPERATOR, "How is it?").await;
    running.happened().await;
    let why = tokio::spawn(async move { world.answer_of(&said).await }).await.unwrap_err();
    let why = *why.into_panic().downcast::<String>().unwrap();
    expect![[r#"
        no answer after 9s:
        1 person/ann > operator/brief [completed]
            text How is it?
        at work
        sum was asked 0 times
        operator/brief has 1 conversations to look at
    "#]]
    .assert_eq(&why);
}

#[tokio::test(start_paused = true)]
async fn scripts_are_written_in_rust_too() {
    let script =
        Script::empty().asks("ask", json!({"question": "Which?", "choices": ["a", "b"]})).says("{{tool.ask}}!");
    let script = script.when("stop", Turn::says("Stopped."));
    let world = world(Agent::new("sum", script)).await;
    let room = world.room().await;
    world.say(room, "harness/sum", "Go").await;
    world.answer(&world.question(room).await, "b").await;
    world.pass(Duration::from_secs(5)).await;
    world.say_as("person/ann", room, "harness/sum", "stop").await;
    world.pass(Duration::from_secs(5)).await;
    expect![[r#"
        1 person/ann > harness/sum [completed]
            text Go
        2 harness/sum > person/ann [completed]
            result b!
        3 harness/sum [completed]
            ask Which?
        4 person/ann > harness/sum [completed]
            reply Answered "b"
        5 person/ann > harness/sum [completed]
            text stop
        6 harness/sum > person/ann [completed]
            result Stopped.
        call of sum succeeded
        call of sum succeeded
        sum was asked 3 times
    "#]]
    .assert_eq(&world.told(room).await);
}
