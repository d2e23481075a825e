//! The target of all payments: a file to which each effect adds one line, and what it has to agree with.

use crate::payers::payments;
use crate::world::World;
use loopd_kernel::projection::Target;
use loopd_kernel::question::Resolution;
use loopd_kernel::record::{Record, Settlement};
use loopd_kernel::replay::{Replayer, Strictness};
use loopd_kernel::{CallId, Entry, ErasedLoop, Outcome, RunId};
use loopd_runtime::CallContext;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Pays once, and nobody can ask whether it did.
pub const PAY: &str = "pay";
/// Pays; this target removes doubles by their key.
pub const CHARGE: &str = "charge";
/// Looks only.
pub const LOOK: &str = "look";
/// What each of them returns.
pub const OUTPUT: &str = "\"done\"";

const NAME: &str = "ledger.txt";

/// One landed effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub run: String,
    pub tool: String,
    pub step: u32,
    pub key: String,
    /// Who landed it.
    pub process: u32,
}

/// Lands an effect: one write of one line, which a kill does not tear.
pub fn add(folder: &Path, tool: &str, step: u32, context: &CallContext) -> io::Result<()> {
    let (run, key, attempt) = (context.run, context.key.0.text(), context.attempt);
    let line = format!("{run} {tool} {step} {key} {attempt} {}\n", std::process::id());
    let written = File::options().append(true).create(true).open(folder.join(NAME))?.write(line.as_bytes())?;
    if written == line.len() { Ok(()) } else { Err(io::Error::other("a part of a line")) }
}

/// Everything that has landed so far.
pub fn read(world: &World) -> Vec<Line> {
    let text = if world.path(NAME).exists() { world.read(NAME) } else { String::new() };
    assert!(text.is_empty() || text.ends_with('\n'), "a torn ledger");
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [run, tool, step, key, _, process] = words[..] else { panic!("a line: {line}") };
        let (step, process) = (step.parse().expect("a step"), process.parse().expect("a process"));
        Line { run: run.into(), tool: tool.into(), step, key: key.into(), process }
    };
    text.lines().map(line).collect()
}

/// What became of the payments of one Run, or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    /// Effects as the targets count them.
    pub effects: usize,
    pub doubled: usize,
    pub lost: usize,
    /// Calls that became questions.
    pub unknown: usize,
    /// What is wrong, in words.
    pub wrong: Vec<String>,
}

impl Audit {
    pub fn add(&mut self, other: Self) {
        self.effects += other.effects;
        self.doubled += other.doubled;
        self.lost += other.lost;
        self.unknown += other.unknown;
        self.wrong.extend(other.wrong);
    }

    pub fn lose(&mut self, what: String) {
        self.lost += 1;
        self.wrong.push(what);
    }
}

/// What a Journal says of the calls that pay.
#[derive(Default)]
struct Told {
    keys: BTreeMap<CallId, String>,
    landed: BTreeSet<CallId>,
    unknown: usize,
    completed: bool,
}

/// Replays the Journal strictly and compares it with the lines of this Run.
pub fn audit(run: RunId, entries: &[Entry], definition: &dyn ErasedLoop, lines: &[Line]) -> Audit {
    let told = told(run, entries, definition);
    let mut audit = Audit { unknown: told.unknown, ..Audit::default() };
    let run = run.to_string();
    let lines: Vec<&Line> = lines.iter().filter(|line| line.run == run).collect();
    for call in &told.landed {
        if let Some(key) = told.keys.get(call).filter(|key| !lines.iter().any(|line| line.key == **key)) {
            audit.lose(format!("the journal says that {call} landed, and the ledger has no {key}"));
        }
    }
    // A payment is what the Loop wanted once, whatever keys and calls it took.
    for (step, tool) in payments() {
        let of_it: Vec<&&Line> = lines.iter().filter(|line| line.step == step && line.tool == tool).collect();
        let keys: BTreeSet<&str> = of_it.iter().map(|line| line.key.as_str()).collect();
        let counted = if tool == CHARGE { keys.len() } else { of_it.len() };
        audit.effects += keys.len();
        if counted > 1 {
            audit.doubled += counted - 1;
            audit.wrong.push(format!("step {step} of {run} has {counted} times {tool}: {of_it:?}"));
        }
        if counted == 0 && told.completed {
            audit.lose(format!("{run} has completed, and step {step} has no {tool}"));
        }
    }
    if !told.completed {
        audit.lose(format!("{run} has not completed"));
    }
    audit
}

fn told(run: RunId, entries: &[Entry], definition: &dyn ErasedLoop) -> Told {
    let mut replayer = Replayer::new(run, Some(definition), Strictness::Strict);
    let mut told = Told::default();
    for entry in entries {
        replayer.take(entry).expect("the strict replay agrees");
        match Record::decode(entry.kind, &entry.record).expect("a record") {
            Record::Intended(intended) => {
                let call = replayer.projection().call(intended.call).expect("a call");
                if matches!(&call.target, Target::Tool { tool, .. } if tool != LOOK) {
                    told.keys.insert(call.id, call.effect_key(run).0.text());
                }
            }
            Record::Settled(settled) => match settled.how {
                Settlement::Landed => _ = told.landed.insert(settled.call),
                Settlement::Unknown => told.unknown += 1,
                Settlement::Failed | Settlement::Denied | Settlement::Cancelled => {}
            },
            Record::Resolved(resolved) if matches!(resolved.resolution, Resolution::Landed { .. }) => {
                told.landed.insert(resolved.call);
            }
            Record::Ended(ended) => told.completed = matches!(ended.outcome, Outcome::Completed { .. }),
            _ => {}
        }
    }
    told
}
