//! The real program in a folder of its own, on a free port of loopback.

use loopd_client::{Client, Follow, Start, Told};
use loopd_protocol::{Block, ConversationId, Event, FeedEvent, KnownBlock, NewConversation, Said, Say};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder, and what is started in it.
pub struct World {
    dir: tempfile::TempDir,
}

/// A server that runs.
pub struct Served {
    child: Child,
    /// Where it answers.
    pub url: String,
    /// What it said before it served.
    pub greeting: Vec<String>,
    lines: Receiver<String>,
}

/// What an ended process said.
pub struct Done {
    pub code: i32,
    pub err: String,
}

impl World {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("written");
    }

    /// An agent on a scripted model, in the folder `agents`.
    pub fn agent(&self, name: &str, script: &str) {
        self.write(
            &format!("agents/{name}.yaml"),
            format!(
                "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name} }}\nspec:\n  \
                 model: {{ provider: demo, script: {name}.json }}\n  tools: [{{ use: ask }}]\n"
            ),
        );
        self.write(&format!("agents/{name}.json"), script);
    }

    /// The program with these arguments, knowing nothing of the machine that it runs on.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopd"));
        command.args(args).current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command.envs([("TZ", "UTC"), ("PATH", "/usr/bin:/bin")]);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Done {
        self.done(self.command(args).output().expect("it starts"))
    }

    fn done(&self, output: Output) -> Done {
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
        let err = String::from_utf8(output.stderr).expect("text");
        Done { code, err: err.replace(&self.dir.path().display().to_string(), "DIR") }
    }

    /// Starts a server and waits until it serves.
    #[track_caller]
    pub fn serve(&self, args: &[&str]) -> Served {
        let mut args = args.to_vec();
        args.insert(0, "serve");
        if !args.contains(&"--addr") {
            args.extend(["--addr", "127.0.0.1:0"]);
        }
        let mut child = self.command(&args).stderr(Stdio::piped()).spawn().expect("it starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        });
        let mut greeting = Vec::new();
        loop {
            let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not serve: {greeting:?}"));
            let is_last = line.starts_with("sign in");
            greeting.push(line);
            if is_last {
                break;
            }
        }
        let words = greeting.iter().find_map(|line| line.split(" serves ").nth(1)).expect("it says where");
        let url = words.split(' ').next().expect("an address").to_owned();
        Served { child, url, greeting, lines }
    }

    /// The owner's token.
    pub fn token(&self) -> String {
        std::fs::read_to_string(self.path(".loopd/admin.token")).expect("a token")
    }

    /// A client of this server.
    pub fn client(&self, served: &Served) -> Client {
        Client::new(&served.url, Some(&self.token())).expect("an address")
    }
}

impl Served {
    /// HOST:PORT.
    pub fn addr(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// The next line of stderr.
    #[track_caller]
    pub fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Waits for the end; the exit code, a signal as shells count it.
    pub fn end(mut self) -> i32 {
        let status = self.child.wait().expect("it ends");
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
    }

    /// kill -9.
    pub fn kill(self) {
        self.signal("KILL");
        assert_eq!(self.end(), 137);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does async work with a limit.
#[track_caller]
pub fn within<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("in time") })
}

/// A Conversation, and in it a text to an agent.
pub async fn say(client: &Client, to: &str, text: &str) -> (ConversationId, Said) {
    let new = NewConversation { title: "A test".to_owned(), members: Vec::new() };
    let conversation = client.open("", &new).await.expect("opened").id;
    let to = vec![to.parse().expect("an actor")];
    let blocks = vec![Block::Known(KnownBlock::Text { text: text.to_owned() })];
    let said = client.say(conversation, "", &Say { actor: None, to, reply_to: None, blocks }).await.expect("said");
    (conversation, said)
}

/// A Conversation's Feed from its start.
pub fn follow(client: &Client, conversation: ConversationId) -> Follow {
    Follow::new(client.clone(), vec![format!("conversation/{conversation}")], Start::Beginning)
}

/// Listens until an event fits; what came before it, and whether the connection was lost meanwhile.
pub async fn until(follow: &mut Follow, fits: impl Fn(&Event) -> bool) -> (Vec<FeedEvent>, bool) {
    let (mut events, mut lost) = (Vec::new(), false);
    loop {
        match follow.next().await.expect("goes on").expect("open") {
            Told::Event(event) => {
                let last = fits(&event.event);
                events.push(*event);
                if last {
                    return (events, lost);
                }
            }
            Told::Lost(_) => lost = true,
            Told::Hello(_) | Told::Delta(_) | Told::Reset(_) | Told::Closed { .. } => {}
        }
    }
}
