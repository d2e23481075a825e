//! Names of tools within the alphabet of Anthropic and of OpenAI, and back.

use loopd_kernel::Digest;
use loopd_kernel::model::ToolOffer;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The limit of both.
const LONGEST: usize = 64;

/// Letters of the digest that keeps two names apart which would look the same; its alphabet is theirs.
const MARK: usize = 8;

/// `name` as it goes onto the wire: itself where they allow it, else a name that belongs to it alone.
pub(crate) fn wire_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=LONGEST).contains(&name.len()) && name.chars().all(fits) {
        return name.into();
    }
    let tame: String = name.chars().take(LONGEST - MARK - 1).map(|c| if fits(c) { c } else { '_' }).collect();
    let digest = Digest::of("loopd-tool-name/1", &[name.as_bytes()]);
    format!("{tame}_{}", digest.short()).into()
}

/// The real names of those offered tools that go under another one, by that one.
pub(crate) fn changed(tools: &[ToolOffer]) -> BTreeMap<String, String> {
    let pairs = tools.iter().map(|offer| (wire_name(&offer.name).into_owned(), offer.name.clone()));
    pairs.filter(|(wire, real)| wire != real).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_come_back() {
        let offer = |name: &str| ToolOffer { name: name.into(), description: String::new(), parameters: String::new() };
        let long = "x".repeat(100);
        let names = ["plain-1_A", "files.read", "files read", "", "größe", &long];
        let offers = names.map(offer);
        let back = changed(&offers);
        let wire: Vec<String> = names.iter().map(|name| wire_name(name).into_owned()).collect();
        assert_eq!(wire[0], names[0]);
        for (wire, name) in wire.iter().zip(names) {
            assert_eq!(back.get(wire).map_or(wire.as_str(), String::as_str), name);
            assert!(wire.len() <= LONGEST && wire.is_ascii() && !wire.contains(['.', ' ']), "{wire}");
        }
        let distinct: std::collections::BTreeSet<&String> = wire.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{wire:?}");
    }
}
