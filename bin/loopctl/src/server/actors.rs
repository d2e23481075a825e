//! `actor list|show`: who can be addressed, and who one is.

use super::names::all;
use super::reach::Reach;
use crate::cli::{ActorArgs, ActorCommand};
use crate::commands::{painted, plain_table, table_text};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::paint::Tone;
use crate::problem::Problem;
use comfy_table::Cell;
use loopd_fixture::excerpt;
use loopd_protocol::{Actor, ActorKey, ActorKind};

/// `loopctl actor …`.
///
/// # Errors
/// [`Problem`].
pub async fn actor(context: &Context, args: ActorArgs) -> Result<Exit, Problem> {
    let reach = Reach::new(context, &args.server)?;
    match args.command {
        ActorCommand::List { kind, format } => list(context, &reach, kind, format.format).await,
        ActorCommand::Show { actor: Some(actor), format } => show(&reach, &actor, format.format).await,
        ActorCommand::Show { actor: None, format } => oneself(&reach, format.format).await,
    }
}

async fn list(context: &Context, reach: &Reach, kind: Option<ActorKind>, format: Format) -> Result<Exit, Problem> {
    let found = all(usize::MAX, async |part| reach.client.actors(kind, &part).await).await?;
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &found)?,
        Format::Name => found.iter().try_for_each(|one| output::line(one.key.as_str()))?,
        Format::Table if found.is_empty() => output::note("nobody has announced itself"),
        Format::Table => {
            let mut table = plain_table(["ACTOR", "STATE", "WHAT IT DOES"]);
            for one in &found {
                let (tone, state) = state(one);
                table.add_row([
                    Cell::new(one.key.as_str()),
                    painted(context.paint, tone, state),
                    Cell::new(excerpt::line(&one.description, 80)),
                ]);
            }
            output::line(&table_text(&table))?;
        }
    }
    Ok(Exit::Completed)
}

fn state(actor: &Actor) -> (Tone, &'static str) {
    match (actor.key.kind(), actor.online, actor.demo) {
        (ActorKind::Person, ..) => (Tone::Good, "person"),
        (ActorKind::Operator | ActorKind::Harness, true, true) => (Tone::Good, "online (demo)"),
        (ActorKind::Operator | ActorKind::Harness, true, false) => (Tone::Good, "online"),
        (ActorKind::Operator | ActorKind::Harness, false, _) => (Tone::Waits, "offline"),
    }
}

async fn show(reach: &Reach, key: &ActorKey, format: Format) -> Result<Exit, Problem> {
    let actor = reach.client.actor(key).await?;
    match format {
        Format::Json | Format::Jsonl => output::json(format, &actor)?,
        Format::Name => output::line(actor.key.as_str())?,
        Format::Table => {
            output::line(&format!("{}  {}", actor.key, state(&actor).1))?;
            for text in [&actor.name, &actor.description] {
                if !text.is_empty() && text != actor.key.key() {
                    output::line(&format!("  {}", excerpt::lines(text).replace('\n', "\n  ")))?;
                }
            }
        }
    }
    Ok(Exit::Completed)
}

async fn oneself(reach: &Reach, format: Format) -> Result<Exit, Problem> {
    let who = reach.client.whoami().await?;
    match format {
        Format::Json | Format::Jsonl => output::json(format, &who)?,
        Format::Name => output::line(who.actor.as_str())?,
        Format::Table => {
            let roles: Vec<_> = who.roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect();
            output::line(&format!("{} ({}) at {}", who.actor, roles.join(", "), reach.client.server()))?;
        }
    }
    Ok(Exit::Completed)
}
