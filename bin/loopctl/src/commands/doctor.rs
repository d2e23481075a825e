//! `doctor`: is everything here that runs need? Nothing is changed, and no secret is shown.

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::paint::Tone;
use crate::problem::Problem;
use crate::words;
use loopd_fixture::excerpt;
use loopd_providers::catalogue::TABLE;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Variables in which keys of providers usually are.
const KEYS: [&str; 6] =
    ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY"];

/// Where servers with OpenAI's interface usually listen, and which.
const PORTS: [(u16, &str); 4] = [(11434, "ollama"), (8000, "vllm"), (1234, "LM Studio"), (8080, "llama.cpp")];

/// How long a server on this machine may take.
const PATIENCE: Duration = Duration::from_millis(400);

/// Bytes of an answer that are read.
const ANSWER: u64 = 64 * 1024;

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
    let set: Vec<&str> =
        KEYS.into_iter().filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())).collect();
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
    let mut found = Vec::new();
    for (port, who) in PORTS {
        if let Ok(Some(models)) = tokio::time::timeout(PATIENCE, models(port)).await {
            let names = if models.is_empty() { "no models".into() } else { models.join(", ") };
            found.push(Check::ok("server", format!("http://127.0.0.1:{port}/v1 ({who}?) serves {names}")));
        }
    }
    if found.is_empty() {
        let ports: Vec<String> = PORTS.iter().map(|(port, _)| port.to_string()).collect();
        found.push(Check::note("server", format!("no local model server on the ports {}", ports.join(", "))));
    }
    found
}

/// The models that a server on this machine lists; `None` when it is no such server.
async fn models(port: u16) -> Option<Vec<String>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET /v1/models HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(ANSWER).read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8_lossy(&answer);
    let body = answer.split_once("\r\n\r\n")?.1;
    let json = body.get(body.find('{')?..=body.rfind('}')?)?;
    let listed: serde_json::Value = serde_json::from_str(json).ok()?;
    let models = listed.get("data")?.as_array()?.iter();
    Some(models.filter_map(|model| model.get("id")?.as_str()).take(MODELS).map(|id| excerpt::line(id, 60)).collect())
}

fn terminal(context: &Context) -> Check {
    let on = |on: bool| if on { "a terminal" } else { "piped" };
    let (out, err) = (output::stdout_is_terminal(), output::stderr_is_terminal());
    let colours = if context.paint.is_on() { "colours" } else { "no colours" };
    Check::ok("terminal", format!("stdout is {}, stderr is {}, {colours}", on(out), on(err)))
}
