//! Making a step durable, with what belongs to it.

use super::super::commit::{self, CommitError, Holder};
use super::listen::Item;
use super::{Activation, DriveError};
use crate::outlet::{self, Before, Stepped};
use loopd_kernel::machine::Step;
use loopd_kernel::projection::Status;
use loopd_kernel::question::OpenQuestion;
use loopd_kernel::{Projection, Seq};
use loopd_store::{RunStatus, Write};
use std::sync::Arc;

/// What a Run was before a step.
pub(super) struct Was {
    pub head: Seq,
    pub questions: Vec<OpenQuestion>,
}

impl Activation {
    /// Releases the Run unless its last commit did.
    ///
    /// # Errors
    /// [`DriveError`]; it is released by the lapse of the worker's lease.
    pub(crate) async fn leave(self) -> Result<Projection, DriveError> {
        let projection = self.machine.projection();
        if !self.released {
            let holder = Holder { keeps: false, ..self.holder };
            let mut nothing = Step::default();
            nothing.blocked = self.blocked;
            let was = Was { head: projection.head.seq, questions: projection.questions.clone() };
            let mut batch = commit::batch(projection, &nothing, was.head, &was.questions, &holder, false);
            batch.writes.extend(self.ask_outlet(&nothing, &was, None).await?);
            let (run, patience) = (projection.run, &self.performer.patience);
            commit::commit(&*self.store, batch, run, was.head, &[], patience).await?;
        }
        Ok(self.machine.projection().clone())
    }

    /// Commits the step and performs what it permits. True: there is more to do.
    pub(super) async fn commit(&mut self, mut step: Step, was: Was, item: Option<Item>) -> Result<bool, DriveError> {
        let run = self.run();
        self.entries_since_snapshot += step.entries.len() as u64;
        self.bytes_since_snapshot += step.entries.iter().map(|entry| entry.record.len()).sum::<usize>();
        let with_snapshot = self.entries_since_snapshot >= self.config.snapshot_entries
            || self.bytes_since_snapshot >= self.config.snapshot_bytes;
        let projection = self.machine.projection();
        // Released only when nothing is left to do here: a Run that is given up belongs to whoever claims it.
        let done = self.queue.is_empty() && self.inflight.is_empty() && !self.more_in_inbox && !step.more;
        // Nothing that is still in flight keeps a sealed Run.
        let sealed = matches!(projection.status, Status::Ended(_));
        let keeps = !(sealed || (self.rests() && done && !self.brings_up(&step)));
        let holder = Holder { keeps, ..self.holder };
        let mut batch = commit::batch(projection, &step, was.head, &was.questions, &holder, with_snapshot);
        batch.writes.extend(self.definition_writes(&step));
        self.hand_down(&mut batch.writes);
        batch.writes.extend(item.as_ref().map(|item| Write::TakeInbox { run, id: item.id }));
        batch.writes.extend(self.ask_outlet(&step, &was, item.as_ref()).await?);
        commit::commit(&*self.store, batch, run, was.head, &step.entries, &self.performer.patience).await?;
        (self.released, self.told) = (!keeps, self.status_after(&step));
        self.probation.take_if(|_| self.machine.projection().recoveries == 0);
        if with_snapshot {
            (self.entries_since_snapshot, self.bytes_since_snapshot) = (0, 0);
        }
        self.cache.extend(&step.entries).map_err(DriveError::Load)?;
        for constants in &step.constants {
            if let Ok(parsed) = serde_json::from_slice(&constants.bytes) {
                self.constants.insert(constants.name.digest, Arc::new(parsed));
            }
        }
        self.unrecorded = None;
        for call in &step.aborted {
            if let Some(flight) = self.handles.remove(call) {
                flight.stop();
            }
        }
        self.soften_cancel();
        self.raise(&step);
        let more = step.more;
        self.probe(std::mem::take(&mut step.probes));
        for permit in step.committed() {
            self.perform(permit).await?;
        }
        Ok(more)
    }

    /// What the outlet adds to a step. A Batch that tells nothing of the Run is none of its business.
    async fn ask_outlet(&self, step: &Step, was: &Was, item: Option<&Item>) -> Result<Vec<Write>, CommitError> {
        let status = self.status_after(step);
        if step.entries.is_empty() && status == self.told {
            return Ok(Vec::new());
        }
        let stepped = Stepped {
            admission: self.admission.as_deref(),
            before: Before { head: was.head, status: self.told, questions: &was.questions },
            after: self.machine.projection(),
            status,
            entries: &step.entries,
            item: item.map(|item| item.key.as_str()),
        };
        outlet::beside(self.outlet.as_ref(), stepped, &self.performer.patience).await
    }

    fn status_after(&self, step: &Step) -> RunStatus {
        commit::status(self.machine.projection(), step.blocked)
    }
}
