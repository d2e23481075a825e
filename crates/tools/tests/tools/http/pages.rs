//! What becomes of a body.

use super::server::{Names, Server, bytes, text};
use super::{config, get, page};
use crate::call;
use expect_test::expect;
use loopd_runtime::Tool;
use loopd_tools::{HttpConfig, http_tool};
use std::sync::Arc;

const HTML: &str = r#"<!doctype html><html><head><title>Tea</title><style>p { color: red }</style>
<script>document.write("no")</script></head><body><h1>Tea &amp; coffee</h1>
<p>Tea is made of <b>leaves</b>, see <a href="/coffee">coffee</a>.</p>
<ul><li>green</li><li>black</li></ul><table><tr><th>kind</th><th>cup</th></tr><tr><td>green</td><td>2</td></tr></table>
<pre>a
  b</pre></body></html>"#;

/// A server whose pages are tried one after the other, and the tool that gets them.
async fn site(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static, max_bytes: u64) -> (Server, Arc<dyn Tool>) {
    let server = Server::start("127.0.0.1:0", answer).await;
    let names = Names::of(&[("site.test", &[&["127.0.0.1"]])]);
    let tool = http_tool(HttpConfig { max_bytes, ..config(&names, &["127.0.0.1/32"]) });
    (server, tool)
}

fn url(server: &Server, path: &str) -> String {
    format!("http://site.test:{}{path}", server.port())
}

