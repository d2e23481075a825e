//! What a manifest has to hold beyond the shape of its fields.

mod tool;

use super::context::LEAST_RESULT_BYTES;
use super::locate::Step::{self, Item, Key};
use super::{AgentLimits, Manifest, Model, Provider};
use crate::schema::Schema;
use std::collections::BTreeSet;

/// What is wrong, and where.
pub(super) struct Problem {
    pub(super) path: Vec<Step>,
    pub(super) message: String,
    /// The value may be a secret that somebody pasted; it is not to be shown.
    pub(super) secret: bool,
}

pub(super) type Checked = Result<(), Problem>;

pub(super) fn problem(path: &[Step], message: impl Into<String>) -> Problem {
    Problem { path: path.to_vec(), message: message.into(), secret: false }
}

pub(super) fn ensure(holds: bool, path: &[Step], message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(problem(path, message())) }
}

/// Checks what the types do not hold.
pub(super) fn check(manifest: &Manifest) -> Checked {
    metadata(manifest)?;
    model(&manifest.spec.model, &[Key("spec"), Key("model")])?;
    fallbacks(manifest)?;
    tools(manifest)?;
    limits(&manifest.spec.limits, &[Key("spec"), Key("limits")])?;
    context(manifest)?;
    output(manifest)
}

fn metadata(manifest: &Manifest) -> Checked {
    let name = &manifest.metadata.name;
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits =
        (1..=63).contains(&name.len()) && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-');
    ensure(fits, &[Key("metadata"), Key("name")], || {
        "expected a name of lower-case letters, digits and `-`, at most 63 characters".into()
    })?;
    let version = &manifest.metadata.version;
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    ensure(version.len() <= 32 && version.split('.').all(number), &[Key("metadata"), Key("version")], || {
        "expected a version of numbers and dots, for example 1 or 2.1".into()
    })
}

fn model(model: &Model, path: &[Step]) -> Checked {
    let at = |field| [path, &[Key(field)]].concat();
    match &model.provider {
        Provider::OpenAi { name, base_url, api_key_env, .. }
        | Provider::Anthropic { name, base_url, api_key_env }
        | Provider::Gemini { name, base_url, api_key_env } => {
            ensure(!name.trim().is_empty(), &at("name"), || "expected the model's name at the server".into())?;
            if let Some(url) = base_url {
                self::url(url).map_err(|(message, secret)| Problem { secret, ..problem(&at("baseUrl"), message) })?;
            }
            if let Some(variable) = api_key_env {
                let message = "expected the name of an environment variable, for example OPENAI_API_KEY; \
                               the key itself does not belong into a manifest";
                let secret = !is_variable(variable);
                ensure(!secret, &at("apiKeyEnv"), || message.into()).map_err(|wrong| Problem { secret, ..wrong })?;
            }
        }
        Provider::Demo { script } => {
            ensure(!script.trim().is_empty(), &at("script"), || "expected the path of a script".into())?;
        }
    }
    let file = model.api_key_file.as_deref().is_none_or(|file| !file.trim().is_empty());
    ensure(file, &at("apiKeyFile"), || "expected the path of a file that holds the key".into())?;
    if let Some(proxy) = model.connection.proxy.as_deref().filter(|proxy| *proxy != "none") {
        let path = [path, &[Key("connection"), Key("proxy")]].concat();
        url(proxy).map_err(|(message, secret)| Problem { secret, ..problem(&path, message) })?;
    }
    ensure(model.max_output_tokens > 0, &at("maxOutputTokens"), || "expected at least 1".into())?;
    ensure(model.attempts != Some(0), &at("attempts"), || "expected at least 1".into())?;
    ensure(model.context_window != Some(0), &at("contextWindow"), || "expected at least 1".into())?;
    let timeout = model.timeout.is_none_or(|timeout| timeout.ms > 0);
    ensure(timeout, &at("timeout"), || "expected a duration above zero".into())
}

