//! What Blocks hold as text: for search, for length, and whom it names.

use loopd_protocol::{ActorKey, Block};

/// Bytes of a Message's text that search knows.
const WORDS: usize = 64 << 10;

/// Addressees of one Message.
pub(crate) const ADDRESSEES: usize = 20;

/// Bytes of Blocks, as they are stored.
pub(crate) fn length(blocks: &[Block]) -> u64 {
    serde_json::to_vec(blocks).unwrap_or_default().len() as u64
}

/// The text that search finds a Message by.
pub(crate) fn words(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks.iter().map(Block::words).filter(|text| !text.is_empty()) {
        let room = WORDS.saturating_sub(text.len());
        text.push_str(block.get(..block.floor_char_boundary(room)).unwrap_or_default());
        text.push('\n');
    }
    text
}

/// Actors that a text mentions as `@kind/key`; the first of them, since no Message has more addressees.
pub(crate) fn mentions(blocks: &[Block]) -> Vec<ActorKey> {
    let mut found: Vec<ActorKey> = Vec::new();
    for text in blocks.iter().map(Block::words) {
        for (at, _) in text.match_indices('@') {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            if before.is_some_and(|before| before.is_alphanumeric()) {
                continue;
            }
            let rest = text.get(at + 1..).unwrap_or_default();
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/-_.".contains(c))).unwrap_or(rest.len());
            let name = rest.get(..end).unwrap_or_default().trim_end_matches(['.', '-', '_', '/']);
            if let Ok(actor) = name.parse()
                && !found.contains(&actor)
            {
                found.push(actor);
            }
            // Each is compared with all.
            if found.len() >= ADDRESSEES {
                return found;
            }
        }
    }
    found
}
