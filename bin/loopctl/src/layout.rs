//! JSON laid out for people without reading it: keys keep their order and numbers their digits.

/// JSON text with line breaks and indentation. Text that is no JSON comes out readable as well.
pub fn json(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut characters = text.trim().chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(64)));
    };
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                out.push('"');
                let mut escaped = false;
                for inner in characters.by_ref() {
                    out.push(inner);
                    if inner == '"' && !escaped {
                        break;
                    }
                    escaped = inner == '\\' && !escaped;
                }
            }
            '{' | '[' => {
                out.push(character);
                while characters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(close) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            white if white.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn order_and_digits_stay() {
        let text = r#"{"z":9007199254740993,"a":["x, \"{y}\"",{},[] ,1e400],"n":null}"#;
        let expected = "{\n  \"z\": 9007199254740993,\n  \"a\": [\n    \"x, \\\"{y}\\\"\",\n    {},\n    [],\n    1e400\n  ],\n  \"n\": null\n}";
        assert_eq!(json(text), expected);
        assert_eq!(json("true"), "true");
        assert_eq!(json("[ ]"), "[]");
    }
}
