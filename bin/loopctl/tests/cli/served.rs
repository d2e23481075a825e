//! A real `loopd serve` in the folder of a world.

use crate::world::{World, code};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

/// Agents: one answers at once, one takes its time, one takes all day, one asks.
const AGENTS: [(&str, &str); 4] = [
    ("quick", r#"{"label": "", "turns": [{"say": "You said {{line}}"}]}"#),
    ("slow", r#"{"label": "", "pace": {"word_ms": 20}, "turns": [{"say": "WORDS"}]}"#),
    ("endless", r#"{"label": "", "pace": {"word_ms": 60000}, "turns": [{"say": "WORDS"}]}"#),
    (
        "asks",
        r#"{"label": "", "turns": [{"when": {"last_tool": "ask"}, "say": "You chose {{tool.ask}}."},
            {"say": "Let me ask.", "use": [{"tool": "ask", "args": {"question": "Which?", "choices": ["red", "blue"]}}]}]}"#,
    ),
];

/// A server that runs.
pub struct Served {
    child: Child,
    /// Where it answers.
    pub url: String,
}

/// What `slow` says.
pub fn words() -> String {
    (1..=60).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

/// The program, which the tests of another package cannot name: it lies beside ours, and is built when it is not there
/// or older than its sources.
fn loopd() -> &'static Path {
    static LOOPD: OnceLock<PathBuf> = OnceLock::new();
    LOOPD.get_or_init(|| {
        let ours = Path::new(env!("CARGO_BIN_EXE_loopctl"));
        let loopd = ours.with_file_name("loopd");
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let sources = ["crates", "bin/assemble", "bin/loopd"].map(|folder| newest(&workspace.join(folder)));
        let built = std::fs::metadata(&loopd).and_then(|file| file.modified()).ok();
        if built < sources.into_iter().max() {
            let profile = ours.parent().and_then(Path::file_name).and_then(|name| name.to_str()).expect("a profile");
            let profile = if profile == "debug" { "dev" } else { profile };
            let target = ours.ancestors().nth(2).expect("the target folder");
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            cargo.args(["build", "--quiet", "--package", "loopd", "--profile", profile]).current_dir(&workspace);
            assert!(cargo.env("CARGO_TARGET_DIR", target).status().expect("cargo").success(), "loopd is built");
        }
        loopd
    })
}

fn newest(folder: &Path) -> SystemTime {
    let entries = std::fs::read_dir(folder).expect("sources").map(|entry| entry.expect("an entry"));
    let times = entries.map(|entry| match entry.file_type().expect("a type").is_dir() {
        true => newest(&entry.path()),
        false => entry.metadata().and_then(|file| file.modified()).expect("a time"),
    });
    times.max().unwrap_or(SystemTime::UNIX_EPOCH)
}

impl Served {
    /// Starts a server on a free port, with the agents `quick`, `slow`, `endless` and `asks` besides the demo agent.
    pub fn start(world: &World) -> Self {
        Self::at(world, "127.0.0.1:0")
    }

    /// Starts a server at this address.
    #[track_caller]
    pub fn at(world: &World, addr: &str) -> Self {
        for (name, script) in AGENTS {
            let manifest = format!(
                "apiVersion: loopd.dev/v1alpha1\nkind: Agent\nmetadata: {{ name: {name} }}\nspec:\n  \
                 model: {{ provider: demo, script: {name}.json }}\n  tools: [{{ use: ask }}]\n"
            );
            world.write(&format!("agents/{name}.yaml"), &manifest);
            world.write(&format!("agents/{name}.json"), &script.replace("WORDS", &words()));
        }
        Self::with(world, &["serve", "--agents", "agents", "--addr", addr])
    }

    /// Starts a server with a Router, which has nobody to ask but the demo agent.
    #[track_caller]
    pub fn routed(world: &World) -> Self {
        Self::with(world, &["up", "--model", "demo", "--addr", "127.0.0.1:0"])
    }

    #[track_caller]
    fn with(world: &World, args: &[&str]) -> Self {
        let mut command = Command::new(loopd());
        command.args(args).current_dir(world.path("")).env_clear();
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut url = None;
        for line in lines.by_ref() {
            if let Some((_, rest)) = line.split_once(" serves ") {
                url = rest.split(' ').next().map(str::to_owned);
            }
            if line.starts_with("sign in") {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("it says where it serves") }
    }

    /// HOST:PORT.
    pub fn addr(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        assert_eq!(code(self.child.wait().expect("it ends")), 137);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
