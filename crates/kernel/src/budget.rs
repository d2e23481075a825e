//! Limits and the ledger. The ledger is folded from the Journal, so neither a crash nor a pause resets it.

use crate::child::Spent;
use crate::units::{MicroUsd, Price, Usage, is_zero};
use serde::{Deserialize, Serialize};

/// The limits of a Run; `None` is unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Tokens of all classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_usd: Option<MicroUsd>,
    /// Milliseconds since the start, waiting included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    /// Failed attempts that are repeated, over all Calls; without it [`RETRIES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
}

/// Failed attempts that a Run without a limit of its own repeats, over all its Calls.
pub const RETRIES: u64 = 256;

impl Limits {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True when no dimension has anything.
    pub(crate) fn is_nothing(&self) -> bool {
        let Self { iterations, tokens, micro_usd, wall_ms, retries } = *self;
        let money = micro_usd.map(|money| money.0);
        [iterations, tokens, money, wall_ms, retries].into_iter().flatten().all(|more| more == 0)
    }

    /// These limits with every one that `more` names raised by it; unlimited stays unlimited.
    pub(crate) fn plus(&self, more: &Self) -> Self {
        let add = |limit: Option<u64>, more: Option<u64>| limit.map(|limit| limit.saturating_add(more.unwrap_or(0)));
        Self {
            iterations: add(self.iterations, more.iterations),
            tokens: add(self.tokens, more.tokens),
            micro_usd: self.micro_usd.map(|limit| limit.plus(more.micro_usd.unwrap_or_default())),
            wall_ms: add(self.wall_ms, more.wall_ms),
            retries: add(self.retries, more.retries),
        }
    }

    /// These limits with every one that `other` names replaced.
    #[must_use]
    pub fn overridden(&self, other: &Self) -> Self {
        Self {
            iterations: other.iterations.or(self.iterations),
            tokens: other.tokens.or(self.tokens),
            micro_usd: other.micro_usd.or(self.micro_usd),
            wall_ms: other.wall_ms.or(self.wall_ms),
            retries: other.retries.or(self.retries),
        }
    }

    /// These limits with every limit that `raise` names raised to it. None is lowered; one that is not there yet is set.
    #[must_use]
    pub fn raised(&self, raise: &Self) -> Self {
        // `None` is the least of all.
        Self {
            iterations: self.iterations.max(raise.iterations),
            tokens: self.tokens.max(raise.tokens),
            micro_usd: self.micro_usd.max(raise.micro_usd),
            wall_ms: self.wall_ms.max(raise.wall_ms),
            retries: self.retries.max(raise.retries),
        }
    }
}

/// One limited dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// Iterations.
    Iterations,
    /// Tokens.
    Tokens,
    /// Micro-dollars.
    MicroUsd,
    /// Wall time in milliseconds.
    WallMs,
}

impl Dimension {
    /// The name of the flag and manifest field that limits it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iterations => "iterations",
            Self::Tokens => "tokens",
            Self::MicroUsd => "usd",
            Self::WallMs => "wall",
        }
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breach {
    /// The dimension.
    pub dimension: Dimension,
    /// The limit, in the dimension's unit.
    pub limit: u64,
    /// What was spent or reserved already.
    pub used: u64,
    /// What the refused step would have needed on top.
    pub needed: u64,
}

/// What an intended model call may consume at the most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// Tokens, input and output.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// Money.
    #[serde(default, skip_serializing_if = "no_money")]
    pub micro_usd: MicroUsd,
}

fn no_money(amount: &MicroUsd) -> bool {
    amount.0 == 0
}

impl Reservation {
    /// True when nothing is reserved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a Run has consumed and what its open Calls may still consume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// Iterations started.
    pub iterations: u64,
    /// Model calls settled or charged.
    pub model_calls: u64,
    /// Tool calls settled.
    pub tool_calls: u64,
    /// Child Runs that settled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children: u64,
    /// Failed attempts that were repeated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Tokens per class that a provider reported.
    pub usage: Usage,
    /// Tokens charged at their reservation because nobody knows what was used.
    pub charged_tokens: u64,
    /// Money spent, lost attempts included.
    pub spent: MicroUsd,
    /// Tokens reserved by open calls.
    pub reserved_tokens: u64,
    /// Money reserved by open calls.
    pub reserved: MicroUsd,
    /// Money by which providers passed the bound that was reserved.
    pub overshoot: MicroUsd,
    /// Tokens by which providers passed the bound that was reserved.
    pub overshoot_tokens: u64,
}

