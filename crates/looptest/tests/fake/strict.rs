//! Requests that a real provider refuses.

use expect_test::{Expect, expect};
use looptest::fake::{FakeConfig, FakeModel, Script};
use serde_json::{Value, json};
use std::fmt::Write as _;

const COMPLETIONS: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/gemini-3-pro:generateContent";

async fn post(fake: &FakeModel, path: &str, body: &Value) -> (u16, Value) {
    let request = reqwest::Client::new().post(format!("{}{path}", fake.url()));
    let request = request.header("anthropic-version", "2023-06-01").body(body.to_string());
    let response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.expect("a body")).expect("JSON"))
}

/// Every body, and the error that it gets.
async fn check(path: &str, bodies: Vec<Value>, expect: Expect) {
    let fake = FakeModel::start(Script::empty().turn(looptest::fake::ScriptTurn::says("taken").once())).await;
    let mut table = String::new();
    for body in &bodies {
        let (status, answer) = post(&fake, path, body).await;
        let error = answer.get("error").unwrap_or(&answer);
        let part = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or("-");
        let message = part("message").trim_end();
        let _ = match path {
            COMPLETIONS | RESPONSES => {
                writeln!(table, "{status} {} {} | {message}", part("param"), part("code"))
            }
            MESSAGES => writeln!(table, "{status} {} | {message}", part("type")),
            _ => writeln!(table, "{status} {} | {message}", part("status")),
        };
    }
    expect.assert_eq(&table);
    let refused = fake.journal().iter().filter(|heard| heard.refused.is_some()).count();
    assert_eq!(refused, bodies.len(), "what is refused is written down as refused");
}

fn with(mut body: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().expect("an object") {
        body[name] = value.clone();
    }
    body
}

