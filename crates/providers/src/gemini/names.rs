//! Names of tools within the alphabet of the protocol, and back.

use loopd_kernel::Digest;
use loopd_kernel::model::ToolOffer;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The protocol's limit.
const LONGEST: usize = 64;
/// Characters of a short digest, which tells mangled names apart.
const DIGITS: usize = 8;

/// The names of the tools that one request offers, where the protocol has another.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    pub(super) fn of(tools: &[ToolOffer]) -> Self {
        let own = tools.iter().map(|tool| tool.name.as_str());
        Self(own.filter(|own| !fits(own)).map(|own| (on_wire(own).into_owned(), own.to_owned())).collect())
    }

    /// The tool's own name. A name that was not offered stays what the model wrote.
    pub(super) fn own(&self, wire: String) -> String {
        self.0.get(&wire).cloned().unwrap_or(wire)
    }
}

/// `name` as the protocol takes it: always the same, so that what was said earlier agrees with what is offered now.
pub(super) fn on_wire(name: &str) -> Cow<'_, str> {
    if fits(name) {
        return name.into();
    }
    let digits = Digest::of("loopd-tool-name/1", &[name.as_bytes()]).short();
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let tame = name.chars().map(|c| if is_inner(c) { c } else { '_' });
    let prefix = if starts { "" } else { "_" };
    let kept: String = prefix.chars().chain(tame).take(LONGEST - DIGITS - 1).collect();
    format!("{kept}_{digits}").into()
}

/// The documents disagree about dots and colons; what all of them allow is safe everywhere.
const fn is_inner(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn fits(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.len() <= LONGEST && name.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_out_and_come_back() {
        let long = "x".repeat(65);
        let all = ["read_file", "fs.read", "fs:read", "9lives", "größe", "", &long, "a b", "a_b"];
        let offer =
            |name: &&str| ToolOffer { name: (*name).to_owned(), description: String::new(), parameters: String::new() };
        let names = Names::of(&all.iter().map(offer).collect::<Vec<_>>());
        let mut wire: Vec<String> = all.iter().map(|name| on_wire(name).into_owned()).collect();
        for (own, wire) in all.iter().zip(&wire) {
            assert!(fits(wire), "{own:?} as {wire:?}");
            assert_eq!(names.own(wire.clone()), **own);
        }
        assert_eq!((wire[0].as_str(), wire[8].as_str()), ("read_file", "a_b"));
        assert!(wire[1].starts_with("fs_read_") && wire[3].starts_with("_9lives_"), "{wire:?}");
        wire.sort();
        wire.dedup();
        assert_eq!(wire.len(), all.len(), "no two names are one");
        assert_eq!(names.own("made_up".into()), "made_up");
    }
}
