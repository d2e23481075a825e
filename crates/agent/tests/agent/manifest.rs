//! What a manifest means, its normal form, and its published schema.

use expect_test::{expect, expect_file};
use loopd_agent::manifest::{FileTool, ToolClass, ToolSource, json_schema};
use loopd_agent::{Agent, AgentError, Manifest};
use loopd_kernel::model::ToolOffer;
use loopd_kernel::{EffectClass, ErasedLoop as _};

/// A manifest with every field.
pub const FULL: &str = r#"apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata:
  name: researcher
  version: "2.1"
  description: Reads documents.
spec:
  model:
    provider: openai
    name: smollm2-135m
    baseUrl: http://127.0.0.1:18081/v1
    apiKeyEnv: OPENAI_API_KEY
    temperature: 0.7
    maxOutputTokens: 1024
    stream: false
    price: { inputPerMillion: "0.25", outputPerMillion: 2, cacheReadPerMillion: 0.025 }
    contextWindow: 8192
    timeout: 2m
    attempts: 3
  instructions: |
    Answer with citations.
    Be brief.
  tools:
    - { use: files, root: ./docs, allow: [search, list, read] }
    - { use: ask }
    - { native: refund, class: once }
  limits: { iterations: 20, tokens: 200000, usd: "0.50", wall: 10m, retries: 20 }
  output:
    schema: { type: object, properties: { reasoning: { type: string }, answer: { type: string } }, required: [answer] }
"#;

pub fn offer(name: &str) -> ToolOffer {
    let parameters = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#.into();
    ToolOffer { name: name.into(), description: format!("The tool {name}."), parameters }
}

