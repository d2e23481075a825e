//! From parts to a server, and down again.

use crate::data::{Data, Running};
use crate::demo;
use crate::says;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::targets::{self, Source, Targets};
use crate::token;
use crate::trouble::{Exit, Trouble};
use loopd_platform::engine::Engine;
use loopd_platform::{Config, Platform};
use loopd_runtime::Runtime;
use loopd_server::{Server, ServerConfig};
use loopd_store::Store;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Serves until somebody asks to stop.
///
/// # Errors
/// [`Trouble`]: what has to be there is not.
pub async fn serve(settings: Settings) -> Result<Exit, Trouble> {
    let mut signals = Signals::listen().map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    // What can be wrong without touching anything comes first.
    let catalogue = targets::catalogue(&settings)?;
    let built_in = if settings.demo { vec![demo::built_in(&catalogue)?] } else { Vec::new() };
    let source = Source::new(settings.agents.clone(), catalogue, built_in);
    let found = source.find()?;
    let agents = source.agents(&found);
    let listener = listen(settings.addr).await?;
    let address = listener.local_addr().map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    let data = Data::open(&settings.data)?;
    let store: Arc<dyn Store> = data.store()?;
    let instance = data.instance()?;
    let Targets { specs, complaints, .. } = found;
    let usual = Config::default();
    let (slots, queue) = (settings.slots.unwrap_or(usual.slots), settings.queue.unwrap_or(usual.queue));
    let platform = Platform::new(store.clone(), settings.limits.platform(Config { slots, queue, ..usual }));
    token::keep_admin(&platform, &data, &settings.person).await?;
    let engine = Engine::new(platform, specs)?;
    let (sender, deltas) = mpsc::unbounded_channel();
    let outlet = engine.outlet().await?;
    let runtime = Runtime::builder(store, Arc::new(agents)).outlet(outlet).deltas(sender).start().await?;
    engine.start(runtime, deltas).await?;
    let config = ServerConfig::new(instance);
    let config = config.map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    let config = ServerConfig {
        person: settings.person,
        hosts: settings.hosts,
        origins: settings.origins,
        private_metrics: settings.private_metrics,
        limits: settings.limits.server(&config.limits),
        ..config
    };
    let server = Server::new(engine.clone(), config);
    let url = format!("http://{address}");
    data.announce(&Running { address: &url, pid: std::process::id(), version: env!("CARGO_PKG_VERSION") })?;
    greet(&engine, data.complaint().into_iter().chain(complaints), &url);
    says::note(&format!("talk with it:  loopctl conv new \"First try\"{}", data.options()));
    offer(&server, &url)?;
    let exit = until_stopped(&server, (listener, &url), &mut signals).await?;
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
fn greet(engine: &Engine, complaints: impl Iterator<Item = String>, url: &str) {
    let targets = engine.targets();
    let open = targets.iter().filter(|target| target.unavailable.is_none());
    let names: Vec<_> = open.map(|target| format!("harness/{}", target.name)).collect();
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
    drop(stop);
    tokio::select! {
        served = served => ended(served),
        () = signals.stop.next() => Ok(Exit::Signalled),
    }
}

fn ended(served: std::io::Result<()>) -> Result<Exit, Trouble> {
    served.map(|()| Exit::Done).map_err(|error| Trouble::new(Exit::Failed, error.to_string()))
}
