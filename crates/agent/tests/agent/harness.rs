//! One door for tests of the loop: a conversation as text goes in, the trajectory as text comes out. The Agent
//! runs in the kernel's own machine; model, tools and people are the script.
//!
//! ```text
//! limits iterations=2                     before `start`, like all up to there
//! output {"type":"object"}                the output schema
//! spec fallbacks: [ … ]                   more of the manifest's spec, one line of YAML
//! window 1000,200                         the windows of the models
//! skill tidy when it is untidy: Sweep.    a skill
//! converse                                an answer ends a turn and not the run
//! start "question"                        any JSON
//! reply tool_use                          settles the open model call; it says what follows
//!   text Let me look.
//!   use c1 read_file {"path":"a.md"}
//! tool read_file the content              settles the first open call of this tool; `x*9` is nine letters
//! fail read_file tool.not_found no such file
//! usage 900                               input tokens of the replies from here on
//! child completed "found" / child failed gone / child parked      news of the first open child
//! answer "blue" / decline                 ends the first open question
//! signal message and hurry                a signal
//! crash                                   the worker dies, and another one takes over
//! reopen iterations=3                     raises a limit of a parked run
//! ```
//!
//! Every conversation is then replayed strictly by an Agent rebuilt from its definition bytes alone.

use expect_test::Expect;
use loopd_agent::{Agent, Found, Manifest, Skill};
use loopd_kernel::budget::{Breach, Dimension, Limits};
use loopd_kernel::child::{ChildNews, Spent};
use loopd_kernel::failure::Disposition;
use loopd_kernel::machine::{Admission, Catalog, Env, Input, MachineError, ModelTerms, Pace, Settling, ToolTerms};
use loopd_kernel::model::{Message, ModelReply, Part, StopReason, ToolOffer};
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::projection::{Status, Target};
use loopd_kernel::question::QuestionEnd;
use loopd_kernel::record::{ActionRecord, Record};
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::units::Price;
use loopd_kernel::{
    CallId, EffectClass, Entry, Epoch, ErasedLoop as _, Failure, Machine, MicroUsd, Outcome, Projection, RunId, TimeMs,
    Usage,
};
use std::fmt::Write as _;

const RUN: RunId = RunId([1; 16]);

struct Terms;

impl Catalog for Terms {
    fn tool(&self, name: &str) -> Option<ToolTerms> {
        let class = if name == "pay" { EffectClass::Once } else { EffectClass::Read };
        Some(ToolTerms { class, timeout_ms: 1000 })
    }

    fn model(&self, _: &str) -> Option<ModelTerms> {
        let price = Some(Price { input: 1_000_000, output: 2_000_000, ..Price::default() });
        Some(ModelTerms { price, timeout_ms: 1000, max_attempts: 3 })
    }
}

/// What stands before `start`.
#[derive(Default)]
pub struct Setup {
    pub limits: String,
    pub output: String,
    spec: String,
    windows: Vec<Option<u64>>,
    skills: Vec<Skill>,
    conversation: bool,
}

impl Setup {
    fn agent(&self) -> Agent {
        let output =
            if self.output.is_empty() { String::new() } else { format!("  output: {{ schema: {} }}\n", self.output) };
        let yaml = format!(
            "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: tested }}\nspec:\n  model: {{ provider: \
             openai, name: m, temperature: 0, maxOutputTokens: 100 }}\n  instructions: Be brief.\n  tools: [ {{ use: \
             files, root: ., allow: [read] }}, {{ use: ask }}, {{ native: pay }}, {{ native: now }} ]\n{output}{}",
            self.spec
        );
        let manifest = Manifest::parse("agent.yaml", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let offer = |name: &str, parameters: &str| ToolOffer {
            name: name.into(),
            description: String::new(),
            parameters: parameters.into(),
        };
        let read = r#"{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["path"],"additionalProperties":false}"#;
        let pay =
            r#"{"type":"object","properties":{"id":{"type":"integer"},"amount":{"type":"number"}},"required":["id"]}"#;
        let tools =
            vec![offer("now", r#"{"type":"object","properties":{}}"#), offer("read_file", read), offer("pay", pay)];
        let agents = manifest.spec.agents.iter().map(|helper| named(&helper.name)).collect();
        let (windows, skills, conversation) = (self.windows.clone(), self.skills.clone(), self.conversation);
        let found = Found { tools, windows, agents, skills, conversation, documents: Vec::new() };
        Agent::new(manifest, found).expect("an agent")
    }

    /// Takes a line that stands before `start`.
    fn take(&mut self, word: &str, rest: &str) {
        match word {
            "limits" => self.limits = rest.into(),
            "output" => self.output = rest.into(),
            "spec" => writeln!(self.spec, "  {rest}").expect("writes"),
            "window" => self.windows = rest.split(',').map(|window| window.parse().ok()).collect(),
            "skill" => {
                let (head, text) = rest.split_once(": ").expect("a text");
                let (name, description) = head.split_once(' ').expect("a description");
                self.skills.push(Skill { name: name.into(), description: description.into(), text: text.into() });
            }
            "converse" => self.conversation = true,
            other => panic!("`{other}` needs a start before it"),
        }
    }
}

/// The definition of another Agent.
fn named(name: &str) -> Vec<u8> {
    let yaml = format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name}, description: Finds things. \
         }}\nspec: {{ model: {{ provider: openai, name: m }}, limits: {{ iterations: 3 }} }}\n"
    );
    let manifest = Manifest::parse("other.yaml", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    Agent::from_manifest(manifest, Vec::new()).expect("an agent").definition().to_vec()
}