#[tokio::test]
async fn html_becomes_text_and_text_stays() {
    let (server, tool) = site(
        |path| match path {
            "/html" => text("200 OK", "text/html; charset=utf-8", HTML),
            "/json" => text("200 OK", "application/json", "{\"b\": 1e400,\n \"a\": 9007199254740993}"),
            "/plain" => text("200 OK", "Text/Plain", "a\r\n\tb  <b>\n"),
            "/feed" => text("200 OK", "application/rss+xml", "<rss/>"),
            "/untyped" => bytes("200 OK", "", b"  <!DOCTYPE html><p>hello"),
            "/untyped-text" => bytes("200 OK", "", b"plain"),
            "/empty" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            "/missing" => text("404 Not Found", "text/html", "<h1>No such page</h1>"),
            "/broken" => text("500 Oops", "application/json", "{\"error\":\"x\"}"),
            "/image-404" => bytes("404 Not Found", "Content-Type: image/png\r\n", b"\x89PNG\0"),
            _ => text("200 OK", "text/plain", path),
        },
        10_000,
    )
    .await;
    expect![[r#"
        # Tea & coffee

        Tea is made of **leaves**, see [coffee][1].
        * green
        * black

        ─────┬───
        kind │cup
        ─────┼───
        green│2  
        ─────┴───

        a
          b

        [1]: /coffee
    "#]]
    .assert_eq(&page(tool.as_ref(), &url(&server, "/html")).await.text);
    let mut out = String::new();
    for path in ["/json", "/plain", "/feed", "/untyped", "/untyped-text", "/empty", "/missing", "/broken", "/image-404"]
    {
        let answer = get(tool.as_ref(), &url(&server, path)).await;
        out.push_str(&format!("{}\n", answer.replace(&server.port(), "PORT")));
    }
    expect![[r##"
        {"url":"http://site.test:PORT/json","status":200,"type":"application/json","bytes":36,"text":"{\"b\": 1e400,\n \"a\": 9007199254740993}"}
        {"url":"http://site.test:PORT/plain","status":200,"type":"text/plain","bytes":11,"text":"a\r\n\tb  <b>\n"}
        {"url":"http://site.test:PORT/feed","status":200,"type":"application/rss+xml","bytes":6,"text":"<rss/>"}
        {"url":"http://site.test:PORT/untyped","status":200,"bytes":25,"text":"hello\n"}
        {"url":"http://site.test:PORT/untyped-text","status":200,"bytes":5,"text":"plain"}
        {"url":"http://site.test:PORT/empty","status":204,"bytes":0,"text":""}
        {"url":"http://site.test:PORT/missing","status":404,"type":"text/html","bytes":21,"text":"# No such page\n"}
        {"url":"http://site.test:PORT/broken","status":500,"type":"application/json","bytes":13,"text":"{\"error\":\"x\"}"}
        {"url":"http://site.test:PORT/image-404","status":404,"type":"image/png","bytes":5,"text":"","notes":["the body is not text and is left out"]}
    "##]].assert_eq(&out);
}

#[tokio::test]
async fn what_is_not_text_is_refused_by_type_and_size() {
    let (server, tool) = site(
        |path| match path {
            "/image" => bytes("200 OK", "Content-Type: image/png\r\n", b"\x89PNG\r\n\x1a\n\0\0"),
            "/pdf" => bytes("200 OK", "Content-Type: application/pdf\r\n", &[b'%'; 300]),
            "/liar" => bytes("200 OK", "Content-Type: text/plain\r\n", b"a\0b"),
            "/untyped" => bytes("200 OK", "", b"\0\x01"),
            "/stream" => {
                b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nConnection: close\r\n\r\nxxxxxxxxxxxxxxx".to_vec()
            }
            "/packed" => bytes("200 OK", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", b"\x1f\x8b"),
            _ => text("200 OK", "text/plain", path),
        },
        10,
    )
    .await;
    let mut out = String::new();
    for path in ["/image", "/pdf", "/liar", "/untyped", "/stream", "/packed"] {
        out.push_str(&format!("{}\n", get(tool.as_ref(), &url(&server, path)).await.replace(&server.port(), "PORT")));
    }
    expect![[r#"
        ! http.not_text: http://site.test:PORT/image is not text: image/png, 10 bytes, status 200
        ! http.not_text: http://site.test:PORT/pdf is not text: application/pdf, 300 bytes, status 200
        ! http.not_text: http://site.test:PORT/liar is not text: text/plain, 3 bytes, status 200
        ! http.not_text: http://site.test:PORT/untyped is not text: without a type, 2 bytes, status 200
        ! http.not_text: http://site.test:PORT/stream is not text: video/mp4, more than 10 bytes, status 200
        ! http.encoding: http://site.test:PORT/packed sends `gzip`, though it was not asked for
    "#]]
    .assert_eq(&out);
}

#[tokio::test]
async fn encodings_are_read_as_they_are_declared() {
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain("größe".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let (server, tool) = site(
        move |path| match path {
            "/latin" => bytes("200 OK", "Content-Type: text/plain; charset=\"ISO-8859-1\"\r\n", b"gr\xf6\xdfe"),
            "/meta" => bytes("200 OK", "Content-Type: text/html\r\n", b"<meta charset='windows-1251'><p>\xf7\xe0\xe9"),
            "/http-equiv" => bytes(
                "200 OK",
                "Content-Type: text/html\r\n",
                b"<META http-equiv=Content-Type content=\"text/html; charset=koi8-r\"><p>\xde\xc1\xca",
            ),
            "/bom" => bytes("200 OK", "Content-Type: text/plain\r\n", &utf16),
            "/utf8-bom" => bytes("200 OK", "Content-Type: text/plain; charset=latin1\r\n", "\u{feff}größe".as_bytes()),
            "/undeclared" => bytes("200 OK", "Content-Type: text/html\r\n", b"<p>gr\xf6\xdfe"),
            "/wrong" => bytes("200 OK", "Content-Type: text/plain; charset=utf-8\r\n", b"gr\xf6\xdfe"),
            "/unknown" => bytes("200 OK", "Content-Type: text/plain; charset=klingon\r\n", "größe".as_bytes()),
            _ => text("200 OK", "text/plain", path),
        },
        1000,
    )
    .await;
    let mut out = String::new();
    for path in ["/latin", "/meta", "/http-equiv", "/bom", "/utf8-bom", "/undeclared", "/wrong", "/unknown"] {
        let page = page(tool.as_ref(), &url(&server, path)).await;
        out.push_str(&format!("{path}: {:?} {:?} {:?}\n", page.text, page.charset, page.notes));
    }
    expect![[r#"
        /latin: "größe" Some("windows-1252") []
        /meta: "чай\n" Some("windows-1251") []
        /http-equiv: "чай\n" Some("KOI8-R") []
        /bom: "größe" Some("UTF-16LE") []
        /utf8-bom: "größe" None []
        /undeclared: "größe\n" Some("windows-1252") []
        /wrong: "gr��e" None ["not all of it is UTF-8; each wrong byte is �"]
        /unknown: "größe" None []
    "#]]
    .assert_eq(&out);
}

/// MCP-06: a body that was cut is a text that says so, and nothing that anybody could take for the whole.
#[tokio::test]
async fn what_was_cut_says_so_and_what_broke_off_is_no_page() {
    let json = format!("{{\"list\":[{}0]}}", "1,".repeat(140));
    let (server, tool) = site(
        move |path| match path {
            "/json" => text("200 OK", "application/json", &json),
            "/exact" => text("200 OK", "text/plain", &"x".repeat(100)),
            "/umlaut" => text("200 OK", "text/plain", &"ä".repeat(60).replacen('ä', "x", 1)),
            "/stream" => {
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{}", "y".repeat(500))
                    .into_bytes()
            }
            "/broken" => {
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{\"a\":1".to_vec()
            }
            "/chunk" => {
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
                    .to_vec()
            }
            _ => text("200 OK", "text/plain", path),
        },
        100,
    )
    .await;
    let cut = page(tool.as_ref(), &url(&server, "/json")).await;
    assert_eq!((cut.text.len(), cut.bytes), (100, 100));
    expect![[r#"["the body was cut after 100 bytes of 292; what follows was not read"]"#]]
        .assert_eq(&format!("{:?}", cut.notes));
    assert!(serde_json::from_str::<serde_json::Value>(&cut.text).is_err());
    assert!(page(tool.as_ref(), &url(&server, "/exact")).await.notes.is_empty());
    let umlaut = page(tool.as_ref(), &url(&server, "/umlaut")).await;
    assert_eq!(umlaut.text, "x".to_owned() + &"ä".repeat(49));
    expect![[r#"["the body was cut after 100 bytes of 119; what follows was not read"]"#]]
        .assert_eq(&format!("{:?}", umlaut.notes));
    expect![[r#"["the body was cut after 100 bytes; what follows was not read"]"#]]
        .assert_eq(&format!("{:?}", page(tool.as_ref(), &url(&server, "/stream")).await.notes));
    for (path, bytes) in [("/broken", 6), ("/chunk", 5)] {
        let answer = get(tool.as_ref(), &url(&server, path)).await;
        assert!(
            answer.starts_with("! http.broke_off: ") && answer.contains(&format!("after {bytes} bytes")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_long_text_comes_in_parts_that_fit_together() {
    let long: String = (0..20_000).map(|line| format!("{line} ä\n")).collect();
    let body = long.clone();
    let (server, tool) = site(move |_| text("200 OK", "text/plain", &body), 1_000_000).await;
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let args = serde_json::json!({ "url": url(&server, "/"), "offset": offset }).to_string();
        let page: loopd_tools::http::Page = serde_json::from_str(&call(tool.as_ref(), &args).await).unwrap();
        assert!(page.text.len() <= 64 * 1024);
        whole.push_str(&page.text);
        match page.cut {
            Some(cut) => {
                assert_eq!(cut.left_bytes as usize, long.len() - whole.len());
                offset = cut.next_offset;
            }
            None => break,
        }
    }
    assert_eq!((whole == long, server.hits().len()), (true, 3));
    let args = serde_json::json!({ "url": url(&server, "/"), "offset": long.len() + 1 }).to_string();
    assert!(call(tool.as_ref(), &args).await.starts_with("! http.past_end: the text has"));
}

/// A page that is made to exhaust somebody ends soon, as a page or as an error.
async fn hostile(body: String) -> String {
    let (server, tool) = site(move |_| text("200 OK", "text/html", &body), 2_000_000).await;
    let answer = get(tool.as_ref(), &url(&server, "/")).await;
    assert!(answer.starts_with('{') || answer.starts_with("! http.html: "), "{answer:.200}");
    answer
}

#[tokio::test]
async fn a_page_that_is_nested_too_deeply_is_refused() {
    for open in ["<div>", "<b>", "<table><tr><td>", "<ul><li>", "<blockquote>x", "<DIV\tclass='>'>", "<svg><g>"] {
        let answer = hostile(open.repeat(50_000)).await;
        expect!["! http.html: the page cannot be made readable: it is nested more than 200 deep"].assert_eq(&answer);
    }
}

#[tokio::test]
async fn a_page_as_deep_as_pages_are_is_read() {
    for (open, close) in [("<div>", "</div>"), ("<table><tr><td>", "</td></tr></table>"), ("<b>", "</b>")] {
        let answer = hostile(format!("{}deep{}", open.repeat(150), close.repeat(150))).await;
        assert!(answer.contains("deep"), "{open}: {answer:.300}");
    }
    // Ends that everybody leaves out do not count as depth.
    let loose = "<ul><li>a<li>b</ul><p>x<br>y<p>z<img src=a><hr><table><tr><td>1<td>2<tr><td>3</table>".repeat(500);
    assert!(hostile(loose).await.starts_with('{'));
}

#[tokio::test]
async fn a_page_with_odd_parts_is_read() {
    let answer = hostile("<p>a&#0;&#xffffffff;b</p></div></p><!-- <div> ".to_owned()).await;
    assert!(answer.starts_with('{'), "{answer}");
    assert!(hostile("<a href=x>".repeat(20_000)).await.starts_with('{'));
}

#[tokio::test]
async fn a_page_of_very_wide_cells_ends() {
    hostile(format!("<table><tr>{}</tr></table>", "<td colspan=1000>x</td>".repeat(500))).await;
    hostile(format!("<table><tr><td colspan=4000000000>x</td><td>{}</td></tr></table>", "y ".repeat(100_000))).await;
}

/// No cookie, key or other header of anybody goes along.
#[tokio::test]
async fn a_request_says_only_what_it_is() {
    let (server, tool) = site(|_| bytes("200 OK", "Set-Cookie: a=b\r\nContent-Type: text/plain\r\n", b"x"), 100).await;
    for _ in 0..2 {
        page(tool.as_ref(), &url(&server, "/a?b#c")).await;
    }
    let head = server.requests().pop().unwrap().replace(&server.port(), "PORT").replace("\r\n", "\n");
    expect![[r#"
        GET /a?b HTTP/1.1
        accept: text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,application/xml;q=0.8,*/*;q=0.1
        user-agent: loopd/0.1.0
        host: site.test:PORT"#]]
    .assert_eq(head.trim_end());
}
