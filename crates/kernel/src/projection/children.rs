//! Child Runs in the fold.

use super::{Call, FoldProblem, Projection, Target};
use crate::budget::{Limits, Reservation};
use crate::child::{Child, derive_id};
use crate::ids::{CallId, Seq};
use crate::record::{ActionRecord, ChildEnded, ChildParked};
use crate::units::MicroUsd;

impl Projection {
    /// The child that a decision wants.
    pub(super) fn want_child(&mut self, decided: Seq, ordinal: u32, action: &ActionRecord, input: &str) {
        let ActionRecord::Spawn { id, name, loop_name, definition, limits, close, reply_to, cap, .. } = action else {
            return;
        };
        if let Some(digest) = definition.filter(|digest| !self.constants.contains(digest)) {
            self.constants.push(digest);
        }
        let child = Child {
            run: derive_id(self.run, decided, ordinal),
            name: name.clone(),
            loop_name: loop_name.clone(),
            definition: *definition,
            input: input.into(),
            limits: *limits,
            close: *close,
            reply_to: reply_to.clone(),
            cap: *cap,
            parked: false,
            raised: None,
        };
        self.last_call = self.last_call.max(*id);
        self.wanted.push(Call::wanted(*id, decided, ordinal, Target::Child(child)));
    }

    /// The oldest open child with this name.
    #[must_use]
    pub fn child(&self, name: &str) -> Option<(CallId, &Child)> {
        self.children().find(|(_, child)| child.name == name)
    }

    /// The slice of a child that asks for `limits`: what it asks for, at most what is left under the limits here.
    pub(crate) fn slice(&self, limits: &Limits) -> Limits {
        let ledger = &self.ledger;
        let left = |limit: u64, used: u64, asked: Option<u64>| {
            let left = limit.saturating_sub(used);
            Some(asked.map_or(left, |asked| asked.min(left)))
        };
        let tokens = ledger.tokens().saturating_add(ledger.reserved_tokens);
        let money = ledger.spent.plus(ledger.reserved);
        Limits {
            tokens: self.limits.tokens.map_or(limits.tokens, |limit| left(limit, tokens, limits.tokens)),
            micro_usd: match self.limits.micro_usd {
                Some(limit) => left(limit.0, money.0, limits.micro_usd.map(|money| money.0)).map(MicroUsd),
                None => limits.micro_usd,
            },
            ..*limits
        }
    }

    /// What a slice reserves here: only what is limited here.
    pub(crate) fn reservation(&self, slice: &Limits) -> Reservation {
        Reservation {
            tokens: self.limits.tokens.and(slice.tokens).unwrap_or(0),
            micro_usd: self.limits.micro_usd.and(slice.micro_usd).unwrap_or_default(),
        }
    }

    /// Gives a parked child more, as far as there is more.
    pub(super) fn raise_child(&mut self, action: (Seq, u32), name: &str, by: &Limits) {
        let parked = |call: &Call| call.target.child().is_some_and(|child| child.name == name && child.parked);
        let Some(at) = self.open.iter().position(parked) else { return };
        // Without a wish for tokens or money nothing more is reserved.
        let asked = Limits { tokens: by.tokens.or(Some(0)), micro_usd: by.micro_usd.or(Some(MicroUsd(0))), ..*by };
        let slice = self.slice(&asked);
        if !by.is_empty() && slice.is_nothing() {
            return;
        }
        let more = self.reservation(&slice);
        self.ledger.reserve(&more);
        let Some(call) = self.open.get_mut(at) else { return };
        if let Some(intent) = &mut call.intent {
            intent.reserve.tokens = intent.reserve.tokens.saturating_add(more.tokens);
            intent.reserve.micro_usd = intent.reserve.micro_usd.plus(more.micro_usd);
        }
        if let Target::Child(child) = &mut call.target {
            child.limits = child.limits.plus(&slice);
            child.parked = false;
            child.raised = Some(action);
        }
    }

    pub(super) fn child_ended(&mut self, ended: &ChildEnded) -> Result<(), FoldProblem> {
        let call = super::fold::take(&mut self.open, ended.call)?;
        self.recoveries = 0;
        self.ledger.spend_child(&call.reserved(), &ended.spent);
        Ok(())
    }

    pub(super) fn child_parked(&mut self, parked: &ChildParked) -> Result<(), FoldProblem> {
        let call = self.open.iter_mut().find(|call| call.id == parked.call);
        let call = call.ok_or(FoldProblem::NoSuchCall(parked.call))?;
        if let Target::Child(child) = &mut call.target {
            child.parked = true;
        }
        Ok(())
    }
}
