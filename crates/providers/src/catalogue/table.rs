//! The embedded table: whose service is at an address, which of its models a name means, and what that one costs.
//!
//! The table is made for logs of every origin, so its rules match generously: by the beginning of a name, by a part of
//! it, by the beginning of an address. A price that holds a Run back has to be of exactly the model that is called,
//! so a match counts here only where the name is the table's own, a dated version of it, or an alias that the table
//! spells out.

use super::Listed;
use genai_prices::{Calculator, PriceRequest, ProviderInfo, Usage, UsageKey};
use loopd_kernel::TimeMs;
use loopd_kernel::units::Price;
use reqwest::Url;
use std::time::{Duration, SystemTime};

/// The table and its version: what is recorded as the source of a price.
pub const TABLE: &str = "genai-prices 0.2.1";

/// Tokens per question to the table: few enough for the price of short prompts, many enough to be exact.
const SAMPLE: f64 = 1000.0;
/// Samples in a prompt that is long by anybody's measure.
const LONG: f64 = 1_000_000.0;
/// Micro-dollars per million tokens in one dollar per sample.
const SCALE: f64 = 1_000_000.0 * 1_000_000.0 / SAMPLE;

const HOUR: u64 = 3600;

/// Hosts that the table knows by a pattern which somebody else's host would fit as well.
const HOSTS: [(&str, &str); 2] = [("api.moonshot.ai", "moonshotai"), ("api.moonshot.cn", "moonshotai")];

/// Where Azure's own service is. Its gateways, which the table takes for the same, stand before servers of anybody.
const AZURE: [&str; 3] = [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];

/// What the table knows of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The table's own name of it.
    pub id: String,
    pub price: Option<Listed>,
    pub context_window: Option<u64>,
}

/// The names of all providers, as the table has them.
pub(super) fn providers() -> impl Iterator<Item = &'static str> {
    Calculator::bundled().providers().map(ProviderInfo::id)
}

/// The provider whose own service is at this address. A machine of one's own has none.
pub(super) fn service(base_url: &str) -> Option<&'static str> {
    let url: Url = base_url.parse().ok()?;
    let host = url.host_str()?;
    if let Some((_, provider)) = HOSTS.iter().find(|(known, _)| *known == host) {
        return Some(provider);
    }
    let at = |host: &str| {
        let address = format!("{}://{host}{}", url.scheme(), url.path());
        Calculator::bundled().find_provider(None, Some(&address)).ok()?.map(ProviderInfo::id)
    };
    let provider = at(host)?;
    let own = match provider {
        "azure" => AZURE.iter().any(|suffix| host.ends_with(suffix)),
        // People run servers of their own there.
        "modal" => false,
        // Patterns are open at their end, so `api.openai.com.example.org` fits as well. One that does not need the
        // last letter of a host was not meant for it.
        _ => host.get(..host.len() - 1).and_then(at) != Some(provider),
    };
    own.then_some(provider)
}

/// What is known of the model that `name` means at a provider.
pub(super) fn find(provider: &str, name: &str, now: TimeMs) -> Option<Row> {
    let provider = Calculator::bundled().providers().find(|known| known.id() == provider)?;
    let id = matched(provider.id(), name)?;
    is_meant(provider.id(), name, &id).then(|| {
        let info = provider.models().find(|model| model.id() == id);
        let context_window = info.and_then(|model| model.context_window()).filter(|window| *window > 0);
        Row { price: price(provider.id(), name, now), context_window, id }
    })
}

/// Every model of a provider of which something is known that counts here.
pub(super) fn all(provider: &str, now: TimeMs) -> Vec<Row> {
    let Some(provider) = Calculator::bundled().providers().find(|known| known.id() == provider) else {
        return Vec::new();
    };
    let rows = provider.models().filter_map(|model| {
        let id = model.id().to_owned();
        // The table's earlier models may take the name; then it is theirs.
        (matched(provider.id(), &id)? == id).then_some(())?;
        let context_window = model.context_window().filter(|window| *window > 0);
        Some(Row { price: price(provider.id(), &id, now), context_window, id })
    });
    rows.filter(|row| row.price.is_some() || row.context_window.is_some()).collect()
}

