//! The Router of `loopd up`, killed with everything around it at each of its stages: while it plans, while the parts are
//! worked on, while it sums up, and at random moments in between; and with more said while it works. What the model
//! server was asked is counted.

use crate::Tally;
use crate::model::asked_with;
use crate::random::Random;
use crate::world::{Watch, World, soon};
use loopd_client::Part;
use loopd_protocol::{Block, ConversationId, Event, KnownBlock, Message, Say};
use looptest::fake::{FakeModel, Script};
use serde_json::{Value, json};
use std::time::Duration;

/// What tells the prompts apart.
const PLAN: &str = "Others answer it; you do not.\n\nThese agents";
const REPLAN: &str = "Work on it has begun, and then more was said.";
const SUM: &str = "Several agents have worked on parts of a question.";
/// What was said late reaches whoever sums up.
const LATE: &str = "more for late-";

/// Up to so long after a question, in microseconds.
const MOMENT: u64 = 400_000;

fn agent(name: &str, url: &str) -> String {
    format!(
        "apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata: {{ name: {name}, description: Does what it is told. }}
spec:
  model: {{ provider: openai, baseUrl: \"{url}\", name: fake-model }}
  limits: {{ iterations: 10 }}
"
    )
}

fn task(title: &str, agent: &str) -> Value {
    json!({ "title": title, "agent": agent, "prompt": format!("{title} {{{{line}}}}") })
}

/// A server that plans two tasks for any question and one more when more is said, and that stops in the middle of the
/// stage that the question names, until the gate of that name is opened.
async fn model(questions: &[String]) -> FakeModel {
    let two = json!({ "kind": "complex", "tasks": [task("part-a", "assistant"), task("part-b", "writer")] });
    let one = json!({ "kind": "complex", "tasks": [task("part-c", "writer")] });
    let replies =
        [(PLAN, json!({ "json": two })), (REPLAN, json!({ "json": one })), (SUM, json!({ "say": "All of {{line}}" }))];
    let mut turns = Vec::new();
    let stalled = |mut turn: Value, when: Value, gate: &str| {
        turn["when"] = when;
        turn["on_wire"] = json!({ "stall": { "at": { "events": 2 }, "gate": gate } });
        turn
    };
    for question in questions {
        let stage = match question.split('-').next() {
            Some("plan") => Some((PLAN, &replies[0].1)),
            Some("sum") => Some((SUM, &replies[2].1)),
            _ => None,
        };
        if let Some((prompt, reply)) = stage {
            turns.push(stalled(reply.clone(), json!({ "user_contains": prompt, "line_contains": question }), question));
        }
        if question.starts_with("work-") || question.starts_with("late-") {
            let line = format!("part-b {question}");
            turns.push(stalled(json!({ "say": "Done: {{line}}" }), json!({ "line_contains": line }), question));
        }
    }
    let both = json!({ "user_contains": SUM, "line_contains": "late-" });
    turns.push(json!({ "when": both, "say": "All of {{line}} with what was said since" }));
    for (prompt, mut reply) in replies {
        reply["when"] = json!({ "user_contains": prompt });
        turns.push(reply);
    }
    turns.push(json!({ "say": "Done: {{line}}" }));
    let script = json!({ "pace": { "delay_ms": 20 }, "turns": turns });
    FakeModel::start(Script::from_json(&script.to_string()).expect("a script")).await
}

pub fn to_router(text: &str) -> Say {
    let block = Block::Known(KnownBlock::Text { text: text.to_owned() });
    Say { actor: None, to: vec!["operator/router".parse().expect("an actor")], reply_to: None, blocks: vec![block] }
}

pub async fn answer(watch: &mut Watch) -> Message {
    let is_answer = |message: &Message| {
        let is_progress = |block: &Block| matches!(block, Block::Known(KnownBlock::Progress { .. }));
        message.from.to_string() == "operator/router" && !message.blocks.iter().any(is_progress)
    };
    watch
        .until("the answer of the Router", |event| match event {
            Event::Message { message } if is_answer(message) => Some((**message).clone()),
            _ => None,
        })
        .await
}

/// What the model server was asked about a question, by stage.
fn counted(fake: &FakeModel, question: &str) -> [usize; 5] {
    let parts = ["part-a ", "part-b ", "part-c "].map(|part| asked_with(fake, "", &format!("{part}{question}")));
    let planned = asked_with(fake, PLAN, question) + asked_with(fake, REPLAN, question);
    [planned, parts[0], parts[1], parts[2], asked_with(fake, SUM, question)]
}

/// Waits until everything is over but one call.
pub async fn one_goes_on(world: &World, conversation: ConversationId) {
    let one = async {
        let client = world.client();
        loop {
            let mut open = 0;
            for work in client.work(conversation).await.expect("there") {
                let calls = client.calls(work.id, &Part::first(20)).await.expect("there");
                open += calls.items.iter().filter(|call| !call.phase.is_final()).count();
            }
            if open == 1 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon("one call that goes on", one).await;
}

pub async fn play(rounds: usize, random: &mut Random) -> Tally {
    let stages = ["plan", "work", "sum", "late", "any"];
    let questions: Vec<_> = (0..rounds).flat_map(|round| stages.map(|stage| format!("{stage}-{round}-"))).collect();
    let fake = model(&questions).await;
    let url = fake.openai_url();
    let agents = [("assistant", agent("assistant", &url)), ("writer", agent("writer", &url))];
    let mut world = World::with(&["up", "--model", "demo"], &agents).await;
    let mut tally = Tally::default();
    let conversation = world.conversation().await;
    let mut watch = world.watch(conversation);
    for question in &questions {
        world.client().say(conversation, question, &to_router(question)).await.expect("said");
        let mut expected = [1, 1, 1, 0, 1];
        let mut slack = 0;
        match question.split('-').next() {
            Some(stage @ ("plan" | "work" | "sum")) => {
                fake.reached(question).await;
                one_goes_on(&world, conversation).await;
                world.kill().await;
                fake.open(question);
                world.start().await;
                // What was on its way is asked again, and nothing else is.
                expected[["plan", "part-a", "work", "part-c", "sum"]
                    .iter()
                    .position(|name| *name == stage)
                    .expect("one")] += 1;
                tally.again += 1;
            }
            Some("late") => {
                fake.reached(question).await;
                one_goes_on(&world, conversation).await;
                let more = format!("more for {question}");
                world.client().say(conversation, &format!("more-{question}"), &to_router(&more)).await.expect("said");
                watch
                    .until("that it is taken in", |event| match event {
                        Event::Message { message } => {
                            matches!(message.blocks[..], [Block::Known(KnownBlock::Progress { .. })]).then_some(())
                        }
                        _ => None,
                    })
                    .await;
                world.kill().await;
                fake.open(question);
                world.start().await;
                expected = [2, 1, 2, 1, 1];
                // The new plan may have been on its way as well.
                slack = 1;
                tally.again += 1;
            }
            _ => {
                tokio::time::sleep(Duration::from_micros(random.below(MOMENT))).await;
                world.kill_and_start().await;
                slack = 2;
            }
        }
        let said = answer(&mut watch).await;
        let since = if question.starts_with("late") { " with what was said since" } else { "" };
        assert_eq!(said.blocks.iter().map(Block::words).collect::<String>(), format!("All of {question}{since}"));
        let calls = counted(&fake, question);
        let more = calls
            .iter()
            .zip(expected)
            .map(|(calls, expected)| calls.checked_sub(expected).expect("asked"))
            .sum::<usize>();
        assert!(more <= slack, "{question}: asked {calls:?}, expected {expected:?} and at most {slack} again");
        let named = said.origin.expect("it names its calls").calls.len();
        assert_eq!(named, if expected[3] == 1 { 6 } else { 4 }, "{question}");
        if !since.is_empty() {
            // The new plan, once or twice, and the sum.
            assert!(asked_with(&fake, LATE, question) >= 2, "{question}");
        }
        tally.again += more;
        tally.answers += 1;
        tally.model_calls += calls.iter().sum::<usize>();
    }
    fake.expect_calls(tally.model_calls).expect_nothing_refused();
    let unhandled = world.client().messages(conversation, loopd_client::Window::After(0), 200).await.expect("there");
    let answers =
        unhandled.iter().filter(|message| message.reply_to.is_some() && message.from.to_string() == "operator/router");
    // An answer each, and a word where more was taken in.
    assert_eq!(answers.count(), questions.len() + rounds);
    Tally { kills: world.kills, resumed: watch.seen.losses, ..tally }
}
