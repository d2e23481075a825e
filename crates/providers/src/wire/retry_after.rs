//! How long a provider asks to wait.

use super::header::RETRY_AFTER_MS;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// The longest wait that is believed. Whoever means longer is not available.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// What the headers ask for, rounded up; `None` where they do not say, which is not zero.
///
/// A date is compared with the `Date` of the same response where there is one: then a wrong clock on this machine
/// does no harm. `now` is asked only without it.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let exact = text(RETRY_AFTER_MS).and_then(|ms| decimal(ms, 1));
    let wait = exact.or_else(|| {
        let value = text(RETRY_AFTER.as_str())?;
        decimal(value, 1000).or_else(|| {
            let until = httpdate::parse_http_date(value).ok()?;
            let sent = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date).ok());
            // A moment that has passed asks for no wait.
            let left = until.duration_since(sent.unwrap_or_else(now)).unwrap_or_default();
            Some(Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0)))
        })
    })?;
    Some(wait.min(MAX_RETRY_AFTER))
}

/// A decimal number of seconds, rounded up and not longer than is believed; `None` where it is no number.
#[must_use]
pub fn seconds(text: &str) -> Option<Duration> {
    decimal(text, 1000).map(|wait| wait.min(MAX_RETRY_AFTER))
}

/// A decimal number of units, rounded up to whole milliseconds.
fn decimal(text: &str, ms_per_unit: u64) -> Option<Duration> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    // Too many digits to count are more than the longest wait.
    let whole = whole.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(ms_per_unit);
    let thousandths: u64 = format!("{part:0<3}").get(..3)?.parse().ok()?;
    let more = part.bytes().skip(3).any(|byte| byte != b'0');
    let part_ms = (thousandths * ms_per_unit).div_ceil(1000) + u64::from(more);
    Some(Duration::from_millis(whole.saturating_add(part_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    /// The wait in milliseconds when the local clock shows Wed, 21 Oct 2037 07:27:58.800.
    #[track_caller]
    fn check(headers: &[(&str, &str)], expect: Option<u64>) {
        let map: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                let name: HeaderName = name.parse().expect("a name");
                (name, HeaderValue::from_str(value).expect("a value"))
            })
            .collect();
        let now = httpdate::parse_http_date("Wed, 21 Oct 2037 07:27:58 GMT").expect("a date");
        let wait = retry_after(&map, || now + Duration::from_millis(800));
        assert_eq!(wait.map(|wait| wait.as_millis() as u64), expect, "{headers:?}");
    }

    #[test]
    fn oai_12_and_13_waits_are_read_and_rounded_up() {
        let date = "Wed, 21 Oct 2037 07:28:00 GMT";
        check(&[], None);
        check(&[("retry-after", "2")], Some(2000));
        check(&[("retry-after", "0")], Some(0));
        check(&[("retry-after", "1.2")], Some(1200));
        check(&[("retry-after", "0.0004")], Some(1));
        check(&[("retry-after", "soon")], None);
        check(&[("retry-after", "-1")], None);
        check(&[("retry-after", "")], None);
        check(&[("retry-after", "99999999999999999999999")], Some(MAX_RETRY_AFTER.as_millis() as u64));
        // 1.2 s ahead of the local clock.
        check(&[("retry-after", date)], Some(2000));
        check(&[("retry-after", date), ("date", "Wed, 21 Oct 2037 07:27:50 GMT")], Some(10_000));
        check(&[("retry-after", date), ("date", "yesterday")], Some(2000));
        check(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], Some(0));
        check(&[("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT")], Some(MAX_RETRY_AFTER.as_millis() as u64));
        check(&[("retry-after-ms", "150"), ("retry-after", "1")], Some(150));
        check(&[("retry-after-ms", "x"), ("retry-after", "1")], Some(1000));
    }
}
