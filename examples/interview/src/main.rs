//! The interview as a process of its own: `LOOPD_SERVER` names the server, `LOOPD_TOKEN` is the Operator's.

use anyhow::Context;
use interview::Interview;
use loopd_client::Client;
use loopd_operator::{Config, Http, Operator};
use loopd_protocol::Registration;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let server = std::env::var("LOOPD_SERVER").unwrap_or_else(|_| "http://127.0.0.1:7717".to_owned());
    let token =
        std::env::var("LOOPD_TOKEN").context("LOOPD_TOKEN is the token of operator/interview; it is not set")?;
    let client = Client::new(&server, Some(&token))?;
    // Whose token it is, is who it is.
    let actor = client.whoami().await?.actor;
    let registration = Registration {
        name: "Interview".to_owned(),
        description: "Asks you three things and sums them up.".to_owned(),
        lease_s: 60,
    };
    let desk = Arc::new(Http::new(client));
    // There is one process of it at a time; started again, it goes on at once.
    let operator = Operator::new(desk, actor, registration, Interview, Config::new("interview"));
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
