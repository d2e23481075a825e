//! A client that is thrown out again and again sees every event exactly once, and every text whole.

use crate::listening::{Listening, Sent, parse};
use crate::world::{Ask, World};
use loopd_kernel::{CallId, RunId};
use loopd_platform::{Config, FeedName};
use loopd_runtime::Delta;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A stream of numbers that the seed decides.
struct Dice(u64);

impl Dice {
    fn seeded() -> Self {
        let seed = std::env::var("LOOPD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_u64);
        println!("LOOPD_SEED={seed}");
        Self(seed.max(1))
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// What a client makes of its events: the positions that it saw, and each Message as they tell it.
#[derive(Default)]
struct Client {
    last: Option<String>,
    seen: BTreeMap<String, Vec<u64>>,
    messages: BTreeMap<String, (String, bool)>,
}

impl Client {
    /// Reads some pieces and some bytes of the one after; then the connection breaks.
    async fn read(&mut self, stream: &mut Listening, (pieces, keep): (u64, u64)) {
        let mut text = String::new();
        let mut read = 0;
        while read < pieces {
            let Some(piece) = stream.piece().await else { break };
            text.push_str(&piece);
            read += 1;
        }
        if let (true, Some(piece)) = (read == pieces, stream.piece().await) {
            text.push_str(&piece[..usize::try_from(keep).unwrap().min(piece.len())]);
        }
        // What did not arrive whole did not arrive.
        while let Some((frame, rest)) = text.split_once("\n\n") {
            if let Some(sent) = parse(frame) {
                self.take(&sent);
                self.last = sent.id.or(self.last.take());
            }
            text = rest.to_owned();
        }
    }

    fn take(&mut self, sent: &Sent) {
        if sent.event == "hello" {
            return;
        }
        let data = sent.json();
        let positions = self.seen.entry(data["feed"].as_str().unwrap().to_owned()).or_default();
        positions.push(data["position"].as_u64().unwrap());
        let event = &data["event"];
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        match sent.event.as_str() {
            "message" => {
                let said = event["message"]["blocks"][0]["text"].as_str().unwrap_or_default();
                let over = event["message"]["status"] == "completed";
                let before = self.messages.insert(id(&event["message"]["id"]), (said.to_owned(), over));
                assert_eq!(before, None, "a message begins twice");
            }
            "message_updated" => {
                let (text, over) = self.messages.get_mut(&id(&event["message"])).expect("it goes on before it begins");
                assert!(!*over, "it goes on after its end");
                for op in event["ops"].as_array().unwrap() {
                    text.push_str(op["text"].as_str().unwrap());
                }
            }
            "message_ended" => {
                self.messages.get_mut(&id(&event["message"]["id"])).expect("it ends before it begins").1 = true
            }
            _ => {}
        }
    }
}

/// Somebody who speaks, and whose Messages go on for a while.
#[derive(Default)]
struct Speaker {
    open: Vec<(String, u64)>,
}

impl Speaker {
    async fn act(&mut self, world: &World, conversation: &str, dice: &mut Dice, number: u64) {
        let within = format!("/v1/conversations/{conversation}");
        let send = |ask: Ask| async move {
            let got = world.send(ask.by(&world.ann)).await;
            assert!(got.status.is_success(), "{}", got.text());
            got.json()
        };
        match dice.below(8) {
            0 => drop(send(Ask::new("patch", within).json(json!({"title": number.to_string()}))).await),
            1 | 2 => drop(world.say(&world.ann, conversation, &format!("whole {number}")).await),
            3 => {
                let begun = json!({"blocks": [{"type": "markdown", "text": "\u{1f600} "}]});
                let begun = send(Ask::post(format!("{within}/messages/begin")).json(begun)).await;
                self.open.push((begun["message"]["id"].as_str().unwrap().to_owned(), 1));
            }
            4 if !self.open.is_empty() => {
                let (message, _) = self.open.remove(0);
                send(Ask::post(format!("/v1/messages/{message}/end"))).await;
            }
            _ => {
                let Some((message, revision)) = self.open.last_mut() else { return };
                let ops = json!([{"op": "append", "index": 0, "text": format!("{number}\n\ndata: \u{e9}")}]);
                let body = json!({"revision": *revision, "ops": ops});
                send(Ask::new("patch", format!("/v1/messages/{message}")).json(body)).await;
                *revision += 1;
            }
        }
    }

    async fn end(&mut self, world: &World) {
        for (message, _) in self.open.drain(..) {
            world.send(Ask::post(format!("/v1/messages/{message}/end")).by(&world.ann)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_a_thousand_times_loses_nothing_and_doubles_nothing() {
    let mut dice = Dice::seeded();
    let world = World::with_agent(Config::default()).await;
    let mut conversations = Vec::new();
    for _ in 0..3 {
        conversations.push(world.conversation(&["person/ben"]).await);
    }
    let mut feeds: Vec<String> = conversations.iter().map(|id| format!("conversation/{id}")).collect();
    feeds.push("actor/person/ben".to_owned());
    let path = format!("/v1/stream?from=start&feed={}", feeds.join("&feed="));
    let (mut client, mut speaker) = (Client::default(), Speaker::default());
    for cut in 0..1000 {
        // What is said before it comes back, while it is connected, and while its bytes are under way.
        for _ in 0..dice.below(2) {
            let conversation = dice.choose(&conversations).clone();
            speaker.act(&world, &conversation, &mut dice, cut).await;
        }
        let mut stream = world.listen(&world.ben, &path, client.last.as_deref()).await;
        for _ in 0..dice.below(3) {
            let conversation = dice.choose(&conversations).clone();
            speaker.act(&world, &conversation, &mut dice, cut).await;
        }
        let (pieces, keep) = (dice.below(4), dice.below(2000));
        client.read(&mut stream, (pieces, keep)).await;
    }
    speaker.end(&world).await;
    // The last one is not cut.
    let mut stream = world.listen(&world.ben, &path, client.last.as_deref()).await;
    client.read(&mut stream, (u64::MAX, u64::MAX)).await;
    let mut total = 0;
    for feed in &feeds {
        let name: FeedName = feed.parse().unwrap();
        let head = world.engine.platform().positions(&[name]).await.unwrap()[0];
        assert_eq!(client.seen.get(feed), Some(&(1..=head).collect()), "{feed}");
        total += head;
    }
    assert!(total > 1000, "{total}");
    let went_on = client.messages.values().filter(|(text, _)| text.starts_with('\u{1f600}')).count();
    assert!(went_on > 50, "{went_on}");
    for (message, (text, over)) in &client.messages {
        let stored = world.send(Ask::get(format!("/v1/messages/{message}")).by(&world.ben)).await.json();
        assert_eq!((stored["blocks"][0]["text"].as_str().unwrap(), *over), (text.as_str(), true), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn text_that_arrives_is_always_the_text_so_far_however_often_its_watcher_is_cut() {
    let mut dice = Dice::seeded();
    let world = World::with_agent(Config::default()).await;
    let conversation = world.conversation(&["person/ben"]).await;
    let call = json!({"target": "steps", "prompt": "wait done"});
    let call = Ask::post(format!("/v1/conversations/{conversation}/calls")).by(&world.ann).json(call);
    let call = world.send(call).await.json()["call"].clone();
    crate::things::until(&world, call["id"].as_str().unwrap(), "running").await;
    let run: RunId = call["run"].as_str().unwrap().parse().unwrap();
    let path = format!("/v1/stream?feed=conversation/{conversation}");
    let mut stream = world.listen(&world.ben, &path, None).await;
    let mut written = String::new();
    let mut seen = (String::new(), String::new());
    let mut attempt = 1;
    for number in 0..3000 {
        if dice.below(500) == 0 {
            // Another attempt begins anew.
            attempt += 1;
            written.clear();
        }
        let text = format!("{number} \u{1f600}\n\n");
        written.push_str(&text);
        world.deltas.send(Delta { run, call: CallId(1), attempt, text }).unwrap();
        if dice.below(3) == 0 {
            stream = world.listen(&world.ben, &path, None).await;
        }
        if dice.below(2) == 0 {
            continue;
        }
        for sent in stream.events().await.iter().filter(|sent| sent.event == "delta") {
            assert_eq!(sent.id, None, "text that arrives has no id");
            let data = sent.json();
            assert_eq!(data["message"], call["message"]);
            let (part, offset) =
                (data["part"].as_str().unwrap(), usize::try_from(data["offset"].as_u64().unwrap()).unwrap());
            if seen.0 != part {
                assert_eq!(offset, 0, "a part that is new begins at its beginning");
                seen = (part.to_owned(), String::new());
            }
            assert!(offset <= seen.1.len(), "there is a gap");
            seen.1.truncate(offset);
            seen.1.push_str(data["text"].as_str().unwrap());
        }
        assert_eq!(seen.1, written, "{number}");
    }
    // One that never read meanwhile has lost pieces, and gets what there is so far instead.
    let mut lazy = world.listen(&world.ben, &path, None).await;
    for number in 0..3000 {
        let text = format!("{number}.");
        written.push_str(&text);
        world.deltas.send(Delta { run, call: CallId(1), attempt, text }).unwrap();
    }
    tokio::task::yield_now().await;
    let mut whole = String::new();
    for sent in lazy.events().await.iter().filter(|sent| sent.event == "delta") {
        let data = sent.json();
        whole.truncate(usize::try_from(data["offset"].as_u64().unwrap()).unwrap());
        whole.push_str(data["text"].as_str().unwrap());
    }
    assert!(whole == written, "{} bytes of {}", whole.len(), written.len());
}
