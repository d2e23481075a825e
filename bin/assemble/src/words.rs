//! Facts in words, for obstacles and for the programs that show them.

use loopd_kernel::{MicroUsd, RunId};

/// A count with a separator every three digits.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size in bytes.
#[must_use]
pub fn bytes(number: usize) -> String {
    match number {
        0..1_024 => format!("{number} B"),
        1_024..1_048_576 => format!("{}.{} kB", number / 1024, number % 1024 * 10 / 1024),
        _ => format!("{}.{} MB", number / 1_048_576, number % 1_048_576 * 10 / 1_048_576),
    }
}

/// What the operating system says, without its number.
#[must_use]
pub fn os(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

/// A Run's id as it is shown: enough to tell Runs apart, and enough to name one.
#[must_use]
pub fn short(run: RunId) -> String {
    run.to_string().chars().take(4 + 14).collect()
}

/// An amount as people write it: cents where cents say it all.
#[must_use]
pub fn dollars(amount: MicroUsd) -> String {
    let text = amount.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    format!("{whole}.{part:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([7, 1_000, 1_234_567].map(count), ["7", "1,000", "1,234,567"]);
        assert_eq!([10, 1_536, 3 << 20].map(bytes), ["10 B", "1.5 kB", "3.0 MB"]);
        assert_eq!([1_250_000, 500, 2_000_000].map(|micros| dollars(MicroUsd(micros))), ["$1.25", "$0.0005", "$2.00"]);
        assert_eq!(short(RunId([0xab; 16])), "run_ababababababab");
    }
}
