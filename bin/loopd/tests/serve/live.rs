//! Agents that come, change and go while the server runs.

use crate::world::{Served, World, follow, say, until, within};
use loopd_client::{Client, Error, Told};
use loopd_protocol::{
    Agent, AgentChange, AgentSource, Block, BlockOp, ConversationId, Event, FeedEvent, KnownBlock, NewConversation,
};

fn manifest(name: &str, script: &str) -> String {
    format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name} }}\nspec:\n  \
         model: {{ provider: demo, script: {script} }}\n"
    )
}

fn says(text: &str) -> String {
    format!(r#"{{"label": "", "turns": [{{"say": "{text}"}}]}}"#)
}

/// Puts a file there whole, as careful programs do.
fn place(world: &World, name: &str, text: impl AsRef<[u8]>) {
    world.write("beside", text);
    std::fs::create_dir_all(world.path("agents")).expect("a folder");
    std::fs::rename(world.path("beside"), world.path(name)).expect("renamed");
}

/// Waits for a line of the server that begins like this.
#[track_caller]
fn told(served: &Served, beginning: &str) -> String {
    loop {
        let line = served.line();
        if line.trim_start().starts_with(beginning) {
            return line;
        }
    }
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::MessageEnded { .. })
}

fn texts(events: &[FeedEvent]) -> Vec<String> {
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

/// What an agent says.
async fn answer(client: &Client, name: &str) -> String {
    let (conversation, _) = say(client, &format!("harness/{name}"), "Hello.").await;
    texts(&until(&mut follow(client, conversation), is_end).await.0).concat()
}

async fn room(client: &Client) -> ConversationId {
    let new = NewConversation { title: "A test".to_owned(), members: Vec::new() };
    client.open("", &new).await.expect("opened").id
}

/// The code with which a call to an agent is refused.
async fn refused(client: &Client, name: &str) -> String {
    let new = serde_json::json!({"target": name, "prompt": "Hello."});
    let new = serde_json::from_value(new).expect("a call");
    code(client.start(room(client).await, "", &new).await)
}

#[track_caller]
fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Refused(problem)) => problem.code,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_folder_is_followed() {
    let world = World::new();
    place(&world, "agents/one.json", says("First."));
    place(&world, "agents/notes.txt", "no manifest");
    let served = world.serve(&["--agents", "agents"]);
    let client = world.client(&served);
    let one = || async { client.agent("one").await.expect("there") };
    place(&world, "agents/one.yaml", manifest("one", "one.json"));
    told(&served, "harness/one is there");
    assert_eq!(within(answer(&client, "one")), "First.");
    // A script is a part of its agent.
    place(&world, "agents/one.json", says("Second."));
    told(&served, "harness/one has changed");
    assert_eq!(within(answer(&client, "one")), "Second.");
    // One that does not read leaves the version before in force.
    place(&world, "agents/one.yaml", "not: [yaml");
    let line = told(&served, "one.yaml: ");
    assert!(line.contains("the version before stays in force: agents/one.yaml:1:1: unknown field `not`"), "{line}");
    assert_eq!(within(answer(&client, "one")), "Second.");
    let Agent { error, unavailable, file, .. } = within(one());
    assert!(error.is_some_and(|error| error.contains("one.yaml:1:1: unknown field `not`")));
    assert_eq!((unavailable, file.as_deref()), (None, Some("agents/one.yaml")));
    // One that never read is no target, and hides none.
    place(&world, "agents/other.yaml", "nothing");
    told(&served, "left out: agents/other.yaml");
    let other = within(client.agent("other.yaml")).expect("listed");
    assert!(other.error.is_some() && other.error == other.unavailable, "{other:?}");
    place(&world, "agents/third.json", says("Third."));
    place(&world, "agents/one.yaml", manifest("one", "third.json"));
    told(&served, "harness/one has changed");
    assert_eq!((within(answer(&client, "one")), within(one()).error), ("Third.".to_owned(), None));
    std::fs::remove_file(world.path("agents/one.yaml")).expect("removed");
    told(&served, "harness/one is gone");
    assert_eq!(within(refused(&client, "one")), "not_found");
    assert_eq!(code(within(client.agent("one"))), "not_found");
    // Without its folder it has what it had.
    place(&world, "agents/one.yaml", manifest("one", "third.json"));
    told(&served, "harness/one is there");
    std::fs::rename(world.path("agents"), world.path("elsewhere")).expect("renamed");
    told(&served, "loopd: the folder of agents: agents: ");
    assert_eq!(within(answer(&client, "one")), "Third.");
}

