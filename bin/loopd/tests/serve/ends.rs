//! How a server ends, in every way, and how it goes on.

use crate::world::{World, follow, say, until, within};
use loopd_client::{Client, Error, Told};
use loopd_protocol::{
    Answer, Block, BlockOp, CallPhase, ConversationId, Event, FeedEvent, KnownBlock, MessageStatus, NewConversation,
    QuestionStatus, Role, Scope,
};

/// An agent that takes its time, and one that asks.
const SLOW: &str = r#"{"label": "", "pace": {"delay_ms": 0, "word_ms": 20}, "turns": [{"say": "WORDS"}]}"#;
const ASKS: &str = r#"{"label": "", "turns": [
  {"when": {"last_tool": "ask"}, "say": "You chose {{tool.ask}}."},
  {"use": [{"tool": "ask", "args": {"question": "Which?", "choices": ["red", "blue"]}}]}]}"#;

fn words() -> String {
    (1..=60).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

fn world() -> World {
    let world = World::new();
    world.agent("slow", &SLOW.replace("WORDS", &words()));
    world.agent("asks", ASKS);
    world
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::MessageEnded { .. })
}

/// Every position once, in order; and the texts of the results.
#[track_caller]
fn told_once(events: &[FeedEvent]) -> Vec<String> {
    let positions: Vec<_> = events.iter().map(|event| event.position).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>());
    let ops = events.iter().filter_map(|event| match &event.event {
        Event::MessageUpdated { ops, .. } => Some(ops),
        _ => None,
    });
    let texts = ops.flatten().filter_map(|op| match op {
        BlockOp::Push { block: Block::Known(KnownBlock::Result { text: Some(text), .. }) } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn killed_in_the_middle_of_a_stream_it_goes_on_and_tells_everything_once() {
    let world = world();
    let served = world.serve(&["--agents", "agents"]);
    let addr = served.addr().to_owned();
    let client = world.client(&served);
    within(async {
        let (conversation, _) = say(&client, "harness/slow", "Count.").await;
        let mut follow = follow(&client, conversation);
        let mut before = Vec::new();
        loop {
            match follow.next().await.expect("goes on").expect("open") {
                Told::Event(event) => before.push(*event),
                // It is speaking now.
                Told::Delta(delta) if delta.offset > 0 => break,
                _ => {}
            }
        }
        served.kill();
        let again = world.serve(&["--agents", "agents", "--addr", &addr]);
        let (after, lost) = until(&mut follow, is_end).await;
        assert!(lost, "the stream was told that it was lost");
        before.extend(after);
        assert_eq!(told_once(&before), [words()]);
        let said = client.messages(conversation, loopd_client::Window::Latest, 10).await.expect("read");
        assert_eq!(said.iter().map(|message| message.status).collect::<Vec<_>>(), [MessageStatus::Completed; 2]);
        drop(again);
    });
}

#[test]
fn killed_while_somebody_is_asked_it_waits_on_and_takes_the_answer() {
    let world = world();
    let served = world.serve(&["--agents", "agents"]);
    let addr = served.addr().to_owned();
    let client = world.client(&served);
    within(async {
        let (conversation, said) = say(&client, "harness/asks", "Ask.").await;
        let mut follow = follow(&client, conversation);
        let waits = |event: &Event| matches!(event, Event::Call { call } if call.phase == CallPhase::Waiting);
        let (mut events, _) = until(&mut follow, waits).await;
        served.kill();
        let again = world.serve(&["--agents", "agents", "--addr", &addr]);
        let open = client.questions(Some(conversation), &Default::default()).await.expect("listed").items;
        assert_eq!(open.len(), 1);
        let value = Some("blue".into());
        let answer = Answer { status: QuestionStatus::Answered, value, scope: Scope::Once };
        for _ in 0..2 {
            client.answer(open[0].id, &answer).await.expect("answered, and the same again");
        }
        let other = Answer { value: Some("red".into()), ..answer };
        let late = client.answer(open[0].id, &other).await.expect_err("answered already");
        assert_eq!(late.code(), Some("question_closed"));
        events.extend(until(&mut follow, is_end).await.0);
        assert_eq!(told_once(&events), ["You chose blue."]);
        let call = client.call(said.calls[0]).await.expect("read");
        assert_eq!((call.phase, call.spent.iterations), (CallPhase::Succeeded, 2));
        drop(again);
    });
}

#[test]
fn sigterm_lets_go_of_what_runs_and_ends_with_0() {
    let world = world();
    let served = world.serve(&["--agents", "agents"]);
    let (addr, client) = (served.addr().to_owned(), world.client(&served));
    within(async {
        let (conversation, _) = say(&client, "harness/slow", "Count.").await;
        let mut follow = follow(&client, conversation);
        let runs = |event: &Event| matches!(event, Event::Call { call } if call.phase == CallPhase::Running);
        let (mut events, _) = until(&mut follow, runs).await;
        served.signal("TERM");
        assert_eq!(served.line(), "stopping: what runs is released, and goes on at the next start");
        assert_eq!(served.end(), 0);
        assert!(!world.path(".loopd/server.json").exists(), "it announces itself no longer");
        let again = world.serve(&["--agents", "agents", "--addr", &addr]);
        events.extend(until(&mut follow, is_end).await.0);
        assert_eq!(told_once(&events), [words()]);
        drop(again);
    });
}

#[test]
fn an_idle_server_stops_at_once_on_ctrl_c() {
    let world = World::new();
    let served = world.serve(&[]);
    served.signal("INT");
    assert_eq!(served.end(), 0);
}

#[test]
fn another_address_to_sign_in_with_is_a_signal_away() {
    let world = World::new();
    let served = world.serve(&[]);
    served.signal("USR1");
    let (first, second) = (served.greeting.last().expect("the first").clone(), served.line());
    assert!(second.starts_with(&format!("sign in, within a minute: {}/sign-in?code=", served.url)), "{second}");
    assert_ne!(first, second);
}

#[test]
fn one_server_serves_a_folder_and_a_second_one_says_which() {
    let world = World::new();
    let served = world.serve(&[]);
    for args in [&["serve", "--addr", "127.0.0.1:0"][..], &["token", "--actor", "person/ann", "--role", "member"]] {
        let done = world.run(args);
        assert_eq!(done.code, 8);
        let says = format!("loopd: a server runs on ./.loopd already: {} (process {})\n", served.url, served.pid());
        assert!(done.err.starts_with(&says), "{}", done.err);
    }
    let client = world.client(&served);
    within(async { client.whoami().await.expect("the first one still serves") });
}

async fn opens(client: &Client) -> Result<ConversationId, Error> {
    client.open("the-key", &NewConversation { title: String::new(), members: Vec::new() }).await.map(|opened| opened.id)
}

#[test]
fn what_was_there_is_there_after_every_start() {
    let world = World::new();
    let served = world.serve(&[]);
    let (client, token) = (world.client(&served), world.token());
    let first = within(opens(&client)).expect("opened");
    served.kill();
    // While nobody serves, a token is made on the store.
    let made = world.command(&["token", "--actor", "person/ann", "--role", "viewer"]).output().expect("it starts");
    let secret = String::from_utf8(made.stdout).expect("text");
    assert!(secret.starts_with("loopd_") && secret.lines().count() == 1, "{secret}");
    let served = world.serve(&[]);
    assert_eq!(world.token(), token, "the owner's token stays");
    assert_eq!(within(opens(&world.client(&served))), Ok(first), "a key means the same after a restart");
    let ann = Client::new(&served.url, Some(&secret)).expect("an address");
    within(async {
        let who = ann.whoami().await.expect("known");
        assert_eq!((who.actor.as_str(), who.roles.as_slice()), ("person/ann", &[Role::Viewer][..]));
        assert_eq!(opens(&ann).await.expect_err("she only reads").code(), Some("forbidden"));
    });
}
