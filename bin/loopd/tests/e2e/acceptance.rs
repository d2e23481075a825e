//! Killed at random moments while many people say something at once, and say it again until they are heard.

use crate::Tally;
use crate::model::{self, asked};
use crate::random::Random;
use crate::stream::to_helper;
use crate::world::{World, result_of, soon};
use loopd_client::{Client, Window};
use loopd_protocol::{CallPhase, ConversationId, Said};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// People of one round, who all talk at once.
const PEOPLE: usize = 10;
/// What each of them says, one after the other.
const EACH: usize = 4;
const ITEMS: usize = PEOPLE * EACH;
/// Kills of one round.
const KILLS: u32 = 4;
/// Up to so long after a start, in microseconds.
const MOMENT: u64 = 80_000;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Says it with one key until the answer arrives: what it did before is not known.
async fn insist(client: &Client, conversation: ConversationId, item: String) -> Said {
    loop {
        match client.say(conversation, &item, &to_helper(&item)).await {
            Ok(said) => return said,
            Err(error) => assert!(error.is_retryable(), "{item}: {error:?}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

pub async fn play(rounds: usize, random: &mut Random) -> Tally {
    let fake = model::start(0).await;
    let mut world = World::new(&model::agent(&fake.openai_url())).await;
    let mut tally = Tally::default();
    for round in 0..rounds {
        let conversation = world.conversation().await;
        let mut watch = world.watch(conversation);
        let mut people = JoinSet::new();
        for person in 0..PEOPLE {
            let client = world.client();
            people.spawn(async move {
                let mut said = Vec::new();
                for number in 0..EACH {
                    let item = format!("item-{round}-{person}-{number}-");
                    said.push(insist(&client, conversation, item).await);
                }
                said
            });
        }
        for _ in 0..KILLS {
            tokio::time::sleep(Duration::from_micros(random.below(MOMENT))).await;
            world.kill_and_start().await;
        }
        let said = soon("the last acceptance", people.join_all()).await.concat();
        watch.until_answers(ITEMS).await;
        let ids: BTreeSet<_> = said.iter().map(|said| said.message.id).collect();
        assert_eq!(ids.len(), ITEMS);
        let messages = world.client().messages(conversation, Window::After(0), 200).await.expect("there");
        assert_eq!(messages.len(), ITEMS * 2, "a message and an answer each");
        assert!(messages.iter().zip(1..).all(|(message, seq)| message.seq == seq));
        for (number, said) in said.iter().map(|said| (said.message.blocks[0].words().to_owned(), said)) {
            let [call] = said.calls[..] else { panic!("one call: {said:?}") };
            let call = world.client().call(call).await.expect("there");
            assert_eq!(call.phase, CallPhase::Succeeded, "{call:?}");
            let output = world.client().message(call.message).await.expect("there");
            assert_eq!(result_of(&output), format!("Done: {number}"));
            let calls = asked(&fake, &number);
            assert!((1..=1 + KILLS as usize).contains(&calls), "{calls} calls of the model for {number}");
            tally += Tally { answers: 1, model_calls: calls, again: calls - 1, ..Tally::default() };
        }
        tally.resumed += watch.seen.losses;
    }
    fake.expect_calls(tally.model_calls).expect_nothing_refused();
    Tally { kills: world.kills, ..tally }
}
