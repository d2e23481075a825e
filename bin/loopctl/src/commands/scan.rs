//! `fixture scan`: secrets in files, also in those that no longer read.

use crate::exit::Exit;
use crate::files;
use crate::output::{self, Format};
use crate::problem::Problem;
use serde::Serialize;
use std::path::PathBuf;

/// A finding as programs read it; the secret is not in it.
#[derive(Serialize)]
struct Found {
    file: String,
    place: String,
    what: String,
}

/// Looks for secrets.
pub fn scan(paths: &[PathBuf], format: Format) -> Result<Exit, Problem> {
    let secrets = files::secrets();
    let mut found = Vec::new();
    for path in paths {
        let bytes = files::read(path)?;
        let file = path.display().to_string();
        found.extend(secrets.scan(&bytes).into_iter().map(|finding| Found {
            file: file.clone(),
            place: finding.place.to_string(),
            what: finding.what,
        }));
    }
    match format {
        Format::Json | Format::Jsonl => output::json_list(format, &found)?,
        Format::Name => {
            let mut files: Vec<&str> = found.iter().map(|found| found.file.as_str()).collect();
            files.dedup();
            files.into_iter().try_for_each(output::line)?;
        }
        Format::Table => {
            for Found { file, place, what } in &found {
                output::line(&format!("{file}: {place} holds {what}"))?;
            }
            if found.is_empty() {
                output::note("no secrets found");
            }
        }
    }
    Ok(if found.is_empty() { Exit::Completed } else { Exit::Diverged })
}
