//! `run cancel`: for good.

use crate::cli::CancelArgs;
use crate::context::{Context, fresh_key};
use crate::drive::{start_problem, until};
use crate::exit::Exit;
use crate::find;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_kernel::{Cx, Decision, ErasedLoop, Event, Failure, RunId, Upgrade};
use loopd_runtime::{CannotRun, Config, Program, Programs, Runtime};
use loopd_store::{InboxBody, RunRow, RunStatus, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a driver elsewhere is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Cancels a Run: asks whoever drives the store, and seals it here when nobody does.
pub async fn cancel(context: &Context, args: CancelArgs) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let row = find::run(&*store, &args.run).await?;
    let short = words::short(row.run);
    if row.status == RunStatus::Ended {
        let outcome = row.outcome.unwrap_or_else(|| "ended".into());
        return Err(Problem::new(Code::RunState, format!("{short} has ended already: {outcome}"))
            .fix(context.place.command(&format!("run show {short}"))));
    }
    let body = InboxBody::Cancel { actor: context.actor(), reason: args.reason };
    loopd_runtime::tell(&*store, row.run, fresh_key("cancel"), context.now(), body).await?;
    let deadline = Instant::now() + Duration::from_millis(args.timeout.ms);
    loop {
        let sealed = store.run(row.run).await?.filter(|row| row.status == RunStatus::Ended);
        if let Some(row) = sealed {
            return told(&row, args.format.format);
        }
        if !context.place.is_driven() {
            match context.place.driver().await {
                Ok(driver) => seal(context, driver, row.run).await?,
                // Somebody was quicker, and will find the wish in the inbox.
                Err(problem) if problem.code == Code::StoreDriver => {}
                Err(problem) => return Err(problem),
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = until(Some(deadline)) => {
                return Err(Problem::new(Code::Timeout, format!("{short} is not cancelled yet"))
                    .why("it was asked to; whoever drives the store has not come to it, or a call that may have an effect still settles")
                    .fix(format!("look again with `{}`", context.place.command(&format!("run why {short}")))));
            }
        }
    }
}

fn told(row: &RunRow, format: Format) -> Result<Exit, Problem> {
    let outcome = row.outcome.as_deref().unwrap_or("ended");
    match format {
        Format::Json | Format::Jsonl => output::json(format, &super::list::Summary::of(row))?,
        Format::Name => output::line(&row.run.to_string())?,
        Format::Table if outcome == "Interrupted" => output::note(&format!("{} is cancelled", words::short(row.run))),
        Format::Table => {
            output::note(&format!("{} ended before it could be cancelled: {outcome}", words::short(row.run)));
        }
    }
    Ok(if outcome == "Interrupted" { Exit::Completed } else { Exit::Conflict })
}

/// Takes the Run over only to seal it. Cancelling consults no transition and calls nothing, so this works without
/// the agent, its key or its files: the runtime drains from the start, which intends nothing new.
async fn seal(context: &Context, store: Arc<dyn Store>, run: RunId) -> Result<(), Problem> {
    let config = Config { claims: false, ..Config::default() };
    let runtime = Runtime::builder(store, Arc::new(Nothing)).config(config).start().await?;
    runtime.shutdown().await;
    let driven = runtime.resume(run).await.map_err(|error| start_problem(error, context))?;
    let _ = driven.wait().await;
    Ok(())
}

/// Programs that do nothing, under every name.
struct Nothing;

impl Programs for Nothing {
    fn find(&self, row: &RunRow, _: &[u8]) -> Result<Arc<Program>, CannotRun> {
        Ok(Arc::new(Program::new(Arc::new(Mute { name: row.loop_name.clone(), version: row.version.clone() }))))
    }
}

/// A Loop that is never asked.
struct Mute {
    name: String,
    version: String,
}

impl ErasedLoop for Mute {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn definition(&self) -> &[u8] {
        &[]
    }

    fn upgrade(&self) -> Upgrade {
        Upgrade::Unasked
    }

    fn reads(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn init(&self, _: &str) -> Result<String, Failure> {
        Err(never())
    }

    fn transition(&self, _: &Cx, _: &str, _: Event) -> Result<(Decision, String), Failure> {
        Err(never())
    }
}

fn never() -> Failure {
    Failure::new("loopctl.cancelling", "a run that is being cancelled decides nothing")
}