fn full() -> Manifest {
    Manifest::parse("agent.yaml", FULL.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_field_is_read() {
    let manifest = full();
    let json = serde_json::to_value(&manifest).expect("serialises");
    expect![[r#"
        {
          "apiVersion": "loopd.dev/v1alpha1",
          "kind": "Agent",
          "metadata": {
            "description": "Reads documents.",
            "name": "researcher",
            "version": "2.1"
          },
          "spec": {
            "instructions": "Answer with citations.\nBe brief.\n",
            "limits": {
              "iterations": 20,
              "retries": 20,
              "tokens": 200000,
              "usd": "0.5",
              "wall": "10m"
            },
            "model": {
              "apiKeyEnv": "OPENAI_API_KEY",
              "attempts": 3,
              "baseUrl": "http://127.0.0.1:18081/v1",
              "contextWindow": 8192,
              "maxOutputTokens": 1024,
              "name": "smollm2-135m",
              "price": {
                "cacheReadPerMillion": "0.025",
                "inputPerMillion": "0.25",
                "outputPerMillion": "2"
              },
              "provider": "openai",
              "stream": false,
              "temperature": "0.7",
              "timeout": "2m"
            },
            "output": {
              "schema": {
                "properties": {
                  "answer": {
                    "type": "string"
                  },
                  "reasoning": {
                    "type": "string"
                  }
                },
                "required": [
                  "answer"
                ],
                "type": "object"
              }
            },
            "tools": [
              {
                "allow": [
                  "list",
                  "read",
                  "search"
                ],
                "root": "./docs",
                "use": "files"
              },
              {
                "use": "ask"
              },
              {
                "class": "once",
                "native": "refund"
              }
            ]
          }
        }
    "#]]
    .assert_eq(&format!("{json:#}\n"));
    expect![[r#"
        Limits {
            iterations: Some(
                20,
            ),
            tokens: Some(
                200000,
            ),
            micro_usd: Some(
                MicroUsd(
                    500000,
                ),
            ),
            wall_ms: Some(
                600000,
            ),
            retries: Some(
                20,
            ),
        }
    "#]]
    .assert_debug_eq(&manifest.spec.limits.to_kernel());
    expect![[r#"
        Some(
            Price {
                input: 250000,
                cache_read: 25000,
                cache_write: 250000,
                output: 2000000,
                reasoning: 2000000,
            },
        )
    "#]]
    .assert_debug_eq(&manifest.spec.model.price.map(|price| price.to_kernel()));
    assert_eq!(manifest.spec.model.key(), "openai/smollm2-135m");
    assert_eq!(manifest.tool_names(), ["list_files", "read_file", "search_files", "ask", "refund"]);
    let expected = [
        ToolSource::Files { root: "./docs".into(), allow: FileTool::READING.to_vec() },
        ToolSource::Ask,
        ToolSource::Native { name: "refund".into(), class: Some(ToolClass::Once) },
    ];
    assert_eq!(manifest.spec.tools, expected);
}

#[test]
fn defaults_are_filled_in_and_the_normal_form_is_stable() {
    let small = "{apiVersion: loopd.dev/v1alpha1, kind: Agent, metadata: {name: demo}, \
                 spec: {model: {provider: demo, script: demo.json}}}";
    let manifest = Manifest::parse("a.yaml", small.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let agent = Agent::from_manifest(manifest, Vec::new()).expect("an agent");
    let bytes = String::from_utf8(agent.definition().to_vec()).expect("text");
    expect![[r#"{"form":"loopd.agent/2","agent":{"apiVersion":"loopd.dev/v1alpha1","kind":"Agent","metadata":{"name":"demo","version":"1"},"spec":{"model":{"provider":"demo","script":"demo.json","maxOutputTokens":4096,"stream":true},"limits":{"iterations":50}}}}"#]].assert_eq(&bytes);
    let again = Agent::from_definition(bytes.as_bytes()).expect("reads back");
    assert_eq!(again.definition(), agent.definition());
    assert_eq!((again.name(), again.version()), ("demo", "1"));
}

#[test]
fn a_definition_needs_nothing_else() {
    let offers = ["refund", "list_files", "search_files", "read_file"].map(offer);
    let agent = Agent::from_manifest(full(), offers.to_vec()).expect("an agent");
    let again = Agent::from_definition(agent.definition()).expect("reads back");
    assert_eq!(again.definition(), agent.definition());
    assert_eq!(again.manifest(), agent.manifest());
    let names: Vec<&str> = again.offers().iter().map(|offer| offer.name.as_str()).collect();
    assert_eq!(names, ["list_files", "read_file", "search_files", "ask", "refund", "read_result"]);
    // The order of a schema's keys is the order in which a model answers.
    let text = String::from_utf8_lossy(agent.definition());
    assert!(text.contains(r#""properties":{"reasoning":{"type":"string"},"answer":"#), "{text}");
    for (bytes, why) in [
        (&b"{}"[..], "missing field `form`"),
        (br#"{"form":"loopd.agent/3"}"#, "unknown variant `loopd.agent/3`"),
        (b"\xff", "expected value"),
    ] {
        let error = Agent::from_definition(bytes).expect_err("is no definition").to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn tools_have_to_be_those_of_the_manifest() {
    let error = |offers: &[&str]| {
        let offers = offers.iter().map(|name| offer(name)).collect();
        Agent::from_manifest(full(), offers).map(drop).expect_err("wrong tools").to_string()
    };
    expect!["agent researcher: there is no tool named `refund` in this program"].assert_eq(&error(&[
        "list_files",
        "read_file",
        "search_files",
    ]));
    expect!["agent researcher: the manifest does not name the tool `shell`"].assert_eq(&error(&[
        "list_files",
        "read_file",
        "search_files",
        "refund",
        "shell",
    ]));
    let broken = ToolOffer { parameters: r#"{"type":"objekt"}"#.into(), ..offer("refund") };
    let mut offers: Vec<ToolOffer> = ["list_files", "read_file", "search_files"].map(offer).to_vec();
    offers.push(broken);
    let error = Agent::from_manifest(full(), offers).map(drop).expect_err("wrong schema");
    expect![[r#"agent researcher: tool `refund`: this is not a usable JSON Schema: "objekt" is not valid under any of the schemas listed in the 'anyOf' keyword (at /type)"#]].assert_eq(&error.to_string());
}

#[test]
fn a_demo_script_travels_with_the_definition() {
    let yaml = FULL.replace("provider: openai\n    name: smollm2-135m\n    baseUrl: http://127.0.0.1:18081/v1\n    apiKeyEnv: OPENAI_API_KEY", "provider: demo\n    script: demo.json");
    let manifest = Manifest::parse("a.yaml", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let offers = ["refund", "list_files", "search_files", "read_file"].map(offer);
    let agent = Agent::from_manifest(manifest, offers.to_vec()).expect("an agent");
    assert_eq!(agent.demo_script(), None);
    let before = agent.definition().to_vec();
    let agent = agent.with_demo_script(" {\"replies\": [ {\"id\": 1e400} ]}\n").expect("a script");
    let again = Agent::from_definition(agent.definition()).expect("reads back");
    assert_eq!(again.demo_script(), Some(r#"{"replies": [ {"id": 1e400} ]}"#));
    assert_ne!(agent.definition(), before);
    assert!(matches!(again.with_demo_script("{"), Err(AgentError::DemoScript { .. })));
}

#[test]
fn a_class_is_only_made_stricter() {
    assert_eq!(ToolClass::Once.over(EffectClass::Read), Ok(EffectClass::Once));
    assert_eq!(ToolClass::Read.over(EffectClass::Read), Ok(EffectClass::Read));
    let error = ToolClass::Read.over(EffectClass::Once).expect_err("is looser");
    assert_eq!(error.to_string(), "class `read` is less strict than `once`, which the tool itself declares");
    assert!(ToolClass::Pure.over(EffectClass::Read).is_err());
    assert!(ToolClass::Read.over(EffectClass::Keyed).is_err());
}

#[test]
fn a_version_needs_no_quotes() {
    for (written, version) in [("2", "2"), ("2.10", "2.10"), ("\"2.10\"", "2.10"), ("1.2.3", "1.2.3")] {
        let yaml = FULL.replace("\"2.1\"", written);
        let manifest = Manifest::parse("a.yaml", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(manifest.metadata.version, version);
    }
}

#[test]
fn the_guide_shows_a_manifest_that_reads() {
    let guide = include_str!("../../../../docs/agents.md");
    let yaml = guide.split("```yaml").nth(1).and_then(|rest| rest.split("```").next()).expect("a manifest");
    Manifest::parse("docs/agents.md", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_published_schema_holds_what_the_reader_holds() {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let head = "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: { name: a, version: 2 }\nspec:\n";
    let spec = |spec: &str| format!("{head}{}", spec.lines().map(|line| format!("  {line}\n")).collect::<String>());
    let model = "model: { provider: openai, name: m }\n";
    for (yaml, reads) in [
        (FULL.to_owned(), true),
        (spec("model: { provider: demo, script: d }"), true),
        (
            spec(
                "model: { provider: openai, name: m, temperature: 0.7, price: { inputPerMillion: 1, outputPerMillion: '2.5' } }",
            ),
            true,
        ),
        (spec("model: { provider: gemini, name: m, baseUrl: http://localhost/v1beta, apiKeyEnv: KEY }"), true),
        (spec("model: { provider: gemini, name: m, script: d }"), false),
        (spec("model: { provider: gemini }"), false),
        (spec("model: { provider: openai, script: d, name: m }"), false),
        (spec("model: { provider: openai }"), false),
        (spec("model: { provider: openai, api: chat, name: m }"), true),
        (spec("model: { provider: openai, api: responses, name: m, baseUrl: http://localhost/v1 }"), true),
        (spec("model: { provider: openai, api: assistants, name: m }"), false),
        (spec("model: { provider: anthropic, api: responses, name: m }"), false),
        (spec("model: { provider: gemini, api: chat, name: m }"), false),
        (spec("model: { provider: demo, api: chat, script: d }"), false),
        (spec("model: { provider: anthropic, name: m, baseUrl: http://localhost, apiKeyEnv: KEY }"), true),
        (spec("model: { provider: anthropic, script: d, name: m }"), false),
        (spec("model: { provider: anthropic }"), false),
        (spec("model: { provider: demo, name: m, script: d }"), false),
        (spec("model: { provider: openai, name: m, temperature: 3 }"), false),
        (spec(&format!("{model}tools: [ {{ use: files, root: . }}, {{ native: pay }}, {{ use: ask }} ]")), true),
        (spec(&format!("{model}tools: [ {{ use: ask, root: . }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: files }} ]")), false),
        (spec(&format!("{model}tools: [ {{ native: pay, use: ask }} ]")), false),
        (spec(&format!("{model}tools: [ {{ }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: files, root: ., allow: [write, edit, read] }} ]")), true),
        (spec(&format!("{model}tools: [ {{ use: files, root: ., allow: [remove] }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: files, root: ., env: [A] }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: http }} ]")), true),
        (
            spec(&format!(
                "{model}tools: [ {{ use: http, hosts: [docs.rs], addresses: [127.0.0.1, 'fd00::/8'], maxBytes: 10, timeout: 5s }} ]"
            )),
            true,
        ),
        (spec(&format!("{model}tools: [ {{ use: http, root: . }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: http, maxBytes: 0 }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: http, hosts: [] }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: files, root: ., allow: [] }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: shell, root: ., programs: [] }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: shell, root: ., programs: [git] }} ]")), true),
        (
            spec(&format!(
                "{model}tools: [ {{ use: shell, root: ., programs: [/bin/ls], env: [HOME], maxOutput: 10, timeout: 5s }} ]"
            )),
            true,
        ),
        (spec(&format!("{model}tools: [ {{ use: shell, root: . }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: shell, programs: [git] }} ]")), false),
        (spec(&format!("{model}tools: [ {{ use: shell, root: ., programs: [git], allow: [read] }} ]")), false),
        (spec(&format!("{model}limits: {{ wall: 10m, usd: 0.5 }}")), true),
        (spec(&format!("{model}limits: {{ wall: 10 }}")), false),
        (spec(&format!("{model}limits: {{ iterations: 0 }}")), false),
        (spec(&format!("{model}limit: {{ }}")), false),
        (spec(&format!("{model}output: {{ schema: [] }}")), false),
    ] {
        let value: serde_json::Value = serde_saphyr::from_str(&yaml).expect("YAML");
        assert_eq!(Manifest::parse("a.yaml", yaml.as_bytes()).is_ok(), reads, "{yaml}");
        assert_eq!(validator.is_valid(&value), reads, "{yaml}");
    }
}

#[test]
fn a_gemini_model_is_read_as_it_is_written() {
    let yaml = FULL.replace("provider: openai", "provider: gemini").replace("OPENAI_API_KEY", "GEMINI_API_KEY");
    let manifest = Manifest::parse("agent.yaml", yaml.as_bytes()).expect("a manifest");
    assert_eq!(manifest.spec.model.key(), "gemini/smollm2-135m");
    let json = serde_json::to_string(&manifest).expect("serialises");
    assert!(json.contains(r#""provider":"gemini""#), "{json}");
    assert_eq!(serde_json::from_str::<Manifest>(&json).expect("again"), manifest);
}

#[test]
fn the_responses_api_is_another_model_and_chat_is_not_written() {
    let (chat, before) = (FULL.replace("provider: openai", "provider: openai\n    api: chat"), full());
    let chat = Manifest::parse("agent.yaml", chat.as_bytes()).expect("a manifest");
    assert_eq!(serde_json::to_string(&chat).expect("JSON"), serde_json::to_string(&before).expect("JSON"));
    assert_eq!((chat.spec.model.key(), &chat), ("openai/smollm2-135m".to_owned(), &before));
    let yaml = FULL.replace("provider: openai", "provider: openai\n    api: responses");
    let manifest = Manifest::parse("agent.yaml", yaml.as_bytes()).expect("a manifest");
    assert_eq!(manifest.spec.model.key(), "openai+responses/smollm2-135m");
    let json = serde_json::to_string(&manifest).expect("serialises");
    assert!(json.contains(r#""provider":"openai","api":"responses""#), "{json}");
    assert_eq!(serde_json::from_str::<Manifest>(&json).expect("again"), manifest);
}

#[test]
fn the_published_schema_is_up_to_date() {
    expect_file!["../../../../docs/schemas/agent.schema.json"].assert_eq(&json_schema());
}

#[test]
fn the_tools_that_reach_out_are_read_and_written_back() {
    let tools = "- { use: files, root: ., allow: [edit, write, read] }\n    - { use: http, hosts: [docs.rs, '*.example.com'], addresses: [10.0.0.0/8], maxBytes: 1000, timeout: 5s }\n    - { use: shell, root: src, programs: [git, /bin/ls], timeout: 2m, maxOutput: 1000, env: [HOME] }\n";
    let yaml = FULL
        .replace("- { native: refund, class: once }\n", tools)
        .replace("- { use: files, root: ./docs, allow: [search, list, read] }\n    ", "");
    let manifest = Manifest::parse("a.yaml", yaml.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(manifest.tool_names(), ["ask", "read_file", "write_file", "edit_file", "http_get", "shell"]);
    let json = serde_json::to_string(&manifest.spec.tools).expect("serialises");
    expect![[r#"[{"use":"ask"},{"use":"files","root":".","allow":["read","write","edit"]},{"use":"http","hosts":["docs.rs","*.example.com"],"addresses":["10.0.0.0/8"],"maxBytes":1000,"timeout":"5s"},{"use":"shell","root":"src","programs":["git","/bin/ls"],"timeout":"2m","maxOutput":1000,"env":["HOME"]}]"#]].assert_eq(&json);
    assert_eq!(serde_json::from_str::<Vec<ToolSource>>(&json).expect("again"), manifest.spec.tools);
}
