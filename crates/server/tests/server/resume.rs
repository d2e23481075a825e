//! A client that is thrown out again and again sees every event exactly once.

use crate::world::{Ask, Listening, World, parse};
use loopd_platform::FeedName;
use serde_json::json;
use std::collections::BTreeMap;

/// A stream of numbers that the seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_a_thousand_times_loses_nothing_and_doubles_nothing() {
    let seed = std::env::var("LOOPD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_u64);
    println!("LOOPD_SEED={seed}");
    let mut dice = Dice(seed.max(1));
    let world = World::configured(|config| config.limits.requests_burst = 100_000).await;
    let mut conversations = Vec::new();
    for _ in 0..3 {
        conversations.push(world.conversation(&["person/ben"]).await);
    }
    let mut feeds: Vec<String> = conversations.iter().map(|id| format!("conversation/{id}")).collect();
    feeds.push("actor/person/ben".to_owned());
    let path = format!("/v1/stream?from=start&feed={}", feeds.join("&feed="));
    let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut last: Option<String> = None;
    for cut in 0..1000 {
        let mut stream = world.listen(&world.ben, &path, last.as_deref()).await;
        for _ in 0..dice.below(3) {
            let conversation = &conversations[usize::try_from(dice.below(3)).unwrap()];
            match dice.below(4) {
                0 => {
                    let path = format!("/v1/conversations/{conversation}");
                    world.send(Ask::new("patch", path).by(&world.ann).json(json!({"title": cut.to_string()}))).await;
                }
                _ => drop(world.say(&world.ann, conversation, &format!("{cut}")).await),
            }
        }
        let pieces = dice.below(4);
        let keep = dice.below(2000);
        read(&mut stream, (pieces, keep), &mut seen, &mut last).await;
    }
    // The last one is not cut.
    let mut stream = world.listen(&world.ben, &path, last.as_deref()).await;
    read(&mut stream, (u64::MAX, u64::MAX), &mut seen, &mut last).await;
    let mut total = 0;
    for feed in &feeds {
        let name: FeedName = feed.parse().unwrap();
        let head = world.engine.platform().positions(&[name]).await.unwrap()[0];
        assert_eq!(seen.get(feed), Some(&(1..=head).collect()), "{feed}; LOOPD_SEED={seed}");
        total += head;
    }
    assert!(total > 1000, "{total}");
}

/// Reads some pieces and some bytes of the one after; then the connection breaks.
async fn read(
    stream: &mut Listening,
    (pieces, keep): (u64, u64),
    seen: &mut BTreeMap<String, Vec<u64>>,
    last: &mut Option<String>,
) {
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
            if sent.event != "hello" {
                let data = sent.json();
                seen.entry(data["feed"].as_str().unwrap().to_owned())
                    .or_default()
                    .push(data["position"].as_u64().unwrap());
            }
            *last = sent.id.or(last.take());
        }
        text = rest.to_owned();
    }
}
