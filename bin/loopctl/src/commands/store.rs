//! `store backup`.

use crate::context::Context;
use crate::exit::Exit;
use crate::output;
use crate::problem::{Code, Problem};
use std::path::Path;

/// Copies the store into a new file, also while a run is driven.
pub async fn backup(context: &Context, to: &Path) -> Result<Exit, Problem> {
    if to.exists() {
        return Err(Problem::new(Code::File, format!("{} is there already", to.display()))
            .fix("choose a name that is free: a backup replaces nothing"));
    }
    context.place.client()?.backup(to).await?;
    output::note(&format!("{} copied to {}", context.place.path().display(), to.display()));
    Ok(Exit::Completed)
}
