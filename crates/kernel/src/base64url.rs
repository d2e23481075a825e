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
    let mut text = alloc::vec![0; encoded_len(bytes.len())];
    encode_into(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// How long the text of so many bytes is.
pub const fn encoded_len(bytes: usize) -> usize {
    (bytes * 4).div_ceil(3)
}

/// Writes the text of `bytes` to `out`, which is [`encoded_len`] long.
pub fn encode_into<'a>(bytes: &[u8], out: &'a mut [u8]) -> &'a str {
    for (triple, symbols) in bytes.chunks(3).zip(out.chunks_mut(4)) {
        let bits = triple.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - triple.len()));
        for (at, symbol) in symbols.iter_mut().enumerate() {
            *symbol = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
        }
    }
    core::str::from_utf8(out).unwrap_or_default()
}

/// The bytes of `text`, unless it is not what [`encode`] writes.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    read(text, |byte| {
        bytes.push(byte);
        true
    })?;
    Some(bytes)
}

/// The same, where exactly `N` bytes are expected.
#[must_use]
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (mut bytes, mut at) = ([0; N], 0);
    read(text, |byte| {
        let slot = bytes.get_mut(at).map(|slot| *slot = byte);
        at += 1;
        slot.is_some()
    })?;
    (at == N).then_some(bytes)
}

/// Hands over byte by byte, as long as `take` says that there is room.
fn read(text: &str, mut take: impl FnMut(u8) -> bool) -> Option<()> {
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
            if !take((bits >> count) as u8) {
                return None;
            }
            bits &= (1 << count) - 1;
        }
    }
    // A lone last character, or unused bits that are set, is no encoding of anything.
    (count < 6 && bits == 0).then_some(())
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
        assert_eq!(decode_array(&encode(&[7; 32])), Some([7; 32]));
        assert_eq!(decode_array::<31>(&encode(&[7; 32])), None);
        assert_eq!(decode_array::<33>(&encode(&[7; 32])), None);
        for bad in ["A", "AB", "AAB", "AA==", "A A", "ä"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
