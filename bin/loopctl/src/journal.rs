//! Reading a whole Run: chain verified, folded, as steps.

use crate::problem::{Code, Problem};
use loopd_fixture::trajectory::{Builder, Trajectory};
use loopd_kernel::chain::{ChainError, Verifier};
use loopd_kernel::question::OpenQuestion;
use loopd_kernel::{Digest, Entry, RunId, Seq};
use loopd_store::{RunRow, Store};
use serde::Serialize;

/// Entries that one read brings.
const PAGE: usize = 1024;

/// A Run, as far as it is whole.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Its steps.
    pub trajectory: Trajectory,
    /// Its open Questions.
    pub questions: Vec<OpenQuestion>,
    /// What the chain says.
    pub chain: Chain,
    /// Where and why it is broken, if it is.
    pub broken: Option<String>,
}

/// What the chain says.
#[derive(Clone, Debug, Serialize)]
pub struct Chain {
    /// Every Entry up to the head is what was committed.
    pub verified: bool,
    /// Entries that verified.
    pub entries: u64,
    /// The hash of the last of them.
    pub head: Digest,
}

/// Takes Entries one by one and keeps everything before the first that is broken.
#[derive(Clone, Debug)]
pub struct Reader {
    verifier: Verifier,
    builder: Builder,
    broken: Option<String>,
}

impl Reader {
    /// Before the first Entry of `run`.
    pub fn new(run: RunId) -> Self {
        Self { verifier: Verifier::new(run), builder: Builder::new(run), broken: None }
    }

    /// Takes the next Entry. False: it, or one before it, is broken.
    pub fn take(&mut self, entry: &Entry) -> bool {
        if self.broken.is_none() {
            let verified = self.verifier.take(entry).map_err(|error| error.to_string());
            let folded = verified.and_then(|()| self.builder.take(entry).map_err(|error| error.to_string()));
            self.broken = folded.err();
        }
        self.broken.is_none()
    }

    /// The last Entry.
    pub fn head(&self) -> Seq {
        self.builder.projection().head.seq
    }

    /// What was built so far.
    pub const fn builder(&self) -> &Builder {
        &self.builder
    }

    /// The end; the row or the footer says where that should be.
    pub fn finish(mut self, head: Seq, hash: &Digest) -> Reading {
        if self.broken.is_none() {
            self.broken = self.verifier.finish(head, hash).err().map(|error: ChainError| error.to_string());
        }
        let (last, hash) = self.verifier.head();
        Reading {
            questions: self.builder.projection().questions.clone(),
            trajectory: self.builder.finish(),
            chain: Chain { verified: self.broken.is_none(), entries: last.0, head: hash },
            broken: self.broken,
        }
    }
}

/// Hands the Entries of a Run up to the head of `row` to `sink`, until it says that it has enough.
///
/// # Errors
/// [`Problem`] of the store; an Entry that cannot even be read is `E-STORE-CORRUPT`.
pub async fn entries(store: &dyn Store, row: &RunRow, sink: &mut dyn FnMut(&Entry) -> bool) -> Result<(), Problem> {
    let mut at = Seq(0);
    while at < row.head {
        let page = store.entries(row.run, at, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        at = last.seq;
        if !page.iter().take_while(|entry| entry.seq <= row.head).all(&mut *sink) {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads a Run of the store.
///
/// # Errors
/// As [`entries`]. A broken Journal is no error here: see [`Reading::broken`].
pub async fn read(store: &dyn Store, row: &RunRow) -> Result<Reading, Problem> {
    let mut reader = Reader::new(row.run);
    entries(store, row, &mut |entry| reader.take(entry)).await?;
    Ok(reader.finish(row.head, &row.hash))
}

impl Reading {
    /// The problem of a broken Journal.
    ///
    /// # Errors
    /// That problem.
    pub fn whole(&self) -> Result<(), Problem> {
        match &self.broken {
            None => Ok(()),
            Some(why) => {
                let short = crate::words::short(self.trajectory.run);
                Err(Problem::new(Code::Journal, format!("{short}: {why}"))
                    .why("the journal is not what was committed")
                    .fix("restore the store from a backup; `loopctl store verify` names every run that is affected"))
            }
        }
    }
}
