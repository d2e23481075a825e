//! One process, its group, its output and its end.

use super::output::{Kept, Output};
use cap_std::fs::Dir;
use loopd_runtime::ToolError;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// What a program gets between being asked to end and being killed.
const POLITE: Duration = Duration::from_secs(1);

/// How long what is left in the pipes is read once the group is dead. Only a process that has left it writes on.
const DRAIN: Duration = Duration::from_millis(500);

/// How long a killed process may take to be gone. One that sits in the kernel may take for ever.
const GONE: Duration = Duration::from_secs(2);

/// Where a process finds its own open files by their numbers.
const OPEN_FILES: &str = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };

/// Characters of the output that an error carries.
const SHOWN: usize = 500;

/// What to start.
pub(super) struct Order<'a> {
    pub(super) program: &'a Path,
    pub(super) argv: &'a [String],
    pub(super) env: &'a BTreeMap<String, OsString>,
    pub(super) folder: &'a Dir,
}

/// How long, and how much of it is kept.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) timeout: Duration,
    pub(super) max_output: usize,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// By itself; `exit_code` says how.
    Exited,
    /// By a signal that was not ours.
    Signalled,
    /// It was killed because its time was over. What it had done until then stays done.
    TimedOut,
}

/// The answer of `shell`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// How it ended.
    pub ended: Ended,
    /// The exit code, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// What a reader has to know about the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Standard output.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// True when a process that it left behind held its output open; what that one writes later is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_running: bool,
}

/// A process group, killed when dropped. As long as its leader is not reaped, nobody else can have its number.
struct Group {
    leader: Option<Pid>,
}

impl Group {
    fn kill(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // Nobody of it is left: as good.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill(Signal::KILL);
    }
}

/// Why the waiting ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Exit,
    Time,
    Cancel,
}

/// Runs it to its end, in whichever way that comes.
///
/// # Errors
/// Did not happen: it could not be started. In doubt: it was killed because `cancel` came.
pub(super) async fn run(order: Order<'_>, limits: Limits, cancel: &CancellationToken) -> Result<Report, ToolError> {
    let name = order.argv.first().map_or("", String::as_str);
    let mut child = start(&order).map_err(|error| {
        ToolError::did_not_happen("shell.not_started", format!("`{name}` could not be started: {error}"))
    })?;
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let mut group = Group { leader };
    let (mut stdout, mut stderr) = (Kept::new(limits.max_output), Kept::new(limits.max_output));
    let (over, gone, left_running) = {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let reading = async { tokio::join!(stdout.read_from(out), stderr.read_from(err)) };
        let mut reading = Reading { both: pin!(reading), done: false };
        let mut exit = pin!(exit_of(leader));
        let over = tokio::select! {
            biased;
            () = cancel.cancelled() => Over::Cancel,
            gone = reading.until(&mut exit, limits.timeout) => if gone { Over::Exit } else { Over::Time },
        };
        let mut gone = over == Over::Exit;
        if !gone {
            group.kill(Signal::TERM);
            gone = reading.until(&mut exit, POLITE).await;
        }
        group.kill(Signal::KILL);
        gone = gone || reading.until(&mut exit, GONE).await;
        let held = !reading.done && timeout(DRAIN, &mut reading.both).await.is_err();
        (over, gone, held)
    };
    let report = Unfinished { stdout: stdout.finish(), stderr: stderr.finish(), left_running };
    if !gone {
        return Err(in_doubt(name, "was killed and does not go away", &report));
    }
    // Reaped from here on: its number may be somebody else's.
    group.leader = None;
    let status = child.wait().await.map_err(|error| in_doubt(name, &error.to_string(), &report))?;
    match over {
        Over::Cancel => Err(in_doubt(name, "was killed, because nobody waits for it any more", &report)),
        Over::Exit => Ok(report.ended(status, None)),
        Over::Time => Ok(report.ended(status, Some(limits.timeout))),
    }
}

/// Both outputs, read while something else is waited for: a full pipe would hold the program.
struct Reading<'a, F> {
    both: Pin<&'a mut F>,
    done: bool,
}

impl<F: Future> Reading<'_, F> {
    /// Waits for `exit`; false when it did not come in `time`.
    async fn until(&mut self, exit: &mut Pin<&mut impl Future>, time: Duration) -> bool {
        let mut time = pin!(sleep(time));
        loop {
            tokio::select! {
                biased;
                _ = &mut *exit => return true,
                () = &mut time => return false,
                _ = &mut self.both, if !self.done => self.done = true,
            }
        }
    }
}

fn start(order: &Order<'_>) -> std::io::Result<Child> {
    let mut command = Command::new(order.program);
    command.args(order.argv.iter().skip(1)).env_clear().envs(order.env);
    if let Some(name) = order.argv.first() {
        command.arg0(name);
    }
    // The open folder itself, whatever stands at its path by now.
    command.current_dir(format!("{OPEN_FILES}/{}", order.folder.as_raw_fd()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true).spawn()
}

/// Waits for the end of the process without reaping it.
async fn exit_of(leader: Option<Pid>) {
    let Some(leader) = leader else { return };
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let wait = move || while matches!(waitid(WaitId::Pid(leader), ended), Err(Errno::INTR)) {};
    let _ = tokio::task::spawn_blocking(wait).await;
}

struct Unfinished {
    stdout: Output,
    stderr: Output,
    left_running: bool,
}

impl Unfinished {
    fn ended(self, status: ExitStatus, limit: Option<Duration>) -> Report {
        let ended = match (limit, status.code()) {
            (Some(_), _) => Ended::TimedOut,
            (None, Some(_)) => Ended::Exited,
            (None, None) => Ended::Signalled,
        };
        let note = limit.map(|limit| {
            let ms = limit.as_millis();
            format!("it was killed after {ms} ms; what it had done until then stays done")
        });
        let Self { stdout, stderr, left_running } = self;
        Report { ended, exit_code: status.code(), signal: status.signal(), note, stdout, stderr, left_running }
    }
}

/// Nobody knows how much of it happened. The last that it said goes along, because there is no result.
fn in_doubt(name: &str, what: &str, report: &Unfinished) -> ToolError {
    let end = |text: &str| {
        let skip = text.chars().count().saturating_sub(SHOWN);
        text.chars().skip(skip).collect::<String>()
    };
    let (stdout, stderr) = (end(&report.stdout.text), end(&report.stderr.text));
    let message = format!(
        "`{name}` {what}; what it had done until then stays done. It had written {} bytes, at the end: {stdout}{stderr}",
        report.stdout.bytes + report.stderr.bytes
    );
    ToolError::in_doubt("shell.interrupted", message)
}
