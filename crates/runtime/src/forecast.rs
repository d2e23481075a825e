//! Before an upgrade: what this build would make of the open Runs of a store. It reads, and changes nothing.

use crate::driver::{self, LoadError};
use crate::program::{Program, Programs};
use loopd_kernel::replay::{Divergence, ReplayError, Replayer, Strictness};
use loopd_kernel::upgrade::{Fit, Unfit};
use loopd_kernel::{Digest, Entry, Failure, Kind, Projection, Seq, Upgrade};
use loopd_store::{RunFilter, RunRow, RunStatus, Store, StoreError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Rows and Entries that one read brings.
const PAGE: usize = 1024;

/// What this build would make of one open Run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// It goes on with it, and its code agrees with what was decided so far.
    Clean {
        /// True: another definition decided so far, and the switch will be recorded.
        adopts: bool,
        /// Decisions that were run again and agreed.
        decisions: u64,
        /// Decisions of other definitions, which are facts and were not run again.
        foreign: u64,
    },
    /// It goes on with it, but would have decided otherwise: the first place. What is recorded stays as it is.
    DecisionsDiffer {
        /// True: another definition decided so far, and the switch will be recorded.
        adopts: bool,
        /// Where, and what.
        divergence: Box<Divergence>,
    },
    /// State has an older schema version than here.
    NeedsMigration {
        /// The version that the Run has.
        from: u32,
        /// The version here.
        to: u32,
        /// Why the migration fails, or what it leaves does not read. `None`: it works, and this build goes on.
        failure: Option<Failure>,
    },
    /// It does not go on with it; why not.
    CannotRun(String),
}

impl Forecast {
    /// Whether this build would go on with the Run.
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        match self {
            Self::Clean { .. } | Self::DecisionsDiffer { .. } | Self::NeedsMigration { failure: None, .. } => true,
            Self::NeedsMigration { failure: Some(_), .. } | Self::CannotRun(_) => false,
        }
    }
}

/// Says of every open Run, newest first, what a worker with these Programs would make of it; with `loop_name`, only of
/// that Loop's. A Run whose definition is the same is replayed strictly by the code of this build, one with another
/// definition by structure: the same Calls in the same order.
///
/// # Guarantees
/// Nothing is written and nothing is called but `migrate`, `init` and `transition` of Loops, so that it may run beside a
/// worker that drives the store. A Run that moves meanwhile is judged as it was when it was listed.
///
/// # Errors
/// [`StoreError`]. A Journal that does not verify is no error here: its Run cannot be run.
pub async fn forecast(
    store: &dyn Store,
    programs: &dyn Programs,
    loop_name: Option<&str>,
) -> Result<Vec<(RunRow, Forecast)>, StoreError> {
    let statuses = vec![RunStatus::Running, RunStatus::Suspended, RunStatus::Parked];
    let filter = RunFilter { statuses, loop_name: loop_name.map(Into::into), limit: PAGE, ..RunFilter::default() };
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = store.runs(RunFilter { before, ..filter.clone() }).await?;
        for row in page.items {
            let forecast = one(store, programs, &row).await?;
            found.push((row, forecast));
        }
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(found),
        }
    }
}

async fn one(store: &dyn Store, programs: &dyn Programs, row: &RunRow) -> Result<Forecast, StoreError> {
    let definition = if row.definition == Digest::sha256(&[b""]) { None } else { store.blob(row.definition).await? };
    let program = match programs.find(row, &definition.unwrap_or_default()) {
        Ok(program) => program,
        Err(why) => return Ok(Forecast::CannotRun(why.to_string())),
    };
    if row.head == Seq(0) {
        return Ok(Forecast::Clean { adopts: false, decisions: 0, foreign: 0 });
    }
    let projection = match driver::load(store, row).await {
        Ok(loaded) => loaded.projection,
        Err(LoadError::Store(error)) => return Err(error),
        Err(error) => return Ok(Forecast::CannotRun(error.to_string())),
    };
    match fits(&projection, &program) {
        Ok(adopts) => replay(store, row, &program, adopts).await,
        Err(otherwise) => Ok(otherwise),
    }
}

/// Whether a switch is recorded, where decisions can be compared at all.
fn fits(projection: &Projection, program: &Program) -> Result<bool, Forecast> {
    let definition = &**program.definition();
    let (from, to) = (projection.state_version, definition.state_version());
    let migrates = |failure| Forecast::NeedsMigration { from, to, failure };
    match crate::adopt::fit(projection, definition) {
        Ok(Fit::Same) => Ok(false),
        Ok(Fit::Changes(_)) if from != to => Err(migrates(None)),
        Ok(Fit::Changes(_)) => Ok(true),
        Err(Unfit::Migration(failure)) => Err(migrates(Some(failure))),
        Err(Unfit::State(failure)) if from != to => Err(migrates(Some(failure))),
        Err(unfit) => Err(Forecast::CannotRun(unfit.to_string())),
    }
}

async fn replay(store: &dyn Store, row: &RunRow, program: &Program, adopts: bool) -> Result<Forecast, StoreError> {
    let definition = &**program.definition();
    if definition.upgrade() == Upgrade::Unasked {
        return Ok(Forecast::Clean { adopts, decisions: 0, foreign: 0 });
    }
    let mut changes = false;
    entries(store, row, &mut |entry| {
        changes |= entry.kind == Kind::DefinitionChanged;
        !changes
    })
    .await?;
    let strictness = if adopts { Strictness::Structure } else { Strictness::Strict };
    let mut replayer = Replayer::new(row.run, Some(definition), strictness).changing(changes);
    let mut error = None;
    entries(store, row, &mut |entry| {
        // The code is new here: whatever it does, the other Runs are judged as well.
        let taken = catch_unwind(AssertUnwindSafe(|| replayer.take(entry)));
        error = taken.map_or_else(|_| Some(format!("the loop panics at entry {}", entry.seq).into()), into_end);
        error.is_none()
    })
    .await?;
    Ok(match error {
        None => Forecast::Clean { adopts, decisions: replayer.decisions(), foreign: replayer.foreign() },
        Some(End::Differs(divergence)) => Forecast::DecisionsDiffer { adopts, divergence },
        Some(End::Breaks(why)) => Forecast::CannotRun(why),
    })
}

/// What a replay stops at.
enum End {
    Differs(Box<Divergence>),
    Breaks(String),
}

impl From<String> for End {
    fn from(why: String) -> Self {
        Self::Breaks(why)
    }
}

fn into_end(taken: Result<(), ReplayError>) -> Option<End> {
    match taken.err()? {
        ReplayError::Divergence(divergence) => Some(End::Differs(divergence)),
        error @ (ReplayError::Chain(_) | ReplayError::Fold(_) | ReplayError::NoEvent { .. }) => {
            Some(End::Breaks(error.to_string()))
        }
    }
}

/// Hands the Entries up to the row's head to `sink`, until it has enough.
async fn entries(
    store: &dyn Store,
    row: &RunRow,
    sink: &mut (dyn FnMut(&Entry) -> bool + Send),
) -> Result<(), StoreError> {
    let mut after = Seq(0);
    while after < row.head {
        let page = store.entries(row.run, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        if !page.iter().take_while(|entry| entry.seq <= row.head).all(&mut *sink) {
            return Ok(());
        }
    }
    Ok(())
}
