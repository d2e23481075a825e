//! A connection whose answer has ended serves the next call, also where the server ends its response later, and is given
//! up where that takes too long or too much.

use loopd_providers::{AnthropicConfig, ModelConfig, OpenAiConfig, ResponsesConfig, from_config_with};
use loopd_runtime::Model;
use loopd_runtime::kit::{context, request};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const MEBIBYTE: usize = 1024 * 1024;

/// What follows an answer.
#[derive(Clone)]
enum Rest {
    /// The end of the response, when somebody notifies.
    End(Arc<Notify>),
    /// Nothing.
    Nothing,
    /// More than anybody wants to read.
    Endless,
}

/// What the server tells.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// A request came, as this one on its connection.
    Request(usize),
    /// The client closed, after so many mebibytes behind the answer.
    Closed(usize),
}

/// A server whose answers are these events. Its address, and what it tells.
async fn server(events: &'static str, rest: Rest) -> (String, mpsc::UnboundedReceiver<Told>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(BufReader::new(stream), events, rest.clone(), tell.clone()));
        }
    });
    (url, told)
}

async fn serve(
    mut stream: BufReader<TcpStream>,
    events: &str,
    rest: Rest,
    tell: mpsc::UnboundedSender<Told>,
) -> Option<()> {
    for number in 1.. {
        read_request(&mut stream).await?;
        tell.send(Told::Request(number)).ok()?;
        let answer = format!("{HEAD}{:x}\r\n{events}\r\n", events.len());
        stream.write_all(answer.as_bytes()).await.ok()?;
        match &rest {
            Rest::End(gate) => {
                gate.notified().await;
                stream.write_all(b"0\r\n\r\n").await.ok()?;
            }
            Rest::Nothing => {
                let end = stream.read(&mut [0]).await.unwrap_or(0);
                assert_eq!(end, 0, "the client goes on in the middle of a response");
                return tell.send(Told::Closed(0)).ok();
            }
            Rest::Endless => {
                let comment = format!("{MEBIBYTE:x}\r\n:{}\n\r\n", " ".repeat(MEBIBYTE - 2));
                let mut sent = 0;
                while sent < 64 && stream.write_all(comment.as_bytes()).await.is_ok() {
                    sent += 1;
                }
                return tell.send(Told::Closed(sent)).ok();
            }
        }
    }
    None
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
        if line == "\r\n" {
            return stream.read_exact(&mut vec![0; length]).await.ok().map(drop);
        }
    }
}

type Build = fn(&str) -> ModelConfig;

/// The adapters whose streams say that nothing follows, and how.
const ENDING: [(Build, &str); 3] = [
    (
        |url| ModelConfig::Openai(OpenAiConfig::new("m").at(url)),
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    ),
    (
        |url| ModelConfig::Anthropic(AnthropicConfig::new("m").at(url)),
        "data: {\"type\":\"message_start\",\"message\":{}}\n\n\
         data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
         data: {\"type\":\"message_stop\"}\n\n",
    ),
    (
        |url| ModelConfig::Responses(ResponsesConfig::new("m").at(url)),
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
    ),
];

fn model(build: Build, url: &str) -> Arc<dyn Model> {
    from_config_with(&build(url), &|_| None).expect("a model")
}

#[tokio::test]
async fn a_response_that_ends_later_leaves_its_connection_to_the_next_call() {
    for (build, events) in ENDING {
        let gate = Arc::new(Notify::new());
        let (url, mut told) = server(events, Rest::End(gate.clone())).await;
        let model = model(build, &url);
        let mut reused = false;
        // A call may come before the end of the one before it was read.
        for _ in 0..100 {
            // The response ends behind the answer, so the answer waits for nothing.
            model.call(request(), context()).await.expect("an answer");
            gate.notify_one();
            reused |= matches!(told.recv().await, Some(Told::Request(number)) if number > 1);
            if reused {
                break;
            }
        }
        assert!(reused, "a hundred calls took a hundred connections: {events}");
    }
}

#[tokio::test]
async fn a_response_that_does_not_end_is_given_up_in_time() {
    let (build, events) = ENDING[0];
    let (url, mut told) = server(events, Rest::Nothing).await;
    model(build, &url).call(request(), context()).await.expect("an answer");
    assert_eq!(told.recv().await, Some(Told::Request(1)));
    // From now on the clock jumps to whatever is waited for.
    tokio::time::pause();
    let start = tokio::time::Instant::now();
    assert_eq!(told.recv().await, Some(Told::Closed(0)));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[tokio::test]
async fn of_a_response_that_goes_on_little_is_read() {
    let (build, events) = ENDING[0];
    let (url, mut told) = server(events, Rest::Endless).await;
    model(build, &url).call(request(), context()).await.expect("an answer");
    assert_eq!(told.recv().await, Some(Told::Request(1)));
    // Some of it lies in the buffers of the connection.
    let Some(Told::Closed(sent)) = told.recv().await else { panic!("not closed") };
    assert!(sent < 32, "{sent} mebibytes were read");
}
