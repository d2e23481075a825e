//! The server over sockets of 127.0.0.1: what a connection may do, and how all of them end.

use crate::listening::parse;
use crate::world::World;
use loopd_server::ServerConfig;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything here takes: what does not come by then does not come.
const NEVER: Duration = Duration::from_secs(20);

/// A server that listens.
struct Serving {
    world: World,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Serving {
    async fn with(config: impl FnOnce(&mut ServerConfig) + 'static) -> Self {
        let world = World::configured(config).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let server = world.server.clone();
        let served = tokio::spawn(async move {
            server.serve(listener, async { drop(stopped.await) }).await.unwrap();
        });
        Self { world, address, stop, served }
    }

    async fn connect(&self) -> Wire {
        Wire { stream: TcpStream::connect(self.address).await.unwrap(), text: String::new() }
    }

    /// Sends these bytes on a connection of their own, and reads until the server closes it.
    async fn answer(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut wire = self.connect().await;
        wire.send(bytes).await;
        wire.rest().await
    }

    /// A request with ann's token.
    fn request(&self, line: &str, more: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{more}\r\n", self.world.ann)
    }
}

/// The client's end.
struct Wire {
    stream: TcpStream,
    text: String,
}

impl Wire {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A server that has seen enough does not read the rest.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// What has arrived, once this stands in it.
    async fn until(&mut self, what: &str) -> String {
        let mut buffer = [0; 4096];
        while !self.text.contains(what) {
            let read = tokio::time::timeout(NEVER, self.stream.read(&mut buffer)).await.expect("it does not come");
            let read = read.unwrap();
            assert!(read > 0, "the connection ended before {what:?}: {}", self.text);
            self.text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        }
        std::mem::take(&mut self.text)
    }

