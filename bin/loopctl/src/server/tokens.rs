//! `token create|list|revoke`.

use super::names::{self, all, short};
use super::reach::Reach;
use crate::cli::{NewTokenArgs, TokenArgs, TokenCommand};
use crate::commands::{plain_table, table_text};
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{self, Format};
use crate::problem::Problem;
use crate::words;
use loopd_fixture::excerpt;
use loopd_kernel::TimeMs;
use loopd_protocol::{NewToken, Token};

/// `loopctl token …`.
///
/// # Errors
/// [`Problem`].
pub async fn token(context: &Context, args: TokenArgs) -> Result<Exit, Problem> {
    let reach = Reach::new(context, &args.server)?;
    match args.command {
        TokenCommand::Create(args) => create(&reach, args).await,
        TokenCommand::List(format) => list(context, &reach, format.format).await,
        TokenCommand::Revoke { token, format } => revoke(&reach, &token, format.format).await,
    }
}

async fn create(reach: &Reach, args: NewTokenArgs) -> Result<Exit, Problem> {
    let new = NewToken { name: args.name, actor: args.actor, roles: args.role, days: args.days };
    let made = reach.client.make_token(&new).await?;
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => output::json(format, &made)?,
        Format::Name => output::line(&made.token.id.to_string())?,
        Format::Table => {
            output::note(&format!("{} for {}; the secret is not shown again:", short(made.token.id), made.token.actor));
            output::line(&made.secret)?;
        }
    }
    Ok(Exit::Completed)
}

async fn list(context: &Context, reach: &Reach, format: Format) -> Result<Exit, Problem> {
    let found = all(usize::MAX, async |part| reach.client.tokens(&part).await).await?;
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &found)?,
        Format::Name => found.iter().try_for_each(|one| output::line(&one.id.to_string()))?,
        Format::Table => {
            let mut table = plain_table(["TOKEN", "ACTOR", "MAY", "STATE", "MADE", "FOR"]);
            for one in &found {
                table.add_row([
                    short(one.id),
                    one.actor.to_string(),
                    roles(one),
                    state(one, context.now()),
                    words::ago(TimeMs(one.created_at), context.now()),
                    excerpt::line(&one.name, 50),
                ]);
            }
            output::line(&table_text(&table))?;
        }
    }
    Ok(Exit::Completed)
}

fn roles(token: &Token) -> String {
    token.roles.iter().map(|role| format!("{role:?}").to_lowercase()).collect::<Vec<_>>().join(", ")
}

fn state(token: &Token, now: TimeMs) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(_), _) => "revoked".to_owned(),
        (None, Some(until)) if until <= now.0 => "ended".to_owned(),
        (None, Some(until)) => format!("until {}", words::moment(TimeMs(until))),
        (None, None) => "good".to_owned(),
    }
}

async fn revoke(reach: &Reach, text: &str, format: Format) -> Result<Exit, Problem> {
    let id = names::token(reach, text).await?;
    let token = reach.client.revoke_token(id).await?;
    match format {
        Format::Json | Format::Jsonl => output::json(format, &token)?,
        Format::Name => output::line(&token.id.to_string())?,
        Format::Table => output::note(&format!("{} of {} is good for nothing now", short(id), token.actor)),
    }
    Ok(Exit::Completed)
}
