//! What a disk holds after the power went: everything that was flushed, and of the rest whatever chance keeps.

use crate::calls::Event;
use std::collections::BTreeMap;

/// The unit that a disk writes whole.
const SECTOR: usize = 512;

/// Small, and the same for the same seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Any two seeds give different sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number from 0 on, below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // xorshift64*: good enough to choose moments.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end as u64) as usize
    }
}

/// What becomes of writes that were not flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// None survives.
    Dropped,
    /// Some survive, in any order.
    Some,
    /// Some sectors survive.
    Torn,
}

impl Fate {
    /// Every fate.
    pub const ALL: [Self; 3] = [Self::Dropped, Self::Some, Self::Torn];
}

/// Which flushes the disk honours. All of them, unless a test wants to see that the loss is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Honest {
    pub files: bool,
    pub folder: bool,
}

impl Honest {
    /// A disk that does what it says.
    pub const FULLY: Self = Self { files: true, folder: true };
}

/// The files after a cut.
pub type Image = BTreeMap<String, Vec<u8>>;

/// One file, whatever its names.
#[derive(Default)]
struct File<'e> {
    flushed: Vec<u8>,
    /// With the index of the event.
    waiting: Vec<(usize, Change<'e>)>,
}

#[derive(Clone, Copy)]
enum Change<'e> {
    Write(usize, &'e [u8]),
    Resize(usize),
}

/// A disk to which events happen.
pub struct Disk<'e> {
    honest: Honest,
    files: Vec<File<'e>>,
    /// The names as programs see them.
    seen: BTreeMap<&'e str, usize>,
    /// The names that are flushed.
    flushed: BTreeMap<&'e str, usize>,
    /// Names that came or went since, with the index of the event.
    waiting: Vec<(usize, &'e str, Option<usize>)>,
}

impl<'e> Disk<'e> {
    /// An empty folder.
    pub fn new(honest: Honest) -> Self {
        let (seen, flushed) = (BTreeMap::new(), BTreeMap::new());
        Self { honest, files: Vec::new(), seen, flushed, waiting: Vec::new() }
    }

    /// The next event.
    pub fn take(&mut self, index: usize, event: &'e Event) {
        match event {
            Event::Opened(name) if self.seen.contains_key(name.as_str()) => {}
            Event::Opened(name) => {
                self.seen.insert(name, self.files.len());
                self.waiting.push((index, name, Some(self.files.len())));
                self.files.push(File::default());
            }
            Event::Unlinked(name) => {
                self.seen.remove(name.as_str());
                self.waiting.push((index, name, None));
            }
            Event::Wrote { name, at, bytes } => self.file(name).waiting.push((index, Change::Write(*at, bytes))),
            Event::Resized { name, len } => self.file(name).waiting.push((index, Change::Resize(*len))),
            Event::Flushed { name, covers } if self.honest.files => self.file(name).flush(*covers),
            Event::FlushedFolder { covers } if self.honest.folder => {
                let (over, later) = std::mem::take(&mut self.waiting).into_iter().partition(|(at, ..)| at < covers);
                self.waiting = later;
                let over: Vec<_> = over;
                over.into_iter().for_each(|(_, name, file)| rename(&mut self.flushed, name, file));
            }
            Event::Flushed { .. } | Event::FlushedFolder { .. } | Event::Acknowledged(_) => {}
        }
    }

    fn file(&mut self, name: &str) -> &mut File<'e> {
        &mut self.files[self.seen[name]]
    }

    /// What is there when the power comes back.
    pub fn after_cut(&self, fate: Fate, random: &mut Random) -> Image {
        // Of eight, so many survive; a series meets cuts at which nearly everything or nearly nothing did.
        let share = 1 + random.below(7);
        let mut survives = || fate != Fate::Dropped && random.below(8) < share;
        let mut names = self.flushed.clone();
        for (_, name, file) in &self.waiting {
            if survives() {
                rename(&mut names, name, *file);
            }
        }
        let image = names.into_iter().map(|(name, file)| (name.to_owned(), self.files[file].left(fate, &mut survives)));
        image.collect()
    }
}

fn rename<'e>(names: &mut BTreeMap<&'e str, usize>, name: &'e str, file: Option<usize>) {
    match file {
        Some(file) => drop(names.insert(name, file)),
        None => drop(names.remove(name)),
    }
}