#[test]
fn what_speaks_ends_its_answer_when_its_file_is_gone() {
    let world = World::new();
    let words = (1..=200).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
    let slow = format!(r#"{{"label": "", "pace": {{"word_ms": 30}}, "turns": [{{"say": "{words}"}}]}}"#);
    place(&world, "agents/slow.json", slow);
    place(&world, "agents/slow.yaml", manifest("slow", "slow.json"));
    let served = world.serve(&["--agents", "agents"]);
    let client = world.client(&served);
    within(async {
        let (conversation, _) = say(&client, "harness/slow", "Count.").await;
        let mut follow = follow(&client, conversation);
        let mut events = Vec::new();
        loop {
            match follow.next().await.expect("goes on").expect("open") {
                Told::Event(event) => events.push(*event),
                Told::Delta(_) => break,
                _ => {}
            }
        }
        std::fs::remove_file(world.path("agents/slow.yaml")).expect("removed");
        told(&served, "harness/slow is gone");
        events.extend(until(&mut follow, is_end).await.0);
        assert_eq!(texts(&events), [words]);
    });
}

#[test]
fn what_is_kept_outlives_the_server_and_files_go_before_it() {
    let world = World::new();
    place(&world, "agents/one.json", says("Kept."));
    place(&world, "agents/filed.yaml", manifest("filed", "one.json"));
    let served = world.serve(&["--agents", "agents"]);
    let client = world.client(&served);
    let apply = |name: &'static str, text: String| within(client.apply_agent(name, text.into_bytes()));
    let applied = apply("one", manifest("one", "one.json")).expect("applied");
    assert_eq!((applied.change, applied.agent.source), (AgentChange::Created, AgentSource::Kept));
    assert_eq!(apply("one", manifest("one", "one.json")).map(|done| done.change).ok(), Some(AgentChange::Unchanged));
    assert_eq!(within(answer(&client, "one")), "Kept.");
    let Err(Error::Refused(problem)) = apply("filed", manifest("filed", "one.json")) else { panic!("not refused") };
    assert_eq!(problem.code, "agent_in_file");
    assert!(problem.detail.ends_with("change agents/filed.yaml"), "{}", problem.detail);
    for (name, text) in [("one", manifest("two", "one.json")), ("one", "not: [yaml".to_owned())] {
        assert_eq!(code(apply(name, text)), "invalid");
    }
    // What the server brings along makes place, and is back afterwards.
    assert_eq!(apply("demo", manifest("demo", "one.json")).map(|done| done.change).ok(), Some(AgentChange::Created));
    assert_eq!(within(answer(&client, "demo")), "Kept.");
    within(client.delete_agent("demo")).expect("deleted");
    assert_eq!(within(client.agent("demo")).map(|demo| demo.source).ok(), Some(AgentSource::BuiltIn));
    assert_eq!(code(within(client.delete_agent("demo"))), "agent_built_in");
    served.kill();
    let served = world.serve(&["--agents", "agents"]);
    let client = world.client(&served);
    assert_eq!(within(answer(&client, "one")), "Kept.");
    place(&world, "agents/other.json", says("From a file."));
    place(&world, "agents/one.yaml", manifest("one", "other.json"));
    told(&served, "harness/one has changed");
    assert_eq!(within(answer(&client, "one")), "From a file.");
    std::fs::remove_file(world.path("agents/one.yaml")).expect("removed");
    told(&served, "harness/one has changed");
    assert_eq!(within(answer(&client, "one")), "Kept.");
    within(client.delete_agent("one")).expect("deleted");
    assert_eq!(within(refused(&client, "one")), "not_found");
}

#[test]
fn one_that_lacks_something_of_this_machine_is_kept_and_says_so() {
    let world = World::new();
    let served = world.serve(&["--no-demo"]);
    let client = world.client(&served);
    let keyed = "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: { name: keyed }\n\
                 spec: { model: { provider: openai, name: gpt-5-mini, apiKeyEnv: NO_SUCH_KEY } }\n";
    let applied = within(client.apply_agent("keyed", keyed.as_bytes().to_vec())).expect("kept");
    let why = applied.agent.unavailable.expect("it takes no calls");
    assert!(why.contains("NO_SUCH_KEY") && applied.agent.error.is_none(), "{why}");
    assert_eq!(within(refused(&client, "keyed")), "target_unavailable");
    // A name that leads elsewhere is not sent.
    assert!(matches!(within(client.delete_agent("../tokens/x")), Err(Error::Address(_))));
}
