//! Lists of models, and what a wrong one is answered with.

use expect_test::expect;
use loopd_agent::manifest::{Ability, ListedModel, ModelList};

const PROVIDERS: [&str; 3] = ["anthropic", "gemini", "openai"];

/// A list in, the models or the error out.
fn read(models: &str) -> String {
    let text = format!("apiVersion: loopd.dev/v1alpha1\nkind: ModelList\nmodels:\n{models}");
    match ModelList::parse("models.yaml", text.as_bytes(), &PROVIDERS) {
        Ok(list) => list.models.iter().map(|model| serde_json::to_string(model).unwrap() + "\n").collect(),
        Err(error) => format!("{error}\n"),
    }
}

#[test]
fn a_list_says_what_it_knows_and_nothing_else() {
    expect![[r#"
        {"provider":"openai","name":"gpt-5-mini","price":{"inputPerMillion":"0.25","outputPerMillion":"2"}}
        {"baseUrl":"http://127.0.0.1:8080/v1","name":"qwen3","contextWindow":32768,"maxOutputTokens":8192,"capabilities":["tools","reasoning"]}
    "#]].assert_eq(&read(
        "  - { provider: openai, name: gpt-5-mini, price: { inputPerMillion: 0.25, outputPerMillion: \"2\" } }\n  \
           - { baseUrl: \"http://127.0.0.1:8080/v1\", name: qwen3, contextWindow: 32768, maxOutputTokens: 8192, \
                capabilities: [tools, reasoning] }\n",
    ));
}

#[test]
fn json_is_yaml_as_well() {
    let text = r#"{"apiVersion":"loopd.dev/v1alpha1","kind":"ModelList","models":[
        {"provider":"openai","name":"m","capabilities":["vision"]}]}"#;
    let list = ModelList::parse("models.json", text.as_bytes(), &PROVIDERS).unwrap();
    let expected = ListedModel {
        provider: Some("openai".into()),
        base_url: None,
        name: "m".into(),
        price: None,
        context_window: None,
        max_output_tokens: None,
        capabilities: Some(vec![Ability::Vision]),
    };
    assert_eq!(list.models, [expected]);
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let wrong = [
        "  - { provider: opnai, name: m, contextWindow: 1 }\n",
        "  - { provider: openai, contextWindow: 1 }\n",
        "  - { name: m, contextWindow: 1 }\n",
        "  - { provider: openai, baseUrl: \"http://x/v1\", name: m, contextWindow: 1 }\n",
        "  - { baseUrl: \"127.0.0.1:8080\", name: m, contextWindow: 1 }\n",
        "  - { provider: openai, name: m }\n",
        "  - provider: openai\n    name: m\n    contextWindow: 0\n",
        "  - provider: openai\n    name: m\n    contextWindow: 10\n    maxOutputTokens: 11\n",
        "  - { provider: openai, name: m, price: { inputPerMillion: 1 } }\n",
        "  - { provider: openai, name: m, price: { inputPerMillion: free, outputPerMillion: 1 } }\n",
        "  - { provider: openai, name: m, capabilities: [tool] }\n",
        "  - { provider: openai, name: m, contextwindow: 1 }\n",
        "  - { provider: openai, name: m, contextWindow: 1 }\n  - { provider: openai, name: m, contextWindow: 2 }\n",
    ];
    expect![[r#"
        models.yaml:4:17: there is no provider `opnai` (did you mean `openai`?); for a server of your own, write baseUrl
           4 |   - { provider: opnai, name: m, contextWindow: 1 }
                               ^
        models.yaml:4:25: the field `name` is missing here
           4 |   - { provider: openai, contextWindow: 1 }
                                       ^
        models.yaml:4:5: expected provider, or baseUrl for a server of your own
           4 |   - { name: m, contextWindow: 1 }
                   ^
        models.yaml:4:34: expected either provider or baseUrl, not both
           4 |   - { provider: openai, baseUrl: "http://x/v1", name: m, contextWindow: 1 }
                                                ^
        models.yaml:4:16: expected a URL that begins with http:// or https://
           4 |   - { baseUrl: "127.0.0.1:8080", name: m, contextWindow: 1 }
                              ^
        models.yaml:4:5: expected at least one of price, contextWindow, maxOutputTokens and capabilities
           4 |   - { provider: openai, name: m }
                   ^
        models.yaml:6:20: expected at least 1; leave out what is not known
           6 |     contextWindow: 0
                                  ^
        models.yaml:7:22: expected no more than contextWindow
           7 |     maxOutputTokens: 11
                                    ^
        models.yaml:4:43: the field `outputPerMillion` is missing here
           4 |   - { provider: openai, name: m, price: { inputPerMillion: 1 } }
                                                         ^
        models.yaml:4:43: expected dollars with at most six decimals, for example "0.25", found string "free"
           4 |   - { provider: openai, name: m, price: { inputPerMillion: free, outputPerMillion: 1 } }
                                                         ^
        models.yaml:4:49: unknown value `tool`; did you mean `tools`?
           4 |   - { provider: openai, name: m, capabilities: [tool] }
                                                               ^
        expected one of: `vision`, `tools`, `reasoning`
        models.yaml:4:34: unknown field `contextwindow`; did you mean `contextWindow`?
           4 |   - { provider: openai, name: m, contextwindow: 1 }
                                                ^
        expected one of: `provider`, `baseUrl`, `name`, `price`, `contextWindow`, `maxOutputTokens`, `capabilities`
        models.yaml:5:5: `m` is listed twice: entry 1 is for it as well
           5 |   - { provider: openai, name: m, contextWindow: 2 }
                   ^
    "#]]
    .assert_eq(&wrong.map(read).concat());
    let empty = ModelList::parse("models.yaml", b"", &PROVIDERS).expect_err("is empty");
    expect!["models.yaml:1:1: expected a list of models, found an empty document"].assert_eq(&empty.to_string());
    let other = ModelList::parse("models.yaml", b"apiVersion: loopd.dev/v1alpha1\nkind: Agent\n", &PROVIDERS);
    expect![[r#"
        models.yaml:2:7: unknown value `Agent`
           2 | kind: Agent
                     ^
        expected one of: `ModelList`"#]]
    .assert_eq(&other.expect_err("is no list").to_string());
}
