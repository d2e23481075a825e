//! Guessing which known word was meant.

/// The known word that differs from `word` in the fewest letters, when it is few enough to be a slip.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    // Long texts are no slips, and comparing them costs the product of their lengths.
    if word.len() > 64 {
        return None;
    }
    known.map(|other| (distance(word, other), other)).filter(|(far, _)| *far <= most).min().map(|(_, other)| other)
}

/// Letters to insert, remove, replace or swap with their neighbour, regardless of case and of `_` against `-`.
fn distance(a: &str, b: &str) -> usize {
    let plain = |text: &str| -> Vec<char> {
        text.chars().map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    let (a, b) = (plain(a), plain(b));
    // Row i, column j: the distance of the first i letters of `a` from the first j letters of `b`.
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let (above, before) = (&rows[i - 1], row[j - 1]);
            let mut least = (above[j] + 1).min(before + 1).min(above[j - 1] + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_guessed_and_other_words_are_not() {
        let known = ["model", "instructions", "tools", "maxOutputTokens", "read_file"];
        let near = |word| nearest(word, known.into_iter());
        assert_eq!(near("modle"), Some("model"));
        assert_eq!(near("max_output_tokens"), Some("maxOutputTokens"));
        assert_eq!(near("read-file"), Some("read_file"));
        assert_eq!(near("tool"), Some("tools"));
        assert_eq!(near("weather"), None);
        assert_eq!(near(""), None);
    }

    #[test]
    fn distances_count_slips() {
        for (a, b, far) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("flaw", "lawn", 2)] {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
    }
}
