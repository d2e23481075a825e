//! Poll and Commit: everything that is whole comes, at least once, and nothing waits for what is not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use loopd_platform::{Caller, Config, Handled, Window};
use loopd_protocol::{BlockOp, ConversationId, End, Message, MessageId, MessageStatus, Open, Role, Update};
use stage::{Stage, admin, person, refused, say, text};
use std::time::Duration;

async fn begun(stage: &Stage, room: ConversationId, words: &str) -> MessageId {
    let open = Open { actor: None, to: Vec::new(), reply_to: None, blocks: vec![text(words)] };
    stage.platform.begin(&person("ann"), room, "", open).await.unwrap().message.id
}

async fn ended(stage: &Stage, message: MessageId) {
    let end = End { status: MessageStatus::Completed, error: None };
    stage.platform.end(&person("ann"), message, end).await.unwrap();
}

/// What bob polls: cursor, Messages, open ones.
async fn polled(stage: &Stage, room: ConversationId, limit: usize, streaming: bool) -> (u64, Vec<u64>, Vec<u64>) {
    let polled = stage.platform.poll(&person("bob"), room, limit, streaming).await.unwrap();
    let seqs = |messages: &[Message]| messages.iter().map(|message| message.seq).collect();
    (polled.seq, seqs(&polled.messages), polled.open)
}

/// Handles all that is polled, as an Operator does.
async fn handle(stage: &Stage, room: ConversationId, limit: usize) -> Vec<u64> {
    let bob = person("bob");
    let polled = stage.platform.poll(&bob, room, limit, false).await.unwrap();
    let handled = Handled { seq: polled.upto, open: polled.open };
    let stands = stage.platform.commit(&bob, room, handled.clone()).await.unwrap();
    assert_eq!(stands, handled);
    polled.messages.iter().map(|message| message.seq).collect()
}

#[tokio::test(start_paused = true)]
async fn polling_repeats_until_the_cursor_moves() {
    let stage = Stage::new();
    let room = stage.room().await;
    let bob = person("bob");
    for words in ["one", "two"] {
        stage.platform.say(&person("ann"), room, "", say(words)).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(polled(&stage, room, 10, false).await, (0, vec![1, 2], vec![]));
    }
    let commit = |handled| stage.platform.commit(&bob, room, handled);
    assert_eq!(commit(Handled::upto(2)).await.unwrap(), Handled::upto(2));
    assert_eq!(commit(Handled::upto(1)).await.unwrap(), Handled::upto(2));
    assert_eq!(refused(commit(Handled::upto(99)).await), "invalid seq");
    assert_eq!(refused(commit(Handled { seq: 2, open: vec![3] }).await), "invalid open");
    assert_eq!(refused(commit(Handled { seq: 2, open: vec![1; 201] }).await), "invalid open");
    assert_eq!(polled(&stage, room, 10, false).await, (2, vec![], vec![]));
    // Cursors are each Actor's own.
    let mine = stage.platform.poll(&person("ann"), room, 10, false).await.unwrap();
    assert_eq!((mine.seq, mine.messages.len()), (0, 2));
}

/// Who begins to speak and dies holds nobody up, and nothing of what they said is lost or comes twice.
#[tokio::test(start_paused = true)]
async fn an_open_message_is_passed_over_and_comes_once_it_is_whole() {
    let stage = Stage::new();
    let room = stage.room().await;
    let first = begun(&stage, room, "one").await;
    stage.platform.say(&person("ann"), room, "", say("two")).await.unwrap();
    let third = begun(&stage, room, "three").await;
    stage.platform.say(&person("ann"), room, "", say("four")).await.unwrap();
    assert_eq!(polled(&stage, room, 10, true).await, (0, vec![1, 2, 3, 4], vec![1, 3]));
    assert_eq!(polled(&stage, room, 10, false).await, (0, vec![2, 4], vec![1, 3]));
    assert_eq!(handle(&stage, room, 10).await, [2, 4]);
    assert_eq!(handle(&stage, room, 10).await, [] as [u64; 0]);
    ended(&stage, third).await;
    assert_eq!(handle(&stage, room, 10).await, [3]);
    assert_eq!(polled(&stage, room, 10, false).await, (4, vec![], vec![1]));
    ended(&stage, first).await;
    stage.platform.say(&person("ann"), room, "", say("five")).await.unwrap();
    // However small the parts are.
    assert_eq!(handle(&stage, room, 1).await, [1]);
    assert_eq!(handle(&stage, room, 1).await, [5]);
    assert_eq!(polled(&stage, room, 10, false).await, (5, vec![], vec![]));
}

