//! Killed while an answer streams.

use crate::Tally;
use crate::model::{self, LONG, asked};
use crate::world::{World, result_of};
use loopd_protocol::{Event, MessageStatus, Say};

/// A person's Message to the agent.
pub fn to_helper(text: &str) -> Say {
    let block = loopd_protocol::Block::Known(loopd_protocol::KnownBlock::Text { text: text.to_owned() });
    let to = vec!["harness/helper".parse().expect("an actor")];
    Say { actor: None, to, reply_to: None, blocks: vec![block] }
}

pub async fn play(rounds: usize) -> Tally {
    let fake = model::start(rounds).await;
    let mut world = World::new(&model::agent(&fake.openai_url())).await;
    let mut tally = Tally::default();
    let conversation = world.conversation().await;
    let mut watch = world.watch(conversation);
    for round in 0..rounds {
        let marker = format!("long-{round}-");
        let said = world.client().say(conversation, &marker, &to_helper(&marker)).await.expect("said");
        fake.reached(&marker).await;
        // A reader has seen the beginning of it.
        let output = watch.until_text().await;
        world.kill().await;
        fake.open(&marker);
        world.start().await;
        let ended = watch
            .until("the end of the answer", |event| match event {
                Event::MessageEnded { message } if message.id == output => Some(message.status),
                _ => None,
            })
            .await;
        assert_eq!(ended, MessageStatus::Completed);
        let message = world.client().message(output).await.expect("there");
        assert_eq!(result_of(&message), LONG);
        // The one that was cut, and the one that answers.
        assert_eq!(asked(&fake, &marker), 2, "{marker}");
        // Who did not hear that it was said says it again, and it is the same.
        let again = world.client().say(conversation, &marker, &to_helper(&marker)).await.expect("said");
        assert!(again.already && again.message.id == said.message.id);
        tally += Tally { answers: 1, model_calls: 2, again: 1, ..Tally::default() };
    }
    fake.expect_calls(tally.model_calls).expect_nothing_refused();
    let messages = world.client().messages(conversation, loopd_client::Window::After(0), 200).await.expect("there");
    assert_eq!(messages.len(), rounds * 2);
    Tally { kills: world.kills, resumed: watch.seen.losses, ..tally }
}
