//! From parts to a server, and down again.

use crate::built_in;
use crate::cli::UpArgs;
use crate::data::{Data, Running as Announced};
use crate::folder;
use crate::live::{First, Live};
use crate::router::Running;
use crate::says;
use crate::settings::{self, Settings};
use crate::signals::Signals;
use crate::targets::{self, Offered, Source};
use crate::token;
use crate::trouble::{Exit, Trouble};
use loopd_assemble::machine::{self, Wish};
use loopd_platform::Platform;
use loopd_platform::engine::Engine;
use loopd_router::{Config, Router};
use loopd_runtime::Runtime;
use loopd_server::Server;
use loopd_store::Store;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// What `up` adds to a server.
#[derive(Debug)]
pub struct Extra {
    /// The agent on the model that was found.
    assistant: Option<Offered>,
    /// What is said of that.
    told: String,
    router: Config,
}

/// Serves with everything that answers.
///
/// # Errors
/// [`Trouble`]: what has to be there is not.
pub async fn up(args: UpArgs) -> Result<Exit, Trouble> {
    let mut settings = settings::read(args.serve)?;
    let router = settings.router.config()?;
    let wish = args.model.unwrap_or_default();
    let servers = if wish.looks_around() { machine::local_servers().await } else { Vec::new() };
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let choice = machine::choose(&wish, &is_set, &servers)?;
    let catalogue = targets::catalogue(&settings)?;
    let assistant = choice.as_ref().map(|choice| built_in::assistant(choice, &catalogue)).transpose()?;
    let told = match choice {
        Some(choice) => format!("harness/assistant is on {}", choice.told),
        None if wish == Wish::Demo => "as wished, there is the demo model only".to_owned(),
        None => format!(
            "no model was found, so the demo model answers: it plays a script and knows nothing.\n  for a real one set {}, or \
             start a local server ({}), and start again",
            machine::PROVIDERS.map(|(_, variable, _)| variable).join(", "),
            machine::PORTS.map(|(_, who)| who).join(", ")
        ),
    };
    if settings.agents.is_none() {
        settings.agents = Some(agents_folder(&settings.data)?);
    }
    serve(settings, Some(Extra { assistant, told, router })).await
}

/// `./agents` where it is there, else a folder beside what the server keeps.
fn agents_folder(data: &Path) -> Result<PathBuf, Trouble> {
    let near = Path::new("./agents");
    if near.is_dir() {
        return Ok(near.to_owned());
    }
    Data::open(data)?.agents()
}

/// Serves until somebody asks to stop.
///
/// # Errors
/// [`Trouble`]: what has to be there is not.
pub async fn serve(settings: Settings, extra: Option<Extra>) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen().map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    // What can be wrong without touching anything comes first.
    let catalogue = targets::catalogue(&settings)?;
    let demo = settings.demo.then(|| built_in::demo(&catalogue)).transpose()?;
    let assistant = extra.as_ref().and_then(|extra| extra.assistant.clone());
    let built_in = assistant.into_iter().chain(demo).collect();
    let folder = settings.agents.clone();
    let base = folder.clone().unwrap_or_else(|| settings.data.join("agents"));
    let read = folder::read(folder.as_deref(), &BTreeSet::new(), &catalogue)?;
    let source = Source { catalogue, built_in, base };
    let listener = listen(settings.addr).await?;
    let address = listener.local_addr().map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    let data = Data::open(&settings.data)?;
    let store: Arc<dyn Store> = data.store()?;
    let instance = data.instance()?;
    let platform = Platform::new(store.clone(), settings.platform());
    token::keep_admin(&platform, &data, &settings.person).await?;
    let (live, First { specs, complaints }) = Live::begin(folder, source, read, &platform).await?;
    let engine = Engine::new(platform, specs)?;
    let (sender, deltas) = mpsc::unbounded_channel();
    let outlet = engine.outlet().await?;
    let runtime = Runtime::builder(store, live.agents()).outlet(outlet).deltas(sender).start().await?;
    engine.start(runtime, deltas).await?;
    let live = Arc::new(live);
    live.start(engine.clone());
    let (told, router) = extra.map(|extra| (extra.told, extra.router)).unzip();
    let router = router.map(|config| Running::inside(&engine, config)).transpose()?;
    let server = Server::keeping(engine.clone(), settings.server(instance)?, live);
    if let Some(router) = &router {
        server.count(router.counts());
    }
    let url = format!("http://{address}");
    data.announce(&Announced { address: &url, pid: std::process::id(), version: env!("CARGO_PKG_VERSION") })?;
    greet(&engine, told.into_iter().chain(data.complaint()).chain(complaints), &url, router.is_some());
    let options = data.options();
    says::note(&format!("talk with it:  loopctl conv new \"First try\"{options}"));
    offer(&server, &url)?;
    let exit = until_stopped(&server, (listener, &url), router, &mut signals).await?;
    data.withdraw();
    Ok(exit)
}

async fn listen(addr: SocketAddr) -> Result<TcpListener, Trouble> {
    TcpListener::bind(addr).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Trouble::new(Exit::Conflict, format!("{addr} is taken: another program listens there"))
            .fix("choose another with --addr 127.0.0.1:PORT; port 0 takes a free one"),
        ErrorKind::PermissionDenied => Trouble::new(Exit::Failed, format!("{addr} may not be listened to"))
            .fix("choose a port from 1024 on with --addr"),
        _ => Trouble::new(Exit::Failed, format!("{addr}: {}", loopd_assemble::words::os(&error))),
    })
}

/// What there is, in a few lines.
fn greet(engine: &Engine, complaints: impl Iterator<Item = String>, url: &str, router: bool) {
    let targets = engine.targets();
    let open = targets.iter().filter(|target| target.unavailable.is_none());
    let router = router.then(|| format!("operator/{}", Router::NAME));
    let names: Vec<_> = router.into_iter().chain(open.map(|target| format!("harness/{}", target.name))).collect();
    let names = if names.is_empty() { "no agent: name a folder with --agents".to_owned() } else { names.join(", ") };
    says::note(&format!("loopd {} serves {url} with {names}", env!("CARGO_PKG_VERSION")));
    for complaint in complaints {
        says::note(&format!("  {complaint}"));
    }
}

/// Prints an address that signs one browser in.
fn offer(server: &Server, url: &str) -> Result<(), Trouble> {
    let code = server.sign_in_code().map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    says::note(&format!("sign in, within a minute: {url}/sign-in?code={code}"));
    Ok(())
}

/// Serves. The first signal to stop drains; the second does not wait for it, and loses nothing either.
async fn until_stopped(
    server: &Server,
    (listener, url): (TcpListener, &str),
    router: Option<Running>,
    signals: &mut Signals,
) -> Result<Exit, Trouble> {
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        // It is dropped only with the server.
        let _ = stopped.await;
    };
    let mut served = std::pin::pin!(server.serve(listener, shutdown));
    loop {
        tokio::select! {
            served = &mut served => return ended(served),
            () = signals.stop.next() => break,
            () = signals.offer.next() => offer(server, url)?,
        }
    }
    says::note("stopping: what runs is released, and goes on at the next start");
    let drained = async move {
        // It gives its leases back while there is somebody to take them.
        if let Some(router) = router {
            router.stop().await;
        }
        drop(stop);
    };
    tokio::select! {
        (served, ()) = futures::future::join(served, drained) => ended(served),
        () = signals.stop.next() => Ok(Exit::Signalled),
    }
}

fn ended(served: std::io::Result<()>) -> Result<Exit, Trouble> {
    served.map(|()| Exit::Done).map_err(|error| Trouble::new(Exit::Failed, error.to_string()))
}
