//! A folder with agents, the real server in it, and a model server outside of it that counts.

use loopd_client::{Client, Follow, Start, Told};
use loopd_protocol::{Block, ConversationId, Delta, Event, FeedEvent, KnownBlock, Message, MessageId, NewConversation};
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for what has to come.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} does not come"))
}

/// The server, which is killed and started again at the same address.
pub struct World {
    command: Vec<String>,
    folder: tempfile::TempDir,
    port: u16,
    server: Option<Child>,
    pub kills: u32,
}

impl World {
    /// A server with one agent, `harness/helper`.
    pub async fn new(agent: &str) -> Self {
        Self::with(&["serve"], &[("helper", agent.to_owned())]).await
    }

    /// A server that is started like this, with these agents.
    pub async fn with(command: &[&str], named: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let agents = folder.path().join("agents");
        std::fs::create_dir(&agents).expect("made");
        for (name, agent) in named {
            std::fs::write(agents.join(format!("{name}.yaml")), agent).expect("written");
        }
        // Nobody else takes it meanwhile: the system hands out others first.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
        let command = command.iter().map(|part| (*part).to_owned()).collect();
        let mut world = Self { command, folder, port, server: None, kills: 0 };
        world.start().await;
        world
    }

    /// Starts the server, and waits until it says that it serves.
    pub async fn start(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopd"));
        command
            .args(&self.command)
            .args(["--no-demo", "--agents", "agents", "--data", "data", "--addr"])
            .arg(format!("127.0.0.1:{}", self.port))
            .current_dir(self.folder.path())
            .env_remove("LOOPD_MODELS")
            .kill_on_drop(true)
            .stderr(Stdio::piped());
        let mut server = command.spawn().expect("loopd starts");
        let mut lines = BufReader::new(server.stderr.take().expect("piped")).lines();
        let serves = async {
            let mut said = String::new();
            while let Some(line) = lines.next_line().await.expect("text") {
                if line.contains("sign in") {
                    return;
                }
                said.push_str(&line);
                said.push('\n');
            }
            panic!("loopd ends instead of serving:\n{said}");
        };
        soon("the server", serves).await;
        // Who writes into a closed pipe ends.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                println!("  loopd: {line}");
            }
        });
        self.server = Some(server);
    }

    /// `kill -9`; it is gone afterwards.
    pub async fn kill(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.kill().await.expect("killed");
        self.kills += 1;
    }

    pub async fn kill_and_start(&mut self) {
        self.kill().await;
        self.start().await;
    }

    pub fn client(&self) -> Client {
        let token = std::fs::read_to_string(self.folder.path().join("data/admin.token")).expect("a token");
        Client::new(&format!("http://127.0.0.1:{}", self.port), Some(&token)).expect("an address")
    }

    pub async fn conversation(&self) -> ConversationId {
        let new = NewConversation { title: "e2e".to_owned(), members: Vec::new() };
        self.client().open("", &new).await.expect("opened").id
    }

    /// Follows a Conversation from its beginning, in a task of its own, through every kill.
    pub fn watch(&self, conversation: ConversationId) -> Watch {
        let feed = format!("conversation/{conversation}");
        let mut follow = Follow::new(self.client(), vec![feed], Start::Beginning);
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            // Ends when nobody listens any more.
            while let Ok(Some(told)) = follow.next().await {
                if sender.send(told).is_err() {
                    return;
                }
            }
        });
        Watch { told: receiver, seen: Seen::default() }
    }
}

/// What one stream has told, and what of it was wrong.
#[derive(Default)]
pub struct Seen {
    pub events: Vec<FeedEvent>,
    /// Text as it arrived, by its Message and part.
    pub deltas: BTreeMap<(MessageId, String), String>,
    pub losses: u32,
}

pub struct Watch {
    told: tokio::sync::mpsc::UnboundedReceiver<Told>,
    pub seen: Seen,
}

impl Watch {
    /// Reads on until an event is what is looked for.
    pub async fn until<T>(&mut self, what: &str, mut look: impl FnMut(&Event) -> Option<T>) -> T {
        let found = async {
            loop {
                let told = self.told.recv().await.expect("the stream goes on");
                self.seen.note(&told);
                if let Told::Event(event) = &told
                    && let Some(found) = look(&event.event)
                {
                    return found;
                }
            }
        };
        soon(what, found).await
    }

    /// Reads on until some text of an answer is there.
    pub async fn until_text(&mut self) -> MessageId {
        let found = async {
            loop {
                let told = self.told.recv().await.expect("the stream goes on");
                self.seen.note(&told);
                if let Told::Delta(delta) = told
                    && !delta.text.is_empty()
                {
                    return delta.message;
                }
            }
        };
        soon("text", found).await
    }

    /// Reads on until this many answers of agents have ended.
    pub async fn until_answers(&mut self, wanted: usize) {
        let mut ended = self.seen.ended();
        while ended < wanted {
            self.until("the end of an answer", |event| matches!(event, Event::MessageEnded { .. }).then_some(())).await;
            ended += 1;
        }
    }
}

impl Seen {
    fn note(&mut self, told: &Told) {
        match told {
            Told::Event(event) => {
                // Every event once, none left out.
                assert_eq!(event.position, self.events.len() as u64 + 1, "a stream that jumps: {event:?}");
                self.events.push((**event).clone());
            }
            Told::Delta(delta) => self.text(delta),
            Told::Lost(_) => self.losses += 1,
            Told::Hello(_) => {}
            Told::Reset(positions) => panic!("events are gone: {positions:?}"),
            Told::Closed { feed, code } => panic!("{feed} is closed: {code}"),
        }
    }

    fn text(&mut self, delta: &Delta) {
        let text = self.deltas.entry((delta.message, delta.part.clone())).or_default();
        let at = usize::try_from(delta.offset).expect("small");
        assert!(at <= text.len(), "text is left out before {delta:?}");
        text.truncate(at);
        text.push_str(&delta.text);
    }

    fn ended(&self) -> usize {
        self.events.iter().filter(|event| matches!(event.event, Event::MessageEnded { .. })).count()
    }
}

/// The text of an answer.
pub fn result_of(message: &Message) -> String {
    let result = |block: &Block| match block {
        Block::Known(KnownBlock::Result { text: Some(text), .. }) => Some(text.clone()),
        _ => None,
    };
    let results: Vec<_> = message.blocks.iter().filter_map(result).collect();
    assert_eq!(results.len(), 1, "one result: {message:?}");
    results.concat()
}
