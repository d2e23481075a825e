//! The same with a real model, where somebody has started one.

use crate::Tally;
use crate::stream::to_helper;
use crate::world::{World, result_of};
use loopd_protocol::{Event, MessageStatus};

/// One answer, whose server is killed as soon as a reader has seen some of it.
pub async fn play() -> Option<Tally> {
    let (model, wire) = (std::env::var("LOOPD_E2E_MODEL").ok()?, std::env::var("LOOPD_E2E_WIRE").ok()?);
    let agent = format!(
        "apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: {{ name: helper }}
spec:
  model: {{ provider: openai, baseUrl: \"{model}\", name: smollm2-135m, temperature: 0, maxOutputTokens: 80 }}
  limits: {{ iterations: 4 }}
"
    );
    let mut world = World::new(&agent).await;
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
    let asked = std::fs::read_to_string(wire).expect("the wire's log").lines().count();
    assert!((2..=3).contains(&asked), "{asked} calls of the model for two answers and one kill");
    Some(Tally { kills: world.kills, answers: 2, model_calls: asked, again: asked - 2, resumed: watch.seen.losses })
}