#[tokio::test]
async fn chat_completions() {
    let base = || json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let messages = |messages: Value| with(base(), json!({ "messages": messages }));
    let user = || json!({"role": "user", "content": "hi"});
    let asks = |id: &str| {
        let function = json!({"name": "f", "arguments": "{}"});
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
    };
    let tool = |name: &str| json!([{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}]);
    let format =
        |schema: Value| json!({"type": "json_schema", "json_schema": {"name": "a", "strict": true, "schema": schema}});
    check(
        COMPLETIONS,
        vec![
            json!([]),
            json!({"messages": []}),
            json!({"model": "m"}),
            messages(json!([])),
            messages(json!([{"role": "robot", "content": "hi"}])),
            messages(json!([{"content": "hi"}])),
            messages(json!([{"role": "user", "content": null}])),
            messages(json!([{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}])),
            messages(json!([user(), {"role": "tool", "tool_call_id": "a", "content": "1"}])),
            messages(json!([user(), asks("a")])),
            messages(json!([user(), asks("a"), user(), {"role": "tool", "tool_call_id": "a", "content": "1"}])),
            messages(json!([user(), asks("a"), {"role": "tool", "tool_call_id": "b", "content": "1"}])),
            messages(json!([user(), asks(&"x".repeat(41)), user()])),
            messages(json!([user(), {"role": "assistant", "content": "a", "tool_calls": []}])),
            with(base(), json!({"tools": []})),
            with(base(), json!({"tools": tool("fs.read")})),
            with(base(), json!({"tools": [{"type": "function", "name": "f"}]})),
            with(base(), json!({"tools": tool("f"), "tool_choice": {"type": "function", "function": {"name": "g"}}})),
            with(base(), json!({"tool_choice": "auto"})),
            with(base(), json!({"stream_options": {"include_usage": true}})),
            with(base(), json!({"model": "gpt-5-mini", "max_tokens": 5})),
            with(base(), json!({"model": "gpt-5-mini", "temperature": 0})),
            with(base(), json!({"temperature": 3})),
            with(base(), json!({"max_tokens": 5, "max_completion_tokens": 5})),
            with(base(), json!({"max_completion_tokens": 0})),
            with(base(), json!({"response_format": {"type": "json_object"}})),
            with(base(), json!({"response_format": format(json!({"type": "object", "properties": {}}))})),
            with(base(), json!({"response_format": format(json!({
                "type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false,
            }))})),
            with(base(), json!({"max_output_tokens": 5})),
        ],
        expect![[r#"
            400 - - | We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON: expected an object)
            400 - - | you must provide a model parameter
            400 messages missing_required_parameter | Missing required parameter: 'messages'.
            400 messages empty_array | Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.
            400 messages[0].role invalid_value | Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.
            400 messages[0].role missing_required_parameter | Missing required parameter: 'messages[0].role'.
            400 messages.[0].content - | Invalid value for 'content': expected a string, got null.
            400 messages[0].content[0].type invalid_value | Invalid value: 'input_text'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'.
            400 messages.[1].role - | Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.
            400 messages.[2].role - | An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: a
            400 messages.[2].role - | An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: a
            400 messages.[2].role - | Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.
            400 messages[1].tool_calls[0].id string_above_max_length | Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.
            400 messages[1].tool_calls empty_array | Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.
            400 tools empty_array | Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.
            400 tools[0].function.name invalid_value | Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.
            400 tools[0].function missing_required_parameter | Missing required parameter: 'tools[0].function'.
            400 tool_choice - | Tool choice 'g' not found in 'tools' parameter.
            400 tool_choice - | Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.
            400 stream_options - | The 'stream_options' parameter is only allowed when 'stream' is enabled.
            400 max_tokens unsupported_parameter | Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.
            400 temperature unsupported_value | Unsupported value: 'temperature' does not support this value with this model. Only the default (1) value is supported.
            400 temperature decimal_above_max_value | Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.
            400 - invalid_parameter_combination | Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.
            400 max_completion_tokens integer_below_min_value | Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.
            400 messages - | 'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.
            400 response_format invalid_json_schema | Invalid schema for response_format 'a': In context=(), 'additionalProperties' is required to be supplied and to be false.
            400 response_format invalid_json_schema | Invalid schema for response_format 'a': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'.
            400 max_output_tokens unknown_parameter | Unrecognized request argument supplied: max_output_tokens
        "#]],
    )
    .await;
}

#[tokio::test]
async fn responses() {
    let base = || json!({"model": "m", "input": "hi"});
    let input = |items: Value| json!({"model": "m", "input": items});
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "a", "output": "1"});
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    check(
        RESPONSES,
        vec![
            json!({"input": "hi"}),
            json!({"model": "m"}),
            with(base(), json!({"messages": []})),
            with(base(), json!({"max_tokens": 5})),
            with(base(), json!({"nonsense": 5})),
            with(base(), json!({"max_output_tokens": 5})),
            with(base(), json!({"previous_response_id": "resp_1"})),
            with(base(), json!({"tools": [{"type": "function", "function": {"name": "f"}}]})),
            with(base(), json!({"reasoning": {"effort": "low"}})),
            with(base(), json!({"text": {"format": {"type": "json_schema", "schema": {}}}})),
            input(json!([])),
            input(json!([{"role": "tool", "content": "hi"}])),
            input(json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])),
            input(json!([{"role": "assistant", "content": [{"type": "input_text", "text": "hi"}]}])),
            input(json!([output])),
            input(json!([call])),
            input(json!([call, output, output])),
            input(json!([{"role": "user", "content": "hi"}, thought])),
            input(json!([{"type": "nothing"}])),
        ],
        expect![[r#"
            400 model missing_required_parameter | Missing required parameter: 'model'.
            400 input missing_required_parameter | Missing required parameter: 'input'.
            400 messages unsupported_parameter | Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'. Try again with the new parameter.
            400 max_tokens unsupported_parameter | Unsupported parameter: 'max_tokens'. In the Responses API, this parameter has moved to 'max_output_tokens'. Try again with the new parameter.
            400 nonsense unknown_parameter | Unknown parameter: 'nonsense'.
            400 max_output_tokens integer_below_min_value | Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 5 instead.
            400 previous_response_id previous_response_not_found | Previous response with id 'resp_1' not found.
            400 tools[0].name missing_required_parameter | Missing required parameter: 'tools[0].name'.
            400 reasoning.effort unsupported_parameter | Unsupported parameter: 'reasoning.effort' is not supported with this model.
            400 text.format.name missing_required_parameter | Missing required parameter: 'text.format.name'.
            400 input empty_array | Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.
            400 input[0].role invalid_value | Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'.
            400 input[0].content[0] invalid_value | Invalid value: 'text'. Supported values are: 'input_text', 'input_image', and 'input_file'.
            400 input[0].content[0] invalid_value | Invalid value: 'input_text'. Supported values are: 'output_text', and 'refusal'.
            400 input - | No tool call found for function call output with call_id a.
            400 input - | No tool output found for function call a.
            400 input - | No tool call found for function call output with call_id a.
            400 input - | Item 'rs_1' of type 'reasoning' was provided without its required following item.
            400 input[0] invalid_value | Invalid value: 'nothing'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning', and 'item_reference'.
        "#]],
    )
    .await;
}