    /// Everything until the server closes.
    async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(NEVER, self.stream.read_to_end(&mut bytes)).await;
        // A reset is an end, too.
        let _ = read.expect("the connection is not closed");
        format!("{}{}", std::mem::take(&mut self.text), String::from_utf8_lossy(&bytes))
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn a_head_that_is_too_large_or_has_too_many_parts_is_431() {
    let serving = Serving::with(|config| config.limits.header_bytes = 16 << 10).await;
    let get = |more: &str| format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n");
    assert_eq!(status(&serving.answer(get("")).await), "200");
    let many: String = (0..80).map(|number| format!("X-{number}: 1\r\n")).collect();
    let far_too_many: String = (0..1000).map(|number| format!("X-{number}: 1\r\n")).collect();
    let long = format!("X: {}\r\n", "y".repeat(20 << 10));
    let endless = format!("X: {}\r\n", "y".repeat(1 << 20));
    // A little too much is told in full.
    for more in [many, long] {
        let got = serving.answer(get(&more)).await;
        assert!(status(&got) == "431" && got.contains("\"code\":\"headers\""), "{got}");
    }
    for more in [far_too_many, endless] {
        assert_eq!(status(&serving.answer(get(&more)).await), "431");
    }
    let address = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "x".repeat(100_000));
    assert!(matches!(status(&serving.answer(address).await), "414" | "431"));
}

#[tokio::test]
async fn who_does_not_finish_a_head_or_says_nothing_is_cut_off() {
    let serving = Serving::with(|config| config.limits.head_timeout = Duration::from_millis(50)).await;
    for begun in ["", "GET /healthz HT", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        let got = serving.answer(begun).await;
        assert!(matches!(status(&got), "" | "408"), "{got}");
    }
    // Neither does a connection stay open for ever after its request.
    let mut wire = serving.connect().await;
    wire.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(status(&wire.rest().await), "200");
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_closes_the_connection() {
    let serving = Serving::with(|_| {}).await;
    let table = [
        "\r\n\r\n\0\0\0",
        "hello\r\n\r\n",
        "GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX Y: z\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    for bytes in table {
        let got = serving.answer(bytes).await;
        assert!(matches!(status(&got), "" | "400" | "505"), "{bytes:?}: {got}");
    }
    for (bytes, expected) in [
        ("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", "403"),
        ("GET http://evil.test/healthz HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n", "403"),
        ("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\nConnection: close\r\n\r\n", "403"),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404"),
        ("GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n", "200"),
    ] {
        let got = serving.answer(bytes).await;
        assert_eq!(status(&got), expected, "{bytes:?}: {got}");
    }
}

#[tokio::test]
async fn a_length_and_chunks_at_once_smuggle_nothing() {
    let serving = Serving::with(|_| {}).await;
    // Whoever reads the length takes the second request for the first one's body, and whoever reads the chunks does not.
    let second = "GET /v1/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let both = format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n",
        second.len() + 5
    );
    let mut wire = serving.connect().await;
    wire.send(format!("{}0\r\n\r\n{second}", serving.request("POST /v1/conversations", &both))).await;
    let got = wire.rest().await;
    assert!(!got.contains("\r\n\r\nHTTP/1.1 200") && !got.contains("WhoAmI"), "{got}");
    assert_eq!(got.matches("HTTP/1.1 ").count().min(2), got.matches("HTTP/1.1 4").count(), "{got}");
}

#[tokio::test]
async fn a_body_that_breaks_off_or_stalls_or_never_ends_changes_nothing() {
    let serving = Serving::with(|config| {
        config.limits.body_timeout = Duration::from_millis(50);
        config.limits.json_bytes = 1000;
    })
    .await;
    let before = serving.world.store.commits();
    let post = |more: &str| {
        let json = format!("Content-Type: application/json\r\nConnection: close\r\n{more}");
        serving.request("POST /v1/conversations", &json)
    };
    // Its client goes away.
    let mut wire = serving.connect().await;
    wire.send(format!("{}{{\"title\":", post("Content-Length: 100\r\n"))).await;
    wire.stream.shutdown().await.unwrap();
    assert!(matches!(status(&wire.rest().await), "" | "400" | "408"));
    // Its client says nothing more.
    let got = serving.answer(format!("{}{{\"title\":", post("Content-Length: 100\r\n"))).await;
    assert!(status(&got) == "408" && got.contains("\"code\":\"timeout\""), "{got}");
    let got = serving.answer(format!("{}5\r\n{{\"tit", post("Transfer-Encoding: chunked\r\n"))).await;
    assert_eq!(status(&got), "408");
    // It says at once that it is too large, or it turns out to be.
    let got = serving.answer(post("Content-Length: 99999999999\r\n")).await;
    assert!(status(&got) == "413" && got.contains("\"code\":\"too_large\""), "{got}");
    let mut wire = serving.connect().await;
    wire.send(post("Transfer-Encoding: chunked\r\n")).await;
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..17 {
        wire.send(&chunk).await;
    }
    assert_eq!(status(&wire.until("too_large").await), "413");
    // Chunks that are none.
    let got = serving.answer(format!("{}zz\r\n", post("Transfer-Encoding: chunked\r\n"))).await;
    assert!(matches!(status(&got), "" | "400"), "{got}");
    assert_eq!(serving.world.store.commits(), before);
}

#[tokio::test]
async fn requests_of_one_connection_are_answered_in_order() {
    let serving = Serving::with(|_| {}).await;
    let mut wire = serving.connect().await;
    let get = |path: &str, more: &str| serving.request(&format!("GET {path}"), more);
    let all =
        [get("/healthz", ""), get("/v1/whoami", ""), get("/nothing", ""), get("/readyz", "Connection: close\r\n")];
    wire.send(all.concat()).await;
    let got = wire.rest().await;
    let statuses: Vec<_> = got.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses, ["200", "200", "404", "200"]);
}

