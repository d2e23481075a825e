//! What a broken or odd answer costs is never counted as nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods)]

use loopd_kernel::Usage;
use loopd_providers::{ModelConfig, OpenAiConfig, from_config_with};
use loopd_runtime::kit::server::stream;
use loopd_runtime::kit::{Server, call, context, request};
use loopd_runtime::{ModelAnswer, ModelError};

async fn ask(body: &str) -> Result<ModelAnswer, ModelError> {
    let server = Server::always(stream([body.as_bytes()])).await.expect("a port");
    let config = ModelConfig::Openai(OpenAiConfig::new("m").at(&server.url));
    let model = from_config_with(&config, &|_| None).expect("a model");
    call(&model, request(), context()).await.result
}

#[tokio::test]
async fn error_after_text_is_not_free() {
    for error in [
        r#"{"error":{"code":"content_filter","message":"blocked"}}"#,
        r#"{"error":{"code":"context_length_exceeded","message":"full"}}"#,
        r#"{"error":{"code":402,"message":"out of credits"}}"#,
    ] {
        let body = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a long answer\"}}}}]}}\n\ndata: {error}\n\n"
        );
        let got = ask(&body).await.expect_err("an error");
        println!("{got:?} {:?}", got.usage());
        assert_ne!(got.usage(), Some(Usage::default()), "{got:?}");
    }
}

#[tokio::test]
async fn gemini_thoughts_are_counted() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":955}}\n\ndata: [DONE]\n\n";
    assert_eq!(ask(body).await.expect("ok").usage.expect("known").total(), 955);
}

#[tokio::test]
async fn running_usage_of_a_cut_stream_is_no_total() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":1,\"total_tokens\":11}}\n\n";
    let got = ask(body).await.expect_err("cut");
    assert_eq!(got.usage(), None, "{got:?}");
}

#[tokio::test]
async fn a_cut_call_keeps_its_missing_args() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"wipe\",\"arguments\":\"\"}}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n";
    let got = ask(body).await.expect("ok");
    let args: Vec<_> = got.reply.tool_uses().map(|(_, _, args)| args.to_owned()).collect();
    assert_eq!((args, format!("{:?}", got.reply.stop)), (vec![String::new()], "Length".into()));
}
