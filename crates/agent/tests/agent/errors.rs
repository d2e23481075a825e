//! What a wrong manifest is answered with.

use expect_test::{Expect, expect};
use loopd_agent::Manifest;

/// A manifest whose spec is `spec`, indented by two.
fn with_spec(spec: &str) -> String {
    let head = "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: { name: researcher }\nspec:\n";
    format!("{head}{}", spec.lines().map(|line| format!("  {line}\n")).collect::<String>())
}

#[track_caller]
fn check(yaml: &str, expected: Expect) {
    match Manifest::parse("agent.yaml", yaml.as_bytes()) {
        Ok(manifest) => panic!("it reads: {manifest:?}"),
        Err(error) => expected.assert_eq(&format!("{error}\n")),
    }
}

#[test]
fn unknown_fields_and_values_are_guessed() {
    check(
        &with_spec("modle: { provider: openai, name: m }"),
        expect![[r#"
            agent.yaml:5:3: unknown field `modle`; did you mean `model`?
               5 |   modle: { provider: openai, name: m }
                     ^
            expected one of: `model`, `instructions`, `fallbacks`, `tools`, `agents`, `context`, `limits`, `output`
        "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m, max_output_tokens: 5 }"),
        expect![[r#"
            agent.yaml:5:39: unknown field `max_output_tokens`; did you mean `maxOutputTokens`?
               5 |   model: { provider: openai, name: m, max_output_tokens: 5 }
                                                         ^
            expected one of: `provider`, `api`, `name`, `baseUrl`, `apiKeyEnv`, `apiKeyFile`, `script`, `temperature`, `maxOutputTokens`, `stream`, `price`, `contextWindow`, `timeout`, `attempts`, `connection`
        "#]],
    );
    check(
        &with_spec("model: { provider: opnai, name: m }"),
        expect![[r#"
            agent.yaml:5:22: unknown value `opnai`; did you mean `openai`?
               5 |   model: { provider: opnai, name: m }
                                        ^
            expected one of: `openai`, `anthropic`, `gemini`, `demo`
        "#]],
    );
    check(
        "apiVersion: loopd.dev/v1\nkind: Agent\n",
        expect![[r#"
        agent.yaml:1:13: unknown value `loopd.dev/v1`
           1 | apiVersion: loopd.dev/v1
                           ^
        expected one of: `loopd.dev/v1alpha1`
    "#]],
    );
    check(
        "apiVersion: loopd.dev/v1alpha1\nkind: agent\n",
        expect![[r#"
        agent.yaml:2:7: unknown value `agent`; did you mean `Agent`?
           2 | kind: agent
                     ^
        expected one of: `Agent`
    "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\ntools: [ { use: files, root: ., allow: [raed] } ]"),
        expect![[r#"
            agent.yaml:6:43: unknown value `raed`; did you mean `read`?
               6 |   tools: [ { use: files, root: ., allow: [raed] } ]
                                                             ^
            expected one of: `list`, `read`, `search`, `write`, `edit`
        "#]],
    );
}

#[test]
fn missing_and_mistyped_fields_say_what_was_expected() {
    check(
        "",
        expect![[r#"
        agent.yaml:1:1: expected an agent manifest, found an empty document
    "#]],
    );
    check(
        "- a\n",
        expect![[r#"
            agent.yaml:1:1: expected a mapping of fields
               1 | - a
                   ^
        "#]],
    );
    check(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nspec: {}\n",
        expect![[r#"
        agent.yaml:3:7: the field `model` is missing here
           3 | spec: {}
                     ^
    "#]],
    );
    check(
        &with_spec("instructions: hello"),
        expect![[r#"
        agent.yaml:5:3: the field `model` is missing here
           5 |   instructions: hello
                 ^
    "#]],
    );
    check(
        &with_spec("model: gpt"),
        expect![[r#"
            agent.yaml:5:10: expected a mapping of fields
               5 |   model: gpt
                            ^
        "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m }\nlimits: { iterations: many }"),
        expect![[r#"
        agent.yaml:6:25: expected a whole number
           6 |   limits: { iterations: many }
                                       ^
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m }\nlimits: { iterations: -1 }"),
        expect![[r#"
        agent.yaml:6:25: expected a whole number
           6 |   limits: { iterations: -1 }
                                       ^
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m }\nlimits: { usd: a lot }"),
        expect![[r#"
        agent.yaml:6:13: expected dollars with at most six decimals, for example "0.25", found string "a lot"
           6 |   limits: { usd: a lot }
                           ^
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m }\nlimits: { usd: 0.0000001 }"),
        expect![[r#"
        agent.yaml:6:13: expected dollars with at most six decimals, for example "0.25", found floating point `0.0000001`
           6 |   limits: { usd: 0.0000001 }
                           ^
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m }\nlimits: { wall: 10 }"),
        expect![[r#"
        agent.yaml:6:13: expected a duration with units, for example 90s, 10m, 1h30m or 1d, found integer `10`
           6 |   limits: { wall: 10 }
                           ^
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m, temperature: 2.5 }"),
        expect![[r#"
        agent.yaml:5:39: expected a number from 0 to 2 with at most three decimals, for example 0.7, found floating point `2.5`
           5 |   model: { provider: openai, name: m, temperature: 2.5 }
                                                     ^
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m, stream: maybe }"),
        expect![[r#"
            agent.yaml:5:47: expected true or false
               5 |   model: { provider: openai, name: m, stream: maybe }
                                                                 ^
        "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m }\ntools: files"),
        expect![[r#"
            agent.yaml:6:10: expected a list
               6 |   tools: files
                            ^
        "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: }"),
        expect![[r#"
        agent.yaml:5:10: provider `openai` needs `name`, the model's name at the server
           5 |   model: { provider: openai, name: }
                        ^
    "#]],
    );
}

#[test]
fn fields_that_do_not_go_together_are_named() {
    check(
        &with_spec("model:\n  provider: openai\n  temperature: 1"),
        expect![[r#"
        agent.yaml:6:5: provider `openai` needs `name`, the model's name at the server
           6 |     provider: openai
                   ^
    "#]],
    );
    check(
        &with_spec("model:\n  provider: demo\n  script: demo.json\n  baseUrl: http://localhost"),
        expect![[r#"
        agent.yaml:6:5: `baseUrl` does not belong to provider `demo`, which answers from its script
           6 |     provider: demo
                   ^
    "#]],
    );
    check(
        &with_spec("model: { provider: demo }"),
        expect![[r#"
        agent.yaml:5:10: provider `demo` needs `script`, the file of its replies
           5 |   model: { provider: demo }
                        ^
    "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\ntools:\n  - { use: files }"),
        expect![[r#"
            agent.yaml:7:7: `use: files` needs `root`, the folder that may be seen
               7 |     - { use: files }
                         ^
        "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\ntools:\n  - { use: ask }\n  - { use: ask, native: x }"),
        expect![[r#"
        agent.yaml:8:7: `use` and `native` exclude each other: write them as two tools
           8 |     - { use: ask, native: x }
                     ^
    "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\ntools:\n  - {}"),
        expect![[r#"
            agent.yaml:7:7: a tool needs `use` (files, http, shell or ask) or `native` (the name of a tool of the program)
               7 |     - {}
                         ^
        "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\ntools:\n  - native: pay\n    root: /"),
        expect![[r#"
        agent.yaml:7:7: `root` does not belong to a native tool
           7 |     - native: pay
                     ^
    "#]],
    );
}

#[test]
fn values_are_checked_where_they_stand() {
    check(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata:\n  name: My Agent\nspec: { model: { provider: demo, script: d } }\n",
        expect![[r#"
            agent.yaml:4:9: expected a name of lower-case letters, digits and `-`, at most 63 characters
               4 |   name: My Agent
                           ^
        "#]],
    );
    check(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: { name: a, version: v2 }\nspec: { model: { provider: demo, script: d } }\n",
        expect![[r#"
            agent.yaml:3:31: expected a version of numbers and dots, for example 1 or 2.1
               3 | metadata: { name: a, version: v2 }
                                                 ^
        "#]],
    );
    check(
        &with_spec("model:\n  provider: openai\n  name: m\n  baseUrl: localhost:8080"),
        expect![[r#"
        agent.yaml:8:14: expected a URL that begins with http:// or https://
           8 |     baseUrl: localhost:8080
                            ^
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m }\nlimits:\n  tokens: 0"),
        expect![[r#"
        agent.yaml:7:13: expected a limit above zero; without a limit, leave the field out
           7 |     tokens: 0
                           ^
    "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\ntools:\n  - { use: ask }\n  - { native: ask }"),
        expect![[r#"
            agent.yaml:8:7: there would be two tools named `ask`
               8 |     - { native: ask }
                         ^
        "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\noutput:\n  schema: { type: objekt }"),
        expect![[r#"
        agent.yaml:7:13: this is not a usable JSON Schema: "objekt" is not valid under any of the schemas listed in the 'anyOf' keyword (at /type)
           7 |     schema: { type: objekt }
                           ^
    "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\noutput:\n  schema: { $ref: 'http://10.0.0.1/x' }"),
        expect![[r#"
            agent.yaml:7:13: this is not a usable JSON Schema: Resource 'http://10.0.0.1/x' is not present in a registry and retrieving it failed: Retrieval is disabled, cannot fetch http://10.0.0.1/x
               7 |     schema: { $ref: 'http://10.0.0.1/x' }
                               ^
        "#]],
    );
}

#[test]
fn only_openai_has_a_choice_of_protocols() {
    check(
        &with_spec("model: { provider: openai, api: response, name: m }"),
        expect![[r#"
        agent.yaml:5:35: unknown value `response`; did you mean `responses`?
           5 |   model: { provider: openai, api: response, name: m }
                                                 ^
        expected one of: `chat`, `responses`
    "#]],
    );
    check(
        &with_spec("model:\n  provider: anthropic\n  api: responses\n  name: m"),
        expect![[r#"
        agent.yaml:6:5: `api` belongs to provider `openai`; `anthropic` has one only
           6 |     provider: anthropic
                   ^
    "#]],
    );
    check(
        &with_spec("model:\n  provider: demo\n  api: chat\n  script: d"),
        expect![[r#"
        agent.yaml:6:5: `api` does not belong to provider `demo`, which answers from its script
           6 |     provider: demo
                   ^
    "#]],
    );
}

#[test]
fn what_may_be_a_secret_is_not_shown() {
    check(
        &with_spec("model: { provider: openai, name: m, apiKeyEnv: sk-proj-abc123 }"),
        expect![[r#"
        agent.yaml:5:50: expected the name of an environment variable, for example OPENAI_API_KEY; the key itself does not belong into a manifest
    "#]],
    );
    check(
        &with_spec("model: { provider: openai, name: m, baseUrl: 'https://me:pw@host/v1' }"),
        expect![[r#"
        agent.yaml:5:48: a URL in a manifest holds no user or password: name the key with apiKeyEnv
    "#]],
    );
}

#[test]
fn broken_yaml_is_an_error_of_its_line() {
    check(
        "apiVersion: loopd.dev/v1alpha1\nkind: [Agent\nmetadata: {}\n",
        expect![[r#"
            agent.yaml:2:7: expected a single word
               2 | kind: [Agent
                         ^
        "#]],
    );
    check(
        "apiVersion: loopd.dev/v1alpha1\n\tkind: Agent\n",
        expect![[r#"
            agent.yaml:1:13: while scanning a plain scalar, found a tab
               1 | apiVersion: loopd.dev/v1alpha1
                               ^
            line 2 is indented with a tab; YAML wants spaces
        "#]],
    );
    check(
        &with_spec("model: { provider: demo, script: d }\nmodel: { provider: demo, script: d }"),
        expect![[r#"
            agent.yaml:6:3: the key `model` occurs twice
               6 |   model: { provider: demo, script: d }
                     ^
        "#]],
    );
    check(
        "kind: Agent\n---\nkind: Agent\n",
        expect![[r#"
        agent.yaml:1:1: the field `apiVersion` is missing here
           1 | kind: Agent
               ^
    "#]],
    );
    check(
        "kind: \u{1b}[31mred\n",
        expect![[r#"
        agent.yaml:1:7: unexpected character: `\u{1b}'
           1 | kind:  [31mred
                     ^
    "#]],
    );
    let error = Manifest::parse("agent.yaml", b"kind: Agent\nname: \xff\n").expect_err("is not UTF-8");
    expect!["agent.yaml: line 2 is not UTF-8 text; a manifest is YAML in UTF-8"].assert_eq(&error.to_string());
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    check(
        bomb,
        expect![[r#"
        agent.yaml:1:1: unknown field `a`
           1 | a: &a [x,x,x,x,x,x,x,x,x]
               ^
        expected one of: `apiVersion`, `kind`, `metadata`, `spec`
    "#]],
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[ \\n:{}\\[\\]a-eA-Z0-9&*!|>'\"#%@,.?-]{0,120}") {
        let _ = Manifest::parse("agent.yaml", text.as_bytes()).map_err(|error| error.to_string());
    }

    #[test]
    fn no_change_of_one_letter_makes_it_panic(at in 0_usize..2000, byte in 0_u8..128) {
        let mut bytes = crate::manifest::FULL.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = Manifest::parse("agent.yaml", &bytes).map_err(|error| error.to_string());
    }
}

#[test]
fn a_tool_that_reaches_out_says_how_far() {
    let tool = |tool: &str| with_spec(&format!("model: {{ provider: openai, name: m }}\ntools:\n  - {tool}"));
    let mut out = String::new();
    for written in [
        "{ use: shell, root: . }",
        "{ use: shell, root: ., programs: [] }",
        "{ use: shell, root: ., programs: [git, ./run] }",
        "{ use: shell, root: ., programs: [git, 'git status'] }",
        "{ use: shell, root: ., programs: [git], env: [HOME, OPENAI_API_KEY] }",
        "{ use: shell, root: ., programs: [git], env: [TOKEN=sk-test-123] }",
        "{ use: shell, root: ., programs: [git], timeout: 0s }",
        "{ use: shell, root: ., programs: [git], hosts: [a] }",
        "{ use: http, hosts: [] }",
        "{ use: http, hosts: ['http://docs.rs'] }",
        "{ use: http, addresses: [10.0.0.0/33] }",
        "{ use: http, addresses: [localhost] }",
        "{ use: http, maxBytes: 0 }",
        "{ use: files, root: ., allow: [] }",
        "{ use: sh }",
    ] {
        let error = Manifest::parse("agent.yaml", tool(written).as_bytes()).expect_err(written).to_string();
        assert!(!error.contains("sk-test"), "{error}");
        out.push_str(&format!("{}\n", error.lines().next().unwrap_or_default()));
    }
    expect![[r#"
        agent.yaml:7:7: `use: shell` needs `programs`, the list of those that may be run
        agent.yaml:7:7: `use: shell` needs `programs`, the list of those that may be run
        agent.yaml:7:46: expected the name of a program, or an absolute path
        agent.yaml:7:46: expected the name of a program, or an absolute path
        agent.yaml:7:59: the model's key does not belong into the environment of programs
        agent.yaml:7:53: expected the name of an environment variable, not its value
        agent.yaml:7:56: expected a duration above zero
        agent.yaml:7:7: `hosts` does not belong to `use: shell`
        agent.yaml:7:7: `hosts` is empty: name the hosts, or leave it out for every public one
        agent.yaml:7:28: expected a host name, an address, or `*.` and a name
        agent.yaml:7:32: expected an address or a network, for example 10.1.0.0/16
        agent.yaml:7:32: expected an address or a network, for example 10.1.0.0/16
        agent.yaml:7:30: expected at least 1
        agent.yaml:7:7: `allow` is empty: name list, read, search, write or edit, or leave it out for the first three
        agent.yaml:7:14: unknown value `sh`
    "#]]
    .assert_eq(&out);
}
