//! From settings to a model.

use crate::{AnthropicConfig, ModelConfig};
use expect_test::{Expect, expect};

/// A configuration in, what the model makes of it or the error out. `KEY` and the usual variable are set to `sk-1`.
#[track_caller]
fn check(json: &str, expect: Expect) {
    let variable = |name: &str| (name == "KEY" || name == "ANTHROPIC_API_KEY").then(|| "sk-1".to_owned());
    let shown = match serde_json::from_str(json) {
        Err(error) => error.to_string(),
        Ok(ModelConfig::Openai(_) | ModelConfig::Responses(_) | ModelConfig::Gemini(_) | ModelConfig::Demo(_)) => {
            "another provider".into()
        }
        Ok(ModelConfig::Anthropic(config)) => match config.build(&variable) {
            Err(error) => error.to_string(),
            Ok(model) => {
                let terms = model.terms;
                let price = terms.price.map(|p| (p.input, p.cache_read, p.cache_write, p.output));
                let debug = format!("{model:?}{config:?}");
                assert!(!debug.contains("sk-1") && !debug.contains("hush"), "{debug}");
                assert!(!model.account.contains("sk-1"), "{}", model.account);
                format!(
                    "{} as {}, key {}, price {price:?}, {} ms, {} attempts, {:?}",
                    model.endpoint,
                    model.origin,
                    model.key.is_some(),
                    terms.timeout_ms,
                    terms.max_attempts,
                    model.answer_format
                )
            }
        },
    };
    expect.assert_eq(&shown);
}

#[test]
fn anthropic_needs_a_name_and_a_key() {
    check(
        r#"{"provider": "anthropic", "model": "claude-sonnet-4-5"}"#,
        expect![
            "https://api.anthropic.com/v1/messages as anthropic/claude-sonnet-4-5, key true, price Some((6000000, 600000, 7500000, 22500000)), 300000 ms, 4 attempts, Format"
        ],
    );
    check(
        r#"{"provider": "anthropic", "model": "claude-99-imaginary", "timeout_ms": 1000, "max_attempts": 2}"#,
        expect![
            "https://api.anthropic.com/v1/messages as anthropic/claude-99-imaginary, key true, price None, 1000 ms, 2 attempts, Format"
        ],
    );
    check(
        r#"{"provider": "anthropic", "model": "claude-sonnet-4-5", "api_key_env": "NO_KEY"}"#,
        expect!["no API key: set the environment variable NO_KEY"],
    );
}

#[test]
fn other_servers_have_no_key_and_no_price_unless_told() {
    check(
        r#"{"provider": "anthropic", "model": "m", "base_url": "http://127.0.0.1:8080"}"#,
        expect![
            "http://127.0.0.1:8080/v1/messages as 127.0.0.1:8080/m, key false, price None, 300000 ms, 4 attempts, Off"
        ],
    );
    check(
        r#"{"provider": "anthropic", "model": "m", "base_url": "https://models.example.com/anthropic/v1/?a=b", "api_key_env": "KEY", "headers": {"anthropic-beta": "hush"}, "answer_format": "tool", "price": {"input": 0.5, "output": "1"}}"#,
        expect![
            "https://models.example.com/anthropic/v1/messages?a=b as models.example.com/m, key true, price Some((500000, 500000, 500000, 1000000)), 300000 ms, 4 attempts, Tool"
        ],
    );
}

#[test]
fn what_cannot_be_right_is_refused() {
    check(r#"{"provider": "anthropic", "model": ""}"#, expect!["model: is empty"]);
    check(
        r#"{"provider": "anthropic", "model": "m", "extra_body": {"tool_choice": {}}}"#,
        expect!["extra_body: `tool_choice` is not for you to set here"],
    );
    check(
        r#"{"provider": "anthropic", "model": "m", "extra_body": {"output_config": 1}}"#,
        expect!["extra_body: `output_config` must be an object"],
    );
    check(
        r#"{"provider": "anthropic", "model": "m", "base_url": "https://me:sk-1@example.com"}"#,
        expect!["base_url: must hold no password; use api_key_env or api_key_file"],
    );
    check(
        r#"{"provider": "anthropic", "model": "m", "modle": 1}"#,
        expect![
            "unknown field `modle`, expected one of `model`, `base_url`, `vendor`, `api_key_env`, `api_key_file`, `headers`, `extra_body`, `stream`, `temperature`, `prompt_cache`, `parallel_tool_use`, `answer_format`, `price`, `context_window`, `timeout_ms`, `connect_timeout_ms`, `idle_timeout_ms`, `connection`, `max_attempts`"
        ],
    );
}

#[test]
fn a_configuration_reads_what_it_writes() {
    let config = ModelConfig::Anthropic(AnthropicConfig::new("m").at("http://localhost"));
    let text = serde_json::to_string(&config).expect("JSON");
    assert_eq!(serde_json::from_str::<ModelConfig>(&text).expect("again"), config, "{text}");
}

#[test]
fn models_of_one_account_share_their_limits() {
    let account = |model: &str, key: &str| {
        let config = AnthropicConfig::new(model);
        config.build(&|_| Some(key.to_owned())).expect("a model").account
    };
    assert_eq!(account("small", "sk-1"), account("large", "sk-1"));
    assert_ne!(account("small", "sk-1"), account("small", "sk-2"));
}
