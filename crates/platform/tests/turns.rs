//! Turns: all of one or nothing of it, once per key, under the newest Epoch only.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod stage;

use expect_test::{Expect, expect};
use loopd_platform::{Caller, Engine};
use loopd_protocol::{Acted, ConversationId, Lease, NewLease, Place, Turned};
use loopd_store::memory::Fault;
use serde_json::{Value, json};
use stage::agents::{Paid, Process};
use stage::between::Between;
use stage::{ALL, Stage, operator, person, refused, say};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

struct Room {
    stage: Stage,
    process: Process,
    id: ConversationId,
    op: Caller,
}

impl Room {
    /// ann, bob and the Operator `router`, to whom ann has said something.
    async fn new() -> Self {
        Self::with(loopd_platform::Config::default()).await
    }

    async fn with(config: loopd_platform::Config) -> Self {
        let stage = Stage::with(config);
        let process = stage.process(&Paid::default()).await;
        let id = stage.room().await;
        let say = loopd_protocol::Say { to: vec!["operator/router".parse().unwrap()], ..say("Hello?") };
        stage.platform.say(&person("ann"), id, "", say).await.unwrap();
        Self { stage, process, id, op: operator("router") }
    }

    async fn lease(&self, holder: &str, epoch: Option<u64>, lease_s: u32) -> Lease {
        let wish = NewLease { holder: holder.to_owned(), epoch, lease_s };
        self.stage.platform.lease(&self.op, self.id, wish).await.unwrap()
    }

    async fn turn(&self, turn: Value) -> String {
        self.turn_at(&self.process.engine, turn).await
    }

    async fn turn_at(&self, engine: &Engine, turn: Value) -> String {
        match engine.turn(&self.op, self.id, serde_json::from_value(turn).unwrap()).await {
            Ok(turned) => brief(&turned),
            Err(error) => format!("{} ({error})", refused(Err::<(), _>(error.clone()))),
        }
    }

    /// What the turns do, one after the other, and what is there then.
    async fn check(&self, turns: &[Value], expected: Expect) {
        let mut told = String::new();
        for turn in turns {
            writeln!(told, "{}", self.turn(turn.clone()).await).unwrap();
        }
        expected.assert_eq(&format!("{told}{}", self.there().await));
    }

    /// Messages, questions and calls, here and at work.
    async fn there(&self) -> String {
        let mut told = String::new();
        let works = self.stage.platform.work_conversations(&self.op, self.id).await.unwrap();
        let mine = works.iter().filter(|work| work.organiser == self.op.actor).map(|work| work.id);
        for room in std::iter::once(self.id).chain(mine) {
            let calls = self.process.engine.harness_calls(&self.op, room, ALL).await.unwrap().items.len();
            let open = self.stage.platform.questions(&person("ann"), Some(room), ALL).await.unwrap().items.len();
            let said: Vec<_> = self.stage.messages(room).await.iter().map(|message| message.from.to_string()).collect();
            let members = self.stage.platform.conversation(&self.op, room).await.unwrap().members.len();
            writeln!(told, "{members} members, {calls} calls, {open} open questions: {}", said.join(" ")).unwrap();
        }
        told
    }
}

fn brief(turned: &Turned) -> String {
    let again = |already: &bool| if *already { " already" } else { "" };
    let act = |act: &Acted| match act {
        Acted::Say { message, already } => format!("said {}{}", message.seq, again(already)),
        Acted::Call { already, .. } => format!("called{}", again(already)),
        Acted::Ask { already, .. } => format!("asked{}", again(already)),
    };
    let acts: Vec<_> = turned.acts.iter().map(act).collect();
    format!("{}; handled {} {:?}", acts.join(", "), turned.handled.seq, turned.handled.open)
}

fn speak(key: &str, place: Place, text: &str) -> Value {
    json!({"act": "say", "key": key, "place": place, "say": {"blocks": [{"type": "text", "text": text}]}})
}

fn call(key: &str, place: Place, target: &str) -> Value {
    json!({"act": "call", "key": key, "place": place, "call": {"target": target, "prompt": "wait done"}})
}

