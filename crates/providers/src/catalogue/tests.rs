//! Which source wins, for whom an entry is, and what is near.

use super::*;
use loopd_kernel::{MicroUsd, Usage};

fn entry(place: Place, name: &str) -> Entry {
    let (price, context_window, max_output_tokens, capabilities) = (None, None, None, None);
    Entry { place, name: name.into(), price, context_window, max_output_tokens, capabilities }
}

fn catalogue() -> Catalogue {
    let provider = |name: &str| Place::Provider(name.into());
    let price = Price { input: 7, cache_read: 7, cache_write: 7, output: 9, reasoning: 9 };
    Catalogue::with(
        "models.yaml",
        "1a2b3c4d",
        vec![
            Entry { price: Some(price), ..entry(provider("openai"), "gpt-5-mini") },
            Entry { context_window: Some(1), ..entry(provider("openai"), "gpt-5-nano") },
            Entry { max_output_tokens: Some(5), ..entry(provider("gemini"), "gemini-of-mine") },
            Entry { price: Some(price), ..entry(Place::Server("http://127.0.0.1:8080/v1/".into()), "qwen3") },
            Entry {
                capabilities: Some(vec![Capability::Tools]),
                ..entry(Place::Server("https://api.openai.com/v1".into()), "gpt-5")
            },
            Entry { context_window: Some(2), ..entry(provider("openai"), "gpt-5-nano") },
        ],
    )
}

/// Input price, window, reply and capabilities, each with its source.
fn show(facts: Option<ModelFacts>) -> String {
    fn fact<T: ToString>(known: Option<Known<T>>) -> String {
        known.map_or_else(|| "?".into(), |known| format!("{} ({})", known.value.to_string(), known.source))
    }
    let Some(facts) = facts else { return "unknown".into() };
    let input = facts.price.map(|known| Known { value: known.value.price.input, source: known.source });
    let words = |known: Known<Vec<Capability>>| Known {
        value: known.value.into_iter().map(Capability::name).collect::<Vec<_>>().join("+"),
        source: known.source,
    };
    let can = fact(facts.capabilities.map(words));
    [fact(input), fact(facts.context_window), fact(facts.max_output_tokens), can].join(", ")
}

#[test]
fn an_entry_wins_over_the_table_and_what_it_does_not_say_stays() {
    let known = catalogue();
    let look = |provider, name| show(known.lookup(provider, name));
    assert_eq!(look("openai", "gpt-5-mini"), "7 (models.yaml 1a2b3c4d), 400000 (genai-prices 0.2.1), ?, ?");
    assert_eq!(look("openai", "gpt-5-nano"), "50000 (genai-prices 0.2.1), 2 (models.yaml 1a2b3c4d), ?, ?");
    assert_eq!(look("gemini", "gemini-of-mine"), "?, ?, 5 (models.yaml 1a2b3c4d), ?");
    assert_eq!(look("google", "gemini-of-mine"), look("gemini", "gemini-of-mine"));
    // An entry is for its name alone: no version of it, no other case.
    assert_eq!(look("gemini", "Gemini-of-mine"), "unknown");
    assert_eq!(look("openai", "gpt-5-mini-2025-08-07").split(' ').next(), Some("250000"));
}

#[test]
fn gov_03_a_server_of_ones_own_has_the_prices_that_were_written_for_it_and_no_others() {
    let known = catalogue();
    let look = |url, name| show(known.lookup_at(url, name));
    let free = "7 (models.yaml 1a2b3c4d), ?, ?, ?";
    assert_eq!(look("http://127.0.0.1:8080/v1", "qwen3"), free);
    assert_eq!(look("http://127.0.0.1:8080/v1/", "qwen3"), free);
    assert_eq!(look("http://127.0.0.1:8081/v1", "qwen3"), "unknown");
    assert_eq!(look("http://127.0.0.1:8080/v1", "gpt-5-mini"), "unknown");
    assert_eq!(look("https://models.example.com/v1", "gpt-5-mini"), "unknown");
    assert_eq!(look("not an address", "qwen3"), "unknown");
    assert!(look("https://api.openai.com/v1", "gpt-5-mini").starts_with("7 "));
    assert!(look("https://api.openai.com:443/v1", "gpt-5").ends_with("tools (models.yaml 1a2b3c4d)"));
}

#[test]
fn gov_02_tokens_out_of_the_cache_are_priced_once_and_as_such() {
    // 1,000 tokens of prompt of which 400 were cached, as the adapters hand them on.
    let usage = Usage { input: 600, cache_read: 400, output: 50, ..Usage::default() };
    let cost = lookup("openai", "gpt-5-mini").and_then(|facts| facts.price()).map(|price| price.cost(&usage));
    assert_eq!(cost, Some(MicroUsd(150 + 10 + 100)));
}

#[test]
fn what_a_configuration_declares_wins_over_both() {
    let declared: DeclaredPrice = serde_json::from_str(r#"{"input": 1, "output": 2}"#).expect("a price");
    let facts = catalogue().lookup("openai", "gpt-5-mini").unwrap_or_default().declared(Some(declared), Some(3));
    assert_eq!(show(Some(facts.clone())), "1000000 (manifest), 3 (manifest), ?, ?");
    assert_eq!(facts.price_source().as_deref(), Some("manifest"));
    assert_eq!(show(Some(facts.clone().declared(None, None))), show(Some(facts)));
    // Nothing declared and nothing known is unknown, not free.
    let nothing = ModelFacts::default().declared(None, None);
    assert_eq!((nothing.price(), nothing.price_source(), nothing.window()), (None, None, None));
}

#[test]
fn a_list_is_sorted_and_has_the_entries_in_their_places() {
    let listed = catalogue().list(Some("openai"));
    let names: Vec<&str> = listed.iter().map(|line| line.name.as_str()).collect();
    assert!(names.is_sorted() && names.contains(&"gpt-5-mini"), "{names:?}");
    assert!(listed.iter().all(|line| line.provider == "openai"));
    let own = catalogue().list(Some("http://127.0.0.1:8080/v1/"));
    assert_eq!(own.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["qwen3"]);
    let gemini = catalogue().list(Some("gemini"));
    assert!(gemini.iter().any(|line| line.name == "gemini-of-mine" && line.provider == "gemini"));
    assert_eq!(catalogue().list(Some("nobody")), Vec::new());
    assert!(Catalogue::providers().contains(&"gemini") && !Catalogue::providers().contains(&"google"));
}

#[test]
fn the_nearest_names_are_those_that_a_slip_leads_away_from() {
    let mut listed = Catalogue::default().list(Some("openai"));
    listed.extend(Catalogue::default().list(Some("anthropic")));
    let near = |name| Catalogue::nearest(&listed, name, 2).first().map(|line| line.name.as_str());
    assert_eq!(near("claude-opus-4.1"), Some("claude-opus-4-1"));
    assert_eq!(near("gpt5-mini"), Some("gpt-5-mini"));
    assert_eq!(near("a-model-of-nobody-anywhere"), None);
}
