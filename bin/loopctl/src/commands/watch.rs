//! `run watch`: following a Run from a second terminal. Watching owns nothing: the Run goes on without it.

use crate::cli::WatchArgs;
use crate::commands::list::Summary;
use crate::context::Context;
use crate::drive::{self, View, until};
use crate::exit::Exit;
use crate::find;
use crate::output::{self, Format};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_store::{RunRow, RunStatus, Store};
use std::time::Duration;
use tokio::time::Instant;

/// How often the Run's row is looked at: a client hears of no commit of another process.
const LOOK: Duration = Duration::from_millis(100);

/// After how long without news the watcher is told where to look.
const SILENCE: Duration = Duration::from_secs(30);

/// Follows a Run until it ends, parks, waits for somebody, or nobody drives it any more.
pub async fn watch(context: &Context, args: WatchArgs) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let row = find::run(&*store, &args.run).await?;
    let run = row.run;
    let format = args.format.format;
    context.signals.polite();
    let mut view = match format {
        Format::Table => View::new(context, false),
        Format::Json | Format::Jsonl | Format::Name => View::new(context, true),
    };
    view.say(&context.paint_err.dim(format!("{run} of {}", loopd_fixture::excerpt::line(&row.loop_name, 60))));
    let deadline = args.timeout.map(|timeout| Instant::now() + Duration::from_millis(timeout.ms));
    let mut seen = None;
    let (mut last, mut told) = (Instant::now(), false);
    loop {
        let row = store.run(run).await?.ok_or_else(|| Problem::new(Code::RunUnknown, format!("{run} is gone")))?;
        if seen != Some((row.head, row.status)) {
            seen = Some((row.head, row.status));
            (last, told) = (Instant::now(), false);
            view.catch_up(&*store, run).await;
            if format == Format::Jsonl {
                output::json(format, &Summary::of(&row))?;
            }
        }
        if let Some(why) = rests(context, &row) {
            view.close();
            if let Some(why) = why {
                output::note(&why);
            }
            return drive::report_row(context, &*store, run, format).await;
        }
        view.waiting_now(context, run);
        if !told && last.elapsed() >= SILENCE {
            told = true;
            let command = context.place.command(&format!("run why {}", words::short(run)));
            view.say(&format!("nothing new for {} s; {command}  says why", SILENCE.as_secs()));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = context.signals.asked() => {
                view.close();
                let command = context.place.command(&format!("run watch {}", words::short(run)));
                output::note(&format!("no longer watching; the run goes on. Watch again with  {command}"));
                return Ok(context.signals.exit());
            }
            () = until(deadline) => {
                view.close();
                output::note(&format!("{} still moves", words::short(run)));
                return Ok(Exit::TimedOut);
            }
        }
    }
}

/// Whether there is nothing more to see, and what to say about it.
fn rests(context: &Context, row: &RunRow) -> Option<Option<String>> {
    match row.status {
        RunStatus::Ended | RunStatus::Parked => Some(None),
        RunStatus::Running | RunStatus::Suspended if context.place.is_driven() => None,
        RunStatus::Suspended if row.wake_at.is_none() => Some(None),
        RunStatus::Running | RunStatus::Suspended => {
            let command = context.place.command(&format!("run resume {}", words::short(row.run)));
            Some(Some(format!("nobody drives it now. Go on with  {command}")))
        }
    }
}
