//! Talks to a real server: `cargo run -p loopd-providers --example live -- [PROVIDER] URL MODEL [KEY_VARIABLE]`.
//!
//! It speaks chat completions; with `responses` the Responses API, with `anthropic` the Messages API, with `gemini`
//! Gemini's `generateContent`.
//! It holds a chat, a streamed chat, and a conversation with a tool, and shows what the adapter made of the answers.
//! `scripts/real-model.sh` starts a server that needs no account.
#![allow(clippy::print_stdout, reason = "a program talks to its terminal")]

use anyhow::{Context, Result, ensure};
use loopd_kernel::model::{Message, ModelConstants, Part, ToolOffer};
use loopd_kernel::{CallId, Digest, EffectKey, RunId};
use loopd_providers::anthropic::AnswerFormat;
use loopd_providers::{AnthropicConfig, GeminiConfig, ModelConfig, OpenAiConfig, ResponsesConfig, from_config};
use loopd_runtime::{CallContext, Model, ModelAnswer, ModelRequest};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).peekable();
    let usage = "usage: live [responses | anthropic | gemini] URL MODEL [KEY_VARIABLE]";
    let provider = args.next_if(|word| ["responses", "anthropic", "gemini"].contains(&word.as_str()));
    let (url, name, key) = (args.next().context(usage)?, args.next().context(usage)?, args.next());
    let config = |stream: bool| {
        let (stream, api_key_env) = (Some(stream), key.clone());
        match provider.as_deref() {
            Some("anthropic") => {
                let answer_format = Some(AnswerFormat::Tool);
                let config = AnthropicConfig::new(&name).at(&url);
                ModelConfig::Anthropic(AnthropicConfig { stream, api_key_env, answer_format, ..config })
            }
            Some("responses") => {
                let config = ResponsesConfig::new(&name).at(&url);
                ModelConfig::Responses(ResponsesConfig { stream, api_key_env, ..config })
            }
            Some(_) => ModelConfig::Gemini(GeminiConfig { stream, api_key_env, ..GeminiConfig::new(&name).at(&url) }),
            None => ModelConfig::Openai(OpenAiConfig { stream, api_key_env, ..OpenAiConfig::new(&name).at(&url) }),
        }
    };

    let plain = from_config(&config(false))?;
    let question = [Message::user("What is the capital of France?")];
    println!("== a chat");
    call(&plain, &question, vec![], None).await?;

    let streamed = from_config(&config(true))?;
    println!("== the same, streamed");
    call(&streamed, &question, vec![], None).await?;

    println!("== JSON by a schema");
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    call(&streamed, &question, vec![], Some(schema.into())).await?;

    println!("== a tool");
    let weather = ToolOffer {
        name: "get_weather".into(),
        description: "The weather in a city.".into(),
        parameters: r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#.into(),
    };
    let mut messages = vec![Message::user("Get the weather in Tokyo.")];
    let answer = call(&streamed, &messages, vec![weather.clone()], None).await?;
    let ids: Vec<String> = answer.reply.tool_uses().map(|(id, ..)| id.to_owned()).collect();
    ensure!(!ids.is_empty(), "the model used no tool");
    messages.push(Message::Assistant { parts: answer.reply.parts });
    messages.extend(ids.into_iter().map(|id| Message::Tool { id, text: "22 degrees and sunny".into(), error: false }));
    call(&streamed, &messages, vec![weather.clone()], None).await?;

    println!("== a broken tool use in the history, which servers refuse as it stands");
    let broken = Part::ToolUse { id: "b".into(), name: "get_weather".into(), args: r#"{"city":"A"}{"city":"#.into() };
    let history = [
        messages[0].clone(),
        Message::Assistant { parts: vec![broken] },
        Message::Tool { id: "b".into(), text: "The arguments were no JSON.".into(), error: true },
    ];
    call(&streamed, &history, vec![weather], None).await?;

    println!("== a request that is too large");
    let long = [Message::user("word ".repeat(20_000))];
    let error = streamed.call(request(&long, vec![], None), context(None)).await;
    println!("{error:?}");

    println!("== a model that is not there");
    let wrong = OpenAiConfig::new("no-such-model").at("http://127.0.0.1:1");
    let error = from_config(&ModelConfig::Openai(wrong))?.call(request(&question, vec![], None), context(None)).await;
    println!("{error:?}");
    Ok(())
}

async fn call(
    model: &Arc<dyn Model>,
    messages: &[Message],
    tools: Vec<ToolOffer>,
    output_schema: Option<String>,
) -> Result<ModelAnswer> {
    let (sender, mut deltas) = mpsc::unbounded_channel();
    let answer = model.call(request(messages, tools, output_schema), context(Some(sender))).await?;
    let mut shown = Vec::new();
    while let Ok(delta) = deltas.try_recv() {
        shown.push(delta.text);
    }
    for part in &answer.reply.parts {
        println!("{part:?}");
    }
    println!("{:?} by {:?}, {:?}, {} deltas", answer.reply.stop, answer.reply.model, answer.usage, shown.len());
    Ok(answer)
}

fn request(messages: &[Message], tools: Vec<ToolOffer>, output_schema: Option<String>) -> ModelRequest {
    ModelRequest {
        model: "live".into(),
        constants: Arc::new(ModelConstants { system: None, tools, output_schema }),
        messages: messages.iter().cloned().map(Arc::new).collect(),
        max_output_tokens: 80,
        temperature_milli: Some(0),
    }
}

fn context(deltas: Option<mpsc::UnboundedSender<loopd_runtime::Delta>>) -> CallContext {
    CallContext {
        run: RunId([0; 16]),
        call: CallId(1),
        key: EffectKey(Digest::default()),
        attempt: 1,
        timeout: Duration::from_secs(120),
        cancel: tokio_util::sync::CancellationToken::new(),
        deltas,
    }
}
