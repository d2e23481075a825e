//! The one place where an expectation fails.

use similar::TextDiff;

/// Fails the calling test.
#[track_caller]
#[expect(clippy::panic, reason = "this is how a test fails; the message and the line are for its author")]
pub(crate) fn fail(message: impl AsRef<str>) -> ! {
    panic!("{}", message.as_ref())
}

/// The value, or a failed test.
#[track_caller]
pub(crate) fn must<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => fail(format!("{what}: {error}")),
    }
}

/// What was expected and what came, line by line.
pub(crate) fn contrast(expected: &str, actual: &str) -> String {
    contrast_as(["expected", "actual"], expected, actual)
}

/// Two texts, line by line, under these names.
pub(crate) fn contrast_as([left, right]: [&str; 2], expected: &str, actual: &str) -> String {
    let expected = loopd_fixture::excerpt::lines(expected);
    let actual = loopd_fixture::excerpt::lines(actual);
    let diff = TextDiff::from_lines(expected.as_str(), actual.as_str());
    let text = diff.unified_diff().context_radius(3).missing_newline_hint(false).header(left, right).to_string();
    // Long lines differ somewhere inside: there the lines say nothing, and an excerpt does.
    if expected.lines().chain(actual.lines()).all(|line| line.len() <= 200) {
        return text;
    }
    let (expected, actual) = loopd_fixture::excerpt::contrast(&expected, &actual, 200);
    format!("- {expected}\n+ {actual}\n")
}
