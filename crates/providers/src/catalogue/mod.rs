//! What is known of models: price, context window, the most tokens of a reply, what they can do; and from where.
//!
//! Three sources, the later winning over the earlier: the embedded table, entries of a file of one's own
//! ([`Catalogue::with`]), and what a configuration declares of its model ([`ModelFacts::declared`]). What no source
//! says is unknown, and unknown is `None`: never zero, never the number of a model with a similar name.

mod near;
mod table;
#[cfg(test)]
mod tests;

use crate::price::DeclaredPrice;
use loopd_kernel::units::Price;
use loopd_runtime::{Clock, SystemClock};
use reqwest::Url;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

pub use table::TABLE;

/// What Google is called in a manifest, and in the table.
const GEMINI: (&str, &str) = ("gemini", "google");

/// Where a fact is from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The embedded table.
    Table,
    /// A file of entries.
    File {
        /// Its name, without its folder.
        name: String,
        /// The beginning of the digest of its bytes.
        digest: String,
    },
    /// The configuration of the model, for example an agent's manifest.
    Declared,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table => f.write_str(TABLE),
            Self::File { name, digest } => write!(f, "{name} {digest}"),
            Self::Declared => f.write_str("manifest"),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A fact and where it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known<T> {
    /// The fact.
    pub value: T,
    /// Where it is from.
    pub source: Source,
}

/// A price as it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The price, of long prompts and of the dearest hour where these cost more: the ledger may show too much and
    /// never too little.
    pub price: Price,
    /// Prompts of ordinary length cost less per token than this; whoever sends only such may declare their price.
    pub long_prompts_cost_more: bool,
}

impl Listed {
    fn dearer(&self, other: &Self) -> Self {
        let (a, b) = (&self.price, &other.price);
        let price = Price {
            input: a.input.max(b.input),
            cache_read: a.cache_read.max(b.cache_read),
            cache_write: a.cache_write.max(b.cache_write),
            output: a.output.max(b.output),
            reasoning: a.reasoning.max(b.reasoning),
        };
        Self { price, long_prompts_cost_more: self.long_prompts_cost_more || other.long_prompts_cost_more }
    }
}

/// What a model can do besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// It reads images.
    Vision,
    /// It uses tools.
    Tools,
    /// It thinks before it answers.
    Reasoning,
}

impl Capability {
    /// The name as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Tools => "tools",
            Self::Reasoning => "reasoning",
        }
    }
}

/// What is known of one model at one service. What is `None`, nobody knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelFacts {
    /// What it costs.
    pub price: Option<Known<Listed>>,
    /// The most tokens of one call, prompt and reply together.
    pub context_window: Option<Known<u64>>,
    /// The most tokens of one reply.
    pub max_output_tokens: Option<Known<u64>>,
    /// What it can do. The embedded table does not say.
    pub capabilities: Option<Known<Vec<Capability>>>,
}

impl ModelFacts {
    /// The same, where what a configuration declares wins.
    #[must_use]
    pub fn declared(mut self, price: Option<DeclaredPrice>, context_window: Option<u64>) -> Self {
        let plain = |price: DeclaredPrice| Listed { price: price.into(), long_prompts_cost_more: false };
        put(&mut self.price, price.map(plain), &Source::Declared);
        put(&mut self.context_window, context_window, &Source::Declared);
        self
    }

    /// The price for the ledger.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.price.as_ref().map(|known| known.value.price)
    }

    /// Where the price is from, as it is recorded.
    #[must_use]
    pub fn price_source(&self) -> Option<String> {
        self.price.as_ref().map(|known| known.source.to_string())
    }

    /// The context window.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.context_window.as_ref().map(|known| known.value)
    }

    /// A price that is higher than most calls deserve is worth a word.
    pub(crate) fn warn(&self, model: &str) {
        if self.price.as_ref().is_some_and(|known| known.value.long_prompts_cost_more) {
            tracing::warn!(model, "priced as for long prompts; declare a price to be exact");
        }
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn from_table(row: table::Row) -> Self {
        fn known<T>(value: T) -> Known<T> {
            Known { value, source: Source::Table }
        }
        Self { price: row.price.map(known), context_window: row.context_window.map(known), ..Self::default() }
    }

    fn overridden(mut self, entry: &Entry, source: &Source) -> Self {
        let plain = |price: Price| Listed { price, long_prompts_cost_more: false };
        put(&mut self.price, entry.price.map(plain), source);
        put(&mut self.context_window, entry.context_window, source);
        put(&mut self.max_output_tokens, entry.max_output_tokens, source);
        put(&mut self.capabilities, entry.capabilities.clone(), source);
        self
    }
}

fn put<T>(fact: &mut Option<Known<T>>, value: Option<T>, source: &Source) {
    if let Some(value) = value {
        *fact = Some(Known { value, source: source.clone() });
    }
}

/// Whose model an [`Entry`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The provider's own service, by a name of [`Catalogue::providers`].
    Provider(String),
    /// The server at this address, up to and with `/v1`.
    Server(String),
}

/// What a file says of one model. What it does not say stays as the table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Whose it is.
    pub place: Place,
    /// Its name there, exactly.
    pub name: String,
    /// What it costs.
    pub price: Option<Price>,
    /// The most tokens of one call.
    pub context_window: Option<u64>,
    /// The most tokens of one reply.
    pub max_output_tokens: Option<u64>,
    /// What it can do.
    pub capabilities: Option<Vec<Capability>>,
}

/// One line of [`Catalogue::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The provider, or the address of a server.
    pub provider: String,
    /// The model's name there.
    pub name: String,
    /// What is known of it.
    pub facts: ModelFacts,
}