/// The table's own name of the model that it takes `name` for.
fn matched(provider: &str, name: &str) -> Option<String> {
    let nothing = Usage::default();
    let request = PriceRequest::new(name, &nothing).with_provider_id(provider);
    Calculator::bundled().calculate(&request).ok().map(|cost| cost.model_id)
}

/// Whether the table means `name` when it takes it for `id`.
fn is_meant(provider: &str, name: &str, id: &str) -> bool {
    if is_respelled(name, id) {
        return false;
    }
    let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
    let plain = without_version(name);
    same(name, id)
        || same(plain, without_version(id))
        || is_spelled_out(provider, name, id)
        || (plain != name && matched(provider, plain).as_deref() == Some(id) && is_spelled_out(provider, plain, id))
}

/// Whether a rule of the table is for this very name: then no name around it has the same model.
fn is_spelled_out(provider: &str, name: &str, id: &str) -> bool {
    let longer = [format!("{name}~"), format!("~{name}")];
    longer.iter().all(|longer| matched(provider, longer).as_deref() != Some(id))
}

/// Whether the first difference of two names is a dot against a dash: `claude-opus-4.1` is no name at Anthropic.
fn is_respelled(name: &str, id: &str) -> bool {
    let mut letters = name.bytes().zip(id.bytes());
    let first = letters.find(|(a, b)| !a.eq_ignore_ascii_case(b));
    matches!(first, Some((b'.', b'-') | (b'-', b'.')))
}

/// A name without what providers append to name one version: `-latest`, `-001`, `-20250805`, `@20250805`,
/// `-2025-08-05`.
fn without_version(name: &str) -> &str {
    if let Some(plain) = name.strip_suffix("-latest") {
        return plain;
    }
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let cut = |mark: char, count: usize| name.rsplit_once(mark).filter(|(_, end)| digits(end, count));
    if let Some((plain, _)) = cut('-', 3).or_else(|| cut('-', 8)).or_else(|| cut('@', 8)) {
        return plain;
    }
    let date = |text: &str| {
        let mut parts = text.rsplitn(3, '-');
        let (day, month, rest) = (parts.next()?, parts.next()?, parts.next()?);
        let (plain, year) = rest.rsplit_once('-')?;
        (digits(day, 2) && digits(month, 2) && digits(year, 4)).then_some(plain.len())
    };
    date(name).and_then(|end| name.get(..end)).unwrap_or(name)
}

/// The price of a model: of the dearest hour of the day and of the longest prompts, because a price has one number a
/// class and the ledger may show too much and never too little.
fn price(provider: &str, name: &str, now: TimeMs) -> Option<Listed> {
    let today = u64::try_from(now.0).ok()? / 1000 / (24 * HOUR) * 24 * HOUR;
    let at = |hour: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(today + hour * HOUR);
    let ask = |when: SystemTime| Ask { provider, name, when };
    let mut seen = Vec::new();
    let mut dearest: Option<Listed> = None;
    for hour in 0..24 {
        let ask = ask(at(hour));
        let (prompt, reply) = ask.cost(SAMPLE, SAMPLE, &[])?;
        if seen.contains(&(prompt, reply)) {
            continue;
        }
        seen.push((prompt, reply));
        let listed = ask.listed()?;
        dearest = Some(dearest.map_or(listed, |other| other.dearer(&listed)));
    }
    dearest
}

/// One question to the table.
struct Ask<'a> {
    provider: &'a str,
    name: &'a str,
    when: SystemTime,
}

