//! `doctor`: is everything here that runs and servers need? Nothing is changed, and no secret is shown.

use crate::cli::ServerArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::paint::Tone;
use crate::problem::Problem;
use crate::server::reach::{Reach, locate};
use crate::words;
use loopd_assemble::machine::{self, LocalServer, Wish};
use loopd_assemble::{Manner, load_folder};
use loopd_fixture::excerpt;
use loopd_providers::catalogue::TABLE;
use serde::Serialize;
use std::net::TcpListener;
use std::path::Path;

/// Where a server listens unless it is told otherwise.
const PORT: u16 = 7717;

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
    let servers = machine::local_servers().await;
    checks.extend(local(&servers));
    checks.push(up(&servers));
    checks.push(agents(context));
    checks.push(server(context).await);
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

/// The model servers on this machine.
fn local(servers: &[LocalServer]) -> Vec<Check> {
    if servers.is_empty() {
        let ports: Vec<String> = machine::PORTS.iter().map(|(port, _)| port.to_string()).collect();
        return vec![Check::note("local", format!("no model server on the ports {}", ports.join(", ")))];
    }
    let check = |server: &LocalServer| {
        let names: Vec<_> = server.models.iter().take(MODELS).map(|id| excerpt::line(id, 60)).collect();
        let names = if names.is_empty() { "no models".into() } else { names.join(", ") };
        Check::ok("local", format!("{} ({}?) serves {names}", server.url(), server.who))
    };
    servers.iter().map(check).collect()
}

/// Which model `loopd up` would take.
fn up(servers: &[LocalServer]) -> Check {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match machine::choose(&Wish::Any, &is_set, servers) {
        Ok(Some(choice)) => Check::ok("up", format!("`loopd up` would use {}", choice.told)),
        Ok(None) => {
            Check::note("up", "`loopd up` would use the demo model, which plays a script: nothing else was found")
        }
        Err(obstacle) => Check::bad("up", obstacle.what),
    }
}

/// The agents that `loopd up` would take from here.
fn agents(context: &Context) -> Check {
    let folder = Path::new("./agents");
    if !folder.is_dir() {
        return Check::note("agents", "there is no folder ./agents, from which `loopd up` takes manifests");
    }
    let found = context.catalogue().map(|catalogue| load_folder(folder, Manner::Task, &catalogue));
    let listed = match found {
        Ok(Ok(listed)) => listed,
        Ok(Err(obstacle)) => return Check::bad("agents", obstacle.what),
        Err(problem) => return Check::bad("agents", problem.what),
    };
    let wrong: Vec<_> = listed.iter().filter_map(|one| one.agent.as_ref().err().map(|why| (&one.file, why))).collect();
    let ready = listed.len() - wrong.len();
    let Some((file, why)) = wrong.first() else {
        return Check::ok("agents", format!("{ready} in ./agents can be called"));
    };
    let file = file.file_name().unwrap_or_default().to_string_lossy();
    let what = why.what.lines().next().unwrap_or_default();
    let says = format!("{ready} of {} in ./agents can be called; {}: {what}", listed.len(), excerpt::line(&file, 60));
    Check::note("agents", says)
}

/// The server of this folder, or whether one could start.
async fn server(context: &Context) -> Check {
    let args = ServerArgs::default();
    let Some(found) = locate(&context.place, &args) else {
        return match TcpListener::bind(("127.0.0.1", PORT)) {
            Ok(_) => Check::ok("server", format!("none runs on this folder; port {PORT} is free for one")),
            Err(error) => {
                let why = words::os(&error);
                Check::note(
                    "server",
                    format!("none runs on this folder; port {PORT}: {why}; choose another with --addr"),
                )
            }
        };
    };
    let asked = async { Ok::<_, Problem>(Reach::at(&context.place, found, &args)?.client.targets().await?.items) };
    match asked.await {
        Ok(targets) => {
            let open = targets.iter().filter(|target| target.unavailable.is_none()).count();
            Check::ok("server", format!("one runs on this folder; {open} of {} targets take calls", targets.len()))
        }
        Err(problem) => Check::bad("server", problem.what),
    }
}

fn terminal(context: &Context) -> Check {
    let on = |on: bool| if on { "a terminal" } else { "piped" };
    let (out, err) = (output::stdout_is_terminal(), output::stderr_is_terminal());
    let colours = if context.paint.is_on() { "colours" } else { "no colours" };
    Check::ok("terminal", format!("stdout is {}, stderr is {}, {colours}", on(out), on(err)))
}