fn ask(key: &str, place: Place) -> Value {
    json!({"act": "ask", "key": key, "place": place, "ask": {"kind": "ask", "prompt": "Which?", "timeout_s": 60}})
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_done_whole_and_once() {
    let room = Room::new().await;
    room.lease("one", None, 30).await;
    let all = json!({"epoch": 1, "handled": {"seq": 1}, "acts": [
        speak("a", Place::Here, "I work on it."), speak("b", Place::Work, "Plan."),
        call("c", Place::Work, "steps"), ask("d", Place::Here), ask("d", Place::Work)]});
    let more =
        json!({"epoch": 1, "acts": [speak("a", Place::Here, "I work on it."), speak("e", Place::Here, "More.")]});
    let expected = expect![[r#"
        said 2, said 1, called, asked, asked; handled 1 []
        said 2 already, said 1 already, called already, asked already, asked already; handled 1 []
        said 2 already, said 4; handled 1 []
        3 members, 0 calls, 1 open questions: person/ann operator/router operator/router operator/router
        1 members, 1 calls, 1 open questions: operator/router harness/steps operator/router
    "#]];
    room.check(&[all.clone(), all, more], expected).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_opens_the_work_conversation_and_lets_operators_join_once() {
    let room = Room::new().await;
    for name in ["one", "two"] {
        let caller = operator(name);
        let new = serde_json::from_value(json!({"name": name})).unwrap();
        room.stage.platform.register(&caller, &caller.actor, new).await.unwrap();
    }
    let id = room.stage.open("ann", &["operator/router"]).await.id;
    let room = Room { id, ..room };
    let hand = |key: &str, to: &str| json!({"act": "say", "key": key, "say": {"to": [to], "blocks": [{"type": "text", "text": "Yours."}]}});
    room.lease("one", None, 30).await;
    let turn = json!({"epoch": 1, "acts": [
        hand("a", "operator/one"), hand("b", "operator/two"), hand("c", "operator/one"), hand("d", "operator/router"),
        speak("e", Place::Work, "Plan."), speak("f", Place::Work, "More.")]});
    let expected = expect![[r#"
        said 1, said 2, said 3, said 4, said 1, said 2; handled 0 []
        4 members, 0 calls, 0 open questions: operator/router operator/router operator/router operator/router
        1 members, 0 calls, 0 open questions: operator/router operator/router
    "#]];
    room.check(&[turn], expected).await;
    let works = room.stage.platform.work_conversations(&room.op, id).await.unwrap();
    for work in works {
        let feed = room.stage.feed(work.id).await;
        assert_eq!(feed.matches("conversation r1").count(), 1, "{feed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_refused_changes_nothing() {
    let room = Room::new().await;
    room.lease("one", None, 30).await;
    room.turn(json!({"epoch": 1, "acts": [speak("a", Place::Here, "x")]})).await;
    let first = |act: Value| json!({"epoch": 1, "handled": {"seq": 1}, "acts": [speak("z", Place::Here, "z"), speak("y", Place::Work, "y"), act]});
    let long = "k".repeat(201);
    let turns = [
        first(speak("a", Place::Here, "other words")),
        first(call("c", Place::Here, "nobody")),
        first(speak("z", Place::Here, "twice")),
        first(speak("", Place::Here, "x")),
        first(speak(&long, Place::Here, "x")),
        first(speak("a b", Place::Here, "x")),
        first(
            json!({"act": "say", "key": "t", "say": {"to": ["person/eve"], "blocks": [{"type": "text", "text": "x"}]}}),
        ),
        first(
            json!({"act": "say", "key": "t", "say": {"actor": "operator/other", "blocks": [{"type": "text", "text": "x"}]}}),
        ),
        first(json!({"act": "ask", "key": "t", "ask": {"kind": "ask", "prompt": "?", "timeout_s": 0}})),
        json!({"epoch": 1, "handled": {"seq": 9}, "acts": [speak("z", Place::Here, "z")]}),
        json!({"epoch": 0}),
        json!({"epoch": 2, "acts": [speak("z", Place::Here, "z")]}),
        json!({"epoch": 1, "acts": (0..51).map(|n| speak(&n.to_string(), Place::Here, "x")).collect::<Vec<_>>()}),
    ];
    room.check(
        &turns,
        expect![[r#"
        key_taken (act `a`: the key has said something else in this conversation)
        not_found (there is no target nobody)
        invalid acts (acts: `z`: there twice)
        invalid acts (acts: a key has 1 to 200 visible ASCII characters, without spaces)
        invalid acts (acts: a key has 1 to 200 visible ASCII characters, without spaces)
        invalid acts (acts: a key has 1 to 200 visible ASCII characters, without spaces)
        invalid to (to: act `t`: person/eve is no member of this conversation)
        forbidden (operator/router may not speak as operator/other)
        invalid timeout_s (timeout_s: act `t`: 1 second to 30 days)
        invalid seq (seq: the conversation has 2 messages)
        invalid epoch (epoch: that of a lease: 1 or more)
        stale_epoch (the turn is of the epoch 2, and the lease of the epoch 1)
        invalid acts (acts: at most 50)
        3 members, 0 calls, 0 open questions: person/ann operator/router
        1 members, 0 calls, 0 open questions: 
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn calls_beyond_the_capacity_take_the_whole_turn_with_them() {
    let config = loopd_platform::Config { slots: 1, target_slots: 1, queue: 1, ..loopd_platform::Config::default() };
    let room = Room::with(config).await;
    room.lease("one", None, 30).await;
    let calls = |keys: &[&str]| {
        let mut acts: Vec<_> = keys.iter().map(|key| call(key, Place::Work, "steps")).collect();
        acts.push(speak("s", Place::Here, "s"));
        json!({"epoch": 1, "acts": acts, "handled": {"seq": 1}})
    };
    room.check(
        &[calls(&["a", "b", "c"]), calls(&["a", "b"]), calls(&["a", "b"])],
        expect![[r#"
        capacity (calls that have not ended is full; nothing was accepted)
        called, called, said 2; handled 1 []
        called already, called already, said 2 already; handled 1 []
        3 members, 0 calls, 0 open questions: person/ann operator/router
        1 members, 2 calls, 0 open questions: harness/steps harness/steps
    "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stale_process_commits_nothing_and_may_repeat_what_it_did() {
    let room = Room::new().await;
    let mut told = String::new();
    let mut say = |line: String| writeln!(told, "{line}").unwrap();
    let shown = |lease: Lease| format!("{} {} e{} {}ms", lease.granted, lease.holder, lease.epoch, lease.expires_in_ms);
    let turn = |epoch: u64, key: &str| json!({"epoch": epoch, "acts": [speak(key, Place::Here, key)]});
    say(room.turn(turn(1, "never")).await);
    say(shown(room.lease("one", None, 30).await));
    say(room.turn(turn(1, "a")).await);
    say(shown(room.lease("two", None, 30).await));
    tokio::time::advance(Duration::from_secs(20)).await;
    // A turn renews it.
    say(room.turn(turn(1, "b")).await);
    tokio::time::advance(Duration::from_secs(20)).await;
    say(shown(room.lease("two", None, 30).await));
    tokio::time::advance(Duration::from_secs(20)).await;
    // It is over, and nobody else has it.
    say(room.turn(turn(1, "c")).await);
    tokio::time::advance(Duration::from_secs(40)).await;
    say(shown(room.lease("two", None, 30).await));
    say(room.turn(turn(1, "d")).await);
    say(room.turn(turn(1, "a")).await);
    say(shown(room.lease("one", Some(1), 30).await));
    say(shown(room.lease("one", Some(1), 0).await));
    say(shown(room.lease("two", Some(2), 60).await));
    say(shown(room.lease("two", Some(2), 0).await));
    say(shown(room.lease("two", Some(2), 0).await));
    say(shown(room.lease("one", None, 30).await));
    // The same name again is the same process, started again.
    say(shown(room.lease("one", None, 30).await));
    say(room.turn(turn(3, "e")).await);
    say(room.turn(turn(4, "e")).await);
    let expected = expect![[r#"
        stale_epoch (the turn is of the epoch 1, and the lease of the epoch 0)
        true one e1 30000ms
        said 2; handled 0 []
        false one e1 30000ms
        said 3; handled 0 []
        false one e1 10000ms
        said 4; handled 0 []
        true two e2 30000ms
        stale_epoch (the turn is of the epoch 1, and the lease of the epoch 2)
        said 2 already; handled 0 []
        false two e2 30000ms
        false two e2 30000ms
        true two e2 60000ms
        true two e2 0ms
        true two e2 0ms
        true one e3 30000ms
        true one e4 30000ms
        stale_epoch (the turn is of the epoch 3, and the lease of the epoch 4)
        said 5; handled 0 []
    "#]];
    expected.assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_taken_between_decision_and_commit_fences() {
    let room = Room::new().await;
    room.lease("one", None, 30).await;
    let (platform, op, id) = (room.stage.platform.clone(), room.op.clone(), room.id);
    let taken = async move {
        let wish = NewLease { holder: "one".to_owned(), epoch: None, lease_s: 30 };
        assert_eq!(platform.lease(&op, id, wish).await.unwrap().epoch, 2);
    };
    let store = Arc::new(Between::new(&room.stage.store, |batch| batch.writes.len() > 3, taken));
    let process = room.stage.process_over(store.clone(), &Paid::default(), Vec::new()).await.unwrap();
    let turn = json!({"epoch": 1, "acts": [speak("a", Place::Here, "a")], "handled": {"seq": 1}});
    let refused = room.turn_at(&process.engine, turn).await;
    assert!(store.has_happened() && refused.starts_with("stale_epoch"), "{refused}");
    assert_eq!(room.there().await.lines().next(), Some("3 members, 0 calls, 0 open questions: person/ann"));
    process.engine.drain().await;
}

#[tokio::test(start_paused = true)]
async fn a_commit_of_which_nobody_knows_is_one_commit() {
    for fault in [Fault::AmbiguousCommitted, Fault::AmbiguousLost] {
        let room = Room::new().await;
        room.lease("one", None, 30).await;
        let mut left = Some(fault);
        let store = room.stage.store.faulty(move |batch| {
            let is_turn = batch.writes.len() > 5;
            if is_turn { left.take() } else { None }
        });
        let process = room.stage.process_over(Arc::new(store), &Paid::default(), Vec::new()).await.unwrap();
        let turn = json!({"epoch": 1, "handled": {"seq": 1}, "acts": [
            speak("a", Place::Here, "x"), call("c", Place::Work, "steps"), ask("d", Place::Here)]});
        let done = room.turn_at(&process.engine, turn.clone()).await;
        assert_eq!(done, "said 2, called, asked; handled 1 []", "{fault:?}");
        let again = room.turn_at(&process.engine, turn).await;
        assert_eq!(again, "said 2 already, called already, asked already; handled 1 []", "{fault:?}");
        process.engine.drain().await;
    }
}

#[tokio::test(start_paused = true)]
async fn keys_are_found_and_nothing_of_others() {
    let room = Room::new().await;
    room.lease("one", None, 30).await;
    let role = json!({"act": "say", "key": "k", "say": {"actor": "operator/router/plan", "blocks": [{"type": "text", "text": "r"}]}});
    let turn = json!({"epoch": 1, "acts": [speak("k", Place::Here, "k"), role, call("k", Place::Work, "steps"), ask("k", Place::Work)]});
    room.turn(turn).await;
    let keyed = async |place, actor: Option<&str>, keys: &str| {
        let actor = actor.map(|actor| actor.parse().unwrap());
        let keys: Vec<_> = keys.split(' ').map(str::to_owned).collect();
        let shown = |keyed: &loopd_protocol::Keyed| {
            let message = keyed.message.as_ref().map(|message| message.seq);
            format!("{message:?} {} {}", keyed.call.is_some(), keyed.question.is_some())
        };
        match room.process.engine.keyed(&room.op, room.id, (place, actor, &keys)).await {
            Ok(keyed) => keyed.iter().map(shown).collect::<Vec<_>>().join(", "),
            Err(error) => error.code().to_owned(),
        }
    };
    assert_eq!(keyed(Place::Here, None, "k").await, "Some(2) false false");
    assert_eq!(keyed(Place::Here, Some("operator/router/plan"), "k").await, "Some(3) false false");
    assert_eq!(keyed(Place::Work, None, "k").await, "None true true");
    assert_eq!(keyed(Place::Here, None, "other").await, "None false false");
    assert_eq!(keyed(Place::Here, None, "other k").await, "None false false, Some(2) false false");
    for wrong in ["", "a  b", &["k"; 51].join(" ")] {
        assert_eq!(keyed(Place::Here, None, wrong).await, "invalid", "{wrong:?}");
    }
    assert_eq!(keyed(Place::Here, Some("person/ann"), "k").await, "forbidden");
}

#[tokio::test(start_paused = true)]
async fn what_is_unhandled_is_listed_until_it_is_handled() {
    let room = Room::new().await;
    let unhandled = async || {
        let page = room.stage.platform.unhandled(&room.op, ALL).await.unwrap();
        page.items.iter().map(|wake| wake.conversation == room.id).collect::<Vec<_>>()
    };
    assert_eq!(unhandled().await, [true]);
    room.lease("one", None, 30).await;
    // What the Operator itself says, here and at work, is nothing for it.
    room.turn(json!({"epoch": 1, "handled": {"seq": 1}, "acts": [
        speak("a", Place::Here, "x"), call("b", Place::Work, "steps")]}))
        .await;
    assert!(unhandled().await.is_empty());
    let to_bob = loopd_protocol::Say { to: vec!["person/bob".parse().unwrap()], ..say("psst") };
    room.stage.platform.say(&person("ann"), room.id, "", to_bob).await.unwrap();
    assert!(unhandled().await.is_empty());
    let begun = serde_json::from_value(json!({"blocks": [{"type": "text", "text": "and"}]})).unwrap();
    let open = room.stage.platform.begin(&person("ann"), room.id, "", begun).await.unwrap().message;
    room.turn(json!({"epoch": 1, "handled": {"seq": open.seq, "open": [open.seq]}})).await;
    assert!(unhandled().await.is_empty());
    let end = serde_json::from_value(json!({"status": "completed"})).unwrap();
    room.stage.platform.end(&person("ann"), open.id, end).await.unwrap();
    assert_eq!(unhandled().await, [true]);
}
