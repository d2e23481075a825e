//! What a tool source has to hold.

use super::{Checked, Problem, ensure, is_variable};
use crate::manifest::locate::Step::{self, Item, Key};
use crate::manifest::scalar::Duration;
use crate::manifest::{Manifest, Model, Provider, ToolSource};
use std::net::IpAddr;

pub(super) fn check(source: &ToolSource, manifest: &Manifest, at: &[Step]) -> Checked {
    match source {
        ToolSource::Files { root, .. } => folder(root, at),
        ToolSource::Http { hosts, addresses, max_bytes, timeout } => {
            each(hosts, at, "hosts", is_host, "expected a host name, an address, or `*.` and a name")?;
            each(addresses, at, "addresses", is_network, "expected an address or a network, for example 10.1.0.0/16")?;
            above_zero(*max_bytes, *timeout, at, "maxBytes")
        }
        ToolSource::Shell { programs, root, timeout, max_output, env } => {
            folder(root, at)?;
            each(programs, at, "programs", is_program, "expected the name of a program, or an absolute path")?;
            // What is no name may be a secret that somebody pasted.
            each(env, at, "env", is_variable, "expected the name of an environment variable, not its value")
                .map_err(|wrong| Problem { secret: true, ..wrong })?;
            let models = manifest.models();
            let key = |name: &str| models.iter().all(|(_, model)| key_of(model).is_none_or(|key| key != name));
            each(env, at, "env", key, "the model's key does not belong into the environment of programs")?;
            above_zero(*max_output, *timeout, at, "maxOutput")
        }
        ToolSource::Native { name, .. } => {
            let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            let fits = (1..=64).contains(&name.len()) && name.bytes().all(inner);
            ensure(fits, &below(at, &[Key("native")]), || {
                "expected a tool name of letters, digits, `_` and `-`, at most 64 characters".into()
            })
        }
        ToolSource::Ask => Ok(()),
    }
}

fn below(at: &[Step], steps: &[Step]) -> Vec<Step> {
    [at, steps].concat()
}

fn folder(root: &str, at: &[Step]) -> Checked {
    ensure(!root.trim().is_empty(), &below(at, &[Key("root")]), || "expected a folder".into())
}

fn each(list: &[String], at: &[Step], field: &'static str, fits: impl Fn(&str) -> bool, why: &str) -> Checked {
    match list.iter().position(|text| !fits(text)) {
        Some(wrong) => ensure(false, &below(at, &[Key(field), Item(wrong)]), || why.into()),
        None => Ok(()),
    }
}

fn above_zero(size: Option<u64>, timeout: Option<Duration>, at: &[Step], field: &'static str) -> Checked {
    ensure(size != Some(0), &below(at, &[Key(field)]), || "expected at least 1".into())?;
    let fits = timeout.is_none_or(|timeout| timeout.ms > 0);
    ensure(fits, &below(at, &[Key("timeout")]), || "expected a duration above zero".into())
}

/// The variable that holds the key of the model.
fn key_of(model: &Model) -> Option<&str> {
    let (named, usual) = match &model.provider {
        Provider::OpenAi { api_key_env, .. } => (api_key_env, "OPENAI_API_KEY"),
        Provider::Anthropic { api_key_env, .. } => (api_key_env, "ANTHROPIC_API_KEY"),
        Provider::Gemini { api_key_env, .. } => (api_key_env, "GEMINI_API_KEY"),
        Provider::Demo { .. } => return None,
    };
    Some(named.as_deref().unwrap_or(usual))
}

/// A host as a URL has it, without a port: nothing in it can be taken for another part of a URL.
fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(inner);
    text.parse::<IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(label))
}

fn is_network(text: &str) -> bool {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= most))
}

fn is_program(text: &str) -> bool {
    let odd = text.is_empty() || text.contains(['\0', ' ', '\n']) || text == "." || text == "..";
    !odd && (!text.contains('/') || text.starts_with('/'))
}
