//! The Router: its settings, inside the server's process and as a process of its own.

use crate::cli::RouterArgs;
use crate::says;
use crate::settings;
use crate::signals::Signals;
use crate::trouble::{Exit, Trouble};
use loopd_agent::manifest::Dollars;
use loopd_client::Client;
use loopd_inside::Inside;
use loopd_operator::{Config as Process, Desk, Http, Operator};
use loopd_platform::engine::Engine;
use loopd_protocol::{ActorKey, ActorKind};
use loopd_router::{Config, Prompts, Router};
use loopd_server::{Counts, Sample};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What `[router]` of the settings says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RouterSettings {
    planner: Option<String>,
    agents: Option<BTreeSet<String>>,
    max_tasks: Option<NonZeroUsize>,
    max_rounds: Option<NonZeroUsize>,
    timeout_s: Option<NonZeroU64>,
    tokens: Option<NonZeroU64>,
    usd: Option<Dollars>,
    history_messages: Option<u32>,
    evidence_bytes: Option<NonZeroUsize>,
    prompts: Option<PathBuf>,
}

impl RouterSettings {
    /// With its paths taken from this folder.
    pub fn below(self, folder: &Path) -> Self {
        Self { prompts: self.prompts.map(|prompts| folder.join(prompts)), ..self }
    }

    /// What they come to.
    ///
    /// # Errors
    /// [`Trouble`] when something is too much, or the prompts do not read.
    pub fn config(&self) -> Result<Config, Trouble> {
        let usual = Config::default();
        let wrong = |why: String| Trouble::new(Exit::Usage, format!("[router]: {why}"));
        let max_tasks = self.max_tasks.map_or(usual.max_tasks, NonZeroUsize::get);
        let evidence_bytes = self.evidence_bytes.map_or(usual.evidence_bytes, NonZeroUsize::get);
        let timeout_s = self.timeout_s.map_or(usual.timeout_s, NonZeroU64::get);
        if max_tasks > Config::MOST_TASKS {
            return Err(wrong(format!("max-tasks is at most {}", Config::MOST_TASKS)));
        }
        if evidence_bytes > Config::MOST_EVIDENCE {
            return Err(wrong(format!("evidence-bytes is at most {}", Config::MOST_EVIDENCE)));
        }
        if timeout_s > Config::LONGEST_S {
            return Err(wrong(format!("timeout-s is at most {}", Config::LONGEST_S)));
        }
        let prompts = self.prompts.as_deref().map(Prompts::of_folder).transpose();
        let prompts = prompts.map_err(|error| {
            wrong(format!("prompts: {error}")).fix("`loopd operator router --write-prompts DIR` writes the usual ones")
        })?;
        Ok(Config {
            planner: self.planner.clone(),
            agents: self.agents.clone(),
            max_tasks,
            max_rounds: self.max_rounds.map_or(usual.max_rounds, NonZeroUsize::get),
            timeout_s,
            tokens: self.tokens.map_or(usual.tokens, |tokens| Some(tokens.get())),
            micro_usd: self.usd.as_ref().map(|usd| usd.0.0),
            history_messages: self.history_messages.unwrap_or(usual.history_messages),
            evidence_bytes,
            prompts: prompts.unwrap_or(usual.prompts),
            ..usual
        })
    }
}

/// What a Router that runs counts.
#[derive(Debug)]
struct Counting(Arc<Operator<Router>>);

impl Counts for Counting {
    fn samples(&self) -> Vec<Sample> {
        let counted = self.0.counted();
        let sample = |name, help, value| Sample { name, help, label: ("operator", Router::NAME.to_owned()), value };
        vec![
            sample("loopd_operator_waiting", "Conversations that wait for their Reconcile.", counted.waiting),
            sample("loopd_operator_running", "Reconciles that are running.", counted.running),
            sample("loopd_operator_reconciles_total", "Reconciles that were begun.", counted.reconciles),
            sample("loopd_operator_turns_total", "Turns that were committed.", counted.turns),
            sample("loopd_operator_acts_total", "Acts in them.", counted.acts),
            sample("loopd_operator_failures_total", "Reconciles that failed.", counted.failures),
            sample(
                "loopd_operator_fenced_total",
                "Turns that came too late: another process has the lease.",
                counted.fenced,
            ),
            sample("loopd_operator_wait_microseconds_total", "Time from wake to Reconcile.", counted.waited_us),
            sample(
                "loopd_operator_work_microseconds_total",
                "Time in Reconciles and their commits.",
                counted.worked_us,
            ),
        ]
    }
}

/// A Router that runs.
#[derive(Debug)]
pub struct Running {
    operator: Arc<Operator<Router>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Starts it inside the process of this engine.
    ///
    /// # Errors
    /// None in practice: its name is one.
    pub fn inside(engine: &Engine, config: Config) -> Result<Self, Trouble> {
        let actor = ActorKey::new(ActorKind::Operator, Router::NAME);
        let actor = actor.map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
        let desk = Arc::new(Inside::new(engine.clone(), actor.clone()));
        let operator = Arc::new(operator(desk, actor, config, "up"));
        let stop = CancellationToken::new();
        let (runs, stopped) = (operator.clone(), stop.clone());
        let task = tokio::spawn(async move {
            if let Err(error) = runs.run(stopped).await {
                says::note(&format!("the Router has stopped: {error}"));
            }
        });
        Ok(Self { operator, stop, task })
    }

