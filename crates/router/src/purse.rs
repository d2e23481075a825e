//! The budget of a whole answer: what its calls have used and may still use never exceeds it.

use loopd_protocol::{Budget, HarnessCall};

/// Tokens without which a call is not worth making.
const LEAST_TOKENS: u64 = 200;

/// Of what is left, the part that is kept for summing up: a fifth.
const KEPT: u64 = 5;

/// Of what is left, the part that one plan may use: a quarter.
const PLAN: u64 = 4;

/// What is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Purse {
    tokens: Option<u64>,
    micro_usd: Option<u64>,
}

impl Purse {
    /// What these calls leave of it. One that goes on counts with all that it may use.
    pub fn after<'a>(
        (tokens, micro_usd): (Option<u64>, Option<u64>),
        calls: impl Iterator<Item = &'a HarnessCall>,
    ) -> Self {
        let mut left = Self { tokens, micro_usd };
        for call in calls {
            let used = |budget: Option<u64>, spent| if call.phase.is_final() { spent } else { budget.unwrap_or(spent) };
            left.tokens = left.tokens.map(|left| left.saturating_sub(used(call.budget.tokens, call.spent.tokens)));
            left.micro_usd =
                left.micro_usd.map(|left| left.saturating_sub(used(call.budget.micro_usd, call.spent.micro_usd)));
        }
        left
    }

    /// What a plan may use.
    pub fn for_plan(self) -> Option<Budget> {
        self.part(1, PLAN)
    }

    /// What each of so many tasks may use, so that summing up is still possible.
    pub fn for_tasks(self, tasks: usize) -> Option<Budget> {
        let tasks = u64::try_from(tasks.max(1)).unwrap_or(u64::MAX);
        self.part(KEPT - 1, KEPT.saturating_mul(tasks))
    }

    /// What the last call may use.
    pub fn rest(self) -> Option<Budget> {
        self.part(1, 1)
    }

    fn part(self, times: u64, of: u64) -> Option<Budget> {
        let share = |left: u64| left.saturating_mul(times) / of;
        let (tokens, micro_usd) = (self.tokens.map(share), self.micro_usd.map(share));
        let is_enough = tokens.is_none_or(|tokens| tokens >= LEAST_TOKENS) && micro_usd.is_none_or(|usd| usd > 0);
        is_enough.then_some(Budget { tokens, micro_usd, iterations: None })
    }
}
