//! Where a text that is not there may have been meant.

use std::collections::BTreeSet;

/// Lines that are looked at.
const MAX_LINES: usize = 100_000;

/// Characters of a line that are compared and shown.
const MAX_CHARS: usize = 200;

/// How much of two lines has to be the same, in hundredths.
const ALIKE: usize = 50;

/// The line that is most like the first line of `wanted`, in words; `None` when none is.
pub(super) fn nearest(text: &str, wanted: &str) -> Option<String> {
    let wanted = wanted.lines().map(str::trim).find(|line| !line.is_empty())?;
    let lines = || text.lines().take(MAX_LINES).enumerate();
    if let Some((number, line)) = lines().find(|(_, line)| same_words(line, wanted)) {
        let what =
            if line.contains(wanted) { "holds its first line" } else { "differs from its first line in white space" };
        return Some(format!("Line {} {what}: `{}`", number + 1, shown(line)));
    }
    let pairs = pairs(wanted);
    let best = lines().map(|(number, line)| (alike(&pairs, line), number, line)).max_by_key(|(score, number, _)| {
        // Of lines that are alike the first one.
        (*score, usize::MAX - number)
    });
    let (_, number, line) = best.filter(|(score, _, _)| *score >= ALIKE)?;
    Some(format!("The nearest is line {}: `{}`", number + 1, shown(line)))
}

fn same_words(line: &str, wanted: &str) -> bool {
    let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    line.len() <= 4 * MAX_CHARS && bare(line).contains(&bare(wanted))
}

fn pairs(line: &str) -> BTreeSet<(char, char)> {
    let chars: Vec<char> = line.trim().chars().take(MAX_CHARS).collect();
    chars.iter().zip(chars.iter().skip(1)).map(|(a, b)| (*a, *b)).collect()
}

/// How many of the pairs of neighbouring characters two lines share, in hundredths.
fn alike(wanted: &BTreeSet<(char, char)>, line: &str) -> usize {
    let found = pairs(line);
    let all = wanted.len() + found.len();
    (200 * wanted.intersection(&found).count()).checked_div(all).unwrap_or(0)
}

fn shown(line: &str) -> String {
    line.trim().chars().take(MAX_CHARS).collect()
}
