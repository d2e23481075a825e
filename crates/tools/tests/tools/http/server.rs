//! A server of raw bytes on the loopback, and names that change.

use async_trait::async_trait;
use loopd_tools::http::Resolve;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Answers each request with the bytes that a function makes of its path. `PORT` in them is its own.
pub struct Server {
    address: SocketAddr,
    hits: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<String>>>,
    hold: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start(at: &str, answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (hits, requests) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let hold = Arc::new(AtomicBool::new(false));
        let (seen, heads, holds, answer) = (hits.clone(), requests.clone(), hold.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, heads, holds, answer) = (seen.clone(), heads.clone(), holds.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        match stream.read_u8().await {
                            Ok(byte) => head.push(byte),
                            Err(_) => return,
                        }
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    let bytes = answer(&path);
                    let port = address.port().to_string();
                    let bytes = match std::str::from_utf8(&bytes) {
                        Ok(text) => text.replace("PORT", &port).into_bytes(),
                        Err(_) => bytes,
                    };
                    seen.lock().unwrap().push(path);
                    heads.lock().unwrap().push(head);
                    let _ = stream.write_all(&bytes).await;
                    if holds.load(Ordering::Relaxed) {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self { address, hits, requests, hold, task }
    }

    /// Keeps every connection open after its answer.
    pub fn that_never_closes(self) -> Self {
        self.hold.store(true, Ordering::Relaxed);
        self
    }

    pub fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// The paths that were asked for.
    pub fn hits(&self) -> Vec<String> {
        self.hits.lock().unwrap().clone()
    }

    /// The heads of all requests.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A response with a text.
pub fn text(status: &str, media: &str, body: &str) -> Vec<u8> {
    bytes(status, &format!("Content-Type: {media}\r\n"), body.as_bytes())
}

/// A response with bytes and headers, each with its line end.
pub fn bytes(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut all = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let mut response = std::mem::take(&mut all).into_bytes();
    response.extend_from_slice(body);
    response
}

/// Names with their answers, one after the other; the last one stays.
pub struct Names {
    answers: BTreeMap<String, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub fn of(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let read = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let answers =
            names.iter().map(|(name, answers)| ((*name).to_owned(), answers.iter().map(read).collect())).collect();
        Arc::new(Self { answers, asked: Mutex::default() })
    }

    /// The names that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let times = asked.iter().filter(|before| *before == name).count();
        asked.push(name.to_owned());
        let answers = self.answers.get(name).ok_or_else(|| io::Error::other("nobody knows it"))?;
        Ok(answers[times.min(answers.len() - 1)].clone())
    }
}
