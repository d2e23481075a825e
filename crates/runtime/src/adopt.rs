//! Taking over a claimed Run: who can drive it, from where, and what comes first.

use crate::driver::{self, Loaded};
use crate::handle::{Driven, StartError};
use crate::program::{CannotRun, Program};
use crate::runtime::Runtime;
use loopd_kernel::machine::Input;
use loopd_kernel::projection::Projection;
use loopd_kernel::upgrade::{self, Fit};
use loopd_kernel::{Digest, ErasedLoop, Failure, Seq};
use loopd_store::{Batch, Claimed, Expect, InboxBody, RunRow, RunStatus, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Whether a definition goes on with a Run. Code that panics over its State is code that does not read it: whoever asks
/// has other Runs as well.
pub(crate) fn fit(projection: &Projection, definition: &dyn ErasedLoop) -> Result<Fit, upgrade::Unfit> {
    let panicked = || Failure::new("loop.panicked", "the loop panicked over the State that it was to go on with");
    catch_unwind(AssertUnwindSafe(|| upgrade::fit(projection, definition)))
        .unwrap_or_else(|_| Err(upgrade::Unfit::State(panicked())))
}

/// A claimed Run that cannot be driven here, as it is to be given back, and why.
pub(crate) struct Unfit {
    pub row: RunRow,
    pub error: StartError,
}

impl Runtime {
    pub(crate) async fn program_for(&self, row: &RunRow) -> Result<Arc<Program>, StartError> {
        let empty = Digest::sha256(&[b""]);
        let definition = if row.definition == empty {
            Vec::new()
        } else {
            self.inner.store.blob(row.definition).await?.unwrap_or_default()
        };
        self.inner.programs.find(row, &definition).map_err(StartError::CannotRun)
    }

    /// Begins to drive a claimed Run. One that cannot be driven here is to be released again, its Journal untouched.
    pub(crate) async fn adopt(&self, claimed: Claimed) -> Result<Driven, Unfit> {
        let Claimed { mut row, crashed } = claimed;
        match self.prepare(&mut row).await {
            Ok((program, loaded, mut first)) => {
                let projection = &loaded.projection;
                let parked = row.status == RunStatus::Parked;
                // Open Calls without an activation are a crash, whatever the row says.
                let recover = projection.is_in_flight() || (crashed && !parked);
                // A Run that has not begun is begun by what its inbox holds.
                if row.head > Seq(0) {
                    first.push(if recover { Input::Recover } else { Input::Continue });
                }
                self.raise_children(projection);
                Ok(self.activate(program, loaded, self.holder(row.epoch), first))
            }
            Err(error) => Err(Unfit { row, error }),
        }
    }

    /// The Program and the Run, and what has to be recorded before anything else.
    async fn prepare(&self, row: &mut RunRow) -> Result<(Arc<Program>, Loaded, Vec<Input>), StartError> {
        let cannot = |why: String| StartError::CannotRun(CannotRun(why));
        let loaded = driver::load(&*self.inner.store, row).await.map_err(StartError::Load)?;
        if row.head > Seq(0) {
            // The claim made it look as if it moved.
            row.status = driver::status(&loaded.projection, false);
        }
        let program = self.program_for(row).await?;
        if row.head == Seq(0) {
            let first = self.inner.store.inbox(row.run, 1).await?;
            let begins = first.first().is_some_and(|item| matches!(item.body, InboxBody::Birth { .. }));
            return if begins { Ok((program, loaded, Vec::new())) } else { Err(cannot("it never began".into())) };
        }
        let fit = fit(&loaded.projection, &**program.definition());
        let first = match fit.map_err(|unfit| cannot(unfit.to_string()))? {
            Fit::Same => Vec::new(),
            Fit::Changes(_) => vec![Input::ChangeDefinition],
        };
        Ok((program, loaded, first))
    }

    /// Where nothing is claimed, a parent brings its open children along.
    fn raise_children(&self, projection: &Projection) {
        if let Some(family) = &self.inner.family {
            projection.children().for_each(|(_, child)| family.raise(child.run, projection.run));
        }
    }

    /// Drives a child whose parent waits for it here. One that cannot be driven is not waited for.
    pub(crate) async fn raise(&self, child: loopd_kernel::RunId) {
        if let Err(error) = self.resume(child).await {
            tracing::info!(run = %child, %error, "a child is not driven here");
            if let Some(parent) = self.inner.family.as_ref().and_then(|family| family.leave(child)) {
                crate::keeper::notify(self, |run| run == parent);
            }
        }
    }

    /// Gives a claimed Run back as it was found.
    pub(crate) async fn release(&self, row: &RunRow) {
        let update = Write::UpdateRun {
            run: row.run,
            status: row.status,
            worker: None,
            wake_at: row.wake_at,
            outcome: row.outcome.clone(),
            iteration: row.iteration,
            tokens: row.tokens,
            spent: row.spent,
            updated_at: row.updated_at,
        };
        let expect = vec![Expect::RunAt { run: row.run, seq: row.head, epoch: row.epoch }];
        if let Err(error) = self.inner.store.commit(Batch { expect, writes: vec![update] }).await {
            tracing::warn!(run = %row.run, %error, "a run that cannot be driven here could not be released");
            // Its row says that this worker drives it, so nobody else will come to it.
            self.try_again_later(row.run);
        }
    }
}
