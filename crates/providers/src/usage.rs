//! Usage in disjoint classes, out of OpenAI's way of counting: cached tokens are a part of the input tokens, and
//! reasoning tokens a part of the output tokens. Some servers count them beside.

use loopd_kernel::Usage;

/// What a server counted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sums {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) total: Option<u64>,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    pub(crate) reasoning: u64,
}

impl Sums {
    /// The classes. Zeros all over are what servers write that do not count: unknown.
    pub(crate) fn disjoint(self) -> Option<Usage> {
        let Self { input: prompt, output: completion, total, cache_read, cache_write, reasoning } = self;
        if prompt == 0 && completion == 0 {
            return None;
        }
        // The total tells whether a class is a part of its sum or stands beside it. A part is never larger than its
        // sum.
        let total = total.unwrap_or(0);
        let is_beside = |part: u64, sum: u64| {
            part > sum || (part > 0 && total == prompt.saturating_add(completion).saturating_add(part))
        };
        let cached = cache_read.saturating_add(cache_write);
        let input = if is_beside(cached, prompt) { prompt } else { prompt - cached };
        let output = if is_beside(reasoning, completion) { completion } else { completion - reasoning };
        // Some servers count the thinking in the total alone.
        let counted = [input, cache_read, cache_write, output, reasoning].into_iter().fold(0, u64::saturating_add);
        let reasoning = reasoning.saturating_add(total.saturating_sub(counted));
        Some(Usage { input, cache_read, cache_write, output, reasoning })
    }
}
