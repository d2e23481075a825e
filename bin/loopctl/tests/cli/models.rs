//! What is known of models, and where it is from.

use crate::check;
use crate::world::World;
use expect_test::expect;

/// An agent of OpenAI's, with what is added to its model and its spec.
fn agent(name: &str, model: &str, spec: &str) -> String {
    format!(
        "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: reader }}\nspec:\n  \
         model: {{ {name}, apiKeyEnv: MY_KEY{model} }}\n{spec}"
    )
}

const LIST: &str = "\
apiVersion: loopd.dev/v1alpha1
kind: ModelList
models:
  - { provider: openai, name: gpt-5-mini, price: { inputPerMillion: 0.2, outputPerMillion: 1 }, maxOutputTokens: 128000 }
  - { baseUrl: \"http://127.0.0.1:9/v1\", name: qwen3, contextWindow: 32768, capabilities: [tools] }
";

#[test]
fn models_are_listed_with_what_is_known() {
    let world = World::new();
    world.write("models.yaml", LIST);
    check(
        &world,
        &["models", "GPT-4o-mini", "--provider", "openai"],
        expect![[r#"
        WINDOW REPLY IN CACHED OUT FROM MODEL
          128k ? 0.15 0.075 0.6 list openai/gpt-4o-mini
             ? ? 0.3 0.3 1.2 list openai/gpt-4o-mini-2024-07-18.ft-
          128k ? 0.15 0.15 0.6 list openai/gpt-4o-mini-audio-preview
           16k ? 0.6 0.3 2.4 list openai/gpt-4o-mini-realtime-preview
           16k ? 1.25 1.25 5 list openai/gpt-4o-mini-transcribe
             ? ? 0.6 0.6 12 list openai/gpt-4o-mini-tts
        err: dollars per million tokens; ? is unknown; list: genai-prices 0.2.1
    "#]],
    );
    check(
        &world,
        &["--models", "models.yaml", "models", "gpt-5-mini", "--provider", "openai"],
        expect![[r#"
        WINDOW REPLY IN CACHED OUT FROM MODEL
          400k 128k 0.2 0.2 1 file openai/gpt-5-mini
        err: dollars per million tokens; ? is unknown; list: genai-prices 0.2.1, file: models.yaml 4Fb6mVv4
    "#]],
    );
    check(
        &world,
        &["models", "qwen3", "--models", "models.yaml", "--provider", "http://127.0.0.1:9/v1"],
        expect![[r#"
            WINDOW REPLY IN CACHED OUT FROM MODEL
               32k ? ? ? ? file http://127.0.0.1:9/v1/qwen3
            err: dollars per million tokens; ? is unknown; list: genai-prices 0.2.1, file: models.yaml 4Fb6mVv4
        "#]],
    );
    check(
        &world,
        &["models", "opus-4-1", "--provider", "anthropic", "-o", "name"],
        expect![[r#"
        anthropic/claude-opus-4-1
    "#]],
    );
    check(
        &world,
        &["models", "opus-4.1", "--provider", "anthropic"],
        expect![[r#"
        err: no model has `opus-4.1` in its name; the nearest are anthropic/claude-opus-4-1
    "#]],
    );
    check(
        &world,
        &["models", "--provider", "opnai"],
        expect![[r#"
        err: error[E-MODEL-UNKNOWN]: there is no provider `opnai`
        err: fix: one of: anthropic, arcee, avian, aws, azure, baseten, cerebras, cloudflare, cohere, cursor, databricks, deepseek, doubleword, elevenlabs, fireworks, gemini, github-copilot, groq, huggingface_cerebras, huggingface_fireworks-ai, huggingface_groq, huggingface_hyperbolic, huggingface_nebius, huggingface_novita, huggingface_nscale, huggingface_ovhcloud, huggingface_publicai, huggingface_sambanova, huggingface_together, meta, minimax, mistral, modal, moonshotai, novita, openai, openai-decisions, openrouter, ovhcloud, perplexity, quicksilverpro, together, typesafe, voyageai, x-ai, zai, zhipuai
        exit 8
    "#]],
    );
    let wide = world.loopctl(&["models", "--provider", "anthropic"]).out;
    assert!(wide.lines().all(|line| line.chars().count() <= 80), "{wide}");
    // Nothing of it needs a store, and nothing makes one.
    assert!(!crate::world::exists(&world.path(".loopd")));
}

#[test]
fn one_model_is_shown_with_every_class_and_its_sources() {
    let world = World::new();
    world.write("models.yaml", LIST);
    check(
        &world,
        &["models", "show", "openai/gpt-5-mini", "--models", "models.yaml"],
        expect![[r#"
            openai/gpt-5-mini
              input $0.2 per million tokens models.yaml 4Fb6mVv4
              cache read $0.2 per million tokens
              cache write $0.2 per million tokens
              output $1 per million tokens
              reasoning $1 per million tokens
              window 400,000 tokens genai-prices 0.2.1
              reply 128,000 tokens models.yaml 4Fb6mVv4
              can unknown
        "#]],
    );
    check(
        &world,
        &["models", "show", "qwen3", "--models", "models.yaml"],
        expect![[r#"
        http://127.0.0.1:9/v1/qwen3
          price unknown
          window 32,768 tokens models.yaml 4Fb6mVv4
          reply unknown
          can tools models.yaml 4Fb6mVv4
    "#]],
    );
    check(
        &world,
        &["models", "show", "gpt-5.4", "--provider", "openai"],
        expect![[r#"
        openai/gpt-5.4
          input $5 per million tokens genai-prices 0.2.1
          cache read $0.5 per million tokens
          cache write $5 per million tokens
          output $22.5 per million tokens
          reasoning $22.5 per million tokens
                      of long prompts; shorter ones cost less
          window 1,050,000 tokens genai-prices 0.2.1
          reply unknown
          can unknown
    "#]],
    );
    check(
        &world,
        &["models", "show", "openai/gpt-4o", "-o", "jsonl"],
        expect![[r#"
            {"provider":"openai","name":"gpt-4o","context_window":128000,"max_output_tokens":null,"micro_usd_per_million":{"input":2500000,"cache_read":1250000,"cache_write":2500000,"output":10000000,"reasoning":10000000},"long_prompts_cost_more":false,"capabilities":null,"sources":{"price":"genai-prices 0.2.1","context_window":"genai-prices 0.2.1","max_output_tokens":null,"capabilities":null}}
        "#]],
    );
    check(
        &world,
        &["models", "show", "anthropic/claude-opus-4.1"],
        expect![[r#"
            err: error[E-MODEL-UNKNOWN]: nothing is known of a model `anthropic/claude-opus-4.1`
            err: fix: the nearest names are anthropic/claude-opus-4-1, anthropic/claude-opus-4-0, anthropic/claude-opus-4-5, anthropic/claude-opus-4-6, anthropic/claude-opus-4-7
            exit 8
        "#]],
    );
    check(
        &world,
        &["models", "show", "no-such-thing-as-this-anywhere"],
        expect![[r#"
        err: error[E-MODEL-UNKNOWN]: nothing is known of a model `no-such-thing-as-this-anywhere`
        err: fix: `loopctl models` lists what is known; --models FILE adds to it
        exit 8
    "#]],
    );
}

#[test]
fn a_list_that_does_not_read_is_answered_with_its_line() {
    let world = World::new();
    world.write("models.yaml", &LIST.replace("provider: openai", "provider: opnai"));
    check(
        &world,
        &["models", "--models", "models.yaml"],
        expect![[r#"
        err: error[E-MODEL-LIST]: models.yaml:4:17: there is no provider `opnai` (did you mean `openai`?); for a server of your own, write baseUrl
        err: 4 | - { provider: opnai, name: gpt-5-mini, price: { inputPerMillion: 0.2, outputPerMillion: 1 }, maxOu
        err: ^
        exit 2
    "#]],
    );
    check(
        &world,
        &["run", "agent.yaml", "x", "--models", "none.yaml"],
        expect![[r#"
        err: error[E-MODEL-LIST]: none.yaml: No such file or directory
        err: fix: name another file with --models or LOOPD_MODELS, or none
        exit 2
    "#]],
    );
    // What needs no model does not read it.
    assert_eq!(world.loopctl(&["agent", "schema", "--models", "none.yaml"]).code, 0);
}

#[test]
fn a_check_says_price_and_window_and_who_says_so() {
    let world = World::new();
    world.write("models.yaml", LIST);
    world.write("a.yaml", &agent("provider: openai, name: gpt-5-mini", "", ""));
    check(
        &world,
        &["agent", "check", "a.yaml"],
        expect![[r#"
        reader 1
          model openai/gpt-5-mini, key in MY_KEY
          price $0.25 in, $2 out per million tokens, from genai-prices 0.2.1
          window 400,000 tokens, from genai-prices 0.2.1
          limits 50 iterations
          state cannot run here: the API key is missing: the variable MY_KEY is not set (E-MODEL-KEY)
          do export MY_KEY=… and try again
        exit 2
    "#]],
    );
    check(
        &world,
        &["agent", "check", "a.yaml", "--models", "models.yaml"],
        expect![[r#"
        reader 1
          model openai/gpt-5-mini, key in MY_KEY
          price $0.2 in, $1 out per million tokens, from models.yaml 4Fb6mVv4
          window 400,000 tokens, from genai-prices 0.2.1
          limits 50 iterations
          state cannot run here: the API key is missing: the variable MY_KEY is not set (E-MODEL-KEY)
          do export MY_KEY=… and try again
        exit 2
    "#]],
    );
    let own = ", contextWindow: 9, price: { inputPerMillion: 0, outputPerMillion: 0 }";
    world.write("b.yaml", &agent("provider: openai, name: gpt-5-mini", own, ""));
    check(
        &world,
        &["agent", "check", "b.yaml", "--models", "models.yaml"],
        expect![[r#"
            reader 1
              model openai/gpt-5-mini, key in MY_KEY
              price $0 in, $0 out per million tokens, from manifest
              window 9 tokens, from manifest
              limits 50 iterations
              note maxOutputTokens 4,096 is more than the model's context window, 9 (from manifest)
              state cannot run here: the API key is missing: the variable MY_KEY is not set (E-MODEL-KEY)
              do export MY_KEY=… and try again
            exit 2
        "#]],
    );
    // The same name at a server of one's own is another model.
    let local = ", baseUrl: \"http://127.0.0.1:9/v1\"";
    world.write("c.yaml", &agent("provider: openai, name: gpt-5-mini", local, ""));
    check(
        &world,
        &["agent", "check", "c.yaml", "--models", "models.yaml"],
        expect![[r#"
        reader 1
          model openai/gpt-5-mini at http://127.0.0.1:9/v1, key in MY_KEY
          price unknown, so no money is counted; spec.model.price declares it
          limits 50 iterations
          state cannot run here: the API key is missing: the variable MY_KEY is not set (E-MODEL-KEY)
          do export MY_KEY=… and try again
        exit 2
    "#]],
    );
}

#[test]
fn gov_03_a_dot_for_a_dash_is_refused_under_a_money_limit_before_anything_starts() {
    let world = World::new();
    let limit = "  limits: { usd: \"0.02\" }\n";
    world.write("dot.yaml", &agent("provider: anthropic, name: claude-opus-4.1", "", limit));
    let mut command = world.command(&["run", "dot.yaml", "hello"]);
    let output = command.env("MY_KEY", "none").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error[E-MODEL-PRICE]: nobody knows what `anthropic/claude-opus-4.1` costs, and the run may spend $0.02
          why: an unknown price is never taken for zero; there is a model `claude-opus-4-1`; nothing was started
          fix: declare spec.model.price in the manifest (0 for a model that costs nothing), or leave the money limit out
    "#]]
    .assert_eq(&String::from_utf8(output.stderr).expect("text"));
    assert!(!crate::world::exists(&world.path(".loopd")), "nothing was started");
}

#[test]
fn the_source_of_a_price_is_recorded_with_the_call() {
    let world = World::new();
    let price = "    price: { inputPerMillion: 1, outputPerMillion: 2 }\n";
    world.write("priced.yaml", &crate::world::AGENT.replace("  instructions", &format!("{price}  instructions")));
    assert_eq!(world.loopctl(&["run", "priced.yaml", "What is here?"]).code, 0);
    let shown = world.loopctl(&["run", "show", "last", "-o", "json"]).out;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let steps = shown["steps"].as_array().expect("steps");
    let calls: Vec<_> = steps.iter().filter(|step| step["kind"] == "model").collect();
    assert!(calls.len() > 1 && calls.iter().all(|call| call["price_from"] == "manifest"), "{shown:#}");
    // A script that costs nothing has its price from nowhere.
    assert_eq!(world.loopctl(&["run", "agent.yaml", "What is here?"]).code, 0);
    assert!(!world.loopctl(&["run", "show", "last", "-o", "json"]).out.contains("price_from"));
}

#[test]
fn a_check_says_everything_that_is_missing_and_asks_no_server() {
    let world = World::new();
    world.write("models.yaml", &LIST.replace("[tools]", "[]").replace("32768", "2000"));
    let spec = "  tools: [ { use: files, root: nowhere }, { native: pay }, { use: ask } ]\n  limits: { usd: 1 }\n";
    // Whoever listens here would hear of it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it does not wait");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    world.write("a.yaml", &agent("provider: openai, name: local", &format!(", baseUrl: \"{url}\""), spec));
    let said = world.say(&["agent", "check", "a.yaml"]).replace(&url, "http://HERE");
    expect![[r#"
        reader 1
          model openai/local at http://HERE, key in MY_KEY
          price unknown, so no money is counted; spec.model.price declares it
          tool list_files read · files below nowhere
          tool read_file read · files below nowhere
          tool search_files read · files below nowhere
          tool pay once · a program of its own
          tool ask asks a person · built in
          tool read_result read · built in
          limits 50 iterations, $1.00
          note baseUrl http://HERE has no path; such servers mostly answer below http://HERE/v1
          state cannot run here: the API key is missing: the variable MY_KEY is not set (E-MODEL-KEY)
          do export MY_KEY=… and try again
          state cannot run here: the folder DIR/nowhere does not exist (E-TOOL)
          do put the folder there, or correct spec.tools
          state cannot run here: there is no tool `pay` in loopctl (E-TOOL)
          do run this agent with that program (loopkit), or use the tools `files`, `http`, `shell` and `ask`
          state cannot run here: nobody knows what `openai/local` costs, and the run may spend $1.00 (E-MODEL-PRICE)
          do declare spec.model.price in the manifest (0 for a model that costs nothing), or leave the money limit out
        exit 2
    "#]]
    .assert_eq(&said);
    assert_eq!(listener.accept().err().map(|error| error.kind()), Some(std::io::ErrorKind::WouldBlock));
    let own = ", baseUrl: \"http://127.0.0.1:9/v1\"";
    world.write("b.yaml", &agent("provider: openai, name: qwen3", own, "  tools: [ { use: ask } ]\n"));
    check(
        &world,
        &["agent", "check", "b.yaml", "--models", "models.yaml"],
        expect![[r#"
        reader 1
          model openai/qwen3 at http://127.0.0.1:9/v1, key in MY_KEY
          price unknown, so no money is counted; spec.model.price declares it
          window 2,000 tokens, from models.yaml _K4jPgLH
          tool ask asks a person · built in
          limits 50 iterations
          note maxOutputTokens 4,096 is more than the model's context window, 2,000 (from models.yaml _K4jPgLH)
          note spec.tools: the model uses none (from models.yaml _K4jPgLH)
          state cannot run here: the API key is missing: the variable MY_KEY is not set (E-MODEL-KEY)
          do export MY_KEY=… and try again
        exit 2
    "#]],
    );
    let far = ", baseUrl: \"http://models.example.com/v1\"";
    world.write("c.yaml", &agent("provider: openai, name: m", far, ""));
    let mut command = world.command(&["agent", "check", "c.yaml"]);
    let output = command.env("MY_KEY", "sk-very-secret").output().expect("it starts");
    expect![[r#"
        reader 1
          model openai/m at http://models.example.com/v1, key in MY_KEY
          price unknown, so no money is counted; spec.model.price declares it
          limits 50 iterations
          note the key goes to models.example.com over an unencrypted connection
          state ready to run
    "#]]
    .assert_eq(&world.normal(&String::from_utf8(output.stdout).expect("text")));
    let json = world.loopctl(&["agent", "check", "a.yaml", "-o", "json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let codes: Vec<&str> = json["problems"].as_array().unwrap().iter().map(|p| p["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["E-MODEL-KEY", "E-TOOL", "E-TOOL", "E-MODEL-PRICE"]);
    assert!(!crate::world::exists(&world.path(".loopd")), "nothing was started");
}

#[test]
fn the_doctor_names_keys_and_counts_models() {
    let world = World::new();
    let mut command = world.command(&["doctor"]);
    let output = command.env("ANTHROPIC_API_KEY", "sk-very-secret").output().expect("it starts");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.contains("set: ANTHROPIC_API_KEY") && !said.contains("sk-very"), "{said}");
    let models = said.lines().find(|line| line.contains("models ")).expect("a line about models");
    assert!(models.starts_with("ok ") && models.ends_with("from genai-prices 0.2.1"), "{models}");
    world.write("broken.yaml", "models: 7\n");
    let broken = world.loopctl(&["doctor", "--models", "broken.yaml"]);
    assert!(broken.code == 1 && broken.out.contains("broken.yaml:1:"), "{}", broken.out);
}