pub struct Driven {
    agent: Agent,
    pub machine: Machine,
    pub entries: Vec<Entry>,
    salt: u8,
    input_tokens: u64,
    out: String,
}

/// Runs `script` and compares the trajectory.
#[track_caller]
pub fn check(script: &str, expected: Expect) {
    let mut setup = Setup::default();
    let mut driven: Option<Driven> = None;
    let mut lines = script.lines().filter(|line| !line.trim().is_empty()).peekable();
    while let Some(line) = lines.next() {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match (word, &mut driven) {
            ("start", None) => driven = Some(Driven::start(&setup, rest)),
            ("reply", Some(run)) => {
                let mut parts = Vec::new();
                while let Some(said) = lines.next_if(|line| is_part(line)) {
                    parts.push(part(said.trim_start()));
                }
                run.reply(rest, parts);
            }
            (_, Some(run)) => run.step(word, rest),
            (_, None) => setup.take(word, rest),
        }
    }
    let driven = driven.expect("a start");
    driven.replays();
    expected.assert_eq(&driven.report());
}

fn is_part(line: &str) -> bool {
    line.trim_start().starts_with("text") || line.trim_start().starts_with("use ")
}

fn part(said: &str) -> Part {
    let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
    match word {
        "text" => Part::Text { text: rest.replace("\\n", "\n") },
        "use" => {
            let mut words = rest.splitn(3, ' ');
            let mut next = || words.next().unwrap_or("").to_owned();
            Part::ToolUse { id: next(), name: next(), args: next() }
        }
        other => panic!("a model does not say `{other}`"),
    }
}

/// `x*2000` is two thousand of them.
fn repeated(text: &str) -> String {
    let count = text.split_once('*').and_then(|(letter, count)| Some((letter, count.parse().ok()?)));
    count.map_or_else(|| text.into(), |(letter, count): (&str, usize)| letter.repeat(count))
}

fn limits(text: &str) -> Limits {
    let mut limits = Limits::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').expect("name=value");
        match name {
            "iterations" => limits.iterations = value.parse().ok(),
            "tokens" => limits.tokens = value.parse().ok(),
            "usd" => limits.micro_usd = value.parse().ok(),
            other => panic!("no limit `{other}`"),
        }
    }
    limits
}

impl Driven {
    pub fn start(setup: &Setup, input: &str) -> Self {
        let agent = setup.agent();
        let machine = Machine::new(Projection::new(RUN));
        let mut run = Self { agent, machine, entries: Vec::new(), salt: 0, input_tokens: 10, out: String::new() };
        let limits = if setup.limits.is_empty() { run.agent.limits() } else { limits(&setup.limits) };
        run.apply(Input::Start(Admission { tenant: "default".into(), input: input.into(), limits, key: None }));
        run
    }

    pub fn apply(&mut self, input: Input) {
        let salt = &mut self.salt;
        let mut env = Env {
            now: TimeMs(1000),
            epoch: Epoch(1),
            dispatch_window_ms: 500,
            skew_ms: 0,
            pace: Pace::Full,
            catalog: &Terms,
            definition: &self.agent,
            salt: &mut || {
                *salt = salt.wrapping_add(1);
                [*salt; 32]
            },
        };
        let step = match self.machine.apply(input, &mut env) {
            Ok(step) => step,
            Err(MachineError::Refused(refused)) => {
                return writeln!(self.out, "refused: {refused}").expect("writes");
            }
            Err(error) => panic!("{error}"),
        };
        for entry in &step.entries {
            self.show(entry);
        }
        self.entries.extend(step.entries);
        if step.more {
            self.apply(Input::Continue);
        }
    }