#[tokio::test]
async fn anthropic_messages() {
    let base = || json!({"model": "m", "max_tokens": 2000, "messages": [{"role": "user", "content": "hi"}]});
    let weather = || json!([{"name": "f", "input_schema": {"type": "object"}}]);
    let user = |content: Value| json!({"role": "user", "content": content});
    let said = |content: Value| json!({"role": "assistant", "content": content});
    let messages = |messages: Value| with(base(), json!({"messages": messages, "tools": weather()}));
    let asks = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "1"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let marked = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
    let thinking = |budget: u64| json!({"thinking": {"type": "enabled", "budget_tokens": budget}});
    check(
        MESSAGES,
        vec![
            json!({"model": "m", "messages": [user(json!("hi"))]}),
            json!({"max_tokens": 1, "messages": [user(json!("hi"))]}),
            json!({"model": "m", "max_tokens": 1}),
            with(base(), json!({"max_tokens": 0})),
            messages(json!([])),
            messages(json!([{"role": "system", "content": "hi"}])),
            messages(json!([{"role": "tool", "content": "hi"}])),
            messages(json!([said(json!("hi")), user(json!("hi"))])),
            messages(json!([user(json!(""))])),
            messages(json!([user(json!([text("")]))])),
            messages(json!([user(json!([text(" ")]))])),
            messages(json!([user(json!("q")), said(json!([text("a ")]))])),
            messages(json!([user(json!("q")), said(json!([asks("a")]))])),
            messages(json!([user(json!("q")), said(json!([asks("a")])), user(json!("well?"))])),
            messages(json!([user(json!("q")), said(json!([asks("a")])), user(json!([text("so"), result("a")]))])),
            messages(json!([user(json!("q")), said(json!([asks("a"), asks("b")])), user(json!([result("b")]))])),
            messages(json!([user(json!([result("a")]))])),
            messages(json!([user(json!("q")), said(json!([asks("a"), asks("a")])), user(json!([result("a")]))])),
            messages(json!([user(json!("q")), said(json!([asks("a.b")])), user(json!([result("a.b")]))])),
            with(
                base(),
                json!({"messages": [user(json!("q")), said(json!([asks("a")])), user(json!([result("a")]))]}),
            ),
            messages(json!([
                user(json!("q")),
                said(json!([{"type": "thinking", "thinking": "t", "signature": "SIG"}, asks("a")])),
                user(json!([result("a")])),
            ])),
            with(
                messages(json!([user(json!("q")), said(json!([asks("a")])), user(json!([result("a")]))])),
                thinking(1024),
            ),
            with(base(), thinking(5)),
            with(base(), thinking(5000)),
            with(with(base(), thinking(1024)), json!({"temperature": 0.5})),
            with(base(), json!({"temperature": 1.5})),
            with(base(), json!({"tools": [{"name": "a.b", "input_schema": {"type": "object"}}]})),
            with(base(), json!({"tools": [{"name": "a"}]})),
            with(base(), json!({"tool_choice": {"type": "auto"}})),
            with(base(), json!({"system": [marked, marked, marked, marked, marked]})),
            with(base(), json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}})),
            with(base(), json!({"max_output_tokens": 5})),
        ],
        expect![[r#"
            400 invalid_request_error | max_tokens: Field required
            400 invalid_request_error | model: Field required
            400 invalid_request_error | messages: Field required
            400 invalid_request_error | max_tokens: Input should be greater than or equal to 1
            400 invalid_request_error | messages: at least one message is required
            400 invalid_request_error | messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.
            400 invalid_request_error | messages: Unexpected role "tool". Allowed roles are "user" or "assistant". For more information on message roles, see the documentation of the Messages API.
            400 invalid_request_error | messages: first message must use the "user" role
            400 invalid_request_error | messages.0: user messages must have non-empty content
            400 invalid_request_error | messages: text content blocks must be non-empty
            400 invalid_request_error | messages: text content blocks must contain non-whitespace text
            400 invalid_request_error | messages: final assistant content cannot end with trailing whitespace
            400 invalid_request_error | messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
            400 invalid_request_error | messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
            400 invalid_request_error | messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
            400 invalid_request_error | messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each `tool_use` block must have a corresponding `tool_result` block in the next message.
            400 invalid_request_error | messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: a. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.
            400 invalid_request_error | messages: `tool_use` ids must be unique
            400 invalid_request_error | messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'
            400 invalid_request_error | Requests which include `tool_use` or `tool_result` blocks must define tools.
            400 invalid_request_error | messages.1.content.0: Invalid `signature` in `thinking` block
            400 invalid_request_error | messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).
            400 invalid_request_error | thinking.enabled.budget_tokens: Input should be greater than or equal to 1024
            400 invalid_request_error | `max_tokens` must be greater than `thinking.budget_tokens`.
            400 invalid_request_error | `temperature` may only be set to 1 when thinking is enabled.
            400 invalid_request_error | temperature: range: 0..1
            400 invalid_request_error | tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'
            400 invalid_request_error | tools.0.custom.input_schema: Field required
            400 invalid_request_error | tool_choice may only be specified while providing tools
            400 invalid_request_error | A maximum of 4 blocks with cache_control may be provided. Found 5.
            400 invalid_request_error | output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false
            400 invalid_request_error | max_output_tokens: Extra inputs are not permitted
        "#]],
    )
    .await;
}