impl File<'_> {
    fn flush(&mut self, covers: usize) {
        let later = self.waiting.partition_point(|(at, _)| *at < covers);
        for (_, change) in self.waiting.drain(..later) {
            apply(&mut self.flushed, change);
        }
    }

    fn left(&self, fate: Fate, survives: &mut impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.flushed.clone();
        for (_, change) in &self.waiting {
            match change {
                Change::Write(at, written) if fate == Fate::Torn => {
                    for (at, sector) in sectors(*at, written) {
                        keep(&mut bytes, Change::Write(at, sector), survives);
                    }
                }
                change => keep(&mut bytes, *change, survives),
            }
        }
        bytes
    }
}

/// The change, when it survives; when not, its file may have become longer all the same.
fn keep(bytes: &mut Vec<u8>, change: Change<'_>, survives: &mut impl FnMut() -> bool) {
    if survives() {
        apply(bytes, change);
    } else if let Change::Write(at, written) = change
        && survives()
    {
        let len = bytes.len().max(at + written.len());
        bytes.resize(len, 0);
    }
}

fn apply(bytes: &mut Vec<u8>, change: Change<'_>) {
    match change {
        Change::Resize(len) => bytes.resize(len, 0),
        Change::Write(at, written) => {
            if bytes.len() < at {
                bytes.resize(at, 0);
            }
            let (over, beyond) = written.split_at(written.len().min(bytes.len() - at));
            bytes[at..at + over.len()].copy_from_slice(over);
            bytes.extend_from_slice(beyond);
        }
    }
}

/// The write in pieces that no sector boundary crosses.
fn sectors(mut at: usize, mut bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(bytes.len().min(SECTOR - at % SECTOR));
        pieces.push((at, piece));
        (at, bytes) = (at + piece.len(), rest);
    }
    pieces
}

#[test]
fn a_disk_keeps_what_was_flushed_and_of_the_rest_what_chance_keeps() {
    let name = || "file".to_owned();
    let wrote = |at, byte| Event::Wrote { name: name(), at, bytes: vec![byte; 1_000] };
    let events = [
        Event::Opened(name()),
        wrote(0, 1),
        wrote(1_000, 2),
        // Began before the second write was over.
        Event::Flushed { name: name(), covers: 2 },
        Event::FlushedFolder { covers: 4 },
        Event::Unlinked(name()),
        Event::Opened(name()),
    ];
    let honest = Honest::FULLY;
    let images = |count: usize, honest, fate| {
        let mut disk = Disk::new(honest);
        events.iter().enumerate().take(count).for_each(|(index, event)| disk.take(index, event));
        let images = (0..200).map(move |seed| disk.after_cut(fate, &mut Random::new(seed)));
        images.collect::<std::collections::BTreeSet<Image>>()
    };
    let only = |bytes: &[u8]| [Image::from([(name(), bytes.to_vec())])].into();
    let (one, two) = (vec![1; 1_000], vec![2; 1_000]);
    assert_eq!(images(4, honest, Fate::Dropped), [Image::new()].into());
    assert_eq!(images(5, honest, Fate::Dropped), only(&one));
    assert_eq!(images(7, honest, Fate::Dropped), only(&one));
    assert_eq!(images(5, Honest { files: false, ..honest }, Fate::Dropped), only(&[]));
    assert_eq!(images(5, Honest { folder: false, ..honest }, Fate::Dropped), [Image::new()].into());
    // Lost, there, or only its length is.
    let some: Vec<_> = [one.clone(), [one.clone(), two].concat(), [one.clone(), vec![0; 1_000]].concat()].into();
    let some = some.into_iter().map(|bytes| Image::from([(name(), bytes)])).collect();
    assert_eq!(images(5, honest, Fate::Some), some);
    // Pieces end at 1024, 1536 and 2000; a later one makes the file as long as an earlier one that was lost.
    let torn = images(5, honest, Fate::Torn);
    assert!(torn.len() > some.len() && torn.iter().all(|image| image["file"].starts_with(&one)));
    // The old file, none, or the new and empty one.
    let renamed = [Image::from([(name(), one)]), Image::new(), Image::from([(name(), Vec::new())])];
    let found: std::collections::BTreeSet<Image> = images(7, honest, Fate::Some);
    assert!(renamed.iter().all(|image| found.contains(image)), "{}", found.len());
}
