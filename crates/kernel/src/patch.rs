//! State patches: what a decision changed in the serialised State.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A change of the serialised State. State is JSON text, so a patch is text as well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatePatch {
    /// Nothing changed.
    Same,
    /// At byte `.0`, `.1` bytes are replaced by `.2`.
    Splice(u32, u32, String),
    /// The whole State is replaced.
    Set(String),
}

/// The patch does not fit the State.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchDoesNotFit;

impl StatePatch {
    /// The smallest single splice that turns `old` into `new`, or the whole of `new` where that is shorter.
    #[must_use]
    pub fn between(old: &str, new: &str) -> Self {
        if old == new {
            return Self::Same;
        }
        let mut head = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        while !old.is_char_boundary(head) || !new.is_char_boundary(head) {
            head -= 1;
        }
        let tails = old.as_bytes()[head..].iter().rev().zip(new.as_bytes()[head..].iter().rev());
        let mut tail = tails.take_while(|(a, b)| a == b).count();
        while !old.is_char_boundary(old.len() - tail) || !new.is_char_boundary(new.len() - tail) {
            tail -= 1;
        }
        let inserted = &new[head..new.len() - tail];
        // A splice carries two numbers besides its text.
        if inserted.len() + 16 >= new.len() {
            return Self::Set(new.into());
        }
        Self::Splice(head as u32, (old.len() - tail - head) as u32, inserted.into())
    }

    /// Applies the patch.
    ///
    /// # Errors
    /// [`PatchDoesNotFit`] when the splice lies outside of `state` or cuts a character.
    pub fn apply(&self, state: &mut String) -> Result<(), PatchDoesNotFit> {
        match self {
            Self::Same => {}
            Self::Set(new) => state.clone_from(new),
            Self::Splice(at, delete, insert) => {
                let at = *at as usize;
                let end = at.checked_add(*delete as usize).ok_or(PatchDoesNotFit)?;
                if state.get(at..end).is_none() {
                    return Err(PatchDoesNotFit);
                }
                state.replace_range(at..end, insert);
            }
        }
        Ok(())
    }

    /// Bytes that this patch carries.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Same => 0,
            Self::Splice(_, _, text) | Self::Set(text) => text.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_turns_old_into_new() {
        let long = r#"{"step":1,"name":"a rather long state that does not change","n":10}"#;
        let cases = [
            ("", ""),
            ("{}", r#"{"a":1}"#),
            (long, &long.replace("\"n\":10", "\"n\":11")),
            (long, &long.replace("long", "lông é")),
            ("aXXXXb", "aXXb"),
            ("éàü-0123456789-0123456789", "éáü-0123456789-0123456789"),
            ("aaaa", "aaaaaaaa"),
        ];
        for (old, new) in cases {
            let mut state = String::from(old);
            assert_eq!(StatePatch::between(old, new).apply(&mut state), Ok(()), "{old}");
            assert_eq!(state, new);
        }
        assert!(matches!(StatePatch::between(long, &long.replace("\"n\":10", "\"n\":11")), StatePatch::Splice(..)));
    }

    #[test]
    fn a_patch_outside_of_the_state_is_refused() {
        for patch in [StatePatch::Splice(3, 1, "x".into()), StatePatch::Splice(1, u32::MAX, "x".into())] {
            assert_eq!(patch.apply(&mut "ab".into()), Err(PatchDoesNotFit));
        }
        assert_eq!(StatePatch::Splice(1, 1, "x".into()).apply(&mut "aé".into()), Err(PatchDoesNotFit));
    }
}
