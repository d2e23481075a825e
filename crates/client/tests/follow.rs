//! A stream that is cut anywhere, doubled, or refused: what the client tells of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_client::{Client, Error, Follow, Start, Told};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const FEED: &str = "conversation/con_00000000000000000000000000000001";

/// What a connection is answered with, and then it breaks off.
enum Answer {
    Stream(String),
    Refusal(u16, &'static str, bool),
    /// Not even a status.
    Nothing,
    /// Not even that it breaks off, until the next connection.
    Silence,
}

async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.expect("a request"));
    }
    String::from_utf8(bytes).expect("text")
}

/// Answers one connection after the other; returns the heads of the requests, and the connections that are still silent.
async fn serve(listener: TcpListener, answers: Vec<Answer>) -> (Vec<String>, Vec<TcpStream>) {
    let (mut heads, mut silent) = (Vec::new(), Vec::new());
    for answer in answers {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        heads.push(head(&mut stream).await);
        let text = match answer {
            Answer::Stream(body) => {
                format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
            }
            Answer::Refusal(status, code, retryable) => {
                let body = format!(
                    r#"{{"type":"about:blank","title":"No","status":{status},"detail":"no","code":"{code}","retryable":{retryable}}}"#
                );
                format!("HTTP/1.1 {status} No\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
            }
            Answer::Nothing => continue,
            Answer::Silence => {
                silent.push(stream);
                continue;
            }
        };
        stream.write_all(text.as_bytes()).await.expect("written");
    }
    (heads, silent)
}

fn hello(position: u64) -> String {
    format!("retry: 100\nevent: hello\nid: at-{position}\ndata: {{\"positions\":{{\"{FEED}\":{position}}}}}\n\n")
}

fn event(position: u64) -> String {
    let read = r#"{"type":"read","actor":"person/me","seq":1}"#;
    format!(
        "event: read\nid: at-{position}\ndata: {{\"feed\":\"{FEED}\",\"position\":{position},\"at\":0,\"event\":{read}}}\n\n"
    )
}

/// What is told until it closes or fails, in words; and the requests.
async fn check(start: Start, answers: Vec<Answer>) -> (Vec<String>, Option<Error>, Vec<String>) {
    check_with(|follow| follow, start, answers).await
}

async fn check_with(
    with: impl FnOnce(Follow) -> Follow,
    start: Start,
    answers: Vec<Answer>,
) -> (Vec<String>, Option<Error>, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let served = tokio::spawn(serve(listener, answers));
    let client = Client::new(&url, Some("loopd_secret")).expect("an address");
    let mut follow = with(Follow::new(client, vec![FEED.to_owned()], start));
    let mut told = Vec::new();
    let end = loop {
        let next = tokio::time::timeout(Duration::from_secs(60), follow.next()).await.expect("in time");
        told.push(match next {
            Ok(Some(Told::Hello(positions))) => format!("hello {}", positions[FEED]),
            Ok(Some(Told::Event(event))) => format!("event {}", event.position),
            Ok(Some(Told::Delta(delta))) => format!("delta {}", delta.text),
            Ok(Some(Told::Reset(positions))) => format!("reset {}", positions[FEED]),
            Ok(Some(Told::Closed { code, .. })) => format!("closed {code}"),
            Ok(Some(Told::Lost(_))) => "lost".to_owned(),
            Ok(None) => break None,
            Err(error) => break Some(error),
        });
    };
    (told, end, served.await.expect("served").0)
}

fn closed() -> String {
    format!("event: closed\nid: end\ndata: {{\"feed\":\"{FEED}\",\"code\":\"deleted\"}}\n\n")
}

fn resumes_after(head: &str) -> Option<&str> {
    head.lines().find_map(|line| line.strip_prefix("last-event-id: "))
}

#[tokio::test]
async fn what_comes_twice_is_told_once_and_it_comes_back_behind_the_last() {
    let whole = hello(0) + &event(1) + &event(2);
    // The second connection repeats what was there, and is cut in the middle of an event.
    let again = hello(1) + &event(1) + &event(2) + &event(3) + &event(4)[..40];
    let rest = hello(3) + &event(3) + &event(4) + &closed();
    let answers = vec![Answer::Stream(whole), Answer::Stream(again), Answer::Nothing, Answer::Stream(rest)];
    let (told, end, heads) = check(Start::Beginning, answers).await;
    assert_eq!(
        told,
        ["hello 0", "event 1", "event 2", "lost", "hello 1", "event 3", "lost", "hello 3", "event 4", "closed deleted"]
    );
    assert_eq!(end, None);
    let after: Vec<_> = heads.iter().map(|head| resumes_after(head)).collect();
    assert_eq!(after, [None, Some("at-2"), Some("at-3"), Some("at-3")]);
    assert!(
        heads.iter().all(|head| head.contains("from=start") && head.contains("authorization: Bearer loopd_secret"))
    );
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_and_one_that_says_no_is_not() {
    let begun = hello(0) + &event(1);
    let busy = || Answer::Refusal(503, "draining", true);
    let answers = vec![Answer::Stream(begun), busy(), busy(), Answer::Refusal(404, "not_found", false)];
    let (told, end, heads) = check(Start::Now, answers).await;
    assert_eq!(told, ["hello 0", "event 1", "lost"]);
    assert_eq!(end.expect("refused").code(), Some("not_found"));
    assert_eq!(heads.len(), 4);
}

#[tokio::test]
async fn who_was_never_there_is_not_waited_for() {
    let (told, end, _) = check(Start::Now, vec![Answer::Refusal(503, "draining", true)]).await;
    assert_eq!((told, end.and_then(|error| error.code().map(str::to_owned))), (vec![], Some("draining".to_owned())));
    let (told, end, heads) = check(Start::After("at-7".to_owned()), vec![Answer::Nothing]).await;
    assert_eq!((told.len(), resumes_after(&heads[0])), (0, Some("at-7")));
    assert!(matches!(end, Some(Error::Unreachable(_))), "{end:?}");
}

#[tokio::test]
async fn a_stream_that_breaks_off_before_its_first_event_begins_where_it_was_to_begin() {
    let whole = hello(7) + &event(8) + &closed();
    let answers = vec![Answer::Stream(String::new()), Answer::Nothing, Answer::Stream(whole)];
    let (told, end, heads) = check(Start::After("at-7".to_owned()), answers).await;
    assert_eq!((told, end), (["lost", "hello 7", "event 8", "closed deleted"].map(str::to_owned).to_vec(), None));
    assert!(heads.iter().all(|head| resumes_after(head) == Some("at-7")), "{heads:#?}");
}

#[tokio::test]
async fn events_that_are_gone_are_said_to_be() {
    let gone = format!("event: reset\nid: at-9\ndata: {{\"positions\":{{\"{FEED}\":9}}}}\n\n");
    let delta = "event: delta\ndata: {\"conversation\":\"con_00000000000000000000000000000001\",\
                 \"message\":\"msg_00000000000000000000000000000001\",\"part\":\"call-1/1\",\"offset\":0,\"text\":\"One\"}\n\n";
    let later = "event: hologram\nid: at-11\ndata: of a later server\n\n";
    let body = hello(2) + &gone + &event(9) + &event(10) + delta + later + &closed();
    let (told, end, _) = check(Start::Now, vec![Answer::Stream(body)]).await;
    assert_eq!(told, ["hello 2", "reset 9", "event 10", "delta One", "closed deleted"]);
    assert_eq!(end, None);
}

#[tokio::test]
async fn a_server_that_takes_the_connection_and_never_answers_is_not_waited_for_for_ever() {
    let soon = |follow: Follow| follow.silence(Duration::from_secs(1));
    let (told, end, _) = check_with(soon, Start::Now, vec![Answer::Silence]).await;
    assert_eq!((told, end), (vec![], Some(Error::Unreachable("no answer came for 1 s".to_owned()))));
    // Who was there comes back.
    let (begun, rest) = (hello(0) + &event(1), hello(1) + &event(2) + &closed());
    let answers = vec![Answer::Stream(begun), Answer::Silence, Answer::Stream(rest)];
    let (told, end, heads) = check_with(soon, Start::Now, answers).await;
    assert_eq!(told, ["hello 0", "event 1", "lost", "hello 1", "event 2", "closed deleted"]);
    assert_eq!((end, resumes_after(&heads[2])), (None, Some("at-1")));
}

#[tokio::test]
async fn what_cannot_be_read_loses_nothing_before_or_behind_it() {
    let unreadable = event(2).replace("\"position\":2", "\"position\":\"two\"");
    let whole = hello(0) + &event(1) + &unreadable + &event(3);
    let rest = hello(1) + &event(2) + &event(3) + &closed();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let served = tokio::spawn(serve(listener, vec![Answer::Stream(whole), Answer::Stream(rest)]));
    let client = Client::new(&url, None).expect("an address");
    let mut follow = Follow::new(client, vec![FEED.to_owned()], Start::Now);
    let mut told = Vec::new();
    loop {
        told.push(match follow.next().await {
            Ok(Some(Told::Event(event))) => event.position.to_string(),
            Ok(Some(other)) => format!("{other:?}").split(['(', ' ']).next().expect("a name").to_owned(),
            Ok(None) => break,
            Err(Error::Strange(_)) => "strange".to_owned(),
            Err(error) => panic!("{error}"),
        });
    }
    assert_eq!(told, ["Hello", "1", "strange", "Hello", "2", "3", "Closed"]);
    assert_eq!(resumes_after(&served.await.expect("served").0[1]), Some("at-1"));
}

#[tokio::test]
async fn the_token_goes_where_the_address_says_and_nowhere_else() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let there = elsewhere.local_addr().expect("an address");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let redirects = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        head(&mut stream).await;
        let text = format!("HTTP/1.1 307 Elsewhere\r\nlocation: http://{there}/v1/whoami\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(text.as_bytes()).await.expect("written");
    });
    let client = Client::new(&url, Some("loopd_secret")).expect("an address");
    let error = client.whoami().await.expect_err("it is no server of loopd");
    assert!(matches!(error, Error::Strange(_)), "{error}");
    redirects.await.expect("answered");
    let followed = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
    assert!(followed.is_err(), "nobody came");
}
