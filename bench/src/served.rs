//! The real `loopd serve` as a process of its own, and its clients over loopback.
//!
//! Clients are raw sockets in one thread: they share the machine with the server, so their work should be small.

use crate::meter;
use crate::probe::Parameters;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// Streams that one token may have.
pub const STREAMS_PER_TOKEN: u64 = 50;

/// A server in its own process.
pub struct Served {
    process: Child,
    pub address: String,
    /// The owner's token.
    pub admin: String,
    /// From starting the process to its first answer.
    ready: Duration,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Served {
    async fn start(folder: &Path) -> Result<Self> {
        Self::start_as(folder, &["serve"]).await
    }

    /// With this command and these options.
    pub async fn start_as(folder: &Path, how: &[&str]) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("loopd");
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let address = format!("127.0.0.1:{port}");
        let begun = Instant::now();
        let mut process = Command::new(&program)
            .args(how)
            .args(["--addr", &address, "--data", "data"])
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} is built by `cargo xtask bench`", program.display()))?;
        let output = process.stderr.take().context("it has no output")?;
        let mut lines = BufReader::new(output).lines();
        lines.next().context("it says nothing")??;
        let mut client = Client::open(&address, "").await?;
        let (status, _) = client.send("GET", "/readyz", "").await?;
        let ready = begun.elapsed();
        if status != 200 {
            bail!("/readyz says {status}");
        }
        // Who writes into a closed pipe ends.
        std::thread::spawn(move || lines.for_each(drop));
        let admin = std::fs::read_to_string(folder.join("data/admin.token"))?.trim().to_owned();
        Ok(Self { process, address, admin, ready })
    }

    pub async fn client(&self, token: &str) -> Result<Client> {
        Client::open(&self.address, token).await
    }

    /// So many tokens of people.
    pub async fn tokens(&self, count: u64) -> Result<Vec<String>> {
        let mut admin = self.client(&self.admin).await?;
        let mut tokens = Vec::new();
        for number in 0..count {
            let body = json!({ "name": "bench", "actor": format!("person/p{number}"), "roles": ["member"] });
            let made = admin.json("POST", "/v1/tokens", &body).await?;
            tokens.push(made["secret"].as_str().context("no secret")?.to_owned());
        }
        Ok(tokens)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

/// One connection.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    head: String,
}

impl Client {
    async fn open(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let auth = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
        let head = format!("host: {address}\r\n{auth}content-type: application/json\r\n");
        Ok(Self { stream, buffer: Vec::new(), head })
    }

    async fn write(&mut self, method: &str, path: &str, more: &str, body: &str) -> Result<()> {
        let (head, length) = (&self.head, body.len());
        let request = format!("{method} {path} HTTP/1.1\r\n{head}{more}content-length: {length}\r\n\r\n{body}");
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    /// Reads more.
    async fn more(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        Ok(())
    }

    /// Reads up to and with the blank line, and takes that off the buffer.
    async fn read_head(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..end]).to_ascii_lowercase();
                self.buffer.drain(..end + 4);
                return Ok(head);
            }
            self.more().await?;
        }
    }

    async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, Vec<u8>)> {
        self.write(method, path, "", body).await?;
        let head = self.read_head().await?;
        let status = head.get(9..12).unwrap_or_default().parse()?;
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or("0");
        let length: usize = length.trim().parse()?;
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok((status, self.buffer.drain(..length).collect()))
    }

    pub async fn json(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let (status, body) = self.send(method, path, &body.to_string()).await?;
        if !(200..300).contains(&status) {
            bail!("{method} {path}: {status} {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }

    pub async fn conversation(&mut self, members: &[String]) -> Result<String> {
        let body = json!({ "title": "bench", "members": members });
        let made = self.json("POST", "/v1/conversations", &body).await?;
        Ok(made["id"].as_str().context("no id")?.to_owned())
    }

    /// Follows a Conversation; returns once the stream says where it stands.
    pub async fn follow(&mut self, conversation: &str, last: Option<&str>) -> Result<()> {
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        let path = format!("/v1/stream?feed=conversation/{conversation}");
        self.write("GET", &path, &format!("accept: text/event-stream\r\n{last}"), "").await?;
        let head = self.read_head().await?;
        if !head.starts_with("http/1.1 200") {
            bail!("no stream: {head}");
        }
        self.until("event: hello").await
    }

    /// Reads to the end of the line.
    async fn line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return Ok(String::from_utf8_lossy(&self.buffer[..end]).into_owned());
            }
            self.more().await?;
        }
    }

    /// Reads on until this was told.
    pub async fn until(&mut self, mark: &str) -> Result<()> {
        let mark = mark.as_bytes();
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|window| window == mark) {
                self.buffer.drain(..at + mark.len());
                return Ok(());
            }
            // A mark may lie across two reads.
            let keep = self.buffer.len().min(mark.len());
            let gone = self.buffer.len() - keep;
            self.buffer.drain(..gone);
            self.more().await?;
        }
    }
}