#[tokio::test]
async fn gemini() {
    let turn = |role: &str, parts: Value| json!({"role": role, "parts": parts});
    let hi = || turn("user", json!([{"text": "hi"}]));
    let contents = |contents: Value| json!({ "contents": contents });
    let call = |name: &str, signature: &str| json!({"functionCall": {"name": name, "args": {}}, "thoughtSignature": signature});
    const STAND_IN: &str = "skip_thought_signature_validator";
    let result = |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "1"}}});
    let tools = |tools: Value| with(contents(json!([hi()])), json!({ "tools": tools }));
    let declared = |parameters: Value| {
        tools(json!([{"functionDeclarations": [{"name": "f", "description": "d", "parameters": parameters}]}]))
    };
    check(
        GEMINI,
        vec![
            json!({}),
            contents(json!([])),
            contents(json!([turn("system", json!([{"text": "hi"}]))])),
            contents(json!([turn("user", json!([]))])),
            contents(json!([turn("user", json!([{}]))])),
            contents(json!([turn("user", json!([{"text": "a", "functionCall": {"name": "f"}}]))])),
            contents(json!([turn("model", json!([{"text": "hi"}]))])),
            contents(json!([hi(), turn("model", json!([{"text": "hi"}]))])),
            contents(json!([turn("user", json!([result("f")]))])),
            contents(json!([turn("model", json!([call("f", STAND_IN)])), turn("user", json!([result("f")]))])),
            contents(json!([
                hi(),
                turn("model", json!([call("f", STAND_IN), call("g", STAND_IN)])),
                turn("user", json!([result("f")])),
            ])),
            contents(json!([hi(), turn("model", json!([call("f", STAND_IN)])), hi()])),
            contents(json!([hi(), turn("model", json!([call("f", STAND_IN)])), turn("user", json!([result("g")]))])),
            contents(json!([
                hi(),
                turn("model", json!([{"functionCall": {"name": "f", "args": {}}}])),
                turn("user", json!([result("f")])),
            ])),
            contents(json!([hi(), turn("model", json!([call("f", "SIG")])), turn("user", json!([result("f")]))])),
            tools(json!([])),
            tools(json!([{"functionDeclarations": []}])),
            tools(json!([{"functionDeclarations": [{"name": "1f", "description": "d"}]}])),
            tools(json!([{"type": "function"}])),
            declared(json!({"type": "object", "properties": {}})),
            declared(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}})),
            declared(json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}})),
            declared(json!({"type": "object", "properties": {"a": {"type": "array"}}})),
            declared(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]})),
            declared(json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false})),
            with(contents(json!([hi()])), json!({"generationConfig": {"responseSchema": {"type": "object"}}})),
            with(contents(json!([hi()])), json!({"generationConfig": {"max_tokens": 1}})),
            with(contents(json!([hi()])), json!({"messages": []})),
        ],
        expect![[r#"
            400 INVALID_ARGUMENT | * GenerateContentRequest.contents: contents is not specified
            400 INVALID_ARGUMENT | * GenerateContentRequest.contents: contents is not specified
            400 INVALID_ARGUMENT | Please use a valid role: user, model.
            400 INVALID_ARGUMENT | * GenerateContentRequest.contents[0].parts: contents.parts must not be empty.
            400 INVALID_ARGUMENT | * GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized field
            400 INVALID_ARGUMENT | Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. Cannot set another.
            400 INVALID_ARGUMENT | Please ensure that single turn requests end with a user role or the role field is empty.
            400 INVALID_ARGUMENT | Please ensure that multiturn requests end with a user role or a function response.
            400 INVALID_ARGUMENT | Please ensure that function response turn comes immediately after a function call turn.
            400 INVALID_ARGUMENT | Please ensure that function call turn comes immediately after a user turn or after a function response turn.
            400 INVALID_ARGUMENT | Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.
            400 INVALID_ARGUMENT | Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.
            400 INVALID_ARGUMENT | Function response `g` does not match the function call `f`.
            400 INVALID_ARGUMENT | Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:f` , position 1.
            400 INVALID_ARGUMENT | Corrupted thought signature.
            400 INVALID_ARGUMENT | * GenerateContentRequest.tools: tools must not be empty: leave them out
            400 INVALID_ARGUMENT | * GenerateContentRequest.tools[0].tool_type: required one_of 'tool_type' must have one initialized field
            400 INVALID_ARGUMENT | * GenerateContentRequest.tools[0].function_declarations[0].name: Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.
            400 INVALID_ARGUMENT | Invalid JSON payload received. Unknown name "type" at 'tools[0]': Cannot find field.
            400 INVALID_ARGUMENT | * GenerateContentRequest.tools[0].function_declarations[0].parameters.properties: should be non-empty for OBJECT type
            400 INVALID_ARGUMENT | Invalid JSON payload received. Unknown name "$ref" at 'tools[0].function_declarations[0].parameters.properties[a]': Cannot find field.
            400 INVALID_ARGUMENT | Invalid JSON payload received. Proto field is not repeating, cannot start list. at 'tools[0].function_declarations[0].parameters.properties[a].type'
            400 INVALID_ARGUMENT | * GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[a].items: missing field.
            400 INVALID_ARGUMENT | * GenerateContentRequest.tools[0].function_declarations[0].parameters.required[0]: property is not defined
            400 INVALID_ARGUMENT | Invalid JSON payload received. Unknown name "additionalProperties" at 'tools[0].function_declarations[0].parameters': Cannot find field.
            400 INVALID_ARGUMENT | Function calling config or response schema is set, but `response_mime_type` is not `application/json`.
            400 INVALID_ARGUMENT | Invalid JSON payload received. Unknown name "max_tokens" at 'generation_config': Cannot find field.
            400 INVALID_ARGUMENT | Invalid JSON payload received. Unknown name "messages": Cannot find field.
        "#]],
    )
    .await;
}

/// The key of every protocol in its place; what asks without one, or with another, is sent away in that protocol's form.
#[tokio::test]
async fn keys_models_and_paths() {
    let config = FakeConfig { key: Some("sk-1".into()), models: vec!["there".into()], port: 0 };
    let fake = FakeModel::start_with(Script::empty().says("hello"), config).await.expect("a server");
    let mut table = String::new();
    let client = reqwest::Client::new();
    let cases = [
        ("POST", "/v1/chat/completions", ""),
        ("POST", "/v1/chat/completions", "authorization: Bearer sk-2"),
        ("POST", "/v1/chat/completions", "authorization: Bearer sk-1"),
        ("POST", "/v1/responses", ""),
        ("POST", "/v1/messages", "anthropic-version: 2023-06-01"),
        ("POST", "/v1/messages", "x-api-key: sk-2"),
        ("POST", "/v1/messages", "x-api-key: sk-1"),
        ("POST", "/v1beta/models/there:generateContent", ""),
        ("POST", "/v1beta/models/there:generateContent?key=sk-2", ""),
        ("POST", "/v1/models/gone:generateContent?key=sk-1", ""),
        ("GET", "/v1/models", "authorization: Bearer sk-1"),
        ("GET", "/v1/models/there", "authorization: Bearer sk-1"),
        ("GET", "/v1/models/gone", "authorization: Bearer sk-1"),
        ("GET", "/v1beta/models?key=sk-1", ""),
        ("GET", "/v1/chat/completions", ""),
        ("POST", "/v1/nothing", ""),
        ("POST", "/v1beta/nothing", ""),
    ];
    for (method, path, header) in cases {
        let mut request = client.request(method.parse().expect("a method"), format!("{}{path}", fake.url()));
        if let Some((name, value)) = header.split_once(": ") {
            request = request.header(name, value);
        }
        let body = json!({"model": "gone", "messages": [{"role": "user", "content": "hi"}]});
        if method == "POST" {
            let gemini = json!({"contents": [{"parts": [{"text": "hi"}]}]});
            request = request.body(if path.contains("models") { gemini } else { body }.to_string());
        }
        let response = request.send().await.expect("an answer");
        let status = response.status().as_u16();
        let text = response.text().await.expect("a body");
        let _ = writeln!(table, "{method} {path} {header}\n  {status} {text}");
    }
    expect![[r#"
        POST /v1/chat/completions 
          401 {"error":{"code":null,"message":"You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).","param":null,"type":"invalid_request_error"}}
        POST /v1/chat/completions authorization: Bearer sk-2
          401 {"error":{"code":"invalid_api_key","message":"Incorrect API key provided: [secret].","param":null,"type":"invalid_request_error"}}
        POST /v1/chat/completions authorization: Bearer sk-1
          404 {"error":{"code":"model_not_found","message":"The model `gone` does not exist or you do not have access to it.","param":null,"type":"invalid_request_error"}}
        POST /v1/responses 
          401 {"error":{"code":null,"message":"You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).","param":null,"type":"invalid_request_error"}}
        POST /v1/messages anthropic-version: 2023-06-01
          401 {"error":{"message":"x-api-key header is required","type":"authentication_error"},"request_id":"req_fake","type":"error"}
        POST /v1/messages x-api-key: sk-2
          401 {"error":{"message":"invalid x-api-key","type":"authentication_error"},"request_id":"req_fake","type":"error"}
        POST /v1/messages x-api-key: sk-1
          400 {"error":{"message":"anthropic-version: header is required","type":"invalid_request_error"},"request_id":"req_fake","type":"error"}
        POST /v1beta/models/there:generateContent 
          403 {"error":{"code":403,"message":"Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.","status":"PERMISSION_DENIED"}}
        POST /v1beta/models/there:generateContent?key=sk-2 
          400 {"error":{"code":400,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"googleapis.com","reason":"API_KEY_INVALID"}],"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}
        POST /v1/models/gone:generateContent?key=sk-1 
          404 {"error":{"code":404,"message":"models/gone is not found for API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}
        GET /v1/models authorization: Bearer sk-1
          200 {"data":[{"created":1700000000,"id":"there","object":"model","owned_by":"looptest"}],"object":"list"}
        GET /v1/models/there authorization: Bearer sk-1
          200 {"created":1700000000,"id":"there","object":"model","owned_by":"looptest"}
        GET /v1/models/gone authorization: Bearer sk-1
          404 {"error":{"code":"model_not_found","message":"The model `gone` does not exist or you do not have access to it.","param":null,"type":"invalid_request_error"}}
        GET /v1beta/models?key=sk-1 
          200 {"models":[{"displayName":"there","inputTokenLimit":1048576,"name":"models/there","outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"],"version":"001"}]}
        GET /v1/chat/completions 
          405 {"error":{"code":null,"message":"Not allowed to GET on /v1/chat/completions","param":null,"type":"invalid_request_error"}}
        POST /v1/nothing 
          404 {"error":{"code":null,"message":"Invalid URL (POST /v1/nothing)","param":null,"type":"invalid_request_error"}}
        POST /v1beta/nothing 
          404 {"error":{"code":404,"message":"Invalid URL (POST /v1beta/nothing)","status":"NOT_FOUND"}}
    "#]].assert_eq(&table);
    let journal = format!("{:?}", fake.journal());
    assert!(!journal.contains("sk-1") && !journal.contains("sk-2"), "{journal}");
}
