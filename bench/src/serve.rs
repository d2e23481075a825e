//! A local model server that speaks just enough of chat completions: the real agent loop is measured
//! over real HTTP.

use crate::noop::fresh_text;
use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Starts the server on a free loopback port and returns its base address. Every request is answered with
/// one tool call: the no-op tool, or a question to a person when the Run's input says so.
pub async fn start(payload: usize) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(connection(stream, payload));
        }
    });
    Ok(address)
}

async fn connection(mut stream: TcpStream, payload: usize) {
    let mut buffer = Vec::new();
    let mut turn = 0_u64;
    loop {
        let Some(body_end) = read_request(&mut stream, &mut buffer).await else { return };
        let asks = buffer[..body_end].windows(ASK.len()).any(|window| window == ASK) && body_end < ASK_BYTES;
        buffer.drain(..body_end);
        turn += 1;
        let body = if asks { question(turn) } else { reply(turn, payload) };
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        if stream.write_all(head.as_bytes()).await.is_err() || stream.write_all(body.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads one request into `buffer`; returns where its body ends.
pub async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let end = head + 4 + length.and_then(|value| value.trim().parse::<usize>().ok()).unwrap_or(0);
            while buffer.len() < end {
                if stream.read_buf(buffer).await.ok()? == 0 {
                    return None;
                }
            }
            return Some(end);
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

/// A Run whose input is this word asks a person; so do all its later turns while they are short.
const ASK: &[u8] = b"\"content\":\"ask\"";
const ASK_BYTES: usize = 16 * 1024;

fn question(turn: u64) -> String {
    let args = serde_json::json!({ "question": "Shall I go on?" }).to_string();
    tool_call(turn, "ask", &args)
}

fn reply(turn: u64, payload: usize) -> String {
    let args = serde_json::json!({ "text": fresh_text(payload) }).to_string();
    tool_call(turn, "noop", &args)
}

fn tool_call(turn: u64, name: &str, args: &str) -> String {
    serde_json::json!({
        "id": format!("r{turn}"), "object": "chat.completion", "model": "bench",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": null,
            "tool_calls": [{ "id": format!("t{turn}"), "type": "function",
                "function": { "name": name, "arguments": args } }] } }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 }
    })
    .to_string()
}