impl Ask<'_> {
    /// Dollars for the prompt and for the reply. `classes` are all of the one or of the other.
    fn cost(&self, prompt: f64, reply: f64, classes: &[(UsageKey, f64)]) -> Option<(f64, f64)> {
        let sides = [(UsageKey::INPUT_TOKENS, prompt), (UsageKey::OUTPUT_TOKENS, reply)];
        let usage: Usage = sides.into_iter().chain(classes.iter().cloned()).filter(|(_, n)| *n > 0.0).collect();
        let request = PriceRequest::new(self.name, &usage).with_provider_id(self.provider).with_timestamp(self.when);
        let cost = Calculator::bundled().calculate(&request).ok()?;
        // A fee per request has no place in a price per token: such a model counts as unknown.
        let fee = cost.total_price - cost.input_price - cost.output_price;
        (fee.abs() < 1e-9).then_some((cost.input_price, cost.output_price))
    }

    fn listed(&self) -> Option<Listed> {
        let input = |class: Option<UsageKey>| {
            let classes = |tokens: f64| class.clone().map(|class| (class, tokens));
            let short = self.cost(SAMPLE, 0.0, classes(SAMPLE).as_slice())?.0;
            let long = self.cost(LONG * SAMPLE, 0.0, classes(LONG * SAMPLE).as_slice())?.0 / LONG;
            Some((micros(short * SCALE)?, micros(short.max(long) * SCALE)?))
        };
        // What output costs behind a long prompt shows only beside one.
        let output = |class: Option<UsageKey>| {
            let classes = class.map(|class| (class, SAMPLE));
            let short = self.cost(0.0, SAMPLE, classes.as_slice())?.1;
            let long = self.cost(LONG * SAMPLE, SAMPLE, classes.as_slice())?.1;
            micros(short.max(long) * SCALE)
        };
        let (short, long) = input(None)?;
        let price = Price {
            input: long,
            cache_read: input(Some(UsageKey::CACHE_READ_TOKENS))?.1,
            cache_write: input(Some(UsageKey::CACHE_WRITE_TOKENS))?.1,
            output: output(None)?,
            reasoning: output(Some(UsageKey::from("output_reasoning_tokens")))?,
        };
        // The table has no number where it shows zero: whoever gets tokens for nothing declares it.
        (price.input > 0 && price.output > 0).then_some(Listed { price, long_prompts_cost_more: long > short })
    }
}

