//! `doctor`: is everything here that runs need? Nothing is changed, and no secret is shown.

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::paint::Tone;
use crate::problem::Problem;
use crate::words;
use loopd_assemble::machine::{self, LocalServer};
use loopd_fixture::excerpt;
use loopd_providers::catalogue::TABLE;
use serde::Serialize;
use std::path::Path;

/// Models of a server that are named.
const MODELS: usize = 5;

/// One thing that was looked at.
#[derive(Serialize)]
struct Check {
    name: &'static str,
    state: &'static str,
    says: String,
}

impl Check {
    fn ok(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: "ok", says: says.into() }
    }

    fn note(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: "note", says: says.into() }
    }

    fn bad(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, state: "bad", says: says.into() }
    }
}

/// Looks at everything.
pub async fn doctor(context: &Context, format: Format) -> Result<Exit, Problem> {
    let mut checks = vec![
        Check::ok(
            "loopctl",
            format!("{} (loopd, journal format {})", env!("CARGO_PKG_VERSION"), loopd_kernel::entry::FORMAT),
        ),
        store(context),
        driver(context),
        keys(),
        known(context),
    ];
    checks.extend(servers().await);
    checks.push(terminal(context));
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &checks)?,
        Format::Name => {
            checks.iter().filter(|check| check.state == "bad").try_for_each(|check| output::line(check.name))?;
        }
        Format::Table => {
            for check in &checks {
                let tone = match check.state {
                    "ok" => Tone::Good,
                    "bad" => Tone::Bad,
                    _ => Tone::Waits,
                };
                let state = context.paint.tone(tone, format!("{:<4}", check.state));
                output::line(&format!("{state}  {:<9} {}", check.name, check.says))?;
            }
        }
    }
    let bad = checks.iter().any(|check| check.state == "bad");
    Ok(if bad { Exit::Failed } else { Exit::Completed })
}

fn store(context: &Context) -> Check {
    let path = context.place.path();
    if path.exists() {
        return match context.place.client() {
            Ok(_) => Check::ok("store", format!("{} opens", path.display())),
            Err(problem) => Check::bad("store", problem.what),
        };
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = folder.ancestors().find(|folder| folder.as_os_str().is_empty() || folder.exists());
    let there = there.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match writable(there) {
        Ok(()) => Check::ok("store", format!("{} is not there yet; the first run makes it", path.display())),
        Err(error) => {
            Check::bad("store", format!("{}: {}; choose another --store", there.display(), words::os(&error)))
        }
    }
}

/// Asks the operating system by trying: permissions, read-only disks and quotas all show.
fn writable(folder: &Path) -> std::io::Result<()> {
    let probe = folder.join(format!(".loopctl-doctor-{}", std::process::id()));
    std::fs::File::create_new(&probe)?;
    std::fs::remove_file(probe)
}

fn driver(context: &Context) -> Check {
    if context.place.is_driven() {
        return Check::note(
            "driver",
            "another process drives the store: list, watch, answer and cancel work beside it",
        );
    }
    Check::ok("driver", "nobody drives the store; a run started here will")
}

fn keys() -> Check {
    let set: Vec<&str> = machine::KEYS
        .into_iter()
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if set.is_empty() {
        return Check::note("keys", "none of the usual variables is set; local servers and the demo model need none");
    }
    Check::ok("keys", format!("set: {}", set.join(", ")))
}

/// How many models something is known of, and from where. No server is asked for it.
fn known(context: &Context) -> Check {
    let catalogue = match context.catalogue() {
        Ok(catalogue) => catalogue,
        Err(problem) => return Check::bad("models", problem.what),
    };
    let listed = catalogue.list(None);
    let count = |number: usize| words::count(number as u64);
    let priced = listed.iter().filter(|line| line.facts.price.is_some()).count();
    let file = context.models.as_ref().map(|file| format!(" and {}", file.display())).unwrap_or_default();
    let says = format!("{} known, {} with a price, from {TABLE}{file}", count(listed.len()), count(priced));
    Check::ok("models", says)
}

async fn servers() -> Vec<Check> {
    let found = machine::local_servers().await;
    if found.is_empty() {
        let ports: Vec<String> = machine::PORTS.iter().map(|(port, _)| port.to_string()).collect();
        return vec![Check::note("server", format!("no local model server on the ports {}", ports.join(", ")))];
    }
    let check = |server: &LocalServer| {
        let names: Vec<_> = server.models.iter().take(MODELS).map(|id| excerpt::line(id, 60)).collect();
        let names = if names.is_empty() { "no models".into() } else { names.join(", ") };
        Check::ok("server", format!("{} ({}?) serves {names}", server.url(), server.who))
    };
    found.iter().map(check).collect()
}

fn terminal(context: &Context) -> Check {
    let on = |on: bool| if on { "a terminal" } else { "piped" };
    let (out, err) = (output::stdout_is_terminal(), output::stderr_is_terminal());
    let colours = if context.paint.is_on() { "colours" } else { "no colours" };
    Check::ok("terminal", format!("stdout is {}, stderr is {}, {colours}", on(out), on(err)))
}
