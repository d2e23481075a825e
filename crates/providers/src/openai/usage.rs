//! Usage in disjoint classes.

use crate::usage::Sums;
use loopd_kernel::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<Prompt>,
    completion_tokens_details: Option<Completion>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Option<u64>,
    /// Gateways before Anthropic.
    cache_creation_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Prompt {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Completion {
    reasoning_tokens: Option<u64>,
}

/// Usage, when the server said it.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    let counts: Counts = serde_json::from_str(raw.get()).ok()?;
    let (prompt, completion) = (counts.prompt_tokens?, counts.completion_tokens?);
    let details = counts.prompt_tokens_details.unwrap_or_default();
    let cache_read = details.cached_tokens.or(counts.prompt_cache_hit_tokens).unwrap_or(0);
    let cache_write = details.cache_write_tokens.or(counts.cache_creation_input_tokens).unwrap_or(0);
    let reasoning = counts.completion_tokens_details.unwrap_or_default().reasoning_tokens.unwrap_or(0);
    Sums { input: prompt, output: completion, total: counts.total_tokens, cache_read, cache_write, reasoning }
        .disjoint()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, expect: Option<[u64; 5]>) {
        let raw: Box<RawValue> = serde_json::from_str(json).expect("JSON");
        let expect = expect.map(|[input, cache_read, cache_write, output, reasoning]| Usage {
            input,
            cache_read,
            cache_write,
            output,
            reasoning,
        });
        assert_eq!(usage(&raw), expect, "{json}");
    }

    #[test]
    fn gov_02_no_token_is_counted_twice() {
        check(
            r#"{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,
                "prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":30}}"#,
            Some([600, 400, 0, 20, 30]),
        );
        check(r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#, Some([9, 0, 0, 2, 0]));
        check(r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_cache_hit_tokens":4}"#, Some([5, 4, 0, 2, 0]));
        check(
            r#"{"prompt_tokens":90,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":30}}"#,
            Some([20, 40, 30, 2, 0]),
        );
        check(r#"{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":null}"#, Some([9, 0, 0, 2, 0]));
    }

    #[test]
    fn servers_that_count_beside_are_recognised() {
        // Reasoning beside the completion, by the total.
        check(
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":3}}"#,
            Some([10, 0, 0, 5, 3]),
        );
        // Cached beside the prompt, by its size.
        check(
            r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":400}}"#,
            Some([10, 400, 0, 5, 0]),
        );
    }

    #[test]
    fn unknown_is_not_zero() {
        for json in [
            "{}",
            r#"{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}"#,
            r#"{"prompt_tokens":7}"#,
            r#"{"prompt_tokens":"many","completion_tokens":1}"#,
            "[]",
        ] {
            check(json, None);
        }
    }
}
