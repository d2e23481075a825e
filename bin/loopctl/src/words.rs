//! Facts in words: times, amounts, outcomes.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use loopd_fixture::excerpt;
use loopd_kernel::budget::{Breach, Dimension};
use loopd_kernel::outcome::Interrupt;
use loopd_kernel::{Limits, MicroUsd, Outcome, TimeMs};

pub use loopd_assemble::words::{bytes, count, dollars, os, short};

/// A duration in the unit that fits, for example `350 ms`, `4.2 s`, `3 min 20 s`.
pub fn duration(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    let rest = |number: u64, unit: &str| if number == 0 { String::new() } else { format!(" {number} {unit}") };
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60_000..3_600_000 => format!("{minutes} min{}", rest(seconds % 60, "s")),
        3_600_000..172_800_000 => format!("{hours} h{}", rest(minutes % 60, "min")),
        _ => format!("{} days", hours / 24),
    }
}

/// `one` or `many` after the number.
pub fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A moment in the machine's time zone.
pub fn moment(at: TimeMs) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(time) => time.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => format!("{} ms", at.0),
    }
}

/// A moment for programs: RFC 3339 in UTC.
pub fn rfc3339(at: TimeMs) -> String {
    Timestamp::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |time| format!("{time:.3}"))
}

/// How long ago, seen from `now`.
pub fn ago(at: TimeMs, now: TimeMs) -> String {
    match now.since(at) {
        0..2_000 => "now".into(),
        ms @ 2_000..60_000 => format!("{} s ago", ms / 1000),
        ms @ 60_000..3_600_000 => format!("{} min ago", ms / 60_000),
        ms @ 3_600_000..172_800_000 => format!("{} h ago", ms / 3_600_000),
        ms => format!("{} days ago", ms / 86_400_000),
    }
}

/// Tokens and money so far.
pub fn spending(tokens: u64, spent: MicroUsd) -> String {
    let tokens = plural(tokens, "token", "tokens");
    if spent == MicroUsd(0) { tokens } else { format!("{tokens} · {}", dollars(spent)) }
}

/// Limits, for example `20 iterations, $0.50`.
pub fn limits(limits: &Limits) -> String {
    let parts = [
        limits.iterations.map(|limit| plural(limit, "iteration", "iterations")),
        limits.tokens.map(|limit| plural(limit, "token", "tokens")),
        limits.micro_usd.map(dollars),
        limits.wall_ms.map(duration),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

/// The flag that raises a dimension.
pub const fn flag(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Iterations => "--max-iterations",
        Dimension::Tokens => "--max-tokens",
        Dimension::MicroUsd => "--max-usd",
        Dimension::WallMs => "--max-wall",
    }
}

/// A value that raises a limit enough to go on, as the flag takes it.
pub fn enough(breach: &Breach) -> String {
    let least = breach.used.saturating_add(breach.needed).max(breach.limit);
    let wanted = least.saturating_mul(2).max(1);
    match breach.dimension {
        Dimension::Iterations | Dimension::Tokens => wanted.to_string(),
        Dimension::MicroUsd => dollars(MicroUsd(wanted)).trim_start_matches('$').to_string(),
        Dimension::WallMs => format!("{}s", wanted.div_ceil(1000).max(1)),
    }
}

fn amount(dimension: Dimension, number: u64) -> String {
    match dimension {
        Dimension::Iterations => plural(number, "iteration", "iterations"),
        Dimension::Tokens => plural(number, "token", "tokens"),
        Dimension::MicroUsd => dollars(MicroUsd(number)),
        Dimension::WallMs => duration(number),
    }
}

/// Why a limit stopped a Run.
pub fn breach(breach: &Breach) -> String {
    let Breach { dimension, limit, used, needed } = *breach;
    let used = amount(dimension, used);
    let next = match (dimension, needed) {
        (_, 0) | (Dimension::Iterations, _) => String::new(),
        (_, needed) => format!(", and the next call may need {}", amount(dimension, needed)),
    };
    format!("the limit is {}; {used} used{next}", amount(dimension, limit))
}

/// An amount of dollars per million tokens, as short as it can be said: `0.25`, `15`.
pub fn rate(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    let text = format!("{whole}.{part:06}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An outcome with its evidence, in words. Text from outside is made harmless.
pub fn outcome(outcome: &Outcome) -> String {
    let safe = |text: &str| excerpt::line(text, 600);
    match outcome {
        Outcome::Completed { .. } => "completed".into(),
        Outcome::BudgetExceeded { breach } => format!("stopped at a limit: {}", self::breach(breach)),
        Outcome::Stuck { stall } => format!("stuck ({}): {}", safe(&stall.signal), safe(&stall.evidence)),
        Outcome::Interrupted { interrupt } => match interrupt {
            Interrupt::Cancelled { actor, reason } => format!("cancelled by {}: {}", safe(actor), safe(reason)),
            Interrupt::Shutdown => "interrupted: its process shut down".into(),
            Interrupt::InDoubt { reason } => format!("interrupted, something is in doubt: {}", safe(reason)),
            Interrupt::Poisoned { reason } => format!("parked, it broke its worker: {}", safe(reason)),
        },
        Outcome::PolicyDenied { denial } => {
            format!("policy denied it: rule {} saw {}", safe(&denial.rule), safe(&denial.inputs))
        }
        Outcome::Failed { failure } => format!("failed: {} ({})", safe(&failure.message), safe(&failure.code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let durations = [0, 999, 1_250, 61_000, 600_000, 3_700_000, 200_000_000].map(duration);
        assert_eq!(durations, ["0 ms", "999 ms", "1.2 s", "1 min 1 s", "10 min", "1 h 1 min", "2 days"]);
        assert_eq!(rfc3339(TimeMs(0)), "1970-01-01T00:00:00.000Z");
        let rates = [250_000, 15_000_000, 0, 1, 1_500_000].map(rate);
        assert_eq!(rates, ["0.25", "15", "0", "0.000001", "1.5"]);
    }

    #[test]
    fn what_is_proposed_is_enough() {
        let at = |dimension, limit, used, needed| Breach { dimension, limit, used, needed };
        let cases = [
            (at(Dimension::Iterations, 5, 5, 1), "12"),
            (at(Dimension::Tokens, 1_000, 900, 300), "2400"),
            (at(Dimension::MicroUsd, 250_000, 240_000, 20_000), "0.52"),
            (at(Dimension::WallMs, 60_000, 60_500, 0), "121s"),
        ];
        for (breach, expected) in cases {
            assert_eq!(enough(&breach), expected);
        }
    }
}
