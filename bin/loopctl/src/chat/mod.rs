//! `agent chat`: a conversation with an agent, which is one durable run.

mod asking;
mod lines;
mod screen;

use crate::attach;
use crate::cli::ConverseArgs;
use crate::commands::TENANT;
use crate::context::{Context, fresh_key};
use crate::drive::{start_problem, until};
use crate::exit::Exit;
use crate::find;
use crate::output;
use crate::problem::{Code, Problem};
use crate::words;
use asking::Raised;
use lines::{Lines, Typed};
use loopd_agent::Agent;
use loopd_assemble::{Agents, Manner, Ready};
use loopd_kernel::machine::Admission;
use loopd_kernel::outcome::Finality;
use loopd_kernel::projection::{Status, Waits};
use loopd_kernel::{Limits, Outcome, RunId};
use loopd_runtime::{Config, Delta, Driven, RunEnd, Runtime, Started};
use loopd_store::rows::ITEM_BYTES;
use loopd_store::{Hint, InboxBody, Store};
use loopd_store_sqlite::SqliteStore;
use screen::Screen;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Talks with an agent until somebody leaves or the run has an outcome.
///
/// # Errors
/// [`Problem`] when the agent cannot be used, or the run cannot be driven.
pub async fn chat(context: &Context, args: ConverseArgs) -> Result<Exit, Problem> {
    let catalogue = context.catalogue()?;
    let (agent, run, store) = match (&args.file, &args.run) {
        (Some(file), None) => {
            (loopd_assemble::load(file, Manner::Conversation, &catalogue)?, None, context.place.driver().await?)
        }
        (file, Some(run)) => {
            let row = find::run(&*context.place.client()?, run).await?;
            let store = context.place.driver().await?;
            let agent = Agents::from_folder_of(file.as_deref(), catalogue.clone())?.resolve(&*store, &row).await?;
            let definition = store.blob(row.definition).await?.unwrap_or_default();
            if !Agent::from_definition(&definition).is_ok_and(|agent| agent.converses()) {
                return Err(Problem::new(Code::RunState, format!("{} is no conversation", words::short(row.run)))
                    .why("it was started to answer one question")
                    .fix(context.place.command(&format!("run show {}", words::short(row.run)))));
            }
            (agent, Some(row.run), store)
        }
        (None, None) => {
            return Err(Problem::new(Code::Usage, "there is no agent to talk to")
                .fix("loopctl agent chat agent.yaml  or  loopctl agent chat --run RUN"));
        }
    };
    let limits = agent.limits.overridden(&args.limits.limits());
    agent.affordable(&limits)?;
    let programs = Arc::new(Agents::knowing([&agent], catalogue));
    let mut talk = Conversation::open(context, (agent, programs), store, limits, args.attach).await?;
    let over = talk.go_on(run, args.message).await;
    talk.runtime.shutdown().await;
    over
}

/// The largest message in bytes, as JSON: what an inbox takes at once.
const MESSAGE: usize = ITEM_BYTES - 1024;

/// How long calls may still settle when somebody leaves.
const GRACE: Duration = Duration::from_secs(5);

/// How often it is looked for news that nobody tells this process.
const LOOK: Duration = Duration::from_secs(1);

/// How a turn of the agent ended.
enum Turn {
    /// It waits for the next message.
    Over,
    /// The run has an outcome, or somebody leaves.
    Left(Exit),
}

struct Conversation {
    context: Context,
    agent: Ready,
    limits: Limits,
    attach: Vec<PathBuf>,
    store: Arc<SqliteStore>,
    runtime: Runtime,
    deltas: mpsc::UnboundedReceiver<Delta>,
    interrupts: mpsc::UnboundedReceiver<()>,
    lines: Lines,
    screen: Screen,
    /// Somebody types: a line that comes while the agent works is meant for that work.
    steers: bool,
}

impl Conversation {
    async fn open(
        context: &Context,
        (agent, programs): (Ready, Arc<Agents>),
        store: Arc<SqliteStore>,
        limits: Limits,
        attach: Vec<PathBuf>,
    ) -> Result<Self, Problem> {
        let (sender, deltas) = mpsc::unbounded_channel();
        let config = Config { claims: false, grace: GRACE, ..Config::default() };
        let runtime = Runtime::builder(store.clone(), programs).config(config).deltas(sender).start().await?;
        Ok(Self {
            context: context.clone(),
            agent,
            limits,
            attach,
            store,
            runtime,
            deltas,
            interrupts: context.signals.interrupts(),
            lines: Lines::of_stdin(),
            screen: Screen::new(context),
            steers: std::io::stdin().is_terminal(),
        })
    }