    fn open(&self, wanted: impl Fn(&Target) -> bool) -> CallId {
        let open = &self.machine.projection().open;
        open.iter().find(|call| wanted(&call.target)).map(|call| call.id).expect("an open call")
    }

    pub fn reply(&mut self, stop: &str, parts: Vec<Part>) {
        let stop = match stop {
            "" | "end" => StopReason::EndTurn,
            "tool_use" => StopReason::ToolUse,
            "length" => StopReason::Length,
            "refusal" => StopReason::Refusal,
            other => StopReason::Other(other.into()),
        };
        let call = self.open(|target| matches!(target, Target::Model(_)));
        let reply = ModelReply { parts, stop, model: "m".into() };
        let settling = Settling::Landed(serde_json::to_string(&reply).expect("serialises"));
        let usage = Some(Usage { input: self.input_tokens, output: 5, ..Usage::default() });
        self.apply(Input::Settle { call, settling, usage, cost: Some(MicroUsd(20)) });
    }

    fn step(&mut self, word: &str, rest: &str) {
        let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let named =
            |target: &Target| target.name() == first || (first == "model" && matches!(target, Target::Model(_)));
        let question = self.machine.projection().questions.first().map(|open| open.id);
        let answer = |end, value: &str| Input::Answer {
            question: question.expect("an open question"),
            end,
            actor: "ann".into(),
            value: value.into(),
            given_at: TimeMs(i64::MAX),
        };
        let input = match word {
            "tool" => Input::Settle {
                call: self.open(named),
                settling: Settling::Landed(repeated(after)),
                usage: None,
                cost: None,
            },
            "fail" => {
                let (code, message) = after.split_once(' ').expect("code and message");
                let settling = Settling::Failed(Failure::new(code, message), Disposition::DidNotHappen);
                Input::Settle { call: self.open(named), settling, usage: None, cost: None }
            }
            "answer" => answer(QuestionEnd::Answered, rest),
            "decline" => answer(QuestionEnd::Declined, ""),
            "usage" => {
                self.input_tokens = rest.parse().expect("a number");
                return;
            }
            "child" => self.news(first, after),
            "signal" => Input::Signal { name: first.into(), body: after.into() },
            "crash" => Input::Recover,
            "reopen" => Input::Reopen { actor: "ann".into(), raise: limits(rest) },
            other => panic!("no step `{other}`"),
        };
        self.apply(input);
    }

    fn news(&self, how: &str, text: &str) -> Input {
        let (call, child) = self.machine.projection().children().next().expect("an open child");
        let outcome = match how {
            "completed" => Outcome::Completed { output: text.into() },
            "failed" => Outcome::Failed { failure: Failure::new("agent.failed", text) },
            "cancelled" => {
                let interrupt = Interrupt::Cancelled { actor: "its parent".into(), reason: text.into() };
                Outcome::Interrupted { interrupt }
            }
            "parked" => {
                let breach = Breach { dimension: Dimension::Iterations, limit: 3, used: 3, needed: 1 };
                Outcome::BudgetExceeded { breach }
            }
            other => panic!("a child is not `{other}`"),
        };
        Input::News(ChildNews { call, child: child.run, outcome, spent: Spent::default() })
    }

    fn show(&mut self, entry: &Entry) {
        let record = Record::decode(entry.kind, &entry.record).expect("decodes");
        let payload = String::from_utf8_lossy(&entry.payload);
        let out = &mut self.out;
        let written = match &record {
            Record::Started(_) => Ok(()),
            Record::IterationStarted(started) => writeln!(out, "iteration {}", started.iteration),
            Record::Decided(decided) => {
                decided.actions.iter().try_for_each(|action| show_action(out, action, &entry.payload))
            }
            Record::Settled(settled) => {
                let how = format!("{:?}", settled.how).to_lowercase();
                let code = settled.code.as_deref().map(|code| format!(" {code}")).unwrap_or_default();
                let body = if payload.len() > 500 { format!("{} bytes", payload.len()) } else { payload.into() };
                writeln!(out, "{} {how}{code}: {body}", settled.call)
            }
            Record::Parked(parked) => writeln!(out, "parked: {:?}", parked.outcome),
            Record::QuestionEnded(ended) => writeln!(out, "{} {:?} {payload}", ended.question, ended.end),
            Record::Signal(signal) => writeln!(out, "signal {}: {payload}", signal.name),
            Record::Reopened(_) => writeln!(out, "reopened"),
            Record::Intended(intended) => match intended.max_output {
                Some(max) => writeln!(out, "  {} has room for {max} tokens only", intended.call),
                None => Ok(()),
            },
            other => writeln!(out, "{}", other.kind()),
        };
        written.expect("writes");
    }

