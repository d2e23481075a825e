//! The one place where a test fails.

/// Fails the calling test.
#[track_caller]
#[expect(clippy::panic, reason = "this is how a test fails; the message is for its author")]
pub(super) fn fail(message: impl AsRef<str>) -> ! {
    panic!("{}", message.as_ref())
}

/// The value, or a failed test.
#[track_caller]
pub(super) fn must<T, E: std::fmt::Display>(what: &str, result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => fail(format!("{what}: {error}")),
    }
}
