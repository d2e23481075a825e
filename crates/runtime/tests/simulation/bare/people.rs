//! The people of the bare workers: they answer, answer again, answer nonsense, signal, reopen and cancel.

use super::World;
use super::worker::ready;
use crate::chance::Chance;
use loopd_kernel::question::{Ask, QuestionEnd};
use loopd_kernel::{Limits, MicroUsd, RunId, TimeMs};
use loopd_store::{Batch, InboxBody, InboxItem, RunRow, RunStatus, Store, Write};

pub struct People {
    chance: Chance,
    /// Once in a few seeds somebody cancels, at this look.
    cancels_at: Option<u64>,
    looks: u64,
}

impl People {
    pub fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed, 7);
        let cancels_at = chance.one_in(8).then(|| chance.below(60));
        Self { chance, cancels_at, looks: 0 }
    }

    /// One look at every Run that has not ended.
    pub fn look(&mut self, open: &[RunRow], world: &mut World) {
        self.looks += 1;
        open.iter().for_each(|row| self.look_at(row, world));
    }

    fn look_at(&mut self, row: &RunRow, world: &mut World) {
        let (run, busy) = (row.run, !world.is_quiet());
        if self.cancels_at.is_some_and(|at| self.looks > at) {
            let body = InboxBody::Cancel { actor: "ann".into(), reason: "enough".into() };
            tell(run, "cancel".into(), body, world);
        }
        if row.status == RunStatus::Parked {
            // What a child may spend is for its parent to say.
            let more = row.parent.is_none().then_some(MicroUsd(1_000_000));
            let raise = Limits { micro_usd: more, ..Limits::default() };
            tell(run, format!("reopen-{}", row.head), InboxBody::Reopen { actor: "bob".into(), raise }, world);
        }
        if busy && self.chance.one_in(6) {
            let name = if self.chance.one_in(2) { "go" } else { "message" };
            let body = InboxBody::Signal { name: name.into(), body: format!("{}", self.looks) };
            // Half of the keys were used before.
            tell(run, format!("signal-{}", self.chance.below(self.looks * 2)), body, world);
        }
        for open in ready(world.store.questions(Some(run), 9)).unwrap() {
            if busy && self.chance.one_in(2) {
                continue;
            }
            for hand in 0..1 + self.chance.below(2) {
                let (question, end, actor) = (open.question.id, QuestionEnd::Answered, "ann".into());
                let value = self.answer(run, &open.question.ask, world);
                let body = InboxBody::Answer { question, end, actor, value };
                // The same item twice, or another answer from another hand.
                let hand = if self.chance.one_in(2) { 0 } else { hand };
                tell(run, format!("answer-{question}-{}-{hand}", self.looks), body, world);
            }
        }
    }

    /// About a payment that nobody is sure of, people look at the ledger, and say what they see there.
    fn answer(&mut self, run: RunId, ask: &Ask, world: &World) -> String {
        let now = TimeMs(0).after(world.agenda.now);
        let landed = |call| {
            let key = world.witnesses.get(&run).and_then(|witness| witness.told(call)).and_then(|told| told.key);
            key.is_some_and(|key| world.outside.has(key.0, now))
        };
        let answer = match ask {
            _ if !world.is_quiet() && self.chance.one_in(4) => "perhaps",
            Ask::Resolve { call, .. } if landed(*call) => r#"{"call":"landed","output":"1"}"#,
            Ask::Resolve { .. } => match self.chance.below(3) {
                0 => r#"{"call":"retry"}"#,
                1 => r#"{"call":"failed","evidence":"not there"}"#,
                _ => r#"{"call":"unknown","evidence":"who knows"}"#,
            },
            Ask::Ask { .. } | Ask::Confirm { .. } => "true",
        };
        answer.to_owned()
    }
}

fn tell(run: RunId, key: String, body: InboxBody, world: &mut World) {
    let at = TimeMs(1_000_000).after(world.agenda.now);
    let item = InboxItem { id: 0, run, key, at, body };
    // One that was there before, or comes too late, changes nothing.
    let _ = ready(world.store.commit(Batch { expect: Vec::new(), writes: vec![Write::AddInbox(item)] }));
    world.hints.push(run);
}