fn say(number: usize) -> Value {
    json!({ "blocks": [{ "type": "text", "text": format!("number-{number}-") }] })
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// Everybody who may follow: so many streams, each token with as many as it may have.
async fn listeners(served: &Served, streams: u64) -> Result<(Client, String, Vec<Client>)> {
    let tokens = served.tokens(streams.div_ceil(STREAMS_PER_TOKEN)).await?;
    let members: Vec<_> = (0..tokens.len()).map(|number| format!("person/p{number}")).collect();
    let mut speaker = served.client(&served.admin).await?;
    let conversation = speaker.conversation(&members).await?;
    let mut clients = Vec::new();
    for number in 0..streams {
        let token = tokens.get(usize::try_from(number / STREAMS_PER_TOKEN)?).context("a token")?;
        let mut client = served.client(token).await?;
        client.follow(&conversation, None).await?;
        clients.push(client);
    }
    Ok((speaker, conversation, clients))
}

/// From sending a Message until every stream has it, one Message after the other.
pub fn delivery(parameters: &Parameters) -> Result<Value> {
    let (streams, messages) = (parameters.number("streams", 100), parameters.number("messages", 200));
    block_on(async {
        let served = Served::start(&parameters.folder()).await?;
        let (mut speaker, conversation, clients) = listeners(&served, streams).await?;
        let (tell, mut told) = mpsc::unbounded_channel();
        for mut client in clients {
            let tell = tell.clone();
            tokio::spawn(async move {
                for number in 0..messages {
                    client.until(&format!("number-{number}-")).await?;
                    tell.send(Instant::now())?;
                }
                anyhow::Ok(())
            });
        }
        let path = format!("/v1/conversations/{conversation}/messages");
        let (mut all, mut accepted) = (Vec::new(), Vec::new());
        for number in 0..usize::try_from(messages)? {
            let begun = Instant::now();
            speaker.json("POST", &path, &say(number)).await?;
            accepted.push(begun.elapsed().as_secs_f64() * 1e3);
            for _ in 0..streams {
                let at = told.recv().await.context("a stream broke off")?;
                all.push(at.duration_since(begun).as_secs_f64() * 1e3);
            }
            // Below what one token may send in the long run.
            tokio::time::sleep(Duration::from_millis(11)).await;
        }
        Ok(json!({
            "ms_p50": meter::quantile(&mut all, 0.5), "ms_p99": meter::quantile(&mut all, 0.99),
            "accepted_ms_p50": meter::quantile(&mut accepted, 0.5),
            "server_mib": mib(served.pid()),
        }))
    })
}

/// Messages a second, from many people who each wait for their answer.
pub fn accepted(parameters: &Parameters) -> Result<Value> {
    let (people, each) = (parameters.number("people", 64), parameters.number("each", 300));
    block_on(async {
        let served = Served::start(&parameters.folder()).await?;
        let mut clients = Vec::new();
        for token in served.tokens(people).await? {
            let mut client = served.client(&token).await?;
            let conversation = client.conversation(&[]).await?;
            clients.push((client, format!("/v1/conversations/{conversation}/messages")));
        }
        let (cpu, begun) = (cpu_us(served.pid()), Instant::now());
        let mut speaking = tokio::task::JoinSet::new();
        for (mut client, path) in clients {
            speaking.spawn(async move {
                for number in 0..usize::try_from(each)? {
                    client.json("POST", &path, &say(number)).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(spoken) = speaking.join_next().await {
            spoken??;
        }
        let (took, count) = (begun.elapsed().as_secs_f64(), (people * each) as f64);
        let cpu = cpu_us(served.pid()).saturating_sub(cpu) as f64;
        Ok(json!({ "per_s": count / took, "server_cpu_us_per_message": cpu / count }))
    })
}

/// Streams that break off all at once, miss one Message and come back.
pub fn resumed(parameters: &Parameters) -> Result<Value> {
    let streams = parameters.number("streams", 1000);
    block_on(async {
        let served = Served::start(&parameters.folder()).await?;
        let (mut speaker, conversation, clients) = listeners(&served, streams).await?;
        let path = format!("/v1/conversations/{conversation}/messages");
        speaker.json("POST", &path, &say(0)).await?;
        let (mut heads, mut open) = (Vec::new(), Vec::new());
        for mut client in clients {
            client.until("event: message\nid: ").await?;
            let id = client.line().await?;
            heads.push((client.head.clone(), id));
            open.push(client);
        }
        drop(open);
        speaker.json("POST", &path, &say(1)).await?;
        let address: Arc<str> = served.address.as_str().into();
        let begun = Instant::now();
        let mut back = tokio::task::JoinSet::new();
        for (head, id) in heads {
            let (address, conversation) = (address.clone(), conversation.clone());
            back.spawn(async move {
                let stream = TcpStream::connect(&*address).await?;
                let mut client = Client { stream, buffer: Vec::new(), head };
                client.follow(&conversation, Some(&id)).await?;
                client.until("number-1-").await?;
                anyhow::Ok((Instant::now(), client))
            });
        }
        let (mut all, mut open) = (Vec::new(), Vec::new());
        while let Some(resumed) = back.join_next().await {
            let (at, client) = resumed??;
            all.push(at.duration_since(begun).as_secs_f64() * 1e3);
            open.push(client);
        }
        Ok(json!({
            "ms_all": meter::quantile(&mut all, 1.0), "ms_p50": meter::quantile(&mut all, 0.5),
            "server_mib": mib(served.pid()),
        }))
    })
}

/// What an idle server costs: empty, with Conversations, and with streams.
pub fn idle(parameters: &Parameters) -> Result<Value> {
    let (conversations, streams) = (parameters.number("conversations", 10_000), parameters.number("streams", 1000));
    let rest = Duration::from_secs(parameters.number("rest_s", 10));
    block_on(async {
        let folder = parameters.folder();
        let served = Served::start(&folder).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (empty, ready) = (mib(served.pid()), served.ready.as_secs_f64() * 1e3);
        let tokens = served.tokens(40).await?;
        let each = conversations.div_ceil(tokens.len() as u64);
        let mut opening = tokio::task::JoinSet::new();
        for token in &tokens {
            let mut client = served.client(token).await?;
            opening.spawn(async move {
                for _ in 0..each {
                    client.conversation(&[]).await?;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                anyhow::Ok(())
            });
        }
        while let Some(opened) = opening.join_next().await {
            opened??;
        }
        drop(served);
        // A server that starts with them, not the one that made them.
        let served = Served::start(&folder).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let full = mib(served.pid());
        let (_speaker, _conversation, open) = listeners(&served, streams).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let with_streams = mib(served.pid());
        let cpu = cpu_us(served.pid());
        tokio::time::sleep(rest).await;
        let cpu = cpu_us(served.pid()).saturating_sub(cpu) as f64;
        drop(open);
        Ok(json!({
            "empty_mib": empty, "ready_ms": ready, "ready_with_conversations_ms": served.ready.as_secs_f64() * 1e3,
            "bytes_per_idle_conversation": (full - empty) * 1048576.0 / conversations as f64,
            "bytes_per_idle_stream": (with_streams - full) * 1048576.0 / streams as f64,
            "idle_cpu_percent_of_a_core": cpu / rest.as_micros() as f64 * 100.0,
            "file_bytes_per_conversation": meter::file_bytes(&folder.join("data/store.db")) as f64 / conversations as f64,
        }))
    })
}

/// Resident memory of a process, in MiB.
fn mib(pid: u32) -> f64 {
    meter::resident_bytes_of(&format!("/proc/{pid}/status")) as f64 / 1_048_576.0
}

/// CPU time of a process, in microseconds.
pub fn cpu_us(pid: u32) -> u64 {
    meter::cpu_us_of(&format!("/proc/{pid}/stat"))
}
