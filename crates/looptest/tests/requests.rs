//! What a model is really sent in long work: capped results, results that are read again, summaries, attached files;
//! also by a worker that knows nothing but the store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use expect_test::{Expect, expect};
use loopd_agent::{Agent, Found, Manifest};
use loopd_kernel::machine::{Admission, ModelTerms};
use loopd_kernel::model::{Message, ModelReply, Part, ToolOffer};
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::{EffectClass, ErasedLoop as _, Limits, TimeMs};
use loopd_runtime::{CallContext, Model, ModelAnswer, ModelError, ModelRequest, Program, RunEnd, Started};
use loopd_store::{InboxBody, MemoryStore, Store as _};
use looptest::{CountingTool, ScriptedModel};
use std::fmt::Write as _;
use std::sync::Arc;

const MODEL: &str = "openai/m";

fn agent(context: &str, windows: Vec<Option<u64>>) -> Agent {
    let yaml = format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: long }}\nspec:\n  model: {{ provider: openai, \
         name: m, maxOutputTokens: 100 }}\n  tools: [ {{ native: dump }} ]\n  context: {{ {context} }}\n"
    );
    let manifest = Manifest::parse("agent.yaml", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let dump = ToolOffer {
        name: "dump".into(),
        description: String::new(),
        parameters: r#"{"type":"object","properties":{}}"#.into(),
    };
    Agent::new(manifest, Found { tools: vec![dump], windows, ..Found::default() }).unwrap()
}

/// Runs the agent with this model, and compares what the model was sent: one request a paragraph, one message a line.
async fn check(agent: Agent, model: ScriptedModel, input: &str, expected: Expect) {
    let again = Agent::from_definition(agent.definition()).unwrap();
    let whole: String = (0..10_000).map(|n| format!("{n:09}\n")).collect();
    let tool = CountingTool::returning("dump", EffectClass::Read, &whole);
    let program = Program::new(Arc::new(agent)).model(MODEL, Arc::new(model.clone())).tool(Arc::new(tool));
    let (end, fixture) = world::run(program, input).await;
    let mut out = String::new();
    for asked in model.asked() {
        show(&mut out, &asked.request);
    }
    writeln!(out, "{end:?}").unwrap();
    expected.assert_eq(&out);
    let mut replayer = Replayer::new(fixture.header.run, Some(&again), Strictness::Strict);
    fixture.entries.iter().for_each(|entry| replayer.take(entry).unwrap_or_else(|error| panic!("{error}")));
}

fn show(out: &mut String, request: &ModelRequest) {
    writeln!(out, "{} tools", request.constants.tools.len()).unwrap();
    for message in &request.messages {
        let text = match &**message {
            Message::User { text, attachments } => {
                let files = attachments.iter().map(|file| format!(" +{}", file.media_type)).collect::<String>();
                format!("user {}{files}", short(text))
            }
            Message::Assistant { parts } => {
                let said = parts.iter().map(|part| match part {
                    Part::Text { text } => short(text),
                    Part::ToolUse { id, name, args } => format!("{id}={name}{args}"),
                    Part::Reasoning { .. } => "reasoning".into(),
                });
                format!("model {}", said.collect::<Vec<_>>().join(" "))
            }
            Message::Tool { id, text, error } => format!("{id}{} {}", if *error { "!" } else { "" }, short(text)),
        };
        writeln!(out, "  {text}").unwrap();
    }
}

/// The ends of a long text, and how long it is.
fn short(text: &str) -> String {
    let text = text.replace('\n', "|");
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= 200 {
        return text;
    }
    let middle = text.find("[bytes").map(|at| text[at..].chars().take(90).collect::<String>()).unwrap_or_default();
    let (head, tail) = (&chars[..30], &chars[chars.len() - 12..]);
    format!("{}…{middle}…{} ({})", head.iter().collect::<String>(), tail.iter().collect::<String>(), text.len())
}

