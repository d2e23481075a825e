//! A refund that is paid once, whatever dies in between. This file is the Rust of the README.
#![allow(clippy::print_stdout)]

#[cfg(test)]
mod tests;

use loopkit::prelude::*;

struct Refund; // a Loop: a pure function from events to decisions

impl Loop for Refund {
    type Input = String; // the order
    type State = String;
    type Output = String; // the receipt

    fn name(&self) -> &str {
        "refund"
    }
    fn init(&self, order: String) -> Result<String, Failure> {
        Ok(order)
    }
    fn transition(&self, _cx: &Cx, order: &mut String, event: Event) -> Result<Decision, Failure> {
        Ok(match event {
            Event::IterationStarted { .. } => Decision::tool("price_of", order),
            Event::ToolReturned(price) if price.tool == "price_of" => Decision::tool("refund", &price.json::<u64>()?),
            Event::ToolReturned(receipt) => Decision::finish(&receipt.json::<String>()?),
            other => return Err(Failure::unexpected(&other)),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), loopkit::Error> {
    let price_of = tool_fn("price_of", "Looks a price up.", |_order: String| async { Ok(42_u64) });
    let refund = tool_fn("refund", "Pays money back.", |usd: u64| async move { Ok(format!("paid ${usd} back")) });
    let run = loopkit::run(Refund, "order-7".into()).key("refund order-7").store("refunds.db");
    match run.tool(price_of.class(EffectClass::Read)).tool(refund).await? {
        End::Ended(Outcome::Completed { output }) => println!("{output}"), // kill -9 it anywhere and start again:
        End::Ended(other) => println!("{other:?}"),                        // `refund` is never called twice
        End::Suspended { run, waits } => println!("{run} waits for {waits:?}"),
    }
    Ok(())
}
