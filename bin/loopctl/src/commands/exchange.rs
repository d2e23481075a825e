//! `run exchange`: the exact bytes of what a model was sent and what it answered.

use crate::cli::ExchangeArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::find;
use crate::journal;
use crate::output;
use crate::problem::{Code, Problem};
use crate::words;
use loopd_kernel::entry::Kind;
use loopd_kernel::record::{Exchanged, Record};
use loopd_store::Store;

/// Writes one of the two bodies to stdout, byte for byte.
pub async fn exchange(context: &Context, args: ExchangeArgs) -> Result<Exit, Problem> {
    let store = context.place.client()?;
    let row = find::run(&*store, &args.run).await?;
    let mut kept: Option<Exchanged> = None;
    let mut known = false;
    journal::entries(&*store, &row, &mut |entry| {
        if entry.kind == Kind::Settled
            && let Ok(Record::Settled(settled)) = Record::decode(entry.kind, &entry.record)
            && settled.call == args.call
        {
            (known, kept) = (true, settled.exchange);
        }
        !known
    })
    .await?;
    let (short, call) = (words::short(row.run), args.call);
    let Some(kept) = kept else {
        let what = if known { format!("nothing was kept of {call}") } else { format!("{call} has not settled") };
        return Err(Problem::new(Code::RunState, format!("{short}: {what}"))
            .why("only model calls have an exchange, and it is kept only where spec.model.connection.keepExchange is true")
            .fix(context.place.command(&format!("run show {short}"))));
    };
    let digest = if args.request { kept.request } else { kept.response };
    let gone = || Problem::new(Code::Journal, format!("{short}: the body {digest} is not in the store"));
    output::bytes(&store.blob(digest).await?.ok_or_else(gone)?)?;
    Ok(Exit::Completed)
}
