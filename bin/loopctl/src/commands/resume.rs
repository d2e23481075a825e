//! `run resume`: going on after a stop, a crash, an answer or a limit.

use crate::cli::ResumeArgs;
use crate::context::Context;
use crate::drive::{self, View, Worker, way_on};
use crate::exit::Exit;
use crate::find;
use crate::output::Format;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_assemble::Agents;
use loopd_kernel::budget::{Breach, Dimension};
use loopd_kernel::outcome::Finality;
use loopd_kernel::projection::Status;
use loopd_kernel::{Limits, Outcome, Projection, RunId};
use loopd_store::{InboxBody, RunStatus, Store};
use std::sync::Arc;

/// Goes on with a Run.
pub async fn resume(context: &Context, args: ResumeArgs) -> Result<Exit, Problem> {
    // Looking first: naming a Run wrongly must not cost anybody the driver role.
    let row = find::run(&*context.place.client()?, &args.run).await?;
    if row.status == RunStatus::Ended {
        return ended(context, row.run, args.format.format).await;
    }
    let catalogue = context.catalogue()?;
    let store = context.place.driver().await?;
    let agents = Arc::new(Agents::from_folder_of(args.agent.as_deref(), catalogue)?);
    let raise = args.limits.limits();
    let row = store.run(row.run).await?.unwrap_or(row);
    let agent = agents.resolve(&*store, &row).await?;
    let limits = find::projection(&*store, &row).await?.limits.raised(&raise);
    agent.affordable(&limits)?;
    let worker = Worker::start(context, store, agents, &args.drive).await?;
    let view = View::new(context, args.drive.quiet);
    view.say(&context.paint_err.dim(format!("{} of {}", row.run, agent.name)));
    go_on(context, worker, view, row.run, raise, args.format.format).await
}

/// Goes on with a Run in this worker.
///
/// # Errors
/// [`Problem`] when it cannot go on as it is.
pub async fn go_on(
    context: &Context,
    worker: Worker,
    view: View,
    run: RunId,
    raise: Limits,
    format: Format,
) -> Result<Exit, Problem> {
    let store = worker.runtime().store().clone();
    let row = store.run(run).await?.ok_or_else(|| Problem::new(Code::RunUnknown, format!("there is no run {run}")))?;
    if row.status == RunStatus::Ended {
        drop(view);
        worker.runtime().shutdown().await;
        return drive::report_row(context, &*store, run, format).await;
    }
    let projection = find::projection(&*store, &row).await?;
    if let Some(key) = reopening(context, &projection, &raise)? {
        let body = InboxBody::Reopen { actor: context.actor(), raise };
        worker.runtime().tell(run, key, body).await?;
    }
    let driven = worker.runtime().resume(run).await.map_err(|error| drive::start_problem(error, context))?;
    worker.finish(driven, view, format).await
}

async fn ended(context: &Context, run: RunId, format: Format) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    crate::output::note(&context.paint_err.dim(format!("{} had ended already", words::short(run))));
    drive::report_row(context, &*store, run, format).await
}

/// Whether the Run has to be told that it may go on, and under which key: the same wish twice is one.
fn reopening(context: &Context, projection: &Projection, raise: &Limits) -> Result<Option<String>, Problem> {
    let key = || {
        let limits = serde_json::to_string(raise).unwrap_or_default();
        format!("reopen/{}/{limits}", projection.head.seq)
    };
    match &projection.status {
        Status::Ended(_) => Ok(None),
        Status::Open => Ok((*raise != Limits::default()).then(key)),
        Status::Parked(outcome @ Outcome::BudgetExceeded { breach }) if !makes_room(breach, raise) => {
            let short = words::short(projection.run);
            let fix = way_on(projection.run, outcome, Finality::Parked).unwrap_or_default();
            Err(Problem::new(Code::RunLimit, format!("{short} is at its limit: {}", words::breach(breach)))
                .why("it goes on only when somebody raises that limit")
                .fix(context.place.command(&fix)))
        }
        Status::Parked(_) => Ok(Some(key())),
    }
}

/// Whether the raised limits leave room for what the Run wants next.
fn makes_room(breach: &Breach, raise: &Limits) -> bool {
    let limit = match breach.dimension {
        Dimension::Iterations => raise.iterations,
        Dimension::Tokens => raise.tokens,
        Dimension::MicroUsd => raise.micro_usd.map(|amount| amount.0),
        Dimension::WallMs => raise.wall_ms,
    };
    // Wall time needs nothing more to be over already.
    let least = breach.used.saturating_add(breach.needed.max(u64::from(breach.dimension == Dimension::WallMs)));
    limit.is_some_and(|limit| limit >= least)
}
