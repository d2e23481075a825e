//! A folder with an agent, and the real program in it. The model is the offline demo model: no network, no key.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What the agent is told to be.
pub const AGENT: &str = "\
apiVersion: loopd.dev/v1alpha1
kind: Agent
metadata:
  name: reader
spec:
  model:
    provider: demo
    script: demo.json
  instructions: You read files.
  tools:
    - use: files
      root: docs
    - use: ask
  limits:
    iterations: 10
";

/// What the model says.
pub const SCRIPT: &str = r#"{"label": "", "pace": {"delay_ms": DELAY},
 "turns": [
  {"when": {"user_contains": "colour", "turn": 1}, "say": "I have to ask.",
   "use": [{"tool": "ask", "args": {"question": "Which colour?", "choices": ["red", "blue"]}}]},
  {"when": {"user_contains": "colour"}, "say": "It is decided."},
  {"when": {"user_contains": "secret", "turn": 1}, "use": [{"tool": "read_file", "args": {"path": "secret.md"}}]},
  {"when": {"user_contains": "secret"}, "say": "I have read it."},
  {"when": {"turn": 1}, "say": "I look at the folder.", "use": [{"tool": "list_files", "args": {"path": "."}}]},
  {"when": {"turn": 2}, "say": "I read both.",
   "use": [{"tool": "read_file", "args": {"path": "tea.md"}}, {"tool": "read_file", "args": {"path": "coffee.md"}}]},
  {"when": {"turn": 3}, "say": "Tea is leaves, coffee is beans."}
 ]}"#;

/// The prefixes of ids, and what they are called here.
const IDS: [(&str, &str); 7] = [
    ("run_", "RUN"),
    ("con_", "CON"),
    ("msg_", "MSG"),
    ("qst_", "QST"),
    ("hcl_", "CALL"),
    ("tok_", "TOK"),
    ("art_", "ART"),
];

/// A folder of its own, and what was said in it so far.
pub struct World {
    dir: tempfile::TempDir,
    names: RefCell<BTreeMap<(&'static str, String), usize>>,
}

/// What a command came to.
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl World {
    /// A model that answers at once.
    pub fn new() -> Self {
        Self::slow(0)
    }

    /// A model that takes this long.
    pub fn slow(delay_ms: u32) -> Self {
        let world = Self { dir: tempfile::tempdir().expect("a folder"), names: RefCell::default() };
        world.write("agent.yaml", AGENT);
        world.write("demo.json", &SCRIPT.replace("DELAY", &delay_ms.to_string()));
        world.write("docs/tea.md", "Tea is made of leaves.\n");
        world.write("docs/coffee.md", "Coffee is made of beans.\n");
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("written");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("reads")
    }

    /// The program with these arguments, knowing nothing of the machine that it runs on.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
        command.args(args).current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command.envs([("TZ", "UTC"), ("USER", "ada"), ("COLUMNS", "100"), ("PATH", "/usr/bin:/bin")]);
        command
    }

    /// Runs it to its end.
    pub fn loopctl(&self, args: &[&str]) -> Done {
        done(self.command(args).output().expect("it starts"))
    }

    /// The same with something at its standard input.
    pub fn piped(&self, args: &[&str], input: &str) -> Done {
        let mut child = self.start_command(self.command(args).stdin(Stdio::piped()));
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
        done(child.wait_with_output().expect("it ends"))
    }

    /// Starts it and goes on.
    pub fn start(&self, args: &[&str]) -> Child {
        self.start_command(&mut self.command(args))
    }

    fn start_command(&self, command: &mut Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// Everything that a command says, with what differs from time to time replaced.
    pub fn say(&self, args: &[&str]) -> String {
        let done = self.loopctl(args);
        let mut text = String::new();
        if !done.out.is_empty() {
            text.push_str(&done.out);
        }
        for line in done.err.lines() {
            let _ = writeln!(text, "err: {line}");
        }
        if done.code != 0 {
            let _ = writeln!(text, "exit {}", done.code);
        }
        self.normal(&text)
    }

    /// Text in which identities, times and places are the same every time.
    pub fn normal(&self, text: &str) -> String {
        let text = text.replace(&self.dir.path().display().to_string(), "DIR");
        let text = self.runs(&text);
        text.lines().map(|line| format!("{}\n", normal_line(line))).collect()
    }

    /// Things are called by the order in which they were first named.
    fn runs(&self, text: &str) -> String {
        IDS.iter().fold(text.to_owned(), |text, (prefix, name)| self.named(&text, prefix, name))
    }

    fn named(&self, text: &str, prefix: &'static str, name: &str) -> String {
        let mut names = self.names.borrow_mut();
        let mut parts = text.split(prefix);
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let hex = part.bytes().take_while(u8::is_ascii_hexdigit).count();
            let (id, rest) = part.split_at(hex);
            if hex < 14 {
                out.push_str(&format!("{prefix}{part}"));
                continue;
            }
            let next = names.keys().filter(|(of, _)| *of == prefix).count() + 1;
            let number = *names.entry((prefix, id[..14].to_owned())).or_insert(next);
            out.push_str(&format!("{name}{number}{rest}"));
        }
        out
    }

    /// Waits until the command says something that fits.
    pub fn wait_until(&self, args: &[&str], fits: impl Fn(&Done) -> bool) -> Done {
        let begun = Instant::now();
        loop {
            let done = self.loopctl(args);
            if fits(&done) {
                return done;
            }
            assert!(begun.elapsed() < PATIENCE, "it never came: {args:?}\n{}{}", done.out, done.err);
            pause(Duration::from_millis(10));
        }
    }
}

/// What a finished process said. Nothing that is piped is ever coloured.
fn done(output: Output) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let done = Done { code: code(output.status), out: text(output.stdout), err: text(output.stderr) };
    assert!(!done.out.contains('\u{1b}') && !done.err.contains('\u{1b}'), "escape codes in a pipe");
    done
}

/// The exit code; a signal counts as shells count it.
pub fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Waits for a process that was started.
pub fn end(child: Child) -> Done {
    done(child.wait_with_output().expect("it ends"))
}

/// Sends a signal by its name.
pub fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
}

/// Lets time pass between two looks at another process, which nothing here can wait for.
#[expect(clippy::disallowed_methods, reason = "two processes: the one looks again, bounded by PATIENCE")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Whether something is at this path.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

fn normal_line(line: &str) -> String {
    let indent: String = line.chars().take_while(|character| *character == ' ').collect();
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let last = words.last().map(String::as_str).unwrap_or_default();
        let unit = matches!(word.trim_end_matches([',', ')']), "ms" | "s" | "min");
        if unit && last.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !last.is_empty() {
            words.pop();
            words.push(format!("TIME{}", if word.ends_with(',') { "," } else { "" }));
        } else if last == "head" || last == "(definition" {
            words.push("HASH".into());
        } else if last == "(process" {
            words.push("PID)".into());
        } else if is_moment(word) {
            words.push("MOMENT".into());
        } else {
            words.push(word.to_owned());
        }
    }
    indent + &words.join(" ")
}

/// A date, a time of day, or both in one word, perhaps quoted.
fn is_moment(word: &str) -> bool {
    let word = word.trim_matches(['"', ',', ')']);
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let others = word.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte));
    others && ((digits >= 8 && word.contains('-')) || (digits >= 6 && word.contains(':')))
}
