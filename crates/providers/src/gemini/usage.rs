//! Usage in disjoint classes. In this protocol cached tokens are a part of the prompt; thoughts, and what tools of the
//! provider put into the prompt, stand beside what they belong to.

use loopd_kernel::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What was counted so far. A later chunk counts everything again, but may leave members out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Counts {
    prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    total_token_count: Option<u64>,
}

impl Counts {
    /// Takes the counts of the next chunk.
    pub(super) fn update(&mut self, raw: &RawValue) {
        let Ok(new) = serde_json::from_str::<Self>(raw.get()) else {
            return;
        };
        *self = Self {
            prompt_token_count: new.prompt_token_count.or(self.prompt_token_count),
            cached_content_token_count: new.cached_content_token_count.or(self.cached_content_token_count),
            tool_use_prompt_token_count: new.tool_use_prompt_token_count.or(self.tool_use_prompt_token_count),
            candidates_token_count: new.candidates_token_count.or(self.candidates_token_count),
            thoughts_token_count: new.thoughts_token_count.or(self.thoughts_token_count),
            total_token_count: new.total_token_count.or(self.total_token_count),
        };
    }

    /// Usage, when the server said it. Zeros all over are what servers write that do not count: unknown.
    pub(super) fn usage(self) -> Option<Usage> {
        let prompt = self.prompt_token_count?;
        let cache_read = self.cached_content_token_count.unwrap_or(0);
        let tools = self.tool_use_prompt_token_count.unwrap_or(0);
        let candidates = self.candidates_token_count.unwrap_or(0);
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        let total = self.total_token_count.unwrap_or(0);
        if prompt == 0 && candidates == 0 && thoughts == 0 && total == 0 {
            return None;
        }
        // A part is never larger than its sum; what is larger stands beside it.
        let input = prompt.checked_sub(cache_read).unwrap_or(prompt).saturating_add(tools);
        // Some servers count the thoughts among the candidates' tokens. The total tells.
        let inside = thoughts > 0 && total == prompt.saturating_add(tools).saturating_add(candidates);
        let output = candidates.checked_sub(thoughts).filter(|_| inside).unwrap_or(candidates);
        // What the total alone counts is what nobody sees: thinking.
        let counted = [input, cache_read, output, thoughts].into_iter().fold(0, u64::saturating_add);
        let reasoning = thoughts.saturating_add(total.saturating_sub(counted));
        Some(Usage { input, cache_read, cache_write: 0, output, reasoning })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input, cache read, output, reasoning out of the counts of successive chunks.
    #[track_caller]
    fn check(chunks: &[&str], expect: Option<[u64; 4]>) {
        let mut counts = Counts::default();
        for json in chunks {
            let raw: Box<RawValue> = serde_json::from_str(json).expect("JSON");
            counts.update(&raw);
        }
        let expect = expect.map(|[input, cache_read, output, reasoning]| Usage {
            input,
            cache_read,
            cache_write: 0,
            output,
            reasoning,
        });
        assert_eq!(counts.usage(), expect, "{chunks:?}");
    }

    #[test]
    fn gov_02_no_token_is_counted_twice() {
        check(
            &[r#"{"promptTokenCount":1000,"cachedContentTokenCount":400,"candidatesTokenCount":20,
                  "thoughtsTokenCount":30,"totalTokenCount":1050,"promptTokensDetails":[{"modality":"TEXT","tokenCount":1000}]}"#],
            Some([600, 400, 20, 30]),
        );
        check(&[r#"{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11}"#], Some([9, 0, 2, 0]));
        check(
            &[r#"{"promptTokenCount":9,"toolUsePromptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":16}"#],
            Some([14, 0, 2, 0]),
        );
        // Thoughts among the candidates' tokens, by the total.
        check(
            &[r#"{"promptTokenCount":10,"candidatesTokenCount":8,"thoughtsTokenCount":3,"totalTokenCount":18}"#],
            Some([10, 0, 5, 3]),
        );
        // Thoughts in the total alone.
        check(&[r#"{"promptTokenCount":10,"candidatesTokenCount":5,"totalTokenCount":955}"#], Some([10, 0, 5, 940]));
        // A blocked prompt has no candidates.
        check(&[r#"{"promptTokenCount":7,"totalTokenCount":7}"#], Some([7, 0, 0, 0]));
    }

    #[test]
    fn counts_run_along_and_may_leave_members_out() {
        check(
            &[
                r#"{"promptTokenCount":10,"thoughtsTokenCount":4,"totalTokenCount":14}"#,
                r#"{"promptTokenCount":10,"candidatesTokenCount":1,"thoughtsTokenCount":6,"totalTokenCount":17}"#,
                r#"{"candidatesTokenCount":3,"totalTokenCount":19}"#,
                "null",
                r#"{"totalTokenCount":"many"}"#,
            ],
            Some([10, 0, 3, 6]),
        );
    }

    #[test]
    fn unknown_is_not_zero() {
        for json in ["{}", r#"{"promptTokenCount":0,"totalTokenCount":0}"#, r#"{"candidatesTokenCount":7}"#, "[]", "1"]
        {
            check(&[json], None);
        }
    }
}
