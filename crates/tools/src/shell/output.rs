//! What a program writes: the beginning and the end of it, and how much there was.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// One output of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// What it wrote; of too much, the beginning and the end with a line between them that says so.
    pub text: String,
    /// Bytes that it wrote.
    pub bytes: u64,
    /// Bytes of these that are not in `text`; absent when all are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// True when it was not all UTF-8: each wrong byte is `\u{fffd}` in `text`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_utf8: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What is kept while a program writes. Memory is bounded however much it is.
#[derive(Debug)]
pub(super) struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    max_head: usize,
    max_tail: usize,
    bytes: u64,
}

impl Kept {
    pub(super) fn new(max: usize) -> Self {
        let max_head = max / 2;
        Self { head: Vec::new(), tail: VecDeque::new(), max_head, max_tail: max - max_head, bytes: 0 }
    }

    /// Reads to the end. What came before an error of the pipe counts.
    pub(super) async fn read_from(&mut self, source: Option<impl AsyncRead + Unpin>) {
        let Some(mut source) = source else { return };
        let mut buffer = vec![0; CHUNK];
        while let Ok(count) = source.read(&mut buffer).await {
            if count == 0 {
                break;
            }
            self.add(buffer.get(..count).unwrap_or_default());
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.max_head - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let over = self.tail.len().saturating_sub(self.max_tail);
        self.tail.drain(..over);
    }

    /// As text.
    pub(super) fn finish(mut self) -> Output {
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        if self.bytes == (self.head.len() + tail.len()) as u64 {
            self.head.extend(tail);
            let (text, not_utf8) = lossy(&self.head);
            return Output { text, bytes: self.bytes, left_out: 0, not_utf8 };
        }
        // A character that the cut divides is left out whole.
        let head = self.head.get(..whole_end(&self.head)).unwrap_or_default();
        let tail = tail.get(whole_start(&tail)..).unwrap_or_default();
        let left_out = self.bytes - (head.len() + tail.len()) as u64;
        let ((head, odd_head), (tail, odd_tail)) = (lossy(head), lossy(tail));
        let text = format!("{head}\n[… {left_out} bytes left out …]\n{tail}");
        Output { text, bytes: self.bytes, left_out, not_utf8: odd_head || odd_tail }
    }
}

fn lossy(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), true),
    }
}

/// Where a character that the end cuts begins.
fn whole_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) => bytes.len(),
        // Something else is wrong before it; the last three bytes tell.
        Err(_) => {
            let last = bytes.len().saturating_sub(3);
            let cut = (last..bytes.len()).find(|at| {
                let rest = bytes.get(*at..).unwrap_or_default();
                std::str::from_utf8(rest).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
            });
            cut.unwrap_or(bytes.len())
        }
    }
}

/// The first byte that does not go on with a character.
fn whole_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| *byte & 0xc0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(max: usize, chunks: &[&[u8]]) -> Output {
        let mut kept = Kept::new(max);
        chunks.iter().for_each(|chunk| kept.add(chunk));
        kept.finish()
    }

    #[test]
    fn the_beginning_and_the_end_stay_however_it_comes() {
        let all: Vec<u8> = (0..100_u8).map(|n| b'a' + n % 26).collect();
        for size in [1, 3, 7, 99, 100] {
            let chunks: Vec<&[u8]> = all.chunks(size).collect();
            let output = kept(10, &chunks);
            assert_eq!(output.text, "abcde\n[… 90 bytes left out …]\nrstuv", "{size}");
            assert_eq!((output.bytes, output.left_out, output.not_utf8), (100, 90, false));
        }
        assert_eq!(kept(10, &[b"0123456789"]).text, "0123456789");
        assert_eq!(kept(0, &[b"x"]).text, "\n[… 1 bytes left out …]\n");
        assert_eq!(kept(10, &[]), Output::default());
    }

    #[test]
    fn no_character_is_cut_and_every_byte_is_counted() {
        let text = "äöüßéñ€😀".repeat(5);
        for max in 0..text.len() {
            let output = kept(max, &[text.as_bytes()]);
            let (head, rest) = output.text.split_once("\n[… ").expect("a mark");
            let tail = rest.split_once("…]\n").expect("a mark").1;
            assert!(text.starts_with(head) && text.ends_with(tail) && !output.not_utf8, "{max}: {output:?}");
            assert_eq!(head.len() + tail.len() + output.left_out as usize, text.len(), "{max}");
            assert!(head.len() + tail.len() <= max);
        }
        let odd = kept(100, &[b"a\xffb"]);
        assert_eq!((odd.text.as_str(), odd.not_utf8), ("a\u{fffd}b", true));
    }
}
