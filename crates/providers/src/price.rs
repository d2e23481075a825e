//! What models cost, as integers. Unknown is `None` and never zero.

use genai_prices::{Calculator, PriceRequest, Usage, UsageKey};
use loopd_kernel::MicroUsd;
use loopd_kernel::units::Price;
use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Tokens per question to the table: few enough for the price of short prompts, many enough to be exact.
const SAMPLE: f64 = 1000.0;
/// Samples in a prompt that is long by anybody's measure.
const LONG: f64 = 1_000_000.0;
/// Micro-dollars per million tokens in one dollar per sample.
const SCALE: f64 = 1_000_000.0 * 1_000_000.0 / SAMPLE;

/// A price out of the embedded table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The price, of long prompts where they cost more: the ledger may show too much and never too little.
    pub price: Price,
    /// Prompts of ordinary length cost less per token than this; whoever sends only such may declare their price.
    pub long_prompts_cost_more: bool,
}

/// The price of `model` at the service behind `base_url`. Unknown services, for example a machine of your own, and
/// unknown models have none.
#[must_use]
pub fn listed(base_url: &str, model: &str) -> Option<Listed> {
    look_up(Service::At(base_url), model)
}

/// The price of `model` at `provider`, by the name that the table gives it, for example `openai`.
#[must_use]
pub fn listed_at(provider: &str, model: &str) -> Option<Listed> {
    look_up(Service::Named(provider), model)
}

#[derive(Clone, Copy)]
enum Service<'a> {
    At(&'a str),
    Named(&'a str),
}

fn look_up(service: Service<'_>, model: &str) -> Option<Listed> {
    let cost = |tokens: f64, keys: &[UsageKey]| -> Option<f64> {
        let usage: Usage = keys.iter().map(|key| (key.clone(), tokens)).collect();
        let request = PriceRequest::new(model, &usage);
        let request = match service {
            Service::At(base_url) => request.with_provider_api_url(base_url),
            Service::Named(provider) => request.with_provider_id(provider),
        };
        Calculator::bundled().calculate(&request).ok().map(|cost| cost.total_price)
    };
    // A price has one number a class: where long prompts cost more, it is theirs, so that no cap is passed.
    let per_million = |keys: &[UsageKey]| {
        let long = cost(LONG * SAMPLE, keys)? / LONG;
        micros(cost(SAMPLE, keys)?.max(long) * SCALE)
    };
    // What output costs behind a long prompt shows only beside one.
    let output_per_million = |keys: &[UsageKey]| {
        let prompt = [UsageKey::INPUT_TOKENS];
        let both: Vec<UsageKey> = prompt.iter().chain(keys).cloned().collect();
        let long = (cost(LONG * SAMPLE, &both)? - cost(LONG * SAMPLE, &prompt)?) / LONG;
        micros(cost(SAMPLE, keys)?.max(long) * SCALE)
    };
    // A fee per request has no place in a price per token: such a model counts as unknown.
    if cost(0.0, &[UsageKey::INPUT_TOKENS])? != 0.0 {
        return None;
    }
    let price = Price {
        input: per_million(&[UsageKey::INPUT_TOKENS])?,
        cache_read: per_million(&[UsageKey::INPUT_TOKENS, UsageKey::CACHE_READ_TOKENS])?,
        cache_write: per_million(&[UsageKey::INPUT_TOKENS, UsageKey::CACHE_WRITE_TOKENS])?,
        output: output_per_million(&[UsageKey::OUTPUT_TOKENS])?,
        reasoning: output_per_million(&[UsageKey::OUTPUT_TOKENS, UsageKey::from("output_reasoning_tokens")])?,
    };
    // The table has no number where it shows zero: whoever gets tokens for nothing declares it.
    if price.input == 0 || price.output == 0 {
        return None;
    }
    let long_prompts_cost_more = price.input > micros(cost(SAMPLE, &[UsageKey::INPUT_TOKENS])? * SCALE)?;
    Some(Listed { price, long_prompts_cost_more })
}

/// A whole number of micro-dollars: what is only rounding in the last digits of a float is taken away, everything
/// else is rounded up.
fn micros(amount: f64) -> Option<u64> {
    let near = amount.round();
    let whole = if (amount - near).abs() < 1e-3 { near } else { amount.ceil() };
    // Above this a float has no exact integers, and no price is that high.
    (0.0..=9e15).contains(&whole).then_some(whole as u64)
}

/// Dollars per million tokens, as people write them: `1.25` or `"1.25"`, with at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DollarsPerMillion(pub MicroUsd);

impl<'de> Deserialize<'de> for DollarsPerMillion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Dollars;
        impl Visitor<'_> for Dollars {
            type Value = DollarsPerMillion;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("dollars per million tokens, for example 1.25")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<DollarsPerMillion, E> {
                text.parse().map(DollarsPerMillion).map_err(E::custom)
            }

            // The shortest text that reads as this float is what was written.
            fn visit_f64<E: Error>(self, number: f64) -> Result<DollarsPerMillion, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<DollarsPerMillion, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<DollarsPerMillion, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Dollars)
    }
}

