//! What has to hold of every ended Run, whatever happened to it.

use crate::scripts::Effect;
use crate::stage::Stage;
use crate::witness::Witness;
use loopd_kernel::{ErasedLoop, Seq};
use loopd_store::{RunRow, Store};

/// Replays the Journal strictly and compares it with what happened.
pub async fn check<'a>(stage: &Stage, row: &RunRow, definition: &'a dyn ErasedLoop) -> Witness<'a> {
    let mut witness = Witness::of(row.run, definition);
    for entry in stage.store.entries(row.run, Seq(0), 10_000).await.unwrap() {
        witness.take(&entry);
    }
    let effects: Vec<Effect> = stage.effects.all().into_iter().filter(|effect| effect.run == row.run).collect();
    witness.finish(row, &effects);
    assert_eq!(stage.store.questions(Some(row.run), 9).await.unwrap(), [], "ended with questions");
    witness
}
