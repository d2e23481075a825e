//! `kind: ModelList`: what models cost, how much they take and what they can do, as somebody writes it who knows.

use super::check::{Checked, ensure, problem, url};
use super::locate::Step::{self, Item, Key};
use super::parse::{Document, ManifestError, read};
use super::{ApiVersion, Price, check::Problem};
use crate::words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts about models, in YAML or JSON, to stand beside or instead of those of the built-in list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a list of models: a mapping with apiVersion, kind and models"
)]
pub struct ModelList {
    /// The version of this format.
    pub api_version: ApiVersion,
    /// What the document describes.
    pub kind: ListKind,
    /// The models.
    pub models: Vec<ListedModel>,
}

/// What the document describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ListKind {
    /// Models.
    ModelList,
}

/// One model. What is not written stays as it is known elsewhere, or unknown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "a mapping with name, with provider or baseUrl, and with what is known of the model"
)]
pub struct ListedModel {
    /// The provider at whose own service it is; either this or `baseUrl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The server where it is, as an agent's manifest names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Its name there, exactly.
    pub name: String,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The most tokens of one call, prompt and reply together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The most tokens of one reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Ability>>,
}

/// What a model can do besides text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ability {
    /// It reads images.
    Vision,
    /// It uses tools.
    Tools,
    /// It thinks before it answers.
    Reasoning,
}

impl Document for ModelList {
    const WORD: &'static str = "list of models";
    const EXPECTED: &'static str = "a list of models";
}

impl ModelList {
    /// Reads a list. `file` is how errors name it; nothing is opened. `providers` are the names that an entry may have.
    ///
    /// # Errors
    /// [`ManifestError`], naming file, line and what was expected.
    pub fn parse(file: &str, bytes: &[u8], providers: &[&str]) -> Result<Self, ManifestError> {
        read(file, bytes, |list| check(list, providers))
    }
}

fn check(list: &ModelList, providers: &[&str]) -> Checked {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (index, model) in list.models.iter().enumerate() {
        let whole = [Key("models"), Item(index)];
        let at = |field| [whole[0], whole[1], Key(field)];
        ensure(!model.name.trim().is_empty(), &at("name"), || "expected the model's name at its provider".into())?;
        let place = place(model, providers, &whole)?;
        let bounds = [("contextWindow", model.context_window), ("maxOutputTokens", model.max_output_tokens)];
        for (field, bound) in bounds {
            ensure(bound != Some(0), &at(field), || "expected at least 1; leave out what is not known".into())?;
        }
        let fits = model.max_output_tokens.zip(model.context_window).is_none_or(|(reply, window)| reply <= window);
        ensure(fits, &at("maxOutputTokens"), || "expected no more than contextWindow".into())?;
        let says =
            model.price.is_some() || bounds.iter().any(|(_, bound)| bound.is_some()) || model.capabilities.is_some();
        ensure(says, &whole, || {
            "expected at least one of price, contextWindow, maxOutputTokens and capabilities".into()
        })?;
        if let Some(before) = seen.insert((place, &model.name), index + 1) {
            return Err(problem(&whole, format!("`{}` is listed twice: entry {before} is for it as well", model.name)));
        }
    }
    Ok(())
}

/// Where the model is.
fn place<'a>(model: &'a ListedModel, providers: &[&str], whole: &[Step; 2]) -> Result<&'a str, Problem> {
    let at = |field| [whole[0], whole[1], Key(field)];
    match (&model.provider, &model.base_url) {
        (Some(provider), None) => {
            ensure(providers.contains(&provider.as_str()), &at("provider"), || {
                let near = words::nearest(provider, providers.iter().copied());
                let hint = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                format!("there is no provider `{provider}`{hint}; for a server of your own, write baseUrl")
            })?;
            Ok(provider)
        }
        (None, Some(address)) => {
            let wrong = |(message, secret)| Problem { secret, ..problem(&at("baseUrl"), message) };
            url(address).map_err(wrong)?;
            Ok(address.trim_end_matches('/'))
        }
        (Some(_), Some(_)) => Err(problem(&at("baseUrl"), "expected either provider or baseUrl, not both")),
        (None, None) => Err(problem(whole, "expected provider, or baseUrl for a server of your own")),
    }
}
