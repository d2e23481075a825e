//! Parents and children: what a Run starts, tells and closes, and what it tells its own parent.

use super::admit::Ruling;
use super::{Admission, MachineError, Work};
use crate::budget::Reservation;
use crate::child::{
    Birth, Child, ChildNews, ClosePolicy, Letter, LetterBody, MAX_DEPTH, MAX_OPEN, Parent, Recipient, Spent,
};
use crate::definition::Upgrade;
use crate::effect::EffectClass;
use crate::failure::Failure;
use crate::ids::{CallId, RunId, Seq};
use crate::outcome::{Finality, Outcome};
use crate::projection::Call;
use crate::record::{ActionRecord, ChildEnded, ChildParked, Joins, Record, Settlement};
use crate::units::MicroUsd;
use alloc::string::String;
use alloc::vec::Vec;

impl Work<'_, '_, '_> {
    /// Whether a wanted child may start, and with which limits.
    pub(super) fn rule_child(&self, call: &Call, child: &Child) -> Ruling {
        if self.depth() + 1 > MAX_DEPTH {
            let message = alloc::format!("children go at most {MAX_DEPTH} deep");
            return Ruling::Settle("child.too_deep", message);
        }
        if self.projection.children().count() >= MAX_OPEN {
            let message = alloc::format!("at most {MAX_OPEN} children of one run are open at a time");
            return Ruling::Settle("child.too_many", message);
        }
        let mut slice = self.projection.slice(&child.limits);
        if let Some(wall) = self.projection.limits.wall_ms {
            let left = wall.saturating_sub(self.now().since(self.projection.started_at));
            slice.wall_ms = Some(slice.wall_ms.map_or(left, |asked| asked.min(left)));
        }
        // A child with nothing to spend would only park in its turn.
        let least = Reservation {
            tokens: u64::from(slice.tokens == Some(0)),
            micro_usd: MicroUsd(u64::from(slice.micro_usd == Some(MicroUsd(0)))),
        };
        if let Some(breach) = self.projection.ledger.breach(&self.projection.limits, &least) {
            return Ruling::Breach(breach);
        }
        let mut intended = self.intent(call, EffectClass::Transactional, 0);
        intended.send_ms = 0;
        intended.reserve = self.projection.reservation(&slice);
        intended.slice = Some(slice);
        Ruling::Intend(intended)
    }

    fn depth(&self) -> u32 {
        self.projection.parent.map_or(0, |parent| parent.depth)
    }

    /// The child of a Call that was intended just now starts with this commit.
    pub(super) fn born(&mut self, call: CallId) {
        let child = self.projection.children().find(|(id, _)| *id == call).map(|(_, child)| child.clone());
        let Some(child) = child else { return };
        let parent = Parent { run: self.projection.run, call, depth: self.depth() + 1 };
        self.step.births.push(Birth { child, parent, tenant: self.projection.tenant.clone() });
    }

    /// A child begins. One that cannot ends at once: it exists already, and its parent waits to hear of it.
    pub(super) fn be_born(
        &mut self,
        admission: Admission,
        parent: Parent,
        refused: Option<Failure>,
    ) -> Result<(), MachineError> {
        self.step.definition_changed = true;
        // Whoever only closes Runs makes no State for one that has not begun.
        let unasked = self.env.definition.upgrade() == Upgrade::Unasked;
        let init = || if unasked { Ok(String::new()) } else { self.env.definition.init(&admission.input) };
        let init = refused.map_or_else(init, Err);
        match init {
            Ok(state) => self.start(admission, Some(parent), state),
            Err(failure) => {
                self.start(admission, Some(parent), String::new())?;
                self.end(Outcome::Failed { failure })
            }
        }
    }

    /// Sends what the decision at `decided` tells other Runs.
    pub(super) fn post(&mut self, decided: Seq, actions: &[ActionRecord], payload: &[u8]) {
        for (ordinal, action) in actions.iter().enumerate() {
            let letter = match action {
                ActionRecord::Signal { to, name, body } => {
                    let body = String::from(body.text(payload).unwrap_or_default());
                    self.address(to).map(|to| (to, LetterBody::Signal { name: name.clone(), body }))
                }
                ActionRecord::CancelChild { child, reason } => self.projection.child(child).map(|(_, child)| {
                    let (actor, reason) = (self.signature(), reason.clone());
                    (child.run, LetterBody::Cancel { actor, reason })
                }),
                ActionRecord::RaiseChild { .. } => {
                    let raised = Some((decided, ordinal as u32));
                    let child = self.projection.children().find(|(_, child)| child.raised == raised);
                    let reopen = |child: &Child| LetterBody::Reopen { actor: self.signature(), raise: child.limits };
                    child.map(|(_, child)| (child.run, reopen(child)))
                }
                ActionRecord::Model { .. }
                | ActionRecord::Tool { .. }
                | ActionRecord::Join { .. }
                | ActionRecord::Spawn { .. }
                | ActionRecord::Speak(_)
                | ActionRecord::Ask { .. }
                | ActionRecord::Wait { .. }
                | ActionRecord::Sleep { .. }
                | ActionRecord::Note(_)
                | ActionRecord::Compact { .. }
                | ActionRecord::CancelCalls
                | ActionRecord::Label(..)
                | ActionRecord::Finish(_)
                | ActionRecord::Fail(_) => None,
            };
            if let Some((to, body)) = letter {
                let key = alloc::format!("{}:{decided}:{ordinal}", self.projection.run);
                let kin = self.projection.children().any(|(_, child)| child.run == to);
                self.step.letters.push(Letter { to, key, body, kin });
            }
        }
    }

    fn address(&self, to: &Recipient) -> Option<RunId> {
        match to {
            Recipient::Child(name) => self.projection.child(name).map(|(_, child)| child.run),
            Recipient::Parent => self.projection.parent.map(|parent| parent.run),
            Recipient::Run(run) => Some(*run),
        }
    }

    fn signature(&self) -> String {
        alloc::format!("{}", self.projection.run)
    }

    /// Lets go of every open child before the Run is sealed. Nobody knows yet what they consume: their slices are
    /// charged in full.
    pub(super) fn close_children(&mut self) -> Result<(), MachineError> {
        let open: Vec<(CallId, Child)> = self.projection.children().map(|(id, child)| (id, child.clone())).collect();
        for (call, child) in open {
            let (code, text) = match child.close {
                ClosePolicy::Cancel => ("child.cancelled", "its parent ended first"),
                ClosePolicy::Abandon => ("child.abandoned", "it goes on by itself"),
            };
            if child.close == ClosePolicy::Cancel {
                let body = LetterBody::Cancel { actor: self.signature(), reason: "its parent has ended".into() };
                let key = alloc::format!("{}:closed", self.projection.run);
                self.step.letters.push(Letter { to: child.run, key, body, kin: true });
            }
            self.settled(call, Settlement::Cancelled, Some(code), text.into(), None, None)?;
        }
        Ok(())
    }

    /// A child has ended or is parked.
    pub(super) fn news(&mut self, news: ChildNews) -> Result<(), MachineError> {
        let ChildNews { call, child, outcome, spent } = news;
        let open = self.projection.children().find(|(id, open)| *id == call && open.run == child);
        let open = open.ok_or(super::Refused::NotOpen(call))?.1;
        let joins = Joins::reply(open.reply_to.as_ref(), open.cap);
        if outcome.finality() == Finality::Parked {
            return self.push(&Record::ChildParked(ChildParked { call, child, outcome }), Vec::new());
        }
        let (output, outcome) = outcome.split();
        self.push(&Record::ChildEnded(ChildEnded { call, child, outcome, spent, joins }), output.into_bytes())
    }

    /// Tells the parent that this Run has `outcome` now.
    pub(super) fn tell_parent(&mut self, outcome: Outcome) {
        let Some(parent) = self.projection.parent else { return };
        let (child, spent) = (self.projection.run, Spent::of(&self.projection.ledger));
        let key = alloc::format!("child:{child}:{}", self.projection.head.seq);
        let body = LetterBody::News(ChildNews { call: parent.call, child, outcome, spent });
        self.step.letters.push(Letter { to: parent.run, key, body, kin: false });
    }
}