    /// An Agent made of nothing but the definition decides the same.
    pub fn replays(&self) {
        let again = Agent::from_definition(self.agent.definition()).expect("reads back");
        let mut replayer = Replayer::new(RUN, Some(&again), Strictness::Strict);
        for entry in &self.entries {
            replayer.take(entry).unwrap_or_else(|error| panic!("{error}"));
        }
        assert_eq!(replayer.projection(), self.machine.projection());
    }

    /// The trajectory, how it ended, and what the model was last told.
    fn report(&self) -> String {
        let mut out = self.out.clone();
        let projection = self.machine.projection();
        let ended = match &projection.status {
            Status::Open if projection.is_suspended() => "waits for a person".into(),
            Status::Open => "open".into(),
            Status::Parked(outcome) => format!("parked {}", outcome.name()),
            Status::Ended(Outcome::Completed { output }) => format!("Completed {output}"),
            Status::Ended(Outcome::Failed { failure }) => {
                format!("Failed {}: {}", failure.code, failure.message)
            }
            Status::Ended(outcome) => outcome.name().into(),
        };
        writeln!(out, "= {ended}\n  state {}", projection.state).expect("writes");
        out
    }
}

fn show_action(out: &mut String, action: &ActionRecord, payload: &[u8]) -> std::fmt::Result {
    match action {
        ActionRecord::Model { id, call, .. } => {
            let how = call.result_cap.map(|cap| format!(" aside, results of {cap}")).unwrap_or_default();
            writeln!(out, "  {id} model {} ≤{}{how}", call.model, call.max_output_tokens)
        }
        ActionRecord::Tool { id, tool, args, reply_to, .. } => {
            let args = args.text(payload).unwrap_or("?");
            writeln!(out, "  {id} {tool} {args} for {}", reply_to.as_deref().unwrap_or("nobody"))
        }
        ActionRecord::Ask { id, ask } => {
            writeln!(out, "  {id} {}", serde_json::to_string(ask).expect("serialises"))
        }
        ActionRecord::Note(span) => {
            let message: Message = serde_json::from_str(span.text(payload).unwrap_or("?")).expect("a message");
            match message {
                Message::User { text, .. } => writeln!(out, "  note {}", text.replace('\n', "\n       ")),
                Message::Tool { id, text, error } => {
                    writeln!(out, "  {} for {id}: {text}", if error { "error" } else { "result" })
                }
                Message::Assistant { .. } => writeln!(out, "  note of the assistant"),
            }
        }
        ActionRecord::Spawn { id, name, loop_name, input, limits, .. } => {
            let (input, limits) =
                (input.text(payload).unwrap_or("?"), serde_json::to_string(limits).expect("serialises"));
            writeln!(out, "  {id} {loop_name} as {name} {limits}: {input}")
        }
        ActionRecord::CancelChild { child, reason } => writeln!(out, "  cancel {child}: {reason}"),
        ActionRecord::Compact { summary, .. } => {
            let lines = summary.text(payload).unwrap_or("?").lines().filter(|line| !line.is_empty());
            lines
                .enumerate()
                .try_for_each(|(at, line)| writeln!(out, "  {} {line}", if at == 0 { "compact" } else { "       " }))
        }
        ActionRecord::Speak(span) => writeln!(out, "  speak {}", span.text(payload).unwrap_or("?")),
        ActionRecord::Wait { signals, .. } => writeln!(out, "  wait {}", signals.join(", ")),
        ActionRecord::CancelCalls => writeln!(out, "  cancel calls"),
        // How it ended is in the last line.
        ActionRecord::Finish(_) | ActionRecord::Fail(_) => Ok(()),
        other => writeln!(out, "  {other:?}"),
    }
}
