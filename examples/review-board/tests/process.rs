//! The board as a process of its own that is killed before every step, against a server that listens.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use loopd_inside::kit::{Agent, World};
use loopd_platform::Caller;
use loopd_protocol::{NewToken, Role};
use loopd_server::{Server, ServerConfig};
use std::path::Path;
use std::process::{Child, Command};
use tokio::net::TcpListener;

const BOARD: &str = "operator/review-board";

/// The process. Dropped, it is killed.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

struct Serving {
    world: World,
    address: String,
    token: String,
}

impl Serving {
    async fn new() -> Self {
        let agents = [
            Agent::from_manifest(include_str!("../agents/for.yaml"), include_str!("../agents/for.json")),
            Agent::from_manifest(include_str!("../agents/against.yaml"), include_str!("../agents/against.json")),
        ];
        let world = World::new(agents).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = Server::new(world.engine().clone(), ServerConfig::new([1; 16]).unwrap());
        tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
        let root = Caller::new("person/root".parse().unwrap(), Role::Admin);
        let roles = vec![Role::Operator];
        let new = NewToken { name: String::new(), actor: BOARD.parse().unwrap(), roles, days: None };
        let token = world.platform().make_token(&root, "", new).await.unwrap().secret;
        Self { world, address, token }
    }

    fn start(&self, folder: &Path) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_review-board"));
        command.env("LOOPD_SERVER", &self.address).env("LOOPD_TOKEN", &self.token);
        command.env("REVIEW_DECISIONS", folder).env("REVIEW_ROUNDS", "2");
        Process(command.spawn().unwrap())
    }
}

/// A proposal from its beginning to its end: what was told, and the file. Where it is killed, no process does more than
/// one step.
async fn told(is_killed: bool) -> (String, String) {
    let serving = Serving::new().await;
    let (world, folder) = (&serving.world, tempfile::tempdir().unwrap());
    world.announce(BOARD).await;
    let room = world.room().await;
    let said = world.say(room, BOARD, "Delete old backups by a program.").await;
    let mut process = Some(serving.start(folder.path()));
    let kill = |process: &mut Option<Process>| {
        if is_killed {
            drop(process.take());
            *process = Some(serving.start(folder.path()));
        }
    };
    for number in 0..4 {
        world.call(room, number).await;
        kill(&mut process);
    }
    let question = world.question(room).await;
    kill(&mut process);
    world.answer(&question, "accept").await;
    kill(&mut process);
    let answer = world.answer_of(&said).await;
    kill(&mut process);
    let name = format!("{}.md", said.id);
    assert_eq!(answer, format!("Decided: **accept**. It is recorded in `{name}`."));
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, [name.as_str()]);
    let page = std::fs::read_to_string(folder.path().join(&name)).unwrap();
    let told = world.told(room).await.replace(&said.id.to_string(), "PROPOSAL");
    (told, page.split_once("## Proposal").unwrap().1.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_before_every_step_it_tells_the_same_and_writes_one_file() {
    let whole = told(false).await;
    assert!(whole.0.contains("for was asked 2 times\nagainst was asked 2 times\n"), "{}", whole.0);
    assert_eq!(told(true).await, whole);
}
