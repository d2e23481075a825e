//! Responses over plain HTTP: no adapter of ours is needed to see that they are whole.

use expect_test::expect;
use loopd_kernel::model::{Message, Part};
use looptest::fake::{FakeModel, Script, ScriptTurn};
use serde_json::{Value, json};

async fn post(fake: &FakeModel, body: &Value) -> String {
    let request = reqwest::Client::new().post(format!("{}/responses", fake.openai_url())).body(body.to_string());
    request.send().await.expect("an answer").text().await.expect("a body")
}

fn script() -> Script {
    let first = ScriptTurn::asks("get_weather", json!({"city": "Rome"})).thinks("Look it up.");
    Script::empty().turn(first).says("It is {{tool.get_weather}}.")
}

#[tokio::test]
async fn a_response_goes_on_from_a_stored_one() {
    let fake = FakeModel::start(script()).await;
    let first: Value =
        serde_json::from_str(&post(&fake, &json!({"model": "m", "input": "Rome?"})).await).expect("JSON");
    let call = first.pointer("/output/1").expect("a call");
    assert_eq!(call["arguments"], r#"{"city":"Rome"}"#);
    let output = json!({"type": "function_call_output", "call_id": call["call_id"], "output": "warm"});
    let second = json!({"model": "m", "previous_response_id": first["id"], "input": [output]});
    let second: Value = serde_json::from_str(&post(&fake, &second).await).expect("JSON");
    assert_eq!(second.pointer("/output/0/content/0/text"), Some(&json!("It is warm.")));
    fake.expect_calls(2).expect_nothing_refused();
    let journal = fake.journal();
    let heard = journal[1].request.as_ref().expect("a request");
    let [user, said, result] = heard.messages.as_slice() else { panic!("{:?}", heard.messages) };
    assert!(matches!(&**user, Message::User { text, .. } if text == "Rome?"));
    let Message::Assistant { parts } = &**said else { panic!("{said:?}") };
    assert!(matches!(parts.as_slice(), [Part::Reasoning { .. }, Part::ToolUse { .. }]), "{parts:?}");
    assert!(matches!(&**result, Message::Tool { text, .. } if text == "warm"));
    // It can be read again, too.
    let url = format!("{}/responses/{}", fake.openai_url(), second["id"].as_str().expect("an id"));
    let again = reqwest::get(url).await.expect("an answer").text().await.expect("a body");
    assert_eq!(serde_json::from_str::<Value>(&again).expect("JSON"), second);
}

#[tokio::test]
async fn a_stream_says_every_step() {
    let fake = FakeModel::start(script()).await;
    let text = post(&fake, &json!({"model": "m", "input": "Rome?", "stream": true})).await;
    let events: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    expect![[r#"
        response.created
        response.in_progress
        response.output_item.added
        response.reasoning_summary_part.added
        response.reasoning_summary_text.delta
        response.reasoning_summary_text.delta
        response.reasoning_summary_text.delta
        response.reasoning_summary_text.done
        response.reasoning_summary_part.done
        response.output_item.done
        response.output_item.added
        response.function_call_arguments.delta
        response.function_call_arguments.delta
        response.function_call_arguments.delta
        response.function_call_arguments.done
        response.output_item.done
        response.completed"#]]
    .assert_eq(&events.join("\n"));
    let numbers: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str::<Value>(data).expect("JSON")["sequence_number"].clone())
        .collect();
    assert_eq!(numbers, (0..events.len()).map(|at| json!(at)).collect::<Vec<_>>());
}
