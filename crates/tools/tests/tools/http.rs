//! `http_get`, against a server in this process. Names are what the test says they are.

mod pages;
mod server;

use crate::{call, context, said};
use expect_test::expect;
use loopd_kernel::EffectClass;
use loopd_runtime::Tool;
use loopd_tools::http::Page;
use loopd_tools::{HttpConfig, http_tool};
use server::{Names, Server, text};
use std::sync::Arc;
use std::time::Duration;

fn tool(names: &Arc<Names>, addresses: &[&str]) -> Arc<dyn Tool> {
    http_tool(config(names, addresses))
}

fn config(names: &Arc<Names>, addresses: &[&str]) -> HttpConfig {
    let addresses = addresses.iter().map(|network| network.parse().unwrap()).collect();
    HttpConfig { addresses, resolver: names.clone(), timeout: Duration::from_secs(20), ..HttpConfig::default() }
}

async fn get(tool: &dyn Tool, url: &str) -> String {
    call(tool, &serde_json::json!({ "url": url }).to_string()).await
}

async fn page(tool: &dyn Tool, url: &str) -> Page {
    let answer = get(tool, url).await;
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// SEC-02: nothing but public addresses, in whatever way they are written.
#[tokio::test]
async fn a_url_leads_to_public_addresses_only() {
    let server = Server::start("127.0.0.1:0", |_| text("200 OK", "text/plain", "SECRET")).await;
    let port = server.port();
    let names = Names::of(&[
        ("inside.test", &[&["127.0.0.1"]]),
        ("mixed.test", &[&["8.8.8.8", "127.0.0.1"]]),
        ("metadata.test", &[&["169.254.169.254"]]),
        ("six.test", &[&["::ffff:10.0.0.1"]]),
        ("empty.test", &[&[]]),
        ("localhost", &[&["127.0.0.1", "::1"]]),
        ("localhost.", &[&["127.0.0.1"]]),
    ]);
    let tool = tool(&names, &[]);
    let mut out = String::new();
    for url in [
        "http://inside.test:PORT/",
        "http://mixed.test:PORT/",
        "http://metadata.test/",
        "http://six.test/",
        "http://empty.test/",
        "http://unknown.test/",
        "http://localhost:PORT/",
        "http://localhost.:PORT/",
        "http://127.0.0.1:PORT/",
        "http://2130706433:PORT/",
        "http://0x7f.1:PORT/",
        "http://0177.0.0.1:PORT/",
        "http://127.1:PORT/",
        "http://0:PORT/",
        "http://[::1]:PORT/",
        "http://[::ffff:127.0.0.1]:PORT/",
        "http://[::]:PORT/",
        "http://169.254.169.254/latest/meta-data/",
        "http://user@inside.test/",
        "http://:pw@8.8.8.8/",
        "http://8.8.8.8@127.0.0.1:PORT/",
        "file:///etc/passwd",
        "ftp://inside.test/",
        "gopher://127.0.0.1/",
        "data:text/plain,x",
        "javascript:1",
        "127.0.0.1",
        "//127.0.0.1/",
        "http://",
        "",
    ] {
        let answer = get(tool.as_ref(), &url.replace("PORT", &port)).await;
        out.push_str(&format!("{url}: {answer}\n"));
    }
    expect![[r#"
        http://inside.test:PORT/: ! http.address: inside.test is at 127.0.0.1, which is not a public address
        http://mixed.test:PORT/: ! http.address: mixed.test is at 127.0.0.1, which is not a public address
        http://metadata.test/: ! http.address: metadata.test is at 169.254.169.254, which is not a public address
        http://six.test/: ! http.address: six.test is at ::ffff:10.0.0.1, which is not a public address
        http://empty.test/: ! http.dns: the name empty.test has no address
        http://unknown.test/: ! http.dns: the name unknown.test has no address: nobody knows it
        http://localhost:PORT/: ! http.address: localhost is at 127.0.0.1, which is not a public address
        http://localhost.:PORT/: ! http.address: localhost. is at 127.0.0.1, which is not a public address
        http://127.0.0.1:PORT/: ! http.address: 127.0.0.1 is at 127.0.0.1, which is not a public address
        http://2130706433:PORT/: ! http.address: 127.0.0.1 is at 127.0.0.1, which is not a public address
        http://0x7f.1:PORT/: ! http.address: 127.0.0.1 is at 127.0.0.1, which is not a public address
        http://0177.0.0.1:PORT/: ! http.address: 127.0.0.1 is at 127.0.0.1, which is not a public address
        http://127.1:PORT/: ! http.address: 127.0.0.1 is at 127.0.0.1, which is not a public address
        http://0:PORT/: ! http.address: 0.0.0.0 is at 0.0.0.0, which is not a public address
        http://[::1]:PORT/: ! http.address: ::1 is at ::1, which is not a public address
        http://[::ffff:127.0.0.1]:PORT/: ! http.address: ::ffff:7f00:1 is at ::ffff:127.0.0.1, which is not a public address
        http://[::]:PORT/: ! http.address: :: is at ::, which is not a public address
        http://169.254.169.254/latest/meta-data/: ! http.address: 169.254.169.254 is at 169.254.169.254, which is not a public address
        http://user@inside.test/: ! http.credentials: a URL holds no user and no password here
        http://:pw@8.8.8.8/: ! http.credentials: a URL holds no user and no password here
        http://8.8.8.8@127.0.0.1:PORT/: ! http.credentials: a URL holds no user and no password here
        file:///etc/passwd: ! http.scheme: `file:` is not read, only http and https
        ftp://inside.test/: ! http.scheme: `ftp:` is not read, only http and https
        gopher://127.0.0.1/: ! http.scheme: `gopher:` is not read, only http and https
        data:text/plain,x: ! http.scheme: `data:` is not read, only http and https
        javascript:1: ! http.scheme: `javascript:` is not read, only http and https
        127.0.0.1: ! http.invalid_url: `127.0.0.1` is no URL: relative URL without a base
        //127.0.0.1/: ! http.invalid_url: `//127.0.0.1/` is no URL: relative URL without a base
        http://: ! http.invalid_url: `http://` is no URL: empty host
        : ! http.invalid_url: `` is no URL: relative URL without a base
    "#]].assert_eq(&out);
    assert_eq!(server.hits(), Vec::<String>::new(), "somebody was asked");
}

/// SEC-02: whoever runs a name chooses which of its addresses a client takes.
#[tokio::test]
async fn every_address_of_a_name_counts() {
    let server = Server::start("127.0.0.2:0", |_| text("200 OK", "text/plain", "SECRET")).await;
    let names = Names::of(&[("mixed.test", &[&["127.0.0.2", "127.0.0.1"]])]);
    let answer = get(tool(&names, &["127.0.0.2/32"]).as_ref(), &format!("http://mixed.test:{}/", server.port())).await;
    expect!["! http.address: mixed.test is at 127.0.0.1, which is not a public address"].assert_eq(&answer);
    assert_eq!(server.hits(), Vec::<String>::new());
}

/// SEC-02: a name that says something else when it is asked again.
#[tokio::test]
async fn a_name_is_asked_once_and_its_answer_is_what_is_called() {
    let wanted = Server::start("127.0.0.2:0", |_| text("200 OK", "text/plain", "public")).await;
    let port = wanted.port();
    let trap = Server::start(&format!("127.0.0.1:{port}"), |_| text("200 OK", "text/plain", "SECRET")).await;
    let names = Names::of(&[("rebind.test", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let tool = tool(&names, &["127.0.0.2/32"]);
    let url = format!("http://rebind.test:{port}/");
    assert_eq!(page(tool.as_ref(), &url).await.text, "public");
    assert_eq!(names.asked(), ["rebind.test"]);
    // The second request asks anew, and is refused by what it hears.
    expect!["! http.address: rebind.test is at 127.0.0.1, which is not a public address"]
        .assert_eq(&get(tool.as_ref(), &url).await);
    assert_eq!((wanted.hits().len(), trap.hits().len()), (1, 0));
}

/// SEC-02: a redirect is held to the rules of a first request.
#[tokio::test]
async fn a_redirect_leads_to_public_addresses_only() {
    let server = Server::start("127.0.0.2:0", |path| {
        let to = path.strip_prefix("/to?").unwrap_or("/");
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    })
    .await;
    let port = server.port();
    let trap = Server::start(&format!("127.0.0.1:{port}"), |_| text("200 OK", "text/plain", "SECRET")).await;
    let names = Names::of(&[("site.test", &[&["127.0.0.2"]]), ("inside.test", &[&["127.0.0.1"]])]);
    let open = tool(&names, &["127.0.0.2/32"]);
    let listed = http_tool(HttpConfig { hosts: vec!["site.test".into()], ..config(&names, &["127.0.0.0/8"]) });
    let mut out = String::new();
    for (tool, to) in [
        (&open, "http://169.254.169.254/"),
        (&open, "http://127.0.0.1:PORT/"),
        (&open, "http://inside.test:PORT/"),
        (&open, "//127.0.0.1:PORT/"),
        (&open, "http://user:pw@site.test:PORT/"),
        (&open, "file:///etc/passwd"),
        (&open, "http://["),
        (&open, "/to?/"),
        (&listed, "http://inside.test:PORT/"),
        (&listed, "http://127.0.0.1:PORT/"),
    ] {
        let url = format!("http://site.test:{port}/to?{}", to.replace("PORT", &port));
        let answer = get(tool.as_ref(), &url).await;
        out.push_str(&format!("{to}: {}\n", answer.replace(&port, "PORT")));
    }
    expect![[r#"
        http://169.254.169.254/: ! http.address: 169.254.169.254 is at 169.254.169.254, which is not a public address
        http://127.0.0.1:PORT/: ! http.address: 127.0.0.1 is at 127.0.0.1, which is not a public address
        http://inside.test:PORT/: ! http.address: inside.test is at 127.0.0.1, which is not a public address
        //127.0.0.1:PORT/: ! http.address: 127.0.0.1 is at 127.0.0.1, which is not a public address
        http://user:pw@site.test:PORT/: ! http.credentials: a URL holds no user and no password here
        file:///etc/passwd: ! http.scheme: `file:` is not read, only http and https
        http://[: ! http.invalid_url: http://site.test:PORT/to?http://[ redirects to `http://[`, which is no URL
        /to?/: ! http.redirects: more than 5 redirects, the last one to http://site.test:PORT/
        http://inside.test:PORT/: ! http.host: inside.test may not be asked; the hosts are site.test
        http://127.0.0.1:PORT/: ! http.host: 127.0.0.1 may not be asked; the hosts are site.test
    "#]]
    .assert_eq(&out);
    assert_eq!(trap.hits(), Vec::<String>::new());
}

#[tokio::test]
async fn a_redirect_that_may_be_followed_is_followed() {
    let server = Server::start("127.0.0.1:0", |path| match path {
        "/a" => b"HTTP/1.1 301 Moved\r\nLocation: b/c#part\r\nContent-Length: 4\r\n\r\ngone".to_vec(),
        "/b/c" => {
            b"HTTP/1.1 307 Temporary\r\nLocation: http://other.test:PORT/end?q=1\r\nContent-Length: 0\r\n\r\n".to_vec()
        }
        "/end?q=1" => text("200 OK", "text/plain", "here"),
        _ => text("302 Found", "text/plain", "no location"),
    })
    .await;
    let names = Names::of(&[("site.test", &[&["127.0.0.1"]]), ("other.test", &[&["127.0.0.1"]])]);
    let tool = tool(&names, &["127.0.0.0/8"]);
    let page_of = page(tool.as_ref(), &format!("http://site.test:{}/a", server.port())).await;
    assert_eq!(
        (page_of.url, page_of.status, page_of.text),
        (format!("http://other.test:{}/end?q=1", server.port()), 200, "here".into())
    );
    assert_eq!(server.hits(), ["/a", "/b/c", "/end?q=1"]);
    let odd = page(tool.as_ref(), &format!("http://site.test:{}/x", server.port())).await;
    assert_eq!((odd.status, odd.text.as_str()), (302, "no location"));
}

#[tokio::test]
async fn only_listed_hosts_are_asked() {
    let server = Server::start("127.0.0.1:0", |_| text("200 OK", "text/plain", "here")).await;
    let here: &[&[&str]] = &[&["127.0.0.1"]];
    let names = Names::of(&[
        ("docs.test", here),
        ("a.docs.test", here),
        ("a.b.docs.test", here),
        ("evildocs.test", here),
        ("docs.test.evil.test", here),
        ("exact.test", here),
        ("sub.exact.test", here),
        ("exact.test.", here),
        ("127.0.0.1.evil.test", here),
    ]);
    let hosts = ["*.docs.test", "EXACT.test", "127.0.0.1"].map(str::to_owned).to_vec();
    let tool = http_tool(HttpConfig { hosts, ..config(&names, &["127.0.0.1/32"]) });
    let mut out = String::new();
    for host in [
        "docs.test",
        "a.docs.test",
        "a.b.docs.test",
        "evildocs.test",
        "docs.test.evil.test",
        "exact.test",
        "Exact.Test",
        "sub.exact.test",
        "exact.test.",
        "127.0.0.1",
        "127.0.0.1.evil.test",
        "127.0.0.2",
    ] {
        let answer = get(tool.as_ref(), &format!("http://{host}:{}/", server.port())).await;
        out.push_str(&format!("{host}: {}\n", if answer.contains("here") { "asked" } else { &answer }));
    }
    expect![[r#"
        docs.test: ! http.host: docs.test may not be asked; the hosts are *.docs.test, EXACT.test, 127.0.0.1
        a.docs.test: asked
        a.b.docs.test: asked
        evildocs.test: ! http.host: evildocs.test may not be asked; the hosts are *.docs.test, EXACT.test, 127.0.0.1
        docs.test.evil.test: ! http.host: docs.test.evil.test may not be asked; the hosts are *.docs.test, EXACT.test, 127.0.0.1
        exact.test: asked
        Exact.Test: asked
        sub.exact.test: ! http.host: sub.exact.test may not be asked; the hosts are *.docs.test, EXACT.test, 127.0.0.1
        exact.test.: asked
        127.0.0.1: asked
        127.0.0.1.evil.test: ! http.host: 127.0.0.1.evil.test may not be asked; the hosts are *.docs.test, EXACT.test, 127.0.0.1
        127.0.0.2: ! http.host: 127.0.0.2 may not be asked; the hosts are *.docs.test, EXACT.test, 127.0.0.1
    "#]].assert_eq(&out);
    assert!(tool.offer().description.ends_with("Only from: *.docs.test, EXACT.test, 127.0.0.1."));
    assert_eq!(tool.terms().class, EffectClass::Read);
}

#[tokio::test]
async fn time_is_limited_and_a_cancelled_call_ends() {
    let server = Server::start("127.0.0.1:0", |path| match path {
        // A head, and then nothing for ever.
        "/drip" => b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nsome".to_vec(),
        _ => Vec::new(),
    })
    .await
    .that_never_closes();
    let names = Names::of(&[("site.test", &[&["127.0.0.1"]])]);
    let short = HttpConfig { timeout: Duration::from_millis(150), ..config(&names, &["127.0.0.1/32"]) };
    let short = http_tool(short);
    for path in ["drip", "silent"] {
        expect!["! http.timeout: no complete answer within 150 ms"]
            .assert_eq(&get(short.as_ref(), &format!("http://site.test:{}/{path}", server.port())).await);
    }
    let (tool, context) = (tool(&names, &["127.0.0.1/32"]), context());
    let args = serde_json::json!({ "url": format!("http://site.test:{}/drip", server.port()) }).to_string();
    let before = server.hits().len();
    let asking = async {
        crate::until(|| server.hits().len() > before).await;
        context.cancel.cancel();
    };
    let (answer, ()) = tokio::join!(tool.call(&args, &context), asking);
    expect!["! tool.cancelled: nobody waits for the page any more"].assert_eq(&said(answer));
}

#[tokio::test]
async fn nobody_there_is_said() {
    // Bound and let go: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let names = Names::of(&[("site.test", &[&["127.0.0.1"]])]);
    let answer = get(tool(&names, &["127.0.0.1/32"]).as_ref(), &format!("http://site.test:{port}/")).await;
    assert!(answer.starts_with("! http.unreachable: ") && answer.contains("refused"), "{answer}");
}
