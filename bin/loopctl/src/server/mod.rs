//! A person in a terminal and a platform server: `conv`, `actor`, `call`, `token`, its agents, and the Questions of Conversations.
//!
//! Reading order: [`reach`] (which server, and with which token), [`names`] (what `last` and the beginning of an id
//! mean), [`refused`] (how a server's no is said), then a file for each noun; [`screen`] shows what is said as it comes.

mod actors;
pub mod agents;
mod calls;
mod conv;
mod follow;
mod names;
mod part;
mod questions;
pub mod reach;
mod refused;
mod screen;
mod send;
mod tokens;
mod wait;
mod watch;
mod works;

use crate::cli::{ConvArgs, ConvCommand};
use crate::context::Context;
use crate::exit::Exit;
use crate::problem::{Code, Problem};
use std::io::Read as _;

pub use actors::actor;
pub use calls::call;
pub use questions::{answer, asks, how, listed, show};
pub use reach::{Reach, locate};
pub use tokens::token;

/// `loopctl conv …`.
///
/// # Errors
/// [`Problem`].
pub async fn conv(context: &Context, args: ConvArgs) -> Result<Exit, Problem> {
    let reach = Reach::new(context, &args.server)?;
    match args.command {
        ConvCommand::New { title, member, key, format } => {
            conv::new(context, &reach, (title, member, key), format.format).await
        }
        ConvCommand::List { archived, limit, format } => {
            conv::list(context, &reach, (archived, limit), format.format).await
        }
        ConvCommand::Show { conv, limit, all, work, format } => {
            conv::show(context, &reach, &conv, ((!all).then_some(limit), work), format.format).await
        }
        ConvCommand::Send(args) => send::send(context, &reach, args).await,
        ConvCommand::Watch(args) => watch::watch(context, &reach, args).await,
        ConvCommand::Rename { conv, title, format } => conv::rename(&reach, &conv, title, format.format).await,
        ConvCommand::Archive { conv, undo, format } => conv::archive(&reach, &conv, !undo, format.format).await,
        ConvCommand::Members { conv, add, remove, format } => {
            conv::members(&reach, &conv, (add, remove), format.format).await
        }
        ConvCommand::Export { conv, form } => conv::export(&reach, &conv, form).await,
        ConvCommand::Search { words, within, limit, format } => {
            conv::search(context, &reach, (&words.join(" "), within.as_deref(), limit), format.format).await
        }
        ConvCommand::Delete { conv, yes } => conv::delete(&reach, &conv, yes).await,
    }
}

/// What a person wrote in the place of a text: itself, or with `-` everything at stdin.
fn text_of(written: String, what: &str) -> Result<String, Problem> {
    let text = if written == "-" {
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Problem::new(Code::Input, format!("stdin: {error}")))?;
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        text
    } else {
        written
    };
    if text.trim().is_empty() {
        return Err(Problem::new(Code::Input, format!("the {what} is empty")));
    }
    Ok(text)
}