/// Everything that is known before a configuration adds its own. The default knows the embedded table only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    entries: Vec<Entry>,
    file: Option<Source>,
}

impl Catalogue {
    /// The embedded table under entries of a file. `name` is how the file is recorded, without its folder; `digest`
    /// is the beginning of its digest. Of two entries for one model the later one counts.
    #[must_use]
    pub fn with(name: &str, digest: &str, entries: Vec<Entry>) -> Self {
        Self { entries, file: Some(Source::File { name: name.to_owned(), digest: digest.to_owned() }) }
    }

    /// The names of providers: what [`Catalogue::lookup`] and an [`Entry`] take.
    #[must_use]
    pub fn providers() -> Vec<&'static str> {
        let mut names: Vec<&str> = table::providers().map(shown).collect();
        names.sort_unstable();
        names
    }

    /// The addresses of servers that a file says something of, each once.
    #[must_use]
    pub fn servers(&self) -> Vec<&str> {
        let mut servers: Vec<&str> = Vec::new();
        for entry in &self.entries {
            match &entry.place {
                Place::Server(url) if !servers.iter().any(|known| address(known) == address(url)) => servers.push(url),
                Place::Server(_) | Place::Provider(_) => {}
            }
        }
        servers
    }

    /// What is known of the model `name` at a provider's own service; `None` when nothing is.
    #[must_use]
    pub fn lookup(&self, provider: &str, name: &str) -> Option<ModelFacts> {
        let provider = tabled(provider);
        let row = table::find(provider, name, SystemClock.now());
        let facts = row.map(ModelFacts::from_table).unwrap_or_default();
        let is_own = |place: &Place| matches!(place, Place::Provider(own) if tabled(own) == provider);
        Some(self.overridden(facts, name, is_own)).filter(|facts| !facts.is_empty())
    }

    /// What is known of the model `name` at the server with this address: what the catalogue knows of the provider
    /// whose own service that is, and what a file says of the server. A machine of one's own is nobody's service,
    /// whatever its models are called.
    #[must_use]
    pub fn lookup_at(&self, base_url: &str, name: &str) -> Option<ModelFacts> {
        let own = table::service(base_url).and_then(|provider| self.lookup(provider, name));
        let here = address(base_url);
        let is_here = |place: &Place| matches!(place, Place::Server(url) if here.is_some() && address(url) == here);
        Some(self.overridden(own.unwrap_or_default(), name, is_here)).filter(|facts| !facts.is_empty())
    }

    /// Everything that is known, by provider and name. `provider` narrows it to one.
    #[must_use]
    pub fn list(&self, provider: Option<&str>) -> Vec<Listing> {
        let now = SystemClock.now();
        let wanted = |name: &str| {
            let is_same = |provider| tabled(provider) == tabled(name);
            provider.is_none_or(|provider| {
                is_same(provider) || address(provider).is_some_and(|at| Some(at) == address(name))
            })
        };
        let mut known: BTreeMap<(String, String), ModelFacts> = BTreeMap::new();
        for provider in table::providers().filter(|name| wanted(name)) {
            for row in table::all(provider, now) {
                known.insert((shown(provider).to_owned(), row.id.clone()), ModelFacts::from_table(row));
            }
        }
        if let Some(source) = &self.file {
            for entry in &self.entries {
                let place = match &entry.place {
                    Place::Provider(provider) => shown(tabled(provider)),
                    Place::Server(url) => url,
                };
                if wanted(place) {
                    let facts = known.entry((place.to_owned(), entry.name.clone())).or_default();
                    *facts = std::mem::take(facts).overridden(entry, source);
                }
            }
        }
        known.into_iter().map(|((provider, name), facts)| Listing { provider, name, facts }).collect()
    }

    /// The names among `listed` that somebody who wrote `name` may have meant, the nearest first.
    #[must_use]
    pub fn nearest<'a>(listed: &'a [Listing], name: &str, most: usize) -> Vec<&'a Listing> {
        near::nearest(listed, name, most)
    }

    fn overridden(&self, facts: ModelFacts, name: &str, is_it: impl Fn(&Place) -> bool) -> ModelFacts {
        let Some(source) = &self.file else { return facts };
        let entries = self.entries.iter().filter(|entry| entry.name == name && is_it(&entry.place));
        entries.fold(facts, |facts, entry| facts.overridden(entry, source))
    }
}

/// What the embedded table knows of the model `name` at a provider's own service.
///
/// ```
/// let facts = loopd_providers::catalogue::lookup("openai", "gpt-5-mini").unwrap();
/// assert_eq!(facts.price().unwrap().input, 250_000); // micro-dollars per million tokens
/// assert_eq!(facts.window(), Some(400_000));
/// assert!(loopd_providers::catalogue::lookup("anthropic", "claude-opus-4.1").is_none()); // it is claude-opus-4-1
/// ```
#[must_use]
pub fn lookup(provider: &str, name: &str) -> Option<ModelFacts> {
    Catalogue::default().lookup(provider, name)
}

/// A provider as the table calls it.
fn tabled(provider: &str) -> &str {
    if provider == GEMINI.0 { GEMINI.1 } else { provider }
}

/// A provider as manifests call it.
fn shown(provider: &str) -> &str {
    if provider == GEMINI.1 { GEMINI.0 } else { provider }
}

/// An address in one spelling: without the slash at its end, a query, or a port that goes without saying.
fn address(url: &str) -> Option<String> {
    let mut url: Url = url.parse().ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url.as_str().trim_end_matches('/').to_owned())
}
