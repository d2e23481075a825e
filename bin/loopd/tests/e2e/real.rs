//! The same with a real model, where somebody has started one.

use crate::Tally;
use crate::router::{self, to_router};
use crate::stream::to_helper;
use crate::world::{World, result_of};
use loopd_protocol::{Block, Event, MessageStatus};

fn agent(name: &str, model: &str) -> String {
    format!(
        "apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: {{ name: {name} }}
spec:
  model: {{ provider: openai, baseUrl: \"{model}\", name: smollm2-135m, temperature: 0, maxOutputTokens: 80 }}
  limits: {{ iterations: 4 }}
"
    )
}

/// One answer, whose server is killed as soon as a reader has seen some of it.
pub async fn play() -> Option<Tally> {
    let (model, wire) = (std::env::var("LOOPD_E2E_MODEL").ok()?, std::env::var("LOOPD_E2E_WIRE").ok()?);
    let mut world = World::new(&agent("helper", &model)).await;
    let conversation = world.conversation().await;
    let mut watch = world.watch(conversation);
    let mut answers = Vec::new();
    for kill in [true, false] {
        let text = "Tell me in one sentence what tea is.";
        let said =
            world.client().say(conversation, if kill { "a" } else { "b" }, &to_helper(text)).await.expect("said");
        let output = watch.until_text().await;
        if kill {
            world.kill_and_start().await;
        }
        let status = watch
            .until("the end of the answer", |event| match event {
                Event::MessageEnded { message } if message.id == output => Some(message.status),
                _ => None,
            })
            .await;
        assert_eq!(status, MessageStatus::Completed, "{said:?}");
        let message = world.client().message(output).await.expect("there");
        answers.push(result_of(&message));
    }
    assert!(answers.iter().all(|answer| !answer.trim().is_empty()), "{answers:?}");
    println!("  it says: {answers:?}");
    let asked = || std::fs::read_to_string(&wire).expect("the wire's log").lines().count();
    let first = asked();
    assert!((2..=3).contains(&first), "{first} calls of the model for two answers and one kill");
    let tally =
        Tally { kills: world.kills, answers: 2, model_calls: first, again: first - 2, resumed: watch.seen.losses };
    let mut routed = route(&model).await;
    let calls = asked() - first;
    // A plan, its repair, and an answer; or as many tasks as a plan may have, and a sum. One was cut by the kill.
    assert!((2..=10).contains(&calls), "{calls} calls of the model for an answer of the Router and one kill");
    routed.model_calls = calls;
    routed += tally;
    Some(routed)
}

/// One answer of the Router, killed while a model works for it.
async fn route(model: &str) -> Tally {
    let agent = agent("assistant", model);
    let mut world = World::with(&["up", "--model", "demo"], &[("assistant", agent)]).await;
    let conversation = world.conversation().await;
    let mut watch = world.watch(conversation);
    world.client().say(conversation, "a", &to_router("What is tea? Answer in one sentence.")).await.expect("said");
    router::one_goes_on(&world, conversation).await;
    world.kill_and_start().await;
    let said = router::answer(&mut watch).await;
    let text: String = said.blocks.iter().map(Block::words).collect();
    println!("  the Router says: {text:?}");
    assert!(!text.trim().is_empty() && !text.starts_with("I have no answer"), "{text}");
    Tally { kills: world.kills, answers: 1, resumed: watch.seen.losses, ..Tally::default() }
}
