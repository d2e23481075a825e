//! Fixture files: what is read and written, and how the ways that can go wrong are said.

use crate::find;
use crate::journal::{self, Reader, Reading};
use crate::problem::{Code, Problem};
use crate::words;
use loopd_agent::Agent;
use loopd_agent::manifest::Provider;
use loopd_fixture::{Fixture, Secrets};
use loopd_store::Store;
use std::path::Path;

/// Environment variables whose values are secrets wherever they appear: by these endings.
const SECRET_ENDINGS: [&str; 6] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_CREDENTIALS", "_APIKEY"];

/// A shorter value is told apart from nothing.
const SECRET_LENGTH: usize = 8;

/// Reads a file.
///
/// # Errors
/// [`Problem`], naming it.
pub fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    std::fs::read(path).map_err(|error| Problem::new(Code::File, format!("{}: {}", path.display(), words::os(&error))))
}

/// Reads a Fixture and verifies it whole.
///
/// # Errors
/// [`Problem`], naming line and Entry.
pub fn fixture(path: &Path) -> Result<Fixture, Problem> {
    let bytes = read(path)?;
    loopd_fixture::read(&bytes).map_err(|error| {
        Problem::new(Code::Fixture, format!("{}: {error}", path.display()))
            .why("the file is not the one that was recorded")
            .fix("take it from version control again, or record the run anew")
    })
}

/// The steps of a Fixture.
pub fn reading(fixture: &Fixture) -> Reading {
    let mut reader = Reader::new(fixture.header.run);
    let whole = fixture.entries.iter().all(|entry| reader.take(entry));
    let hash = fixture.entries.last().map(|entry| entry.hash).filter(|_| whole).unwrap_or_default();
    reader.finish(fixture.header.head, &hash)
}

/// The steps of what a person named: a fixture file, or a Run of the store.
///
/// # Errors
/// [`Problem`] when neither reads whole.
pub async fn file_or_run(store: Option<&dyn Store>, text: &str) -> Result<Reading, Problem> {
    let reading = match store.filter(|_| !is_file(text)) {
        None => reading(&fixture(Path::new(text))?),
        Some(store) => {
            let row = find::run(store, text).await?;
            journal::read(store, &row).await?
        }
    };
    reading.whole()?;
    Ok(reading)
}

/// True when a person means a file: it is there, or its name says so.
pub fn is_file(text: &str) -> bool {
    text.contains(['/', '.']) || Path::new(text).is_file()
}

/// What must not be in a recording: what looks like a key, and the values of this process's environment that are
/// keys by their names.
pub fn secrets() -> Secrets {
    let mut secrets = Secrets::patterns();
    for (name, value) in std::env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        let upper = name.to_ascii_uppercase();
        let secret = SECRET_ENDINGS.iter().any(|ending| upper.ends_with(ending)) || upper == "API_KEY";
        if secret && value.trim().len() >= SECRET_LENGTH {
            secrets = secrets.known(name, value.trim());
        }
    }
    secrets
}

/// [`secrets`] and the key that this Agent's model is called with, whatever its variable is named.
pub fn secrets_of(definition: &[u8]) -> Secrets {
    let agent = Agent::from_definition(definition).ok();
    let variable = agent.and_then(|agent| match &agent.manifest().spec.model.provider {
        Provider::OpenAi { api_key_env, .. }
        | Provider::Anthropic { api_key_env, .. }
        | Provider::Gemini { api_key_env, .. } => api_key_env.clone(),
        Provider::Demo { .. } => None,
    });
    let key = variable.and_then(|name| std::env::var(&name).ok().map(|value| (name, value)));
    match key.filter(|(_, value)| value.trim().len() >= SECRET_LENGTH) {
        Some((name, value)) => secrets().known(name, value.trim()),
        None => secrets(),
    }
}
