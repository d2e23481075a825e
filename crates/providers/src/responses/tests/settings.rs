//! From settings to a model.

use crate::{ModelConfig, OpenAiConfig, ResponsesConfig};
use expect_test::{Expect, expect};

/// A configuration in, what the model makes of it or the error out. `KEY` and the usual variable are set to `sk-1`.
#[track_caller]
fn check(json: &str, expect: Expect) {
    let variable = |name: &str| (name == "KEY" || name == "OPENAI_API_KEY").then(|| "sk-1".to_owned());
    let shown = match serde_json::from_str(json) {
        Err(error) => error.to_string(),
        Ok(ModelConfig::Openai(_) | ModelConfig::Anthropic(_) | ModelConfig::Gemini(_) | ModelConfig::Demo(_)) => {
            "another provider".into()
        }
        Ok(ModelConfig::Responses(config)) => match config.build(&variable) {
            Err(error) => error.to_string(),
            Ok(model) => {
                let terms = model.terms;
                let price = terms.price.map(|p| (p.input, p.cache_read, p.output));
                let debug = format!("{model:?}{config:?}");
                assert!(!debug.contains("sk-1") && !debug.contains("hush"), "{debug}");
                assert!(!model.account.contains("sk-1"), "{}", model.account);
                format!(
                    "{} as {}, key {}, price {price:?}, {} ms, {} attempts, encrypted {}",
                    model.endpoint,
                    model.origin,
                    model.key.is_some(),
                    terms.timeout_ms,
                    terms.max_attempts,
                    model.encrypted_reasoning
                )
            }
        },
    };
    expect.assert_eq(&shown);
}

#[test]
fn openai_needs_a_name_and_a_key() {
    check(
        r#"{"provider": "responses", "model": "gpt-5-mini"}"#,
        expect![
            "https://api.openai.com/v1/responses as openai+responses/gpt-5-mini, key true, price Some((250000, 25000, 2000000)), 300000 ms, 4 attempts, encrypted true"
        ],
    );
    check(
        r#"{"provider": "responses", "model": "gpt-5-mini", "api_key_env": "NO_KEY"}"#,
        expect!["no API key: set the environment variable NO_KEY"],
    );
    // It does not reason, and refuses to be asked for it.
    check(
        r#"{"provider": "responses", "model": "gpt-4o-mini", "timeout_ms": 1000, "max_attempts": 2}"#,
        expect![
            "https://api.openai.com/v1/responses as openai+responses/gpt-4o-mini, key true, price Some((150000, 75000, 600000)), 1000 ms, 2 attempts, encrypted false"
        ],
    );
    check(
        r#"{"provider": "responses", "model": "gpt-4o-mini", "encrypted_reasoning": true}"#,
        expect![
            "https://api.openai.com/v1/responses as openai+responses/gpt-4o-mini, key true, price Some((150000, 75000, 600000)), 300000 ms, 4 attempts, encrypted true"
        ],
    );
}

#[test]
fn other_servers_have_no_key_and_no_price_unless_told() {
    check(
        r#"{"provider": "responses", "model": "m", "base_url": "http://127.0.0.1:8080/v1"}"#,
        expect![
            "http://127.0.0.1:8080/v1/responses as 127.0.0.1:8080+responses/m, key false, price None, 300000 ms, 4 attempts, encrypted true"
        ],
    );
    check(
        r#"{"provider": "responses", "model": "m", "base_url": "https://me.openai.azure.com/openai/v1/?api-version=preview", "vendor": "azure", "api_key_env": "KEY", "api_key_header": "api-key", "headers": {"x-a": "hush"}, "price": {"input": 0.5, "output": "1"}}"#,
        expect![
            "https://me.openai.azure.com/openai/v1/responses?api-version=preview as azure+responses/m, key true, price Some((500000, 500000, 1000000)), 300000 ms, 4 attempts, encrypted true"
        ],
    );
}

#[test]
fn what_cannot_be_right_is_refused() {
    check(r#"{"provider": "responses", "model": ""}"#, expect!["model: is empty"]);
    for member in ["store", "previous_response_id", "background", "include", "input"] {
        let json = format!(r#"{{"provider": "responses", "model": "m", "extra_body": {{"{member}": true}}}}"#);
        let Ok(ModelConfig::Responses(config)) = serde_json::from_str(&json) else { panic!("{json}") };
        let error = config.build(&|_| Some("sk-1".into())).expect_err("not for people to set");
        assert_eq!(error.to_string(), format!("extra_body: `{member}` is not for you to set here"));
    }
    check(
        r#"{"provider": "responses", "model": "m", "extra_body": {"text": {"format": {}}}}"#,
        expect!["extra_body: `text` must be an object without `format`"],
    );
    check(
        r#"{"provider": "responses", "model": "m", "base_url": "https://me:sk-1@example.com"}"#,
        expect!["base_url: must hold no password; use api_key_env or api_key_file"],
    );
    check(
        r#"{"provider": "responses", "model": "m", "api_key_env": "KEY", "api_key_header": "a b"}"#,
        expect!["api_key_header: is no header"],
    );
    check(
        r#"{"provider": "responses", "model": "m", "modle": 1}"#,
        expect![
            "unknown field `modle`, expected one of `model`, `base_url`, `vendor`, `api_key_env`, `api_key_file`, `api_key_header`, `headers`, `extra_body`, `stream`, `structured_output`, `schema_with_tools`, `parallel_tool_calls`, `encrypted_reasoning`, `price`, `context_window`, `timeout_ms`, `connect_timeout_ms`, `idle_timeout_ms`, `connection`, `max_attempts`"
        ],
    );
}

#[test]
fn a_configuration_reads_what_it_writes() {
    let config = ModelConfig::Responses(ResponsesConfig::new("m").at("http://localhost"));
    let text = serde_json::to_string(&config).expect("JSON");
    assert_eq!(serde_json::from_str::<ModelConfig>(&text).expect("again"), config, "{text}");
}

/// The two protocols of one server share its rate limits, and nothing that a model wrote in private.
#[test]
fn the_two_protocols_share_an_account_and_no_reasoning() {
    let variable = |_: &str| Some("sk-1".to_owned());
    let chat = OpenAiConfig::new("gpt-5-mini").build(&variable).expect("a model");
    let responses = ResponsesConfig::new("gpt-5-mini").build(&variable).expect("a model");
    assert_eq!(chat.account, responses.account);
    assert_ne!(chat.origin, responses.origin);
}
