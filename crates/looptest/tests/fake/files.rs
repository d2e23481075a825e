//! Files that come with a message, as each provider is sent them.

use super::support::{ADAPTERS, adapter, call};
use expect_test::expect;
use loopd_kernel::model::{Attachment, Message};
use looptest::fake::{FakeModel, Script};
use std::fmt::Write as _;

fn file(media_type: &str, name: &str, data: &str) -> Attachment {
    Attachment { media_type: media_type.into(), name: Some(name.into()), data: data.into() }
}

#[tokio::test]
async fn files_are_sent_as_the_provider_takes_them_and_none_is_left_out() {
    let attachments = vec![
        file("image/png", "a.png", "iVBORw=="),
        file("application/pdf", "b.pdf", "JVBERi0="),
        file("text/csv", "c.csv", "YSxiCg=="),
        file("audio/wav", "d.wav", "UklGRg=="),
        file("application/x-unknown", "e.bin", "AAE="),
    ];
    let message = Message::User { text: "What is this?".into(), attachments };
    let mut out = String::new();
    for name in ADAPTERS {
        let fake = FakeModel::start(Script::empty().says("Files.")).await;
        call(&adapter(name, &fake, false), std::slice::from_ref(&message)).await.expect("an answer");
        fake.expect_calls(1).expect_nothing_refused();
        let body = fake.journal().remove(0).body;
        let turns = ["messages", "input", "contents"].into_iter().find_map(|name| body.get(name)).expect("turns");
        let user = turns.as_array().expect("a list").iter().find(|turn| turn["role"] == "user").expect("a user");
        writeln!(out, "{name}").expect("writes");
        let parts = user.get("content").or_else(|| user.get("parts")).and_then(|parts| parts.as_array());
        for part in parts.expect("parts") {
            writeln!(out, "  {part}").expect("writes");
        }
    }
    expect![[r#"
        openai
          {"image_url":{"url":"data:image/png;base64,iVBORw=="},"type":"image_url"}
          {"file":{"file_data":"data:application/pdf;base64,JVBERi0=","filename":"b.pdf"},"type":"file"}
          {"text":"File c.csv:\na,b\n","type":"text"}
          {"text":"[The file d.wav of type audio/wav came with this message; it cannot be shown here.]","type":"text"}
          {"text":"[The file e.bin of type application/x-unknown came with this message; it cannot be shown here.]","type":"text"}
          {"text":"What is this?","type":"text"}
        responses
          {"image_url":"data:image/png;base64,iVBORw==","type":"input_image"}
          {"file_data":"data:application/pdf;base64,JVBERi0=","filename":"b.pdf","type":"input_file"}
          {"text":"File c.csv:\na,b\n","type":"input_text"}
          {"text":"[The file d.wav of type audio/wav came with this message; it cannot be shown here.]","type":"input_text"}
          {"text":"[The file e.bin of type application/x-unknown came with this message; it cannot be shown here.]","type":"input_text"}
          {"text":"What is this?","type":"input_text"}
        anthropic
          {"source":{"data":"iVBORw==","media_type":"image/png","type":"base64"},"type":"image"}
          {"source":{"data":"JVBERi0=","media_type":"application/pdf","type":"base64"},"title":"b.pdf","type":"document"}
          {"text":"File c.csv:\na,b\n","type":"text"}
          {"text":"[The file d.wav of type audio/wav came with this message; it cannot be shown here.]","type":"text"}
          {"text":"[The file e.bin of type application/x-unknown came with this message; it cannot be shown here.]","type":"text"}
          {"cache_control":{"type":"ephemeral"},"text":"What is this?","type":"text"}
        gemini
          {"inlineData":{"data":"iVBORw==","mimeType":"image/png"}}
          {"inlineData":{"data":"JVBERi0=","mimeType":"application/pdf"}}
          {"text":"File c.csv:\na,b\n"}
          {"inlineData":{"data":"UklGRg==","mimeType":"audio/wav"}}
          {"text":"[The file e.bin of type application/x-unknown came with this message; it cannot be shown here.]"}
          {"text":"What is this?"}
    "#]].assert_eq(&out);
}
