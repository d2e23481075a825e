//! Many cuts of one recording, each judged.

use crate::calls::Event;
use crate::disk::{Disk, Fate, Honest, Image, Random};
use std::fmt;
use std::path::{Path, PathBuf};
use std::thread;

/// What was wrong after a cut.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Acknowledged, and gone.
    pub lost: Vec<String>,
    /// Neither as it was before nor as it was after: it does not open, does not verify, or is there in part.
    pub broken: Vec<String>,
}

impl Verdict {
    fn is_good(&self) -> bool {
        self.lost.is_empty() && self.broken.is_empty()
    }
}

/// Of so many failures per lane there are words, and the files when they are kept.
const KEPT: usize = 5;

/// A series of cuts. Equal to the last byte for the same recording, seed and number.
#[derive(Debug, Clone, Copy)]
pub struct Series<'e> {
    pub events: &'e [Event],
    pub honest: Honest,
    pub cuts: usize,
    pub seed: u64,
    /// Whether the files of a failure stay, for somebody to look at.
    pub keep: bool,
}

/// What came of a series.
#[derive(Debug, Default)]
pub struct Tally {
    pub cuts: usize,
    /// Cuts after which something acknowledged was gone.
    pub lost: usize,
    /// Cuts after which something was half there.
    pub broken: usize,
    /// Acknowledgements that were looked for, over all cuts.
    pub looked_for: usize,
    /// The first of each kind, in words.
    pub first: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cuts, lost, broken, looked_for, .. } = self;
        write!(
            f,
            "{cuts} cuts, {looked_for} acknowledgements looked for: {lost} cuts lost one, {broken} broke something"
        )
    }
}

struct Cut {
    /// So many events happened.
    at: usize,
    fate: Fate,
    seed: u64,
}

impl Series<'_> {
    /// Cuts, and asks `judge`, who gets the store's folder and what was acknowledged.
    pub fn run(self, judge: impl Fn(&Path, &[&str]) -> Verdict + Sync) -> Tally {
        let mut cuts = self.choose();
        // Each lane replays the recording once.
        cuts.sort_by_key(|cut| cut.at);
        let lanes = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let judge = &judge;
            let lane = |cuts| scope.spawn(move || self.lane(cuts, judge));
            let lanes: Vec<_> = cuts.chunks(cuts.len().div_ceil(lanes)).map(lane).collect();
            lanes.into_iter().map(|lane| lane.join().unwrap()).fold(Tally::default(), Tally::and)
        })
    }

    /// Everywhere before the first acknowledgement, and right after each, where dropping everything hurts the most, as
    /// far as the number allows; then anywhere, and more often where files begin and where the log is copied back into
    /// the database.
    fn choose(self) -> Vec<Cut> {
        let mut random = Random::new(self.seed);
        let whole = 0..self.events.len();
        let is_ack = |at: &usize| matches!(self.events[*at], Event::Acknowledged(_));
        let acks: Vec<usize> = whole.clone().filter(is_ack).collect();
        let start: Vec<usize> = whole.clone().take(acks[0]).collect();
        let is_special = |at: &usize| match &self.events[*at] {
            Event::Wrote { name, .. } | Event::Resized { name, .. } | Event::Flushed { name, .. } => {
                !name.ends_with("-wal")
            }
            Event::Opened(_) | Event::Unlinked(_) | Event::FlushedFolder { .. } => true,
            Event::Acknowledged(_) => false,
        };
        let special: Vec<usize> = whole.clone().filter(is_special).collect();
        let all: Vec<usize> = whole.collect();
        let mut cuts = Vec::new();
        for every in [&start, &acks] {
            if self.cuts >= cuts.len() + 2 * every.len() {
                cuts.extend(every.iter().map(|at| Cut { at: at + 1, fate: Fate::Dropped, seed: 0 }));
            }
        }
        while cuts.len() < self.cuts {
            let from = [&acks, &acks, &all, &special, &start][random.below(5)];
            let at = from[random.below(from.len())] + 1;
            cuts.push(Cut { at, fate: Fate::ALL[random.below(3)], seed: random.below(usize::MAX) as u64 });
        }
        cuts
    }

    fn lane(self, cuts: &[Cut], judge: &(impl Fn(&Path, &[&str]) -> Verdict + Sync)) -> Tally {
        let mut disk = Disk::new(self.honest);
        let (mut taken, mut acks, mut tally) = (0, Vec::new(), Tally::default());
        for cut in cuts {
            for (index, event) in self.events.iter().enumerate().take(cut.at).skip(taken) {
                disk.take(index, event);
                if let Event::Acknowledged(what) = event {
                    acks.push(what.as_str());
                }
            }
            taken = cut.at;
            let image = disk.after_cut(cut.fate, &mut Random::new(cut.seed));
            let verdict = judge(put(&image).path(), &acks);
            let kept = self.keep && tally.first.len() < KEPT && !verdict.is_good();
            let place = kept.then(|| put(&image).keep().display().to_string());
            tally.take(cut, acks.len(), verdict, place.as_deref().unwrap_or("not kept"));
        }
        tally
    }
}

impl Tally {
    fn take(&mut self, cut: &Cut, acks: usize, verdict: Verdict, place: &str) {
        self.cuts += 1;
        self.looked_for += acks;
        self.lost += usize::from(!verdict.lost.is_empty());
        self.broken += usize::from(!verdict.broken.is_empty());
        for found in [verdict.lost, verdict.broken] {
            if let Some(first) = found.first().filter(|_| self.first.len() < KEPT) {
                self.first.push(format!("after {} events, {:?} (files: {place}): {first}", cut.at, cut.fate));
            }
        }
    }

    fn and(mut self, other: Self) -> Self {
        self.cuts += other.cuts;
        self.lost += other.lost;
        self.broken += other.broken;
        self.looked_for += other.looked_for;
        self.first.extend(other.first);
        self
    }
}

/// The files in a folder of their own, in memory where there is such a place: thousands of copies would wear the
/// disk, and the judge needs no durability.
fn put(image: &Image) -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    for (name, bytes) in image {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}
