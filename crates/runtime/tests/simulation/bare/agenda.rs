//! What happens when: one order for everybody, the same for every run of a seed.

use loopd_kernel::machine::Input;
use loopd_kernel::{CallId, Epoch, RunId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that happens to a worker, or to the world.
pub enum What {
    /// A worker says that it is alive, and takes over what is due.
    Beat(usize),
    /// A worker hears that there may be news of a Run, or a time has come.
    Hint(usize, RunId),
    /// The answer to a commit arrives, or the commit is made again.
    Answer(usize, RunId, Epoch),
    /// A request of a worker has ended.
    Done(usize, RunId, Epoch, Box<Done>),
    /// People look.
    People,
    /// Somebody dies, is paused, or has its clock set.
    Fate,
}

/// How a request ended.
pub struct Done {
    pub call: CallId,
    /// Which of the requests for this Call, in the world's count.
    pub number: u64,
    pub input: Input,
}

struct Due {
    at: u64,
    number: u64,
    what: What,
}

impl Due {
    const fn order(&self) -> Reverse<(u64, u64)> {
        Reverse((self.at, self.number))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

/// The future.
#[derive(Default)]
pub struct Agenda {
    due: BinaryHeap<Due>,
    pub number: u64,
    /// Milliseconds since the world began.
    pub now: u64,
}

impl Agenda {
    pub fn add(&mut self, after_ms: u64, what: What) {
        self.number += 1;
        self.due.push(Due { at: self.now + after_ms, number: self.number, what });
    }

    /// Goes on to whatever comes next.
    pub fn next(&mut self) -> Option<What> {
        let due = self.due.pop()?;
        self.now = due.at;
        Some(due.what)
    }
}