    async fn go_on(&mut self, mut run: Option<RunId>, mut first: Option<String>) -> Result<Exit, Problem> {
        let paint = self.context.paint_err;
        match run {
            Some(run) => {
                self.screen.skip(&*self.store, run).await;
                self.screen.note(&paint.dim(format!("{} with {}", words::short(run), self.agent.name)));
                let driven = self.resume(run).await?;
                if let Turn::Left(exit) = self.turn(driven).await? {
                    return Ok(exit);
                }
            }
            None if output::stderr_is_terminal() => {
                let model = loopd_fixture::excerpt::line(&self.agent.model, 60);
                self.screen.note(&paint.dim(format!("{} · {model} · /help says what may be typed", self.agent.name)));
            }
            None => {}
        }
        loop {
            let text = match first.take() {
                Some(text) => text,
                None => match self.ask().await {
                    Typed::Text(text) => text,
                    Typed::Usage => {
                        self.screen.usage();
                        continue;
                    }
                    Typed::End => return self.end(run).await,
                    Typed::Leave => return Ok(self.leave(run, self.stopped())),
                    other => {
                        self.explain(&other);
                        continue;
                    }
                },
            };
            let driven = match run {
                None => self.start(&text).await?,
                Some(run) => {
                    if !self.say(run, &text).await? {
                        continue;
                    }
                    self.resume(run).await?
                }
            };
            run = Some(driven.run);
            if let Turn::Left(exit) = self.turn(driven).await? {
                return Ok(exit);
            }
        }
    }

    /// A message as JSON text, with the files that wait for one.
    fn message(&mut self, text: &str) -> Result<String, Problem> {
        let files = std::mem::take(&mut self.attach);
        if files.is_empty() {
            return serde_json::to_string(text).map_err(|error| Problem::new(Code::Input, error.to_string()));
        }
        attach::message(text, &files)
    }

    async fn start(&mut self, text: &str) -> Result<Driven, Problem> {
        let input = self.message(text)?;
        let admission = Admission { tenant: TENANT.into(), input, limits: self.limits, key: None };
        let started = self.runtime.start(&self.agent.program, admission).await;
        match started.map_err(|error| start_problem(error, &self.context))? {
            Started::New(driven) => Ok(driven),
            Started::Already(run) => self.resume(run).await,
        }
    }

    async fn resume(&self, run: RunId) -> Result<Driven, Problem> {
        self.runtime.resume(run).await.map_err(|error| start_problem(error, &self.context))
    }

    /// Tells the agent a message. False: it was too large, and nothing was sent.
    async fn say(&mut self, run: RunId, text: &str) -> Result<bool, Problem> {
        let body = match self.message(text) {
            Ok(body) if body.len() <= MESSAGE => body,
            Ok(_) => {
                let most = words::bytes(MESSAGE);
                self.screen.note(&format!("that was not sent: a message holds {most} at most, its files included"));
                return Ok(false);
            }
            Err(problem) => {
                self.screen.note(&problem.text(self.context.paint_err));
                return Ok(false);
            }
        };
        self.tell(run, "message", body).await?;
        Ok(true)
    }

    async fn tell(&self, run: RunId, name: &str, body: String) -> Result<(), Problem> {
        let body = InboxBody::Signal { name: name.into(), body };
        Ok(self.runtime.tell(run, fresh_key("chat"), body).await?)
    }

    /// Drives the run until the agent waits for the next message.
    async fn turn(&mut self, mut driven: Driven) -> Result<Turn, Problem> {
        let run = driven.run;
        loop {
            let Some(end) = self.follow(driven).await? else {
                return Ok(Turn::Left(self.leave(Some(run), self.stopped())));
            };
            let waits = match end {
                RunEnd::Suspended(waits) => waits,
                RunEnd::Ended(outcome @ Outcome::BudgetExceeded { .. }) => {
                    let body = match self.raised(&outcome).await {
                        Raised::By(raise) => InboxBody::Reopen { actor: self.context.actor(), raise },
                        Raised::End => {
                            let reason = "the conversation was ended".into();
                            InboxBody::Cancel { actor: self.context.actor(), reason }
                        }
                        Raised::Leave => {
                            return Ok(Turn::Left(self.leave(Some(run), Exit::of_outcome(&outcome))));
                        }
                    };
                    self.runtime.tell(run, fresh_key("chat"), body).await?;
                    driven = self.resume(run).await?;
                    continue;
                }
                RunEnd::Ended(outcome) => return Ok(Turn::Left(self.ended(run, &outcome))),
                RunEnd::Released => return Ok(Turn::Left(self.leave(Some(run), self.stopped()))),
                RunEnd::Lost(error) => {
                    let short = words::short(run);
                    return Err(Problem::new(Code::RunLost, format!("{short} was given up here: {error}"))
                        .why("its journal is whole up to the last step")
                        .fix(self.context.place.command(&format!("agent chat --run {short}"))));
                }
            };
            if self.store.inbox(run, 1).await?.is_empty() {
                let asked = find::family_questions(&*self.store, run).await?;
                if let Some((of, question)) = asked.first() {
                    match self.answer(*of, question).await? {
                        Typed::End => self.tell(run, "finish", "null".into()).await?,
                        Typed::Leave => return Ok(Turn::Left(self.leave(Some(run), Exit::Waiting))),
                        _ => {}
                    }
                } else if !waits.signals.is_empty() {
                    if output::stderr_is_terminal() {
                        self.screen.usage();
                    }
                    return Ok(Turn::Over);
                } else if !self.until_due(run, &waits).await? {
                    return Ok(Turn::Left(self.leave(Some(run), self.stopped())));
                }
            }
            driven = self.resume(run).await?;
        }
    }