impl Serialize for DollarsPerMillion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.to_string().trim_start_matches('$'))
    }
}

/// A price that the configuration declares; it wins over the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredPrice {
    /// Uncached input.
    pub input: DollarsPerMillion,
    /// Output.
    pub output: DollarsPerMillion,
    /// Cache reads; as input where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<DollarsPerMillion>,
    /// Cache writes; as input where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<DollarsPerMillion>,
    /// Reasoning; as output where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<DollarsPerMillion>,
}

impl From<DeclaredPrice> for Price {
    fn from(declared: DeclaredPrice) -> Self {
        let micros = |own: Option<DollarsPerMillion>, else_as: DollarsPerMillion| own.unwrap_or(else_as).0.0;
        Self {
            input: declared.input.0.0,
            cache_read: micros(declared.cache_read, declared.input),
            cache_write: micros(declared.cache_write, declared.input),
            output: declared.output.0.0,
            reasoning: micros(declared.reasoning, declared.output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input, cache read, cache write, output, reasoning in micro-dollars per million tokens.
    #[track_caller]
    fn check(base_url: &str, model: &str, expect: Option<([u64; 5], bool)>) {
        let found = listed(base_url, model).map(|Listed { price: p, long_prompts_cost_more }| {
            ([p.input, p.cache_read, p.cache_write, p.output, p.reasoning], long_prompts_cost_more)
        });
        assert_eq!(found, expect, "{model} at {base_url}");
    }

    #[test]
    fn listed_prices_are_exact_integers() {
        let openai = "https://api.openai.com/v1";
        let mini = [250_000, 25_000, 250_000, 2_000_000, 2_000_000];
        check(openai, "gpt-5-mini", Some((mini, false)));
        check(openai, "gpt-5-mini-2025-08-07", Some((mini, false)));
        check(openai, "gpt-4o", Some(([2_500_000, 1_250_000, 2_500_000, 10_000_000, 10_000_000], false)));
        check(openai, "gpt-5.4", Some(([5_000_000, 500_000, 5_000_000, 22_500_000, 22_500_000], true)));
        assert_eq!(listed_at("openai", "gpt-5-mini"), listed(openai, "gpt-5-mini"));
    }

    #[test]
    fn gov_03_what_is_not_listed_has_no_price() {
        for (base_url, model) in [
            ("https://api.openai.com/v1", "gpt-99-imaginary"),
            ("https://api.openai.com/v1", ""),
            // It has no price for output.
            ("https://api.openai.com/v1", "text-embedding-3-small"),
            ("https://models.example.com/v1", "gpt-5-mini"),
            ("http://127.0.0.1:8080/v1", "gpt-5-mini"),
            ("http://localhost:8080/v1", "smollm2-135m"),
            // It takes a fee per request besides.
            ("https://api.perplexity.ai", "sonar-pro"),
        ] {
            check(base_url, model, None);
        }
    }

    #[test]
    fn declared_prices_read_as_people_write_them() {
        let read = |json: &str| serde_json::from_str::<DeclaredPrice>(json).map(Price::from);
        let price = read(r#"{"input": 1.25, "output": "10", "cache_read": 0.1}"#).expect("a price");
        let expect = Price {
            input: 1_250_000,
            cache_read: 100_000,
            cache_write: 1_250_000,
            output: 10_000_000,
            reasoning: 10_000_000,
        };
        assert_eq!(price, expect);
        assert_eq!(read(r#"{"input": 0, "output": 0}"#).expect("free"), Price::default());
        for wrong in [r#"{"input": 1}"#, r#"{"input": -1, "output": 1}"#, r#"{"input": 0.0000001, "output": 1}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let declared: DeclaredPrice = serde_json::from_str(r#"{"input": 1.25, "output": 10}"#).expect("a price");
        let text = serde_json::to_string(&declared).expect("text");
        assert_eq!(text, r#"{"input":"1.250000","output":"10.000000"}"#);
        assert_eq!(serde_json::from_str::<DeclaredPrice>(&text).expect("again"), declared);
    }
}
