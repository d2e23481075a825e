//! The Operator as a process of its own. `LOOPD_TOKEN` is its token, `LOOPD_SERVER` the
//! server, and `LOOPD_AGENT` the agent that it calls.

use scaffold_name::Relay;

use anyhow::Context;
use loopd_client::Client;
use loopd_operator::{Config, Http, Operator};
use loopd_protocol::Registration;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = EnvFilter::from_default_env();
    tracing_subscriber::fmt().with_env_filter(filter).init();
    let token = std::env::var("LOOPD_TOKEN").context("LOOPD_TOKEN is not set")?;
    let server = std::env::var("LOOPD_SERVER");
    let server = server.unwrap_or_else(|_| "http://127.0.0.1:7717".to_owned());
    let agent = std::env::var("LOOPD_AGENT").unwrap_or_else(|_| "demo".to_owned());
    let client = Client::new(&server, Some(&token))?;
    // Whose token it is, is who it is.
    let actor = client.whoami().await?.actor;
    let registration = Registration {
        name: "scaffold-name".to_owned(),
        description: "Hands what you say to an agent.".to_owned(),
        lease_s: 60,
    };
    // A process of this name that is started again goes on at once.
    let config = Config::new("scaffold-name");
    let desk = Arc::new(Http::new(client));
    let operator = Operator::new(desk, actor, registration, Relay { agent }, config);
    let stop = CancellationToken::new();
    let interrupted = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    operator.run(stop).await?;
    Ok(())
}
