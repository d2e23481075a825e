//! A model server for tests in any language: `cargo run -p looptest --features fake-model --example fake-model -- script.json`.
//!
//! It prints its address, listens on 127.0.0.1 only, and plays the script until it is killed. `docs/testing.md` says what
//! it speaks, what a script may say, and how to ask it what it heard.
#![allow(clippy::print_stdout, reason = "a program talks to its terminal")]

use looptest::fake::{FakeConfig, FakeModel, Script};
use std::error::Error;
use std::io::Write;

const USAGE: &str = "usage: fake-model SCRIPT.json [--port PORT] [--key KEY] [--model NAME]...

  SCRIPT.json     the script, as docs/demo-model.md and docs/testing.md describe it
  --port PORT     the port on 127.0.0.1; a free one when 0, which is the default
  --key KEY       the key that every request must bring; none is needed when not given
  --model NAME    a model that there is; every name is taken when not given";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = FakeConfig::default();
    let mut path = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            "--port" => config.port = value()?.parse()?,
            "--key" => config.key = Some(value()?),
            "--model" => config.models.push(value()?),
            _ if arg.starts_with('-') || path.is_some() => return Err(USAGE.into()),
            _ => path = Some(arg),
        }
    }
    let path = path.ok_or(USAGE)?;
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let script = Script::from_json(&text).map_err(|error| format!("{path}: {error}"))?;
    let fake = FakeModel::start_with(script, config).await?;
    println!("{}", fake.url());
    std::io::stdout().flush()?;
    fake.wait().await;
    Ok(())
}
