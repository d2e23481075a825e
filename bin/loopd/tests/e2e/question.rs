//! Killed while a person is asked, and again once the answer is accepted.

use crate::Tally;
use crate::model::{self, asked};
use crate::stream::to_helper;
use crate::world::{World, result_of};
use loopd_protocol::{Answer, CallPhase, Event, MessageStatus, QuestionStatus, Scope};
use serde_json::json;

fn answer(value: &str) -> Answer {
    Answer { status: QuestionStatus::Answered, value: Some(json!(value)), scope: Scope::Once }
}

pub async fn play(rounds: usize) -> Tally {
    let fake = model::start(0).await;
    let mut world = World::new(&model::agent(&fake.openai_url())).await;
    let mut tally = Tally::default();
    let conversation = world.conversation().await;
    let mut watch = world.watch(conversation);
    for round in 0..rounds {
        let marker = format!("ask-{round}-");
        let said = world.client().say(conversation, &marker, &to_helper(&marker)).await.expect("said");
        let question = watch
            .until("a question", |event| match event {
                Event::Question { question } if question.status == QuestionStatus::Open => Some(question.id),
                _ => None,
            })
            .await;
        world.kill_and_start().await;
        let client = world.client();
        assert_eq!(client.question(question).await.expect("there").status, QuestionStatus::Open);
        assert_eq!(client.call(said.calls[0]).await.expect("there").phase, CallPhase::Waiting);
        let given = client.answer(question, &answer("red")).await.expect("accepted");
        // The Run may have taken it already. What was accepted is kept.
        assert!(given.answer.is_some());
        world.kill_and_start().await;
        let client = world.client();
        let again = client.answer(question, &answer("red")).await.expect("the same again");
        assert_eq!(again.answer.map(|answer| answer.value), given.answer.map(|answer| answer.value));
        let other = client.answer(question, &answer("blue")).await.expect_err("another one");
        assert!(matches!(&other, loopd_client::Error::Refused(problem) if problem.status == 409), "{other:?}");
        let output = watch
            .until("the end of the answer", |event| match event {
                Event::MessageEnded { message } if message.from.to_string() == "harness/helper" => {
                    Some(message.clone())
                }
                _ => None,
            })
            .await;
        assert_eq!(output.status, MessageStatus::Completed);
        assert_eq!(client.question(question).await.expect("there").status, QuestionStatus::Answered);
        let message = client.message(output.id).await.expect("there");
        assert_eq!(result_of(&message), "You chose red.");
        // One that asks, one that answers; the second may have been on its way at the second kill.
        let calls = asked(&fake, &marker);
        assert!((2..=3).contains(&calls), "{calls} calls of the model for {marker}");
        tally += Tally { answers: 1, model_calls: calls, again: calls - 2, ..Tally::default() };
    }
    fake.expect_calls(tally.model_calls).expect_nothing_refused();
    Tally { kills: world.kills, resumed: watch.seen.losses, ..tally }
}
