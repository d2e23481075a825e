//! The board as a process of its own. `LOOPD_TOKEN` is its token, `LOOPD_SERVER` the server; `REVIEW_ROUNDS` says how
//! often each side argues, `REVIEW_DECISIONS` where decisions are kept, `REVIEW_DECIDE_S` how long a person has.

use anyhow::Context;
use loopd_client::Client;
use loopd_operator::{Config, Http, Operator};
use loopd_protocol::Registration;
use review_board::{Board, Decisions};
use std::str::FromStr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A number from the environment that is at least 1.
fn number<T: FromStr + PartialOrd + From<u8>>(name: &str, usual: T) -> anyhow::Result<T> {
    let Ok(text) = std::env::var(name) else { return Ok(usual) };
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.with_context(|| format!("{name} is {text:?}; it has to be a whole number from 1 on"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let server = std::env::var("LOOPD_SERVER").unwrap_or_else(|_| "http://127.0.0.1:7717".to_owned());
    let token =
        std::env::var("LOOPD_TOKEN").context("LOOPD_TOKEN is the token of operator/review-board; it is not set")?;
    let folder = std::env::var_os("REVIEW_DECISIONS").unwrap_or_else(|| "decisions".into());
    let board = Board {
        rounds: number("REVIEW_ROUNDS", 2)?,
        decide_s: number("REVIEW_DECIDE_S", 86_400)?,
        decisions: Decisions::new(folder),
    };
    let client = Client::new(&server, Some(&token))?;
    // Whose token it is, is who it is.
    let actor = client.whoami().await?.actor;
    let registration = Registration {
        name: "Review board".to_owned(),
        description: "Two agents argue over what you propose, you decide, and it is recorded.".to_owned(),
        lease_s: 60,
    };
    let desk = Arc::new(Http::new(client));
    // There is one process of it at a time; started again, it goes on at once.
    let operator = Operator::new(desk, actor, registration, board, Config::new("review-board"));
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
