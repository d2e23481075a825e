//! A scripted HTTP server on loopback: every byte of an answer is the script's own.

use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// What the server does with a connection, after it has read the request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends bytes, as a packet of their own.
    Send(Vec<u8>),
    /// Waits until somebody notifies.
    Until(Arc<Notify>),
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

/// The server. It serves one request per connection and stops with the async runtime that it was started on.
#[derive(Debug)]
pub struct Server {
    /// `http://127.0.0.1:PORT`.
    pub url: String,
    /// The requests, as they arrive.
    pub seen: mpsc::UnboundedReceiver<Seen>,
}

impl Server {
    /// Starts it; `answer` makes the steps out of the request and its number, from 1.
    ///
    /// # Errors
    /// There is no port.
    pub async fn start(answer: impl Fn(usize, &Seen) -> Vec<Step> + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
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
        Ok(Self { url, seen })
    }

    /// Always the same answer.
    ///
    /// # Errors
    /// There is no port.
    pub async fn always(steps: Vec<Step>) -> std::io::Result<Self> {
        Self::start(move |_, _| steps.clone()).await
    }
}

async fn serve(
    mut stream: TcpStream,
    number: usize,
    answer: Arc<impl Fn(usize, &Seen) -> Vec<Step>>,
    tell: mpsc::UnboundedSender<Seen>,
) {
    // Without it small packets wait for each other, which costs time and proves nothing.
    let _ = stream.set_nodelay(true);
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
            Step::Until(gate) => gate.notified().await,
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
        let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(bytes.get(..at)?).into_owned();
        if let Some(body) = body(&head, bytes.get(at + 4..)?) {
            return Some(Seen { head, body });
        }
    }
}

/// The body, when all of it is there.
fn body(head: &str, bytes: &[u8]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let lower = head.to_ascii_lowercase();
    let header = |name: &str| lower.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    if header("transfer-encoding:").is_none() {
        let length = header("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
        return bytes.get(..length).map(text);
    }
    let (mut rest, mut whole) = (bytes, Vec::new());
    loop {
        let end = rest.windows(2).position(|end| end == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(rest.get(..end)?).ok()?, 16).ok()?;
        if size == 0 {
            return Some(text(&whole));
        }
        whole.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 4 + size..)?;
    }
}

/// A complete response with its length.
#[must_use]
pub fn response(status: &str, headers: &[(&str, &str)], body: &str) -> Vec<Step> {
    let mut head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    vec![Step::Send(format!("{head}\r\n{body}").into_bytes())]
}

/// A successful response with a JSON body.
#[must_use]
pub fn json(body: &str) -> Vec<Step> {
    response("200 OK", &[("content-type", "application/json")], body)
}

/// An event stream in chunked encoding: its head, each piece as a chunk and a packet of its own, and its proper end.
#[must_use]
pub fn stream<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Step> {
    let chunks = pieces.into_iter().map(chunk);
    [stream_head()].into_iter().chain(chunks).chain([last_chunk()]).collect()
}

/// The head of an event stream in chunked encoding.
#[must_use]
pub fn stream_head() -> Step {
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    Step::Send(head.as_bytes().to_vec())
}

/// A chunk of it; nothing at all for no bytes, because an empty chunk is the end.
#[must_use]
pub fn chunk(bytes: &[u8]) -> Step {
    if bytes.is_empty() {
        return Step::Send(Vec::new());
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    Step::Send(chunk)
}

/// Its proper end.
#[must_use]
pub fn last_chunk() -> Step {
    Step::Send(b"0\r\n\r\n".to_vec())
}