/// However many there are behind an open one: whoever reads until there is no more has read all.
#[tokio::test(start_paused = true)]
async fn an_open_message_hides_no_later_ones() {
    let stage = Stage::new();
    let room = stage.room().await;
    begun(&stage, room, "one").await;
    for number in 2..=8 {
        stage.platform.say(&person("ann"), room, "", say(&number.to_string())).await.unwrap();
    }
    for (streaming, limit) in (1..10).flat_map(|limit| [(false, limit), (true, limit)]) {
        let reader = Caller::new(format!("person/reader-{streaming}-{limit}").parse().unwrap(), Role::Admin);
        let mut read = Vec::new();
        loop {
            let polled = stage.platform.poll(&reader, room, limit, streaming).await.unwrap();
            assert!(polled.messages.len() <= limit);
            read.extend(polled.messages.iter().map(|message| message.seq).filter(|seq| *seq > 1));
            let more = polled.more;
            let handled = Handled { seq: polled.upto, open: polled.open };
            stage.platform.commit(&reader, room, handled).await.unwrap();
            if !more {
                break;
            }
        }
        assert_eq!(read, [2, 3, 4, 5, 6, 7, 8], "{streaming} {limit}");
    }
}

/// One that becomes whole between poll and commit was not told: it comes. So does one that a caller does not name.
#[tokio::test(start_paused = true)]
async fn what_becomes_whole_between_poll_and_commit_comes() {
    let stage = Stage::new();
    let room = stage.room().await;
    let bob = person("bob");
    let (first, second) = (begun(&stage, room, "one").await, begun(&stage, room, "two").await);
    stage.platform.say(&person("ann"), room, "", say("three")).await.unwrap();
    let before = stage.platform.poll(&bob, room, 10, false).await.unwrap();
    ended(&stage, first).await;
    stage.platform.commit(&bob, room, Handled { seq: before.upto, open: before.open }).await.unwrap();
    assert_eq!(polled(&stage, room, 10, false).await, (3, vec![1], vec![2]));
    assert_eq!(stage.platform.commit(&bob, room, Handled::upto(3)).await.unwrap(), Handled { seq: 3, open: vec![2] });
    // A commit that is repeated late brings nothing back.
    let late = Handled { seq: 3, open: vec![1, 2] };
    assert_eq!(stage.platform.commit(&bob, room, late).await.unwrap(), Handled { seq: 3, open: vec![2] });
    ended(&stage, second).await;
    assert_eq!(handle(&stage, room, 10).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn an_open_message_expires_and_an_admin_may_end_it() {
    let stage = Stage::with(Config { message_open_s: 60, ..Config::default() });
    let room = stage.room().await;
    let (left, renewed, stuck) =
        (begun(&stage, room, "a").await, begun(&stage, room, "b").await, begun(&stage, room, "c").await);
    let end = End { status: MessageStatus::Cancelled, error: None };
    assert_eq!(refused(stage.platform.end(&person("bob"), stuck, end.clone()).await), "forbidden");
    assert_eq!(stage.platform.end(&admin(), stuck, end).await.unwrap().status, MessageStatus::Cancelled);
    tokio::time::advance(Duration::from_secs(50)).await;
    let ops = vec![BlockOp::Append { index: 0, text: "!".into() }];
    stage.platform.update(&person("ann"), renewed, Update { revision: 1, ops }).await.unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(stage.platform.expire_messages().await.unwrap(), 1);
    let status = async |id| stage.platform.message(&admin(), id).await.unwrap().status;
    assert_eq!((status(left).await, status(renewed).await), (MessageStatus::Expired, MessageStatus::Streaming));
    assert_eq!(handle(&stage, room, 10).await, [1, 3]);
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(stage.platform.expire_messages().await.unwrap(), 1);
    assert_eq!(stage.platform.expire_messages().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn messages_and_lists_are_bounded_in_bytes() {
    let config = Config { message_total_bytes: 3000, list_bytes: 2500, ..Config::default() };
    let stage = Stage::with(config);
    let room = stage.room().await;
    let ann = person("ann");
    let id = begun(&stage, room, "a").await;
    let more = |revision| {
        let ops = vec![BlockOp::Append { index: 0, text: "x".repeat(1000) }];
        stage.platform.update(&ann, id, Update { revision, ops })
    };
    more(1).await.unwrap();
    more(2).await.unwrap();
    assert_eq!(refused(more(3).await), "too_large");
    assert_eq!(stage.platform.message(&ann, id).await.unwrap().blocks[0].words().len(), 2001);
    for _ in 0..3 {
        stage.platform.say(&ann, room, "", say(&"y".repeat(1000))).await.unwrap();
    }
    let seqs = async |window| {
        let messages = stage.platform.messages(&ann, room, window, 10).await.unwrap();
        messages.iter().map(|message| message.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(Window::After(0)).await, [1]);
    assert_eq!(seqs(Window::After(1)).await, [2, 3]);
    assert_eq!(seqs(Window::Latest).await, [3, 4]);
    assert_eq!(seqs(Window::Before(3)).await, [2]);
}
