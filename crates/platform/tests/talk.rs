//! Conversations, Messages and reading.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use expect_test::expect;
use loopd_platform::{FeedName, Handled, Paging, Window};
use loopd_protocol::{
    Block, BlockOp, ChangeConversation, ConversationId, End, ErrorNote, KnownBlock, MemberChange, MessageStatus,
    NewConversation, Open, Say, Update,
};
use loopd_store::memory::Fault;
use loopd_store::{List, Query, RecordId, Store, Table};
use stage::{ALL, Stage, admin, operator, person, refused, say, text};
use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn what_is_said_is_numbered_without_a_gap_and_told_in_the_same_order() {
    let stage = Stage::new();
    let room = stage.room().await;
    let (ann, bob) = (person("ann"), person("bob"));
    stage.platform.say(&ann, room, "", say("Hello.")).await.unwrap();
    stage.platform.say(&bob, room, "", say("Hello, @person/ann!")).await.unwrap();
    expect![[r#"
        1 person/ann [completed]
            text Hello.
        2 person/bob > person/ann [completed]
            text Hello, @person/ann!
    "#]]
    .assert_eq(&stage.told(room).await);
    expect![[r#"
        conversation r1 Room
        message 1 person/ann Completed
        message 2 person/bob Completed
    "#]]
    .assert_eq(&stage.feed(room).await);
    let all = (0..40).map(|number| {
        let platform = &stage.platform;
        let by = if number % 2 == 0 { person("ann") } else { person("bob") };
        async move { platform.say(&by, room, "", say(&number.to_string())).await.unwrap().message.seq }
    });
    let mut seqs = futures::future::join_all(all).await;
    seqs.sort_unstable();
    assert_eq!(seqs, (3..43).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_key_says_one_thing_once() {
    let stage = Stage::new();
    let room = stage.room().await;
    let ann = person("ann");
    let first = stage.platform.say(&ann, room, "k", say("Pay it.")).await.unwrap();
    let again = stage.platform.say(&ann, room, "k", say("Pay it.")).await.unwrap();
    assert_eq!((first.already, again.already, again.message.id), (false, true, first.message.id));
    assert_eq!(refused(stage.platform.say(&ann, room, "k", say("Pay it twice.")).await), "key_taken");
    // The key is the speaker's own.
    assert!(!stage.platform.say(&person("bob"), room, "k", say("Pay it.")).await.unwrap().already);
    let both = || stage.platform.say(&ann, room, "race", say("Now."));
    let (one, other) = tokio::join!(both(), both());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.message.id == other.message.id, one.already != other.already), (true, true));
    assert_eq!(stage.messages(room).await.len(), 3);
}

/// Every change, at a store that does not say what became of a commit, that fails it, and that is away.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_unsure_doubles_nothing() {
    for fault in [Fault::AmbiguousCommitted, Fault::AmbiguousLost] {
        let stage = Stage::new();
        let room = stage.room().await;
        let ann = person("ann");
        let through = || stage.through(Arc::new(stage.store.scripted([Some(fault)])));
        let said = through().say(&ann, room, "", say("Once.")).await.unwrap();
        assert!(!said.already, "{fault:?}");
        let open = Open { actor: None, to: Vec::new(), reply_to: None, blocks: vec![text("a")] };
        let begun = through().begin(&ann, room, "k", open).await.unwrap().message;
        let ops = vec![BlockOp::Append { index: 0, text: "b".into() }];
        let updated = through().update(&ann, begun.id, Update { revision: 1, ops }).await.unwrap();
        assert_eq!(updated.revision, 2, "{fault:?}");
        let end = End { status: MessageStatus::Completed, error: None };
        through().end(&ann, begun.id, end).await.unwrap();
        through().commit(&ann, room, Handled::upto(2)).await.unwrap();
        let opened =
            through().open(&ann, "o", NewConversation { title: "T".into(), members: Vec::new() }).await.unwrap();
        assert!(!opened.1);
        expect![[r#"
            1 person/ann [completed]
                text Once.
            2 person/ann [completed]
                text ab
        "#]]
        .assert_eq(&stage.told(room).await);
        expect![[r#"
            conversation r1 Room
            message 1 person/ann Completed
            message 2 person/ann Streaming
            updated r2 1
            ended 2 r3 Completed
            read person/ann 2
        "#]]
        .assert_eq(&stage.feed(room).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_on_by_revisions() {
    let stage = Stage::new();
    let room = stage.room().await;
    let ann = person("ann");
    let open = Open { actor: None, to: Vec::new(), reply_to: None, blocks: vec![text("One")] };
    let begun = stage.platform.begin(&ann, room, "s", open.clone()).await.unwrap().message;
    assert!(stage.platform.begin(&ann, room, "s", open).await.unwrap().already);
    let append = |index, text: &str| BlockOp::Append { index, text: text.into() };
    let first = Update { revision: 1, ops: vec![append(0, ", two"), append(0, ", three")] };
    stage.platform.update(&ann, begun.id, first.clone()).await.unwrap();
    // The same again is no change; another one at the same revision, and one that skips, are conflicts.
    assert_eq!(stage.platform.update(&ann, begun.id, first).await.unwrap().revision, 2);
    let other = Update { revision: 1, ops: vec![append(0, "!")] };
    assert_eq!(refused(stage.platform.update(&ann, begun.id, other).await), "revision");
    assert_eq!(
        refused(stage.platform.update(&ann, begun.id, Update { revision: 9, ops: vec![append(0, "!")] }).await),
        "revision"
    );
    let tool = Block::Known(KnownBlock::Plan { steps: Vec::new() });
    let ops = vec![
        BlockOp::Push { block: text("A") },
        append(1, "B"),
        BlockOp::Set { index: 0, block: text("Uno") },
        append(0, "!"),
        BlockOp::Push { block: tool },
    ];
    stage.platform.update(&ann, begun.id, Update { revision: 2, ops }).await.unwrap();
    for (ops, wrong) in [
        (vec![append(2, "no text")], "invalid ops"),
        (vec![append(7, "not there")], "invalid ops"),
        (vec![BlockOp::Set { index: 3, block: text("x") }], "invalid ops"),
        (Vec::new(), "invalid ops"),
        (vec![append(0, &"x".repeat(2 << 20))], "too_large"),
    ] {
        assert_eq!(refused(stage.platform.update(&ann, begun.id, Update { revision: 3, ops }).await), wrong);
    }
    let somebody =
        stage.platform.update(&person("bob"), begun.id, Update { revision: 3, ops: vec![append(0, "!")] }).await;
    assert_eq!(refused(somebody), "forbidden");
    let error = Some(ErrorNote { code: "mine".into(), message: "It broke.".into() });
    let end = End { status: MessageStatus::Failed, error };
    stage.platform.end(&ann, begun.id, end.clone()).await.unwrap();
    stage.platform.end(&ann, begun.id, end).await.unwrap();
    let other = End { status: MessageStatus::Completed, error: None };
    assert_eq!(refused(stage.platform.end(&ann, begun.id, other).await), "message_final");
    assert_eq!(
        refused(stage.platform.update(&ann, begun.id, Update { revision: 4, ops: vec![append(0, "!")] }).await),
        "message_final"
    );
    expect![[r#"
        1 person/ann [failed]
            text Uno!
            text AB
            plan 
            ! mine It broke.
    "#]]
    .assert_eq(&stage.told(room).await);
    // It is found by what it says at its end.
    let found = stage.platform.search(&ann, "uno ab", None, 10).await.unwrap();
    assert_eq!(found.iter().map(|message| message.id).collect::<Vec<_>>(), [begun.id]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_said_is_refused_and_changes_nothing() {
    let stage = Stage::new();
    let room = stage.room().await;
    let ann = person("ann");
    let before = stage.feed(room).await;
    let with = |blocks: Vec<Block>| Say { blocks, ..say("") };
    let parsed = |json: &str| with(vec![serde_json::from_str(json).unwrap()]);
    let to = |actor: &str| Say { to: vec![actor.parse().unwrap()], ..say("Hi.") };
    let elsewhere = stage.open("bob", &[]).await.id;
    let other = stage.platform.say(&person("bob"), elsewhere, "", say("x")).await.unwrap().message.id;
    for (say, wrong) in [
        (with(Vec::new()), "invalid blocks"),
        (with(vec![text("x"); 101]), "invalid blocks"),
        (say(&"x".repeat(2 << 20)), "too_large"),
        (
            parsed(r#"{"type":"confirm","question":"qst_00000000000000000000000000000000","prompt":"x"}"#),
            "invalid blocks",
        ),
        (parsed(r#"{"type":"reply","anything":1}"#), "invalid blocks"),
        (parsed(r#"{"no":"type"}"#), "invalid blocks"),
        (to("person/eve"), "invalid to"),
        (to("operator/nobody"), "invalid to"),
        (Say { reply_to: Some(other), ..say("x") }, "invalid reply_to"),
        (Say { actor: Some("person/bob".parse().unwrap()), ..say("x") }, "forbidden"),
    ] {
        assert_eq!(refused(stage.platform.say(&ann, room, "", say).await), wrong);
    }
    let nobody = ConversationId([7; 16]);
    assert_eq!(refused(stage.platform.say(&ann, nobody, "", say("x")).await), "not_found");
    assert_eq!(refused(stage.platform.say(&person("eve"), room, "", say("x")).await), "not_found");
    let viewer = loopd_platform::Caller::new("person/ann".parse().unwrap(), loopd_protocol::Role::Viewer);
    assert_eq!(refused(stage.platform.say(&viewer, room, "", say("x")).await), "forbidden");
    assert_eq!(stage.feed(room).await, before);
    // What no build knows is kept as it came, and hostile text is text.
    let hostile = "<script>alert(1)</script> \u{202e}evil\u{0} ![x](https://evil.test/?q=1)";
    let later = parsed(r#"{"type":"hologram","depth":3}"#);
    stage.platform.say(&ann, room, "", later.clone()).await.unwrap();
    stage.platform.say(&ann, room, "", say(hostile)).await.unwrap();
    let said = stage.messages(room).await;
    assert_eq!((&said[0].blocks, said[1].blocks[0].words()), (&later.blocks, hostile));
}

#[tokio::test(start_paused = true)]
async fn who_is_no_member_sees_nothing() {
    let stage = Stage::new();
    let room = stage.room().await;
    let (ann, eve, router) = (person("ann"), person("eve"), operator("router"));
    let said = stage.platform.say(&ann, room, "", say("secret")).await.unwrap().message;
    let feed = FeedName::Conversation(room);
    assert_eq!(refused(stage.platform.conversation(&eve, room).await), "not_found");
    assert_eq!(refused(stage.platform.messages(&eve, room, Window::Latest, 1).await), "not_found");
    assert_eq!(refused(stage.platform.message(&eve, said.id).await), "not_found");
    assert_eq!(refused(stage.platform.poll(&eve, room, 1, false).await), "not_found");
    assert_eq!(refused(stage.platform.may_follow(&eve, &feed).await), "not_found");
    assert_eq!(refused(stage.platform.export(&eve, room).await), "not_found");
    assert_eq!(stage.platform.search(&eve, "secret", None, 10).await.unwrap(), []);
    assert_eq!(refused(stage.platform.search(&eve, "secret", Some(room), 10).await), "not_found");
    assert_eq!(refused(stage.platform.may_follow(&eve, &FeedName::Actor(ann.actor.clone())).await), "forbidden");
    assert_eq!(stage.platform.conversations(&eve, false, ALL).await.unwrap().items, []);
    assert_eq!(refused(stage.platform.conversation(&router, room).await), "not_found");
    // An Operator that is addressed has to read what it is asked, and gets its work conversation with it.
    let asked = Say { to: vec![router.actor.clone()], ..say("Do it.") };
    stage.platform.say(&ann, room, "", asked).await.unwrap();
    assert!(stage.platform.conversation(&router, room).await.unwrap().members.contains(&router.actor));
    let work = stage.platform.work_conversations(&ann, room).await.unwrap();
    assert_eq!((work.len(), work[0].work_of.as_ref().unwrap().conversation), (1, room));
    stage.platform.say(&router, work[0].id, "", say("Working.")).await.unwrap();
    stage.platform.say(&ann, room, "", Say { to: vec![router.actor.clone()], ..say("More.") }).await.unwrap();
    assert_eq!(stage.platform.work_conversations(&ann, room).await.unwrap().len(), 1);
    // It is not listed among the conversations themselves.
    assert_eq!(stage.platform.conversations(&ann, false, ALL).await.unwrap().items.len(), 1);
    let woken = stage.events(&FeedName::Actor(router.actor.clone())).await;
    assert_eq!(
        woken.iter().map(|event| stage::happened(&event.event)).collect::<Vec<_>>(),
        ["wake message", "wake message"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_conversation_changes_by_revision_and_goes_whole() {
    let stage = Stage::new();
    let room = stage.room().await;
    let (ann, bob) = (person("ann"), person("bob"));
    let title = |title: &str| ChangeConversation { title: Some(title.into()), archived: None };
    let changed = stage.platform.change(&ann, room, Some(1), title("New")).await.unwrap();
    assert_eq!((changed.title.as_str(), changed.revision), ("New", 2));
    assert_eq!(refused(stage.platform.change(&bob, room, Some(1), title("Other")).await), "revision");
    assert_eq!(refused(stage.platform.change(&bob, room, None, title(&"x".repeat(201))).await), "invalid title");
    let remove = |who: &str| MemberChange { add: Vec::new(), remove: vec![who.parse().unwrap()] };
    assert_eq!(refused(stage.platform.change_members(&bob, room, None, remove("person/ann")).await), "invalid remove");
    let add = MemberChange { add: vec!["person/eve".parse().unwrap()], remove: Vec::new() };
    stage.platform.change_members(&bob, room, None, add).await.unwrap();
    assert_eq!(refused(stage.platform.change_members(&bob, room, None, remove("person/eve")).await), "forbidden");
    stage.platform.change_members(&ann, room, None, remove("person/eve")).await.unwrap();
    assert_eq!(refused(stage.platform.conversation(&person("eve"), room).await), "not_found");
    let archive = ChangeConversation { title: None, archived: Some(true) };
    stage.platform.change(&ann, room, None, archive).await.unwrap();
    let listed = |archived| stage.platform.conversations(&bob, archived, ALL);
    assert_eq!((listed(false).await.unwrap().items.len(), listed(true).await.unwrap().items.len()), (0, 1));
    let said = stage.platform.say(&ann, room, "", say("Gone soon.")).await.unwrap().message;
    stage.platform.attach(&ann, room, "", ("a.txt", "text/plain"), b"x".to_vec()).await.unwrap();
    assert_eq!(refused(stage.platform.delete(&bob, room).await), "forbidden");
    stage.platform.delete(&ann, room).await.unwrap();
    assert_eq!(refused(stage.platform.message(&ann, said.id).await), "not_found");
    assert_eq!(refused(stage.platform.conversation(&admin(), room).await), "not_found");
    assert_eq!(stage.platform.search(&ann, "gone", None, 10).await.unwrap(), []);
    for table in [Table::Message, Table::Artifact, Table::Cursor] {
        let list = List { table, scope: RecordId(room.0), beyond: None, newest_first: false, limit: 10 };
        assert_eq!(stage.store.records(Query::List(list)).await.unwrap(), []);
    }
    // Whoever follows hears that it is gone, and nothing of what was in it.
    let told = stage.events(&FeedName::Conversation(room)).await;
    assert_eq!(told.iter().map(|event| stage::happened(&event.event)).collect::<Vec<_>>(), ["deleted"]);
    assert!(told[0].position > 1);
    let audit = stage.platform.audit(&admin(), ALL).await.unwrap().items;
    assert_eq!(audit[0].action, "conversation.delete");
}

#[tokio::test(start_paused = true)]
async fn the_latest_conversation_is_listed_first_page_by_page() {
    let stage = Stage::new();
    let mut rooms = Vec::new();
    for _ in 0..5 {
        rooms.push(stage.open("ann", &[]).await.id);
        tokio::time::advance(std::time::Duration::from_millis(5)).await;
    }
    stage.platform.say(&person("ann"), rooms[1], "", say("Up.")).await.unwrap();
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let page = stage.platform.conversations(&person("ann"), false, Paging { cursor, limit: 2 }).await.unwrap();
        listed.extend(page.items.into_iter().map(|conversation| conversation.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, [rooms[1], rooms[4], rooms[3], rooms[2], rooms[0]]);
    let odd = Paging { cursor: Some("1.zz".into()), limit: 2 };
    assert_eq!(refused(stage.platform.conversations(&person("ann"), false, odd).await), "invalid cursor");
}

#[tokio::test(start_paused = true)]
async fn files_are_kept_by_content_and_given_to_members_only() {
    let stage = Stage::new();
    let room = stage.room().await;
    let ann = person("ann");
    let (file, _) = stage.platform.attach(&ann, room, "", ("a.txt", "text/plain"), b"bytes\0".to_vec()).await.unwrap();
    let (again, bytes) = stage.platform.artifact(&person("bob"), file.id).await.unwrap();
    assert_eq!((again, bytes.as_slice()), (file.clone(), b"bytes\0".as_slice()));
    assert_eq!(refused(stage.platform.artifact(&person("eve"), file.id).await), "not_found");
    for name in ["", "..", "a/b", "a\\b", "a\u{202e}b", "a\nb"] {
        assert_eq!(
            refused(stage.platform.attach(&ann, room, "", (name, "text/plain"), Vec::new()).await),
            "invalid name"
        );
    }
    assert_eq!(refused(stage.platform.attach(&ann, room, "", ("a", "text"), Vec::new()).await), "invalid media_type");
    let large = vec![0; (32 << 20) + 1];
    assert_eq!(refused(stage.platform.attach(&ann, room, "", ("a", "text/plain"), large).await), "too_large");
}
