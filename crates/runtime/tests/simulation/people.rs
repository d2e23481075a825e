//! The people of the rivals: they signal, answer, answer again, answer nonsense, reopen and cancel, when they like.

use crate::chance::Chance;
use crate::stage::Stage;
use loopd_kernel::question::{Ask, OpenQuestion, QuestionEnd};
use loopd_kernel::{Limits, MicroUsd, RunId};
use loopd_runtime::{Clock, Runtime};
use loopd_store::{InboxBody, RunRow, RunStatus, Store};

/// What people did so far.
pub struct People<'a> {
    chance: Chance,
    stage: &'a Stage,
    /// Once in a few seeds somebody cancels, at this look.
    cancels_at: Option<u64>,
    looks: u64,
}

impl<'a> People<'a> {
    pub fn new(stage: &'a Stage) -> Self {
        let mut chance = Chance::new(stage.seed, 7);
        let cancels_at = chance.one_in(5).then(|| chance.below(20));
        Self { chance, stage, cancels_at, looks: 0 }
    }

    /// One look at the Run, through one of the workers. `busy` people also do what nobody asked for.
    pub async fn look(&mut self, through: &Runtime, row: &RunRow, busy: bool) {
        self.looks += 1;
        let run = row.run;
        if self.cancels_at.is_some_and(|at| self.looks > at) {
            let body = InboxBody::Cancel { actor: "ann".into(), reason: "enough".into() };
            self.tell(through, run, "cancel".into(), body).await;
        }
        if row.status == RunStatus::Parked {
            // What a child may spend is for its parent to say.
            let more = row.parent.is_none().then_some(MicroUsd(1_000_000));
            let raise = Limits { micro_usd: more, ..Limits::default() };
            let body = InboxBody::Reopen { actor: "bob".into(), raise };
            self.tell(through, run, format!("reopen-{}", row.head), body).await;
        }
        for open in self.stage.store.questions(Some(run), 9).await.unwrap() {
            self.answer(through, run, &open.question, busy).await;
        }
        if busy && self.chance.one_in(3) {
            let name = if self.chance.one_in(2) { "go" } else { "message" };
            let body = InboxBody::Signal { name: name.into(), body: format!("{}", self.looks) };
            // Half of the keys were used before.
            let key = format!("signal-{}", self.chance.below(self.looks * 2));
            self.tell(through, run, key, body).await;
        }
    }

    async fn answer(&mut self, through: &Runtime, run: RunId, open: &OpenQuestion, busy: bool) {
        if busy && self.chance.one_in(2) {
            return;
        }
        for hand in 0..1 + self.chance.below(2) {
            let body = InboxBody::Answer {
                question: open.id,
                end: QuestionEnd::Answered,
                actor: "ann".into(),
                value: self.answer_now(run, &open.ask, busy),
            };
            // The same item twice, or another answer from another hand.
            let hand = if self.chance.one_in(2) { 0 } else { hand };
            self.tell(through, run, format!("answer-{}-{}-{hand}", open.id, self.looks), body).await;
        }
    }

    /// About a payment that nobody is sure of, people look at the ledger, and say what they see there.
    fn answer_now(&mut self, run: RunId, ask: &Ask, busy: bool) -> String {
        let answer = match ask {
            _ if busy && self.chance.one_in(4) => "perhaps",
            Ask::Resolve { tool, args, .. } if self.stage.effects.has(run, tool, args, self.stage.clock.now()) => {
                r#"{"call":"landed","output":"1"}"#
            }
            Ask::Resolve { .. } => match self.chance.below(3) {
                0 => r#"{"call":"retry"}"#,
                1 => r#"{"call":"failed","evidence":"not there"}"#,
                _ => r#"{"call":"unknown","evidence":"who knows"}"#,
            },
            Ask::Ask { .. } | Ask::Confirm { .. } => "true",
        };
        answer.to_owned()
    }

    /// An item that did not arrive is somebody's loss; whoever cares sends it again.
    async fn tell(&self, through: &Runtime, run: RunId, key: String, body: InboxBody) {
        let _ = through.tell(run, key, body).await;
    }
}
