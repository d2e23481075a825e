//! API tokens that are made beside the API: the owner's own, and the first ones.

use crate::cli::TokenArgs;
use crate::data::Data;
use crate::says;
use crate::trouble::{Exit, Trouble};
use loopd_platform::{Caller, Config, Paging, Platform};
use loopd_protocol::{ActorKey, ActorKind, NewToken, Role};

/// What the owner's token is called in lists.
const OWN: &str = "admin.token of this server's folder";

/// Makes sure that `admin.token` lets its reader in as this person.
///
/// # Errors
/// [`Trouble`].
pub async fn keep_admin(platform: &Platform, data: &Data, person: &ActorKey) -> Result<(), Trouble> {
    let owner = Caller::new(person.clone(), Role::Admin);
    if let Some(secret) = data.admin_token()?
        && platform.authenticate(&secret).await?.as_ref() == Some(&owner)
    {
        return Ok(());
    }
    // One that nobody can read any more is good for nothing but mischief.
    let mut paging = Paging::default();
    loop {
        let page = platform.tokens(&owner, paging).await?;
        for token in page.items.iter().filter(|token| token.name == OWN && token.revoked_at.is_none()) {
            platform.revoke_token(&owner, token.id).await?;
        }
        let Some(next) = page.next else { break };
        paging = Paging { cursor: Some(next), limit: 0 };
    }
    let new = NewToken { name: OWN.to_owned(), actor: person.clone(), roles: vec![Role::Admin], days: None };
    data.keep_admin_token(&platform.make_token(&owner, "", new).await?.secret)
}

/// Makes a token on the store of a server that does not run. Its secret goes to stdout, alone.
///
/// # Errors
/// [`Trouble`], also while a server runs.
pub async fn make(args: TokenArgs) -> Result<Exit, Trouble> {
    let data = Data::open(&args.data)?;
    let store = data.store().map_err(|trouble| match trouble.exit {
        Exit::Conflict => trouble.fix("while a server runs:  loopctl token create --actor … --role …"),
        Exit::Done | Exit::Failed | Exit::Usage | Exit::Signalled => trouble,
    })?;
    let platform = Platform::new(store, Config::default());
    // Whoever may write the store's file may do everything.
    let program = ActorKey::new(ActorKind::Operator, "loopd");
    let program = program.map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    let owner = Caller::new(program, Role::Admin);
    let new = NewToken { name: args.name, actor: args.actor, roles: args.role, days: args.days };
    let made = platform.make_token(&owner, "", new).await?;
    says::note(&format!("{} for {}; it is not shown again:", made.token.id, made.token.actor));
    says::line(&made.secret).map_err(|error| Trouble::new(Exit::Failed, error.to_string()))?;
    Ok(Exit::Done)
}
