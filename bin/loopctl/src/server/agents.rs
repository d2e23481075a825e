//! `agent list|apply|delete`: the agents of a server.

use super::names::all;
use super::reach::Reach;
use crate::cli::{AgentApplyArgs, AgentDeleteArgs, AgentListArgs};
use crate::commands::{painted, plain_table, table_text};
use crate::context::Context;
use crate::exit::Exit;
use crate::files;
use crate::output::{self, Format};
use crate::paint::Tone;
use crate::problem::Problem;
use comfy_table::Cell;
use loopd_fixture::excerpt;
use loopd_protocol::{Agent, AgentApplied};
use std::path::Path;

/// Lists the agents.
///
/// # Errors
/// [`Problem`].
pub async fn list(context: &Context, args: AgentListArgs) -> Result<Exit, Problem> {
    let reach = Reach::new(context, &args.server)?;
    let found = all(usize::MAX, async |_| reach.client.agents().await).await?;
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => output::json_list(format, &found)?,
        Format::Name => found.iter().try_for_each(|one| output::line(&excerpt::line(&one.name, 80)))?,
        Format::Table if found.is_empty() => output::note("the server has no agent"),
        Format::Table => {
            let mut table = plain_table(["AGENT", "STATE", "FROM", "MODEL", "WHAT IT DOES"]);
            for one in &found {
                let (tone, state) = state(one);
                let from = one.file.as_deref().unwrap_or_else(|| one.source.name());
                table.add_row([
                    Cell::new(excerpt::line(&one.name, 80)),
                    painted(context.paint, tone, state),
                    Cell::new(excerpt::line(from, 200)),
                    Cell::new(excerpt::line(one.model.as_deref().unwrap_or("-"), 80)),
                    Cell::new(excerpt::line(&one.description, 80)),
                ]);
            }
            output::line(&table_text(&table))?;
            for (one, why) in found.iter().filter_map(|one| Some((one, trouble(one)?))) {
                output::note(&format!("{}: {why}", excerpt::line(&one.name, 80)));
            }
        }
    }
    Ok(Exit::Completed)
}

const fn state(agent: &Agent) -> (Tone, &'static str) {
    match (&agent.unavailable, &agent.error) {
        (None, None) => (Tone::Good, "ready"),
        // What is in force is an older one.
        (None, Some(_)) => (Tone::Waits, "not updated"),
        (Some(_), _) => (Tone::Bad, "takes no calls"),
    }
}

fn trouble(agent: &Agent) -> Option<String> {
    let why = agent.error.as_ref().or(agent.unavailable.as_ref())?;
    Some(excerpt::lines(why).replace('\n', "\n  "))
}

/// Sends manifests to be kept.
///
/// # Errors
/// [`Problem`]: also when the server takes some and not the next.
pub async fn apply(context: &Context, args: AgentApplyArgs) -> Result<Exit, Problem> {
    let read = args.files.iter().map(|file| named(file)).collect::<Result<Vec<_>, _>>()?;
    let reach = Reach::new(context, &args.server)?;
    let mut applied = Vec::new();
    for (name, manifest) in read {
        let done = reach.client.apply_agent(&name, manifest).await;
        if args.format.format == Format::Table {
            match &done {
                Ok(done) => output::note(&told(done)),
                Err(_) => output::note(&format!("{name} is not applied")),
            }
        }
        applied.push(done?);
    }
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => output::json_list(format, &applied)?,
        Format::Name => applied.iter().try_for_each(|done| output::line(&done.agent.name))?,
        Format::Table => {}
    }
    Ok(Exit::Completed)
}

/// The name of a manifest's agent, and the manifest as it is written.
fn named(file: &Path) -> Result<(String, Vec<u8>), Problem> {
    let manifest = loopd_assemble::manifest(file)?;
    Ok((manifest.metadata.name, files::read(file)?))
}

fn told(done: &AgentApplied) -> String {
    let name = excerpt::line(&done.agent.name, 80);
    let told = format!("{name} {}", done.change.name());
    match trouble(&done.agent) {
        Some(why) => format!("{told}; it takes no calls: {why}"),
        None => told,
    }
}

/// Takes a manifest out.
///
/// # Errors
/// [`Problem`].
pub async fn delete(context: &Context, args: AgentDeleteArgs) -> Result<Exit, Problem> {
    let reach = Reach::new(context, &args.server)?;
    reach.client.delete_agent(&args.name).await?;
    output::note(&format!("{} is kept no longer", excerpt::line(&args.name, 80)));
    Ok(Exit::Completed)
}
