//! A scripted HTTP server on loopback: every byte of an answer is the test's own.

use loopd_kernel::{CallId, EffectKey, RunId};
use loopd_runtime::{CallContext, Delta, Model, ModelAnswer, ModelError, ModelRequest};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What the server does with a connection, after it has read the request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends bytes, as a packet of their own.
    Send(Vec<u8>),
    /// Keeps the connection open for ever. Without it the connection closes after the last step.
    Hang,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Request line and headers.
    pub head: String,
    /// The body.
    pub body: String,
}

/// The server.
pub struct Server {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// The requests, as they arrive.
    pub seen: mpsc::UnboundedReceiver<Seen>,
}

impl Server {
    /// Starts it; `answer` makes the steps out of the request and its number, from 1.
    pub async fn start(answer: impl Fn(usize, &Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (tell, seen) = mpsc::unbounded_channel();
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            for number in 1.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                tokio::spawn(serve(stream, number, answer.clone(), tell.clone()));
            }
        });
        Self { url, seen }
    }

    /// Always the same answer.
    pub async fn always(steps: Vec<Step>) -> Self {
        Self::start(move |_, _| steps.clone()).await
    }
}

async fn serve(
    mut stream: TcpStream,
    number: usize,
    answer: Arc<impl Fn(usize, &Seen) -> Vec<Step>>,
    tell: mpsc::UnboundedSender<Seen>,
) {
    stream.set_nodelay(true).expect("no delay");
    let Some(seen) = read_request(&mut stream).await else {
        return;
    };
    let steps = answer(number, &seen);
    let _ = tell.send(seen);
    for step in steps {
        match step {
            Step::Send(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::Hang => std::future::pending().await,
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse()));
        let length: usize = length.expect("a length").expect("a number");
        if body.len() >= length {
            return Some(Seen { head: head.to_owned(), body: body.to_owned() });
        }
    }
}

/// A complete response with its length.
pub fn response(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    let mut head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    vec![Step::Send(format!("{head}\r\n{body}").into_bytes())]
}

/// The head of an event stream in chunked encoding.
pub fn stream_head() -> Step {
    Step::Send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec())
}

/// A chunk of it.
pub fn chunk(bytes: &[u8]) -> Step {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    Step::Send(chunk)
}

/// Its proper end.
pub fn last_chunk() -> Step {
    Step::Send(b"0\r\n\r\n".to_vec())
}

/// A request with one message.
pub fn request() -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        constants: Arc::default(),
        messages: vec![Arc::new(loopd_kernel::model::Message::user("hi"))],
        max_output_tokens: 80,
        temperature_milli: Some(0),
    }
}

/// The first attempt of call 7, with time enough.
pub fn context() -> CallContext {
    CallContext {
        run: RunId([1; 16]),
        call: CallId(7),
        key: EffectKey(loopd_kernel::Digest::default()),
        attempt: 1,
        timeout: Duration::from_secs(30),
        cancel: tokio_util::sync::CancellationToken::new(),
        deltas: None,
    }
}

/// Calls, and collects what was shown meanwhile.
pub async fn call(
    model: &Arc<dyn Model>,
    request: ModelRequest,
    mut context: CallContext,
) -> (Result<ModelAnswer, ModelError>, String) {
    let (sender, mut deltas) = mpsc::unbounded_channel();
    context.deltas = Some(sender);
    let result = model.call(request, context).await;
    let mut shown = String::new();
    while let Ok(Delta { text, .. }) = deltas.try_recv() {
        shown.push_str(&text);
    }
    (result, shown)
}

/// What a call came to, in words.
pub fn render(result: &Result<ModelAnswer, ModelError>) -> String {
    match result {
        Err(error) => {
            let (wait, usage) = (error.retry_after(), error.usage().map(|usage| usage.total()));
            format!("{error}\nwait {wait:?}, usage {usage:?}\n")
        }
        Ok(answer) => {
            let parts: String = answer.reply.parts.iter().map(|part| format!("{part:?}\n")).collect();
            let total = answer.usage.map(|usage| usage.total());
            format!("{parts}{:?} by {:?}, usage {total:?}\n", answer.reply.stop, answer.reply.model)
        }
    }
}

/// One call of a model made for the address of a server that always does `steps`. It may get one request only, and
/// nothing may be shown that is not in the answer.
pub fn once(steps: Vec<Step>, model: impl FnOnce(&str) -> Arc<dyn Model>) -> String {
    let result = tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let mut server = Server::always(steps).await;
        let (result, shown) = call(&model(&server.url), request(), context()).await;
        if let Ok(answer) = &result {
            // A reply that was not streamed shows nothing on the way.
            assert!(shown.is_empty() || shown == answer.reply.joined_text(), "{shown}");
        }
        assert!(server.seen.try_recv().is_ok(), "no request came");
        assert!(server.seen.try_recv().is_err(), "a second request came");
        render(&result)
    });
    result.replace("127.0.0.1", "HERE")
}
