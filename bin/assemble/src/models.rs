//! What is known of models here: the built-in table, a file of one's own, and what a manifest says.

use crate::model;
use crate::obstacle::{Kind, Obstacle};
use crate::words;
use loopd_agent::Manifest;
use loopd_agent::manifest::{Ability, ListedModel, Model, ModelList, Provider};
use loopd_fixture::excerpt;
use loopd_kernel::Digest;
use loopd_providers::Catalogue;
use loopd_providers::catalogue::{Capability, Entry, ModelFacts, Place};
use std::path::Path;

/// The largest file of facts in bytes; what is larger is no list that somebody wrote.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Reads a file with facts about models.
///
/// # Errors
/// [`Obstacle`] with file, line and what was expected.
pub fn read(file: &Path) -> Result<Catalogue, Obstacle> {
    let wrong = |what: String| Obstacle::new(Kind::ModelList, what).fix("name another file, or none");
    let unreadable = |error: std::io::Error| wrong(format!("{}: {}", file.display(), words::os(&error)));
    if std::fs::metadata(file).map_err(unreadable)?.len() > MAX_BYTES {
        return Err(wrong(format!("{}: it is larger than {}", file.display(), words::bytes(MAX_BYTES as usize))));
    }
    let bytes = std::fs::read(file).map_err(unreadable)?;
    let list = ModelList::parse(&file.to_string_lossy(), &bytes, &Catalogue::providers())
        .map_err(|error| Obstacle::new(Kind::ModelList, excerpt::lines(&error.to_string())))?;
    // It is recorded with every call: a name that says nothing of this machine, and which bytes it had.
    let name = file.file_name().map_or_else(String::new, |name| excerpt::line(&name.to_string_lossy(), 60));
    let digest = Digest::sha256(&[&bytes]).short();
    Ok(Catalogue::with(&name, &digest.to_string(), list.models.into_iter().filter_map(entry).collect()))
}

fn entry(model: ListedModel) -> Option<Entry> {
    let place = model.provider.map(Place::Provider).or(model.base_url.map(Place::Server))?;
    let capability = |ability: Ability| match ability {
        Ability::Vision => Capability::Vision,
        Ability::Tools => Capability::Tools,
        Ability::Reasoning => Capability::Reasoning,
    };
    Some(Entry {
        place,
        name: model.name,
        price: model.price.map(|price| price.to_kernel()),
        context_window: model.context_window,
        max_output_tokens: model.max_output_tokens,
        capabilities: model.capabilities.map(|abilities| abilities.into_iter().map(capability).collect()),
    })
}

/// What is known of a manifest's model.
///
/// # Errors
/// [`Obstacle`] when the address of its server is none.
pub fn facts(spec: &Model, catalogue: &Catalogue) -> Result<ModelFacts, Obstacle> {
    model::config(spec, None)?.facts(catalogue).map_err(|error| model::cannot_set_up(&error))
}

/// A model of the same provider with a known price, whose name is near enough to be what a manifest means.
pub fn near(spec: &Model, catalogue: &Catalogue) -> Option<String> {
    let (name, base_url) = match &spec.provider {
        Provider::OpenAi { name, base_url, .. }
        | Provider::Anthropic { name, base_url, .. }
        | Provider::Gemini { name, base_url, .. } => (name, base_url),
        Provider::Demo { .. } => return None,
    };
    // What another server calls its models, nobody here knows.
    if base_url.is_some() {
        return None;
    }
    let provider = spec.key().split(['/', '+']).next().unwrap_or_default().to_owned();
    let listed = catalogue.list(Some(&provider));
    let near = Catalogue::nearest(&listed, name, 8);
    near.into_iter().find(|line| line.facts.price.is_some()).map(|line| line.name.clone())
}

/// What is likely not meant in a manifest, as far as it can be told without asking any server.
pub fn remarks(manifest: &Manifest, facts: &ModelFacts) -> Vec<String> {
    let spec = &manifest.spec.model;
    let mut remarks = Vec::new();
    let bounds = [("longest reply", &facts.max_output_tokens), ("context window", &facts.context_window)];
    for (what, known) in bounds {
        if let Some(known) = known.as_ref().filter(|known| spec.max_output_tokens > known.value) {
            let (asked, most) = (words::count(spec.max_output_tokens), words::count(known.value));
            let from = &known.source;
            remarks.push(format!("maxOutputTokens {asked} is more than the model's {what}, {most} (from {from})"));
        }
    }
    let lacks_tools = facts.capabilities.as_ref().filter(|known| !known.value.contains(&Capability::Tools));
    if let Some(known) = lacks_tools.filter(|_| !manifest.spec.tools.is_empty()) {
        remarks.push(format!("spec.tools: the model uses none (from {})", known.source));
    }
    let address = match &spec.provider {
        Provider::OpenAi { base_url, api_key_env, .. }
        | Provider::Anthropic { base_url, api_key_env, .. }
        | Provider::Gemini { base_url, api_key_env, .. } => {
            let has_key = api_key_env.is_some() || spec.api_key_file.is_some();
            base_url.as_ref().map(|url| (url, has_key))
        }
        Provider::Demo { .. } => None,
    };
    let Some((url, has_key)) = address else { return remarks };
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if matches!(spec.provider, Provider::OpenAi { .. }) && path.is_empty() {
        let url = url.trim_end_matches('/');
        remarks.push(format!("baseUrl {url} has no path; such servers mostly answer below {url}/v1"));
    }
    if has_key && scheme == "http" && !is_of_this_machine(authority) {
        remarks.push(format!("the key goes to {authority} over an unencrypted connection"));
    }
    remarks
}

/// Whether a host, perhaps with a port, is this machine.
fn is_of_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    host.parse().map_or(host == "localhost" || host.ends_with(".localhost"), is_loopback)
}