fn fallbacks(manifest: &Manifest) -> Checked {
    for (index, fallback) in manifest.spec.fallbacks.iter().enumerate() {
        let at = [Key("spec"), Key("fallbacks"), Item(index)];
        model(&fallback.model, &[&at[..], &[Key("model")]].concat())?;
        let served = !matches!(fallback.model.provider, Provider::Demo { .. });
        ensure(served, &at, || "a model that plays a script cannot take over: the script is that of one model".into())?;
        let on = [&at[..], &[Key("on")]].concat();
        ensure(!fallback.on.is_empty(), &on, || "expected at least one reason; without `on` there are several".into())?;
    }
    Ok(())
}

/// An environment variable as people name them. Keys of providers have other shapes.
fn is_variable(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    starts && text.len() <= 128 && (text.bytes().all(inner) || (text.len() <= 32 && text.bytes().all(lower)))
}

pub(super) fn url(url: &str) -> Result<(), (String, bool)> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.filter(|rest| !rest.is_empty() && !url.contains(char::is_whitespace));
    let Some(rest) = rest else {
        return Err(("expected a URL that begins with http:// or https://".into(), false));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if authority.contains('@') {
        return Err(("a URL in a manifest holds no user or password: name the key with apiKeyEnv".into(), true));
    }
    Ok(())
}

fn tools(manifest: &Manifest) -> Checked {
    let mut names: BTreeSet<&str> = manifest.built_in_tools().into_iter().collect();
    for (index, source) in manifest.spec.tools.iter().enumerate() {
        let at = [Key("spec"), Key("tools"), Item(index)];
        tool::check(source, manifest, &at)?;
        for name in source.tool_names() {
            ensure(names.insert(name), &at, || format!("there would be two tools named `{name}`"))?;
        }
    }
    for (index, helper) in manifest.spec.agents.iter().enumerate() {
        let at = [Key("spec"), Key("agents"), Item(index)];
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let name = &helper.name;
        let fits = (1..=64).contains(&name.len()) && name.bytes().all(inner);
        ensure(fits, &[at[0], at[1], at[2], Key("name")], || {
            "expected a name of letters, digits, `_` and `-`, at most 64 characters".into()
        })?;
        ensure(name != crate::ask::NAME, &[at[0], at[1], at[2], Key("name")], || {
            "`ask` is the tool that asks a person; choose another name".into()
        })?;
        let file = || "expected the path of a manifest".into();
        ensure(!helper.manifest.trim().is_empty(), &[at[0], at[1], at[2], Key("manifest")], file)?;
        if let Some(given) = &helper.limits {
            limits(given, &[at[0], at[1], at[2], Key("limits")])?;
        }
        ensure(names.insert(name), &at, || format!("there would be two tools named `{name}`"))?;
    }
    Ok(())
}

fn context(manifest: &Manifest) -> Checked {
    let context = &manifest.spec.context;
    let at = |field| vec![Key("spec"), Key("context"), Key(field)];
    let least = || format!("expected at least {LEAST_RESULT_BYTES} bytes");
    ensure(context.tool_result_bytes >= LEAST_RESULT_BYTES, &at("toolResultBytes"), least)?;
    for (field, paths) in [("instructions", &context.instructions), ("skills", &context.skills)] {
        for (index, path) in paths.iter().enumerate() {
            let place = [at(field), vec![Item(index)]].concat();
            ensure(!path.trim().is_empty(), &place, || "expected a path".into())?;
        }
    }
    Ok(())
}

fn limits(limits: &AgentLimits, path: &[Step]) -> Checked {
    let at = |field| [path, &[Key(field)]].concat();
    let above_zero = || "expected a limit above zero; without a limit, leave the field out".into();
    ensure(limits.iterations > 0, &at("iterations"), above_zero)?;
    ensure(limits.tokens != Some(0), &at("tokens"), above_zero)?;
    ensure(limits.wall.is_none_or(|wall| wall.ms > 0), &at("wall"), above_zero)
}

fn output(manifest: &Manifest) -> Checked {
    let Some(output) = &manifest.spec.output else {
        return Ok(());
    };
    let path = [Key("spec"), Key("output"), Key("schema")];
    Schema::compile(output.schema.as_str()).map(drop).map_err(|error| problem(&path, error.to_string()))
}