#[tokio::test]
async fn a_long_result_is_capped_and_read_again() {
    let model = ScriptedModel::new()
        .asks("dump", "{}")
        .asks("read_result", r#"{"call":"call-2","from":50000,"bytes":40}"#)
        .asks("read_result", r#"{"call":"call-2","from":100000}"#)
        .asks("read_result", r#"{"call":"call-9"}"#)
        .says("It is long.");
    check(agent("toolResultBytes: 1024", Vec::new()), model, "\"Dump it.\"", expect![[r#"
        2 tools
          user Dump it.
        2 tools
          user Dump it.
          model use-1=dump{}
          use-1 000000000|000000001|000000002|…[bytes 768 to 99744 of 100000 are left out here; read_result reads them from call-2]|09974…8|000009999| (1110)
        2 tools
          user Dump it.
          model use-1=dump{}
          use-1 000000000|000000001|000000002|…[bytes 768 to 99744 of 100000 are left out here; read_result reads them from call-2]|09974…8|000009999| (1110)
          model use-2=read_result{"call":"call-2","from":50000,"bytes":40}
          use-2 [bytes 50000 to 50040 of 100000]|000005000|000005001|000005002|000005003|
        2 tools
          user Dump it.
          model use-1=dump{}
          use-1 000000000|000000001|000000002|…[bytes 768 to 99744 of 100000 are left out here; read_result reads them from call-2]|09974…8|000009999| (1110)
          model use-2=read_result{"call":"call-2","from":50000,"bytes":40}
          use-2 [bytes 50000 to 50040 of 100000]|000005000|000005001|000005002|000005003|
          model use-3=read_result{"call":"call-2","from":100000}
          use-3! the result has 100000 bytes; `from` is 100000
        2 tools
          user Dump it.
          model use-1=dump{}
          use-1 000000000|000000001|000000002|…[bytes 768 to 99744 of 100000 are left out here; read_result reads them from call-2]|09974…8|000009999| (1110)
          model use-2=read_result{"call":"call-2","from":50000,"bytes":40}
          use-2 [bytes 50000 to 50040 of 100000]|000005000|000005001|000005002|000005003|
          model use-3=read_result{"call":"call-2","from":100000}
          use-3! the result has 100000 bytes; `from` is 100000
          model use-4=read_result{"call":"call-9"}
          use-4! call-9 has no result in this run
        Ended(Completed { output: "\"It is long.\"" })
    "#]]).await;
}

#[tokio::test]
async fn a_summary_takes_the_place_of_a_conversation_that_fills_the_window() {
    let model = ScriptedModel::new()
        .usage(None)
        .asks("dump", "{}")
        .when("has become too long", ModelReply::text("Dumped it; it begins with 0."))
        .when("Dumped it", ModelReply::text("It begins with 0."));
    check(agent("toolResultBytes: 9000", vec![Some(2500)]), model, "\"Dump it.\"", expect![[r#"
        2 tools
          user Dump it.
        0 tools
          user Dump it.
          model use-1=dump{}
          use-1 000000000|000000001|000000002|…[bytes 3000 to 8087 of 9087 are left out here]|000009900|000009901|000009902|000009903|000…8|000009999| (4048)
          user The conversation has become to……st 50 words. (326)
        2 tools
          user Dump it.
          user [These notes take the place of the conversation so far. The task stands above; go on from here.]||Dumped it; it begins with 0.
        Ended(Completed { output: "\"It begins with 0.\"" })
    "#]]).await;
}

/// Tells its run to hurry while it writes a summary, and waits until the run has heard it.
struct Interrupted {
    model: ScriptedModel,
    store: Arc<MemoryStore>,
}

#[async_trait::async_trait]
impl Model for Interrupted {
    fn terms(&self) -> ModelTerms {
        Model::terms(&self.model)
    }

    async fn call(&self, request: ModelRequest, context: CallContext) -> Result<ModelAnswer, ModelError> {
        let run = context.run;
        if matches!(request.messages.last().map(|last| &**last), Some(Message::User { text, .. }) if text.contains("too long"))
        {
            let body = InboxBody::Signal { name: "message".into(), body: "\"hurry\"".into() };
            loopd_runtime::tell(&*self.store, run, "m1".into(), TimeMs(0), body).await.unwrap();
            while !self.store.inbox(run, 1).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        }
        self.model.call(request, context).await
    }
}

#[tokio::test]
async fn a_message_that_comes_while_a_summary_is_written_is_sent() {
    let model = ScriptedModel::new()
        .usage(None)
        .asks("dump", "{}")
        .when("has become too long", ModelReply::text("Dumped it."))
        .when("hurry", ModelReply::text("I do."));
    let tool = CountingTool::returning("dump", EffectClass::Read, "0".repeat(20_000));
    let store = Arc::new(MemoryStore::new());
    let interrupted = Interrupted { model: model.clone(), store: store.clone() };
    let program = Program::new(Arc::new(agent("toolResultBytes: 9000", vec![Some(2500)])));
    let program = Arc::new(program.model(MODEL, Arc::new(interrupted)).tool(Arc::new(tool)));
    let runtime = world::worker(store, &program).await;
    let input = "\"Dump it.\"".into();
    let admission = Admission { tenant: "default".into(), input, limits: Limits::default(), key: None };
    let Started::New(driven) = runtime.start(&program, admission).await.unwrap() else { panic!("it is new") };
    let end = driven.wait().await;
    runtime.shutdown().await;
    let mut out = String::new();
    show(&mut out, &model.asked().last().unwrap().request);
    writeln!(out, "{end:?}").unwrap();
    expect![[r#"
        2 tools
          user Dump it.
          user [These notes take the place of the conversation so far. The task stands above; go on from here.]||Dumped it.
          user hurry
        Ended(Completed { output: "\"I do.\"" })
    "#]].assert_eq(&out);
}

/// A conversation that was summarised is taken up by another worker: what it sends, it has from the store alone.
#[tokio::test]
async fn another_worker_sends_the_same_conversation() {
    let model = ScriptedModel::new()
        .usage(None)
        .asks("dump", "{}")
        .when("has become too long", ModelReply::text("Dumped it; it begins with 0."))
        .when("Dumped it", ModelReply::text("It begins with 0."))
        .when("And how", ModelReply::text("With 9999."));
    let agent = agent("toolResultBytes: 9000", vec![Some(2500)]).conversing().unwrap();
    let tool = CountingTool::returning("dump", EffectClass::Read, "0".repeat(20_000));
    let program = Program::new(Arc::new(agent)).model(MODEL, Arc::new(model.clone())).tool(Arc::new(tool));
    let (store, program) = (Arc::new(MemoryStore::new()), Arc::new(program));
    let first = world::worker(store.clone(), &program).await;
    let admission =
        Admission { tenant: "default".into(), input: "\"Dump it.\"".into(), limits: Limits::default(), key: None };
    let Started::New(driven) = first.start(&program, admission).await.unwrap() else { panic!("it is new") };
    let run = driven.run;
    assert!(matches!(driven.wait().await, RunEnd::Suspended(_)));
    first.shutdown().await;
    let second = world::worker(store, &program).await;
    let body = InboxBody::Signal { name: "message".into(), body: "\"And how does it end?\"".into() };
    second.tell(run, "m1", body).await.unwrap();
    assert!(matches!(second.resume(run).await.unwrap().wait().await, RunEnd::Suspended(_)));
    let mut out = String::new();
    show(&mut out, &model.asked().last().unwrap().request);
    second.shutdown().await;
    expect![[r#"
        2 tools
          user Dump it.
          user [These notes take the place of the conversation so far. The task stands above; go on from here.]||Dumped it; it begins with 0.
          model It begins with 0.
          user And how does it end?
    "#]].assert_eq(&out);
}

#[tokio::test]
async fn files_are_sent_with_the_message_that_brought_them() {
    let input =
        r#"{"role":"user","text":"What is this?","attachments":[{"media_type":"image/png","data":"iVBORw=="}]}"#;
    let model = ScriptedModel::new().says("A picture.");
    check(
        agent("compact: false", Vec::new()),
        model,
        input,
        expect![[r#"
        2 tools
          user What is this? +image/png
        Ended(Completed { output: "\"A picture.\"" })
    "#]],
    )
    .await;
}