#[tokio::test]
async fn no_more_connections_are_taken_than_there_is_room_for() {
    let serving = Serving::with(|config| config.limits.connections = 1).await;
    let get = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut first = serving.connect().await;
    first.send(get).await;
    first.until("ok\n").await;
    let mut second = serving.connect().await;
    second.send(get).await;
    // The first one is served for as long as it likes, and only then the second.
    for _ in 0..10 {
        first.send(get).await;
        first.until("ok\n").await;
    }
    let mut byte = [0];
    let early = second.stream.try_read(&mut byte);
    assert_eq!(early.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(first);
    second.until("ok\n").await;
}

#[tokio::test]
async fn a_drain_finishes_what_is_under_way_and_takes_nothing_new() {
    let serving = Serving::with(|_| {}).await;
    let conversation = {
        let ask = crate::world::Ask::post("/v1/conversations").by(&serving.world.ann).json(serde_json::json!({}));
        serving.world.send(ask).await.json()["id"].as_str().unwrap().to_owned()
    };
    let mut stream = serving.connect().await;
    stream.send(serving.request(&format!("GET /v1/stream?feed=conversation/{conversation}"), "")).await;
    let hello = stream.until("event: hello").await;
    assert!(hello.contains("text/event-stream") && !hello.to_lowercase().contains("content-length"), "{hello}");
    let mut idle = serving.connect().await;
    idle.send(serving.request("GET /readyz", "")).await;
    idle.until("ready\n").await;
    // Half a request: its answer is still to come when the server is told to stop.
    let body = "{\"blocks\":[{\"type\":\"text\",\"text\":\"last words\"}]}";
    let length =
        format!("Content-Type: application/json\r\nContent-Length: {}\r\nExpect: 100-continue\r\n", body.len());
    let mut slow = serving.connect().await;
    slow.send(serving.request(&format!("POST /v1/conversations/{conversation}/messages"), &length)).await;
    // The server asks for the body: so it reads this request.
    slow.until("100 Continue").await;
    // First only balancers are told.
    serving.world.server.unready();
    idle.send(serving.request("GET /readyz", "")).await;
    let unready = idle.until("\"retry_after_s\":5}").await;
    assert!(status(&unready) == "503" && unready.to_lowercase().contains("retry-after: 5"), "{unready}");
    assert!(unready.contains("\"code\":\"draining\""));
    idle.send(serving.request("GET /healthz", "")).await;
    idle.until("ok\n").await;
    idle.send(serving.request(&format!("GET /v1/stream?feed=conversation/{conversation}"), "")).await;
    idle.until("\"retry_after_s\":5}").await;

    serving.stop.send(()).unwrap();
    let said = stream.rest().await;
    let frame = said.split("\r\n").find(|chunk| chunk.contains("stopping")).unwrap();
    let last = parse(frame.trim()).unwrap();
    assert_eq!((last.event.as_str(), last.id, last.data.as_str()), ("stopping", None, "{}"));
    assert!(said.ends_with("0\r\n\r\n"), "the stream is cut, and not ended: {said}");
    idle.rest().await;
    let refused = TcpStream::connect(serving.address).await;
    assert!(refused.is_err(), "a new connection was taken");
    assert!(!serving.served.is_finished());
    slow.send(body).await;
    let got = slow.rest().await;
    assert!(status(&got) == "201" && got.contains("last words"), "{got}");
    tokio::time::timeout(NEVER, serving.served).await.expect("it does not stop").unwrap();
    assert!(serving.world.engine.is_draining());
}

#[tokio::test]
async fn a_request_that_does_not_end_is_cut_off_when_the_grace_is_over() {
    let serving = Serving::with(|config| config.limits.grace = Duration::from_millis(50)).await;
    let length = "Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n";
    let mut wire = serving.connect().await;
    wire.send(serving.request("POST /v1/conversations", length)).await;
    wire.until("100 Continue").await;
    serving.stop.send(()).unwrap();
    tokio::time::timeout(NEVER, serving.served).await.expect("it does not stop").unwrap();
    assert!(!wire.rest().await.contains("HTTP"));
}

#[tokio::test]
async fn counters_tell_what_was_answered() {
    let serving = Serving::with(|_| {}).await;
    let mut wire = serving.connect().await;
    for _ in 0..3 {
        wire.send(serving.request("GET /v1/whoami", "")).await;
        wire.until("person/ann").await;
    }
    wire.send(serving.request("GET /v1/conversations/con_x", "")).await;
    wire.until("not_found").await;
    wire.send(serving.request("GET /no/such/place?secret=1", "")).await;
    wire.until("no_route").await;
    let got = serving.answer(serving.request("GET /metrics", "Connection: close\r\n")).await;
    for line in [
        "loopd_http_requests_total{route=\"/v1/whoami\",status=\"2xx\"} 3\n",
        "loopd_http_requests_total{route=\"/v1/conversations/{conversation}\",status=\"4xx\"} 1\n",
        "loopd_http_requests_total{route=\"other\",status=\"4xx\"} 1\n",
        "loopd_ready 1\n",
        "loopd_streams_open 0\n",
    ] {
        assert!(got.contains(line), "{line} {got}");
    }
    // No label has what somebody sent.
    assert!(!got.contains("secret") && !got.contains("con_x") && !got.contains("person/"), "{got}");
}
