//! Text of strangers, made fit for an error message.

/// How much of it is shown.
pub const EXCERPT_BYTES: usize = 600;

/// A bounded, one-line excerpt of `text`: control characters, which could write over a terminal or a log, become
/// spaces, and every secret of `secrets` is blotted out.
#[must_use]
pub fn excerpt(text: &str, secrets: &[&str]) -> String {
    let mut clean = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        clean = clean.replace(secret, "[secret]");
    }
    let mut line = String::new();
    for word in clean.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if line.len() > EXCERPT_BYTES {
        let total = line.len();
        line.truncate(line.floor_char_boundary(EXCERPT_BYTES));
        line.push_str(&format!("… ({total} bytes)"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_clean_and_hold_no_secret() {
        assert_eq!(excerpt("  a\n\tb\u{1b}[2J c ", &[]), "a b [2J c");
        assert_eq!(excerpt("Incorrect key: sk-123, sk-123", &["sk-123", ""]), "Incorrect key: [secret], [secret]");
        let long = excerpt(&"é".repeat(1000), &[]);
        assert!(long.len() < EXCERPT_BYTES + 30 && long.ends_with("… (2000 bytes)"), "{long}");
    }
}
