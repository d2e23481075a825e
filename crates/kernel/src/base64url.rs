//! base64url without padding. Only the canonical form is read.

use alloc::string::String;
use alloc::vec::Vec;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What each character means; 64 is none of them.
const VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let mut values = [64; 256];
    let mut at = 0;
    while at < ALPHABET.len() {
        values[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    values
}

/// The text of `bytes`.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    let symbol = |bits: u32, shift: u32| char::from(ALPHABET[(bits >> shift) as usize & 63]);
    let mut triples = bytes.chunks_exact(3);
    for triple in &mut triples {
        let bits = triple.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        text.extend([symbol(bits, 18), symbol(bits, 12), symbol(bits, 6), symbol(bits, 0)]);
    }
    match *triples.remainder() {
        [one] => text.extend([symbol(u32::from(one), 2), symbol(u32::from(one) << 4, 0)]),
        [one, two] => {
            let bits = u32::from(one) << 8 | u32::from(two);
            text.extend([symbol(bits, 10), symbol(bits, 4), symbol(bits << 2, 0)]);
        }
        _ => {}
    }
    text
}

/// The bytes of `text`, unless it is not what [`encode`] writes.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for character in text.bytes() {
        let value = VALUES[character as usize];
        if value == 64 {
            return None;
        }
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // A lone last character, or unused bits that are set, is no encoding of anything.
    (count < 6 && bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_round_trips_and_nothing_else_reads() {
        for length in 0..70_u8 {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(151)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
        for bad in ["A", "AB", "AAB", "AA==", "A A", "ä"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
