//! Text from outside, cut to a length that fits into an error.

/// At most `limit` characters of `text`, and how many were left out.
pub(crate) fn bounded(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.into(),
        Some((at, _)) => {
            let (head, rest) = text.split_at(at);
            format!("{head}… ({} more characters)", rest.chars().count())
        }
    }
}
