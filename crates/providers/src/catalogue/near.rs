//! Names that somebody may have meant.

use super::Listing;

/// The listed names that are nearest to `name`, as far as they are near enough to be a slip or to contain it.
pub(super) fn nearest<'a>(listed: &'a [Listing], name: &str, most: usize) -> Vec<&'a Listing> {
    // Comparing costs the product of the lengths, and nobody slips over so long a name.
    if name.is_empty() || name.len() > 100 {
        return Vec::new();
    }
    let wanted = plain(name);
    let slips = (wanted.len() / 3).clamp(1, 4);
    let mut near: Vec<(usize, &Listing)> = Vec::new();
    for line in listed {
        let other = plain(&line.name);
        // A router lists the models of others with their maker before them.
        let bare = plain(line.name.rsplit('/').next().unwrap_or_default());
        let contains = || wanted.len() > 3 && other.windows(wanted.len()).any(|part| part == wanted);
        let far = distance(&wanted, &other).min(distance(&wanted, &bare) + usize::from(other != bare));
        if far <= slips {
            near.push((far, line));
        } else if contains() {
            near.push((slips + other.len() - wanted.len(), line));
        }
    }
    near.sort_by_key(|(far, line)| (*far, line.name.len()));
    near.into_iter().map(|(_, line)| line).take(most).collect()
}

/// A name as people tell names apart: case, and the sign between two parts, are no difference.
fn plain(name: &str) -> Vec<char> {
    name.chars().map(|c| if "._: ".contains(c) { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Letters to insert, remove or replace.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (above, y) in row.iter_mut().skip(1).zip(b) {
            let least = (left + 1).min(*above + 1).min(corner + usize::from(x != y));
            (corner, left) = (*above, least);
            *above = least;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_slips() {
        let far = |a: &str, b: &str| distance(&plain(a), &plain(b));
        for (a, b, expect) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "abc", 0), ("gpt-5.4", "gpt-5-4", 0)] {
            assert_eq!(far(a, b), expect, "{a} {b}");
            assert_eq!(far(b, a), expect, "{b} {a}");
        }
    }
}