    /// What it counts.
    pub fn counts(&self) -> Arc<dyn Counts> {
        Arc::new(Counting(self.operator.clone()))
    }

    /// Lets it end what it has begun.
    pub async fn stop(self) {
        self.stop.cancel();
        // One that panicked has stopped, too.
        let _ = self.task.await;
    }
}

fn operator(desk: Arc<dyn Desk>, actor: ActorKey, config: Config, holder: &str) -> Operator<Router> {
    Operator::new(desk, actor, Router::registration(), Router::new(config), Process::new(holder))
}

/// Runs it as a process of its own.
///
/// # Errors
/// [`Trouble`]: the settings, the token, or a server that does not take it.
pub async fn run(args: RouterArgs) -> Result<Exit, Trouble> {
    if let Some(folder) = &args.write_prompts {
        return write_prompts(folder);
    }
    let config = settings::router(args.config.as_deref())?.config()?;
    let mut signals = Signals::listen().map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    let token = token(&args)?;
    let unreached = |error: loopd_client::Error| {
        Trouble::new(Exit::Failed, format!("{}: {error}", args.server))
            .fix("name the server with --server, and a token of operator/router")
    };
    let client = Client::new(&args.server, Some(&token)).map_err(unreached)?;
    let actor = client.whoami().await.map_err(unreached)?.actor;
    if actor.kind() != ActorKind::Operator {
        return Err(Trouble::new(Exit::Usage, format!("the token is that of {actor}, which is no operator"))
            .fix("loopctl token create --actor operator/router --role operator"));
    }
    let stop = CancellationToken::new();
    says::note(&format!("{actor} works at {}", args.server));
    let operator = operator(Arc::new(Http::new(client)), actor, config, &args.name);
    let mut running = std::pin::pin!(operator.run(stop.clone()));
    let done = tokio::select! {
        done = &mut running => done,
        () = signals.stop.next() => {
            says::note("stopping: what was begun ends first");
            stop.cancel();
            tokio::select! {
                done = &mut running => done,
                () = signals.stop.next() => return Ok(Exit::Signalled),
            }
        }
    };
    done.map(|()| Exit::Done).map_err(|error| Trouble::new(Exit::Failed, error.to_string()))
}

fn token(args: &RouterArgs) -> Result<String, Trouble> {
    if let Some(file) = &args.token_file {
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| {
            Trouble::new(Exit::Usage, format!("{}: {}", file.display(), loopd_assemble::words::os(&error)))
        })?;
        return Ok(text.trim().to_owned());
    }
    std::env::var("LOOPD_TOKEN").ok().filter(|token| !token.is_empty()).ok_or_else(|| {
        Trouble::new(Exit::Usage, "there is no token: LOOPD_TOKEN is not set").fix(
            "loopctl token create --actor operator/router --role operator, and put it into LOOPD_TOKEN or --token-file",
        )
    })
}

/// Writes the usual prompts into a folder; what is there already stays.
fn write_prompts(folder: &Path) -> Result<Exit, Trouble> {
    let wrong = |path: &Path, error: &std::io::Error| {
        Trouble::new(Exit::Failed, format!("{}: {}", path.display(), loopd_assemble::words::os(error)))
    };
    std::fs::create_dir_all(folder).map_err(|error| wrong(folder, &error))?;
    for prompt in loopd_router::Prompt::ALL {
        let path = folder.join(prompt.file());
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                use std::io::Write as _;
                file.write_all(prompt.usual().as_bytes()).map_err(|error| wrong(&path, &error))?;
                says::note(&format!("wrote {}", path.display()));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                says::note(&format!("{} is there, and stays as it is", path.display()));
            }
            Err(error) => return Err(wrong(&path, &error)),
        }
    }
    Ok(Exit::Done)
}

/// The name that a process has among those of its Operator, usually.
pub const HOLDER: &str = "router";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<Config, &str>) {
        let read: Result<RouterSettings, _> = toml::from_str(text);
        let config = read.map_err(|error| error.message().to_owned());
        let config = config.and_then(|read| read.config().map_err(|trouble| trouble.to_string()));
        assert_eq!(config, expected.map_err(str::to_owned));
    }

    #[test]
    fn settings_become_a_configuration() {
        let usual = Config::default();
        check("", Ok(usual.clone()));
        let agents = Some(BTreeSet::from(["a".to_owned()]));
        let set = Config { planner: Some("p".into()), agents, max_tasks: 2, micro_usd: Some(250_000), ..usual };
        check("planner = \"p\"\nagents = [\"a\"]\nmax-tasks = 2\nusd = \"0.25\"", Ok(set));
        check("max-tasks = 41", Err("loopd: [router]: max-tasks is at most 40"));
        check("evidence-bytes = 262145", Err("loopd: [router]: evidence-bytes is at most 262144"));
        check("timeout-s = 604801", Err("loopd: [router]: timeout-s is at most 604800"));
        check("max-tasks = 0", Err("invalid value: integer `0`, expected a nonzero usize"));
        check(
            "max-round = 1",
            Err(
                "unknown field `max-round`, expected one of `planner`, `agents`, `max-tasks`, `max-rounds`, `timeout-s`, `tokens`, `usd`, `history-messages`, `evidence-bytes`, `prompts`",
            ),
        );
    }
}