/// A whole number of micro-dollars: what is only rounding in the last digits of a float is taken away, everything
/// else is rounded up.
fn micros(amount: f64) -> Option<u64> {
    let near = amount.round();
    let whole = if (amount - near).abs() < 1e-3 { near } else { amount.ceil() };
    // Above this a float has no exact integers, and no price is that high.
    (0.0..=9e15).contains(&whole).then_some(whole as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day on which the prices of these tests hold.
    const fn then() -> TimeMs {
        TimeMs(1_780_000_000_000)
    }

    /// Input, cache read, cache write, output, reasoning in micro-dollars per million tokens.
    #[track_caller]
    fn check(provider: &str, name: &str, expect: Option<([u64; 5], bool)>) {
        let found = find(provider, name, then()).and_then(|row| row.price);
        let found = found.map(|Listed { price: p, long_prompts_cost_more }| {
            ([p.input, p.cache_read, p.cache_write, p.output, p.reasoning], long_prompts_cost_more)
        });
        assert_eq!(found, expect, "{name} of {provider}");
    }

    #[test]
    fn listed_prices_are_exact_integers() {
        let mini = [250_000, 25_000, 250_000, 2_000_000, 2_000_000];
        check("openai", "gpt-5-mini", Some((mini, false)));
        check("openai", "GPT-5-mini", Some((mini, false)));
        check("openai", "gpt-5-mini-2025-08-07", Some((mini, false)));
        check("openai", "gpt-4o", Some(([2_500_000, 1_250_000, 2_500_000, 10_000_000, 10_000_000], false)));
        check("openai", "gpt-5.4", Some(([5_000_000, 500_000, 5_000_000, 22_500_000, 22_500_000], true)));
        let opus = [15_000_000, 1_500_000, 18_750_000, 75_000_000, 75_000_000];
        check("anthropic", "claude-opus-4-1", Some((opus, false)));
    }

    #[test]
    fn prices_are_those_of_the_dearest_hour_of_the_day() {
        // Half the price in the hours around midnight.
        check("deepseek", "deepseek-reasoner", Some(([550_000, 140_000, 550_000, 2_190_000, 2_190_000], false)));
    }

    #[test]
    fn gov_03_only_a_name_that_the_table_means_has_a_price() {
        for (provider, name, expect) in [
            ("anthropic", "claude-opus-4-1", Some("claude-opus-4-1")),
            ("anthropic", "claude-opus-4-1-20250805", Some("claude-opus-4-1")),
            ("anthropic", "claude-3-5-haiku-20241022", Some("claude-3-5-haiku-latest")),
            ("anthropic", "claude-sonnet-4-20250514", Some("claude-sonnet-4-0")),
            ("google", "gemini-2.0-flash-001", Some("gemini-2.0-flash")),
            // Aliases that the table spells out.
            ("openai", "gpt-5.6", Some("gpt-5.6-sol")),
            ("google", "gemini-flash-latest", Some("gemini-3.8-flash")),
            // A dot for a dash, and the other way round; the table knows both, the providers do not.
            ("anthropic", "claude-opus-4.1", None),
            ("anthropic", "claude-3.5-haiku", None),
            ("anthropic", "claude-opus-4.1-20250805", None),
            ("openai", "gpt-5-4", None),
            ("openai", "gpt-5-6", None),
            ("google", "gemini-2-0-flash", None),
            // What only begins like a name that is known, or has one in it.
            ("anthropic", "claude-opus-4-10", None),
            ("anthropic", "claude-opus-4-1-turbo", None),
            ("anthropic", "my-claude-opus-4-1", None),
            ("anthropic", "claude-4.5-haiku", None),
            ("google", "gemini-1.5-flash-8b", None),
            ("google", "tuned/gemini-1.5-pro-mine", None),
            ("openai", "gpt-99-imaginary", None),
            ("openai", "gpt-5-mini ", None),
            ("openai", "", None),
            // Providers are known by their names and by nothing that contains one.
            ("openai-mirror", "gpt-5-mini", None),
            ("", "gpt-5-mini", None),
        ] {
            let found = find(provider, name, then()).map(|row| row.id);
            assert_eq!(found.as_deref(), expect, "{name} of {provider}");
        }
    }

    #[test]
    fn gov_03_what_has_no_price_per_token_has_no_price() {
        // No price for output; a fee per request besides; billed by the hour of audio.
        for (provider, name) in [
            ("openai", "text-embedding-3-small"),
            ("perplexity", "sonar-pro"),
            ("openai", "whisper-1"),
            ("openai", "moderation"),
        ] {
            check(provider, name, None);
        }
    }

    #[test]
    fn a_service_is_known_by_its_own_host_and_by_no_other() {
        for (url, expect) in [
            ("https://api.openai.com/v1", Some("openai")),
            ("https://api.openai.com", Some("openai")),
            ("https://api.anthropic.com/v1", Some("anthropic")),
            ("https://generativelanguage.googleapis.com/v1beta", Some("google")),
            ("https://api.groq.com/openai/v1", Some("groq")),
            ("https://openrouter.ai/api/v1", Some("openrouter")),
            ("https://router.huggingface.co/groq/v1", Some("huggingface_groq")),
            ("https://api.moonshot.ai/v1", Some("moonshotai")),
            ("https://mine.openai.azure.com/openai/v1", Some("azure")),
            ("https://api.openai.com.example.org/v1", None),
            ("https://example.org/https://api.openai.com/v1", None),
            ("https://example.org/v1?at=https://api.openai.com", None),
            ("https://api.moonshot.example.org/v1", None),
            ("https://example.org/mine.openai.azure.com", None),
            ("https://mine.azure-api.net/v1", None),
            ("https://other-azure-api.net/v1", None),
            ("https://me--llm.modal.run/v1", None),
            ("https://evilgoogleapis.com/v1", None),
            ("https://models.example.com/v1", None),
            ("http://127.0.0.1:8080/v1", None),
            ("http://localhost:8080/v1", None),
            ("http://[::1]:8080/v1", None),
            ("api.openai.com", None),
            ("", None),
        ] {
            assert_eq!(service(url), expect, "{url}");
        }
    }

    #[test]
    fn whatever_is_listed_is_found_under_its_name() {
        for provider in ["openai", "anthropic", "google", "mistral"] {
            let rows = all(provider, then());
            assert!(rows.len() > 20, "{provider}: {}", rows.len());
            for row in rows {
                assert_eq!(find(provider, &row.id, then()), Some(row.clone()), "{} of {provider}", row.id);
            }
        }
    }

    #[test]
    fn the_version_that_is_recorded_is_the_one_that_is_built_in() {
        let (name, version) = TABLE.split_once(' ').expect("a version");
        let lock = include_str!("../../../../Cargo.lock");
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "{TABLE} is out of date");
    }
}