    /// Shows what the run does. `None`: somebody wants to leave.
    async fn follow(&mut self, driven: Driven) -> Result<Option<RunEnd>, Problem> {
        let (run, mut hints) = (driven.run, self.store.hints());
        let mut end = std::pin::pin!(driven.wait());
        let mut interrupted = false;
        self.screen.catch_up(&*self.store, run).await;
        loop {
            tokio::select! {
                end = &mut end => {
                    while let Ok(delta) = self.deltas.try_recv() {
                        if delta.run == run {
                            self.screen.delta(&delta);
                        }
                    }
                    self.screen.catch_up(&*self.store, run).await;
                    return Ok(Some(end));
                }
                hint = hints.recv() => if matches!(hint, Ok(Hint::Run(changed)) if changed == run)
                    || matches!(hint, Err(RecvError::Lagged(_)))
                {
                    self.screen.catch_up(&*self.store, run).await;
                },
                Some(delta) = self.deltas.recv() => if delta.run == run {
                    self.screen.delta(&delta);
                },
                Some(()) = self.interrupts.recv() => {
                    if interrupted {
                        return Ok(None);
                    }
                    interrupted = true;
                    self.screen.cut();
                    self.tell(run, "interrupt", "\"Ctrl-C\"".into()).await?;
                    self.screen.note(&self.context.paint_err.dim("interrupted; Ctrl-C again leaves"));
                }
                typed = self.lines.next(), if self.steers => match typed.unwrap_or(Typed::Leave) {
                    Typed::Text(text) => _ = self.say(run, &text).await?,
                    Typed::Usage => self.screen.usage(),
                    Typed::End => self.tell(run, "finish", "null".into()).await?,
                    Typed::Leave => return Ok(None),
                    other => self.explain(&other),
                },
                () = self.context.signals.asked() => return Ok(None),
            }
        }
    }

    /// Waits for a timer or another run. False: somebody leaves.
    async fn until_due(&mut self, run: RunId, waits: &Waits) -> Result<bool, Problem> {
        let wake = waits.wake_at.map(|at| Instant::now() + Duration::from_millis(at.since(self.runtime.now())));
        let mut hints = self.store.hints();
        loop {
            tokio::select! {
                _ = hints.recv() => {}
                () = tokio::time::sleep(LOOK) => {}
                () = until(wake) => return Ok(true),
                _ = self.interrupts.recv() => return Ok(false),
                () = self.context.signals.asked() => return Ok(false),
            }
            let family = std::iter::once(run).chain(waits.children.iter().copied());
            for run in family {
                if !self.store.inbox(run, 1).await?.is_empty() {
                    return Ok(true);
                }
            }
        }
    }

    fn ended(&mut self, run: RunId, outcome: &Outcome) -> Exit {
        let short = words::short(run);
        if matches!(outcome, Outcome::Completed { .. }) {
            self.screen.note(&self.context.paint_err.dim(format!("{short} has ended")));
            return Exit::Completed;
        }
        self.screen.note(&format!("{short} {}", words::outcome(outcome)));
        if outcome.finality() == Finality::Parked {
            let way = crate::drive::way_on(run, outcome, Finality::Parked).unwrap_or_default();
            self.screen.note(&format!("go on with  {}", self.context.place.command(&way)));
        }
        Exit::of_outcome(outcome)
    }

    /// Seals the conversation.
    async fn end(&mut self, run: Option<RunId>) -> Result<Exit, Problem> {
        let Some(run) = run else { return Ok(Exit::Completed) };
        self.tell(run, "finish", "null".into()).await?;
        let driven = self.resume(run).await?;
        match self.turn(driven).await? {
            Turn::Left(exit) => Ok(exit),
            Turn::Over => Ok(self.leave(Some(run), Exit::Completed)),
        }
    }

    /// How the process ends when somebody stopped it, or left.
    fn stopped(&self) -> Exit {
        if self.context.signals.is_asked() { self.context.signals.exit() } else { Exit::Completed }
    }

    fn leave(&mut self, run: Option<RunId>, exit: Exit) -> Exit {
        let open = self.screen.projection().is_none_or(|projection| !matches!(projection.status, Status::Ended(_)));
        if let Some(run) = run.filter(|_| open) {
            let again = self.context.place.command(&format!("agent chat --run {}", words::short(run)));
            self.screen.note(&format!("take it up again with  {again}"));
        }
        exit
    }
}