impl Ledger {
    /// All tokens that count against the limit.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.charged_tokens)
    }

    pub(crate) fn reserve(&mut self, reservation: &Reservation) {
        self.reserved_tokens = self.reserved_tokens.saturating_add(reservation.tokens);
        self.reserved = self.reserved.plus(reservation.micro_usd);
    }

    fn release(&mut self, reservation: &Reservation) {
        self.reserved_tokens = self.reserved_tokens.saturating_sub(reservation.tokens);
        self.reserved = self.reserved.minus(reservation.micro_usd);
    }

    /// Counts a settled or lost attempt. Unknown usage is charged at the reservation; a known usage
    /// beyond the reservation is counted in full and shown as overshoot.
    pub(crate) fn spend(&mut self, reservation: &Reservation, usage: Option<&Usage>, cost: Option<MicroUsd>) {
        self.release(reservation);
        self.charge(reservation, usage, cost);
    }

    /// Takes over what a child consumed, and gives its slice back. Only a slice that was reserved can be passed.
    pub(crate) fn spend_child(&mut self, slice: &Reservation, spent: &Spent) {
        self.release(slice);
        self.children += 1;
        self.usage = self.usage.plus(&spent.usage);
        self.charged_tokens = self.charged_tokens.saturating_add(spent.charged_tokens);
        self.spent = self.spent.plus(spent.money);
        if slice.tokens > 0 {
            let over = spent.usage.total().saturating_add(spent.charged_tokens).saturating_sub(slice.tokens);
            self.overshoot_tokens = self.overshoot_tokens.saturating_add(over);
        }
        if slice.micro_usd > MicroUsd(0) {
            self.overshoot = self.overshoot.plus(spent.money.minus(slice.micro_usd));
        }
    }

    /// Like [`Ledger::spend`] for a lost attempt of a call that stays open: its reservation stays.
    pub(crate) fn charge(&mut self, reservation: &Reservation, usage: Option<&Usage>, cost: Option<MicroUsd>) {
        match usage {
            Some(usage) => {
                self.usage = self.usage.plus(usage);
                let over = usage.total().saturating_sub(reservation.tokens);
                self.overshoot_tokens = self.overshoot_tokens.saturating_add(over);
            }
            None => self.charged_tokens = self.charged_tokens.saturating_add(reservation.tokens),
        }
        let cost = cost.unwrap_or(reservation.micro_usd);
        self.spent = self.spent.plus(cost);
        self.overshoot = self.overshoot.plus(cost.minus(reservation.micro_usd));
    }

    /// The first limit that `need` on top of this ledger would pass.
    #[must_use]
    pub fn breach(&self, limits: &Limits, need: &Reservation) -> Option<Breach> {
        let over = |dimension, limit: Option<u64>, used: u64, needed: u64| {
            let limit = limit?;
            // A dimension that is spent already stops a step of unknown size as well.
            let passed =
                used.saturating_add(needed) > limit || (used >= limit && limit > 0 && needed > 0) || used > limit;
            passed.then_some(Breach { dimension, limit, used, needed })
        };
        let tokens = self.tokens().saturating_add(self.reserved_tokens);
        let money = self.spent.plus(self.reserved);
        over(Dimension::Tokens, limits.tokens, tokens, need.tokens)
            .or_else(|| over(Dimension::MicroUsd, limits.micro_usd.map(|m| m.0), money.0, need.micro_usd.0))
    }

    /// Output tokens that fit under the limits beside `input` tokens at `price`; at most `wanted`.
    #[must_use]
    pub fn affordable_output(&self, limits: &Limits, input: u64, wanted: u64, price: Option<&Price>) -> u64 {
        let mut left = wanted;
        if let Some(limit) = limits.tokens {
            let used = self.tokens().saturating_add(self.reserved_tokens).saturating_add(input);
            left = left.min(limit.saturating_sub(used));
        }
        if let (Some(limit), Some(price)) = (limits.micro_usd, price) {
            let input_cost = price.cost(&Usage { input, ..Usage::default() });
            let money = limit.minus(self.spent).minus(self.reserved).minus(input_cost);
            let dearest = price.output.max(price.reasoning);
            if dearest > 0 {
                let fits = u128::from(money.0) * 1_000_000 / u128::from(dearest);
                left = left.min(u64::try_from(fits).unwrap_or(u64::MAX));
            }
        }
        left
    }
}
