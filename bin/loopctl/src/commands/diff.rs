//! `diff`: two runs side by side.

use crate::cli::DiffArgs;
use crate::context::Context;
use crate::drive::width;
use crate::exit::Exit;
use crate::files;
use crate::output::{self, Format};
use crate::problem::Problem;
use loopd_fixture::diff::diff as compare;
use loopd_store::Store;

/// Compares two Runs or Fixtures.
pub async fn diff(context: &Context, args: DiffArgs) -> Result<Exit, Problem> {
    // Two files need no store.
    let needs_store = [&args.a, &args.b].iter().any(|text| !files::is_file(text));
    let store = if needs_store { Some(context.place.client()?) } else { None };
    let store = store.as_deref().map(|store| store as &dyn Store);
    let a = files::file_or_run(store, &args.a).await?;
    let b = files::file_or_run(store, &args.b).await?;
    let diff = compare(&a.trajectory, &b.trajectory);
    match args.format.format {
        format @ (Format::Json | Format::Jsonl) => output::json(format, &diff)?,
        Format::Name => output::line(if diff.is_same() { "same" } else { "different" })?,
        Format::Table => {
            let paint = context.paint;
            for line in diff.render(width()).lines() {
                let line = match line.as_bytes().first() {
                    Some(b'-') => paint.bad(line),
                    Some(b'+') => paint.good(line),
                    Some(b'~') => paint.wait(line),
                    _ => line.to_owned(),
                };
                output::line(&line)?;
            }
        }
    }
    Ok(if args.exit_code && !diff.is_same() { Exit::Diverged } else { Exit::Completed })
}
