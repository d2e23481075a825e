//! The same Operator as a process of its own, against a server that listens on 127.0.0.1.

use crate::script::{Script, words};
use crate::world::{World, answer_to, router};
use loopd_client::{Client, Follow, Start, Told};
use loopd_inside::kit::{Fate, Fated, Process, Running};
use loopd_operator::{Desk, Error, Http, Place, markdown};
use loopd_platform::Caller;
use loopd_protocol::{Act, Event, NewLease, NewToken, QuestionStatus, Role, Say, Turn};
use loopd_server::{Server, ServerConfig};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Longer than anything here takes: what does not come by then does not come.
const NEVER: Duration = Duration::from_secs(60);

struct Serving {
    world: World,
    address: String,
    server: JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Serving {
    async fn new() -> Self {
        let world = World::new().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let config = ServerConfig::new([1; 16]).unwrap();
        let server = Server::new(world.engine().clone(), config);
        let server = tokio::spawn(async move { drop(server.serve(listener, std::future::pending()).await) });
        Self { world, address, server }
    }

    async fn client(&self, actor: &str, role: Role) -> Client {
        let root = Caller::new("person/root".parse().unwrap(), Role::Admin);
        let new = NewToken { name: String::new(), actor: actor.parse().unwrap(), roles: vec![role], days: None };
        let secret = self.world.platform().make_token(&root, "", new).await.unwrap().secret;
        Client::new(&self.address, Some(&secret)).unwrap()
    }

    async fn desk(&self) -> Arc<dyn Desk> {
        Arc::new(Http::new(self.client("operator/router", Role::Operator).await))
    }

    async fn start(&self, fated: Option<Fated>) -> Running<Script> {
        let process = Process { fated, ..Process::named("one") };
        Running::start(self.desk().await, &router(), Script::named("one"), process)
    }

    /// ann says something and answers what she is asked, until she is answered.
    async fn talk(&self, text: &str) -> String {
        let (client, room) = (self.client("person/ann", Role::Member).await, self.world.room);
        let mut follow = Follow::new(client.clone(), vec![format!("conversation/{room}")], Start::Now);
        while !matches!(follow.next().await.unwrap(), Some(Told::Hello(_))) {}
        let blocks = markdown(text).blocks;
        client.say(room, "", &Say { actor: None, to: vec![router()], reply_to: None, blocks }).await.unwrap();
        loop {
            let Some(told) = follow.next().await.unwrap() else { panic!("the stream has ended") };
            let Told::Event(event) = told else { continue };
            match event.event {
                Event::Question { question } if question.status == QuestionStatus::Open => {
                    client.answer(question.id, &answer_to(&question)).await.unwrap();
                }
                Event::Message { message } if message.from == router() && message.reply_to.is_some() => {
                    return words(&message);
                }
                _ => {}
            }
        }
    }
}

async fn check(fated: Option<Fated>) {
    let serving = Serving::new().await;
    let first = serving.start(fated).await;
    let next = async {
        if !fated.is_some_and(|fated| fated.fate().is_death()) {
            return std::future::pending().await;
        }
        first.happened().await;
        first.kill();
        let second = serving.start(None).await;
        second.happened().await;
    };
    let answer = tokio::select! {
        answer = tokio::time::timeout(NEVER, serving.talk("all of it")) => answer.unwrap(),
        () = next => panic!("nothing is to happen to the second"),
    };
    assert_eq!(answer, "Done: one because, true.", "{fated:?}");
    let there = serving.world.told(serving.world.room).await;
    let counted = |what: &str| there.matches(what).count();
    let of = [counted("I begin."), counted("ask W"), counted("confirm"), counted("Done:"), counted("call of steps")];
    assert_eq!((of, serving.world.paid.load(Ordering::SeqCst)), ([1, 2, 1, 1, 2], 2), "{fated:?}: {there}");
}

#[tokio::test]
async fn the_same_script_runs_in_a_process_of_its_own() {
    check(None).await;
}

#[tokio::test]
async fn and_may_die_at_every_turn() {
    for number in 0..5 {
        for fate in [Fate::DieBefore, Fate::DieAfter, Fate::LoseAfter] {
            check(Some(fate.at("turn", number))).await;
        }
    }
}

#[tokio::test]
async fn refusals_are_the_same_as_in_process() {
    let serving = Serving::new().await;
    let room = serving.world.room;
    let client = serving.client("person/ann", Role::Member).await;
    let hello = Say { to: vec![router()], ..markdown("Hello") };
    client.say(room, "", &hello).await.unwrap();
    let over_http = serving.desk().await;
    let inside = serving.world.desk();
    let wish = NewLease { holder: "one".into(), epoch: None, lease_s: 30 };
    assert_eq!(over_http.lease(room, &wish).await.unwrap().epoch, 1);
    assert_eq!(inside.lease(room, &wish).await.unwrap().epoch, 2);
    let turn = |epoch: u64, key: &str, text: &str| Turn {
        epoch,
        acts: vec![Act::Say { key: key.into(), place: Place::Work, say: markdown(text), calls: Vec::new() }],
        handled: None,
    };
    assert!(inside.turn(room, &turn(2, "a", "a")).await.is_ok());
    let nowhere = loopd_protocol::ConversationId([9; 16]);
    for (number, desk) in [&over_http, &inside].into_iter().enumerate() {
        let refused = async |turn: Turn| match desk.turn(room, &turn).await.unwrap_err() {
            Error::Conflict { code, .. } => format!("conflict {code}"),
            Error::Refused { code, .. } => format!("refused {code}"),
            other => format!("{other:?}"),
        };
        assert_eq!(refused(turn(1, "b", "b")).await, "conflict stale_epoch", "{number}");
        assert_eq!(refused(turn(2, "a", "other")).await, "conflict key_taken", "{number}");
        assert_eq!(refused(turn(2, " ", "b")).await, "refused invalid", "{number}");
        assert_eq!(desk.poll(nowhere, 1).await.unwrap_err().code(), "not_found", "{number}");
        assert_eq!(
            desk.listen("actor/person/ann").await.err().map(|error| error.code().to_owned()),
            if number == 0 { None } else { Some("forbidden".to_owned()) }
        );
    }
    // Nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let desk = Http::new(Client::new(&format!("http://{address}"), None).unwrap());
    assert!(desk.poll(room, 1).await.unwrap_err().is_retryable());
}
