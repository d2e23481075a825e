//! What a Router may do, and whom it may ask.

use crate::Prompts;
use std::collections::BTreeSet;

/// How a Router works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The target that plans and sums up. `None`: `planner` where there is one, else `assistant`, else the first.
    pub planner: Option<String>,
    /// The targets that it may give work to. `None`: all that take calls; those on a demo model only where there is no
    /// other.
    pub agents: Option<BTreeSet<String>>,
    /// Tasks of one plan at most; 1 to [`Config::MOST_TASKS`].
    pub max_tasks: usize,
    /// Plans for one answer at most: the first, and one each time that people say more while it works; at least 1.
    pub max_rounds: usize,
    /// Seconds that one call may take; at most [`Config::LONGEST_S`].
    pub timeout_s: u64,
    /// Tokens of the whole answer: plans, tasks, repeated ones and the summing up together.
    pub tokens: Option<u64>,
    /// Money of the whole answer, in millionths of a US dollar. A model whose price nobody knows is refused under it.
    pub micro_usd: Option<u64>,
    /// Messages before the question that the planner is shown.
    pub history_messages: u32,
    /// Bytes of them.
    pub history_bytes: usize,
    /// Bytes of all that was found, as the planner and whoever sums up are shown it; at most [`Config::MOST_EVIDENCE`].
    pub evidence_bytes: usize,
    /// What the models are told.
    pub prompts: Prompts,
}

impl Config {
    /// The most tasks that a plan may have: with the plan itself they are one Turn.
    pub const MOST_TASKS: usize = 40;

    /// The longest that a call may take, in seconds: a week, as the platform has it.
    pub const LONGEST_S: u64 = 7 * 86_400;

    /// The most bytes of evidence: with the question it has to fit into a prompt.
    pub const MOST_EVIDENCE: usize = 256 << 10;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            planner: None,
            agents: None,
            max_tasks: 6,
            max_rounds: 5,
            timeout_s: 30 * 60,
            tokens: Some(400_000),
            micro_usd: None,
            history_messages: 20,
            history_bytes: 16 << 10,
            evidence_bytes: 48 << 10,
            prompts: Prompts::default(),
        }
    }
}
