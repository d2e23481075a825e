//! Where a stream stands: the position of each of its Feeds, as one opaque text.
//!
//! Inside it is `1`, and per Feed `;cID=POSITION` or `;akind/key=POSITION`, all of it in base64url.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loopd_platform::FeedName;
use loopd_protocol::ConversationId;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const VERSION: &str = "1";
/// Feeds that a cursor may name; a stream has fewer.
const MOST: usize = 1000;

pub(crate) fn encode<'a>(positions: impl Iterator<Item = (&'a FeedName, u64)>) -> String {
    let mut text = VERSION.to_owned();
    for (name, position) in positions {
        // Writing to a String cannot fail.
        let _ = match name {
            FeedName::Conversation(id) => write!(text, ";c{}={position}", URL_SAFE_NO_PAD.encode(id.0)),
            FeedName::Actor(key) => write!(text, ";a{key}={position}"),
        };
    }
    URL_SAFE_NO_PAD.encode(text)
}

pub(crate) fn decode(cursor: &str) -> Option<BTreeMap<FeedName, u64>> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    let mut parts = text.split(';');
    if parts.next() != Some(VERSION) {
        return None;
    }
    let mut positions = BTreeMap::new();
    for part in parts {
        let (name, position) = part.split_once('=')?;
        let name = match name.split_at_checked(1)? {
            ("c", id) => FeedName::Conversation(ConversationId(URL_SAFE_NO_PAD.decode(id).ok()?.try_into().ok()?)),
            ("a", key) => FeedName::Actor(key.parse().ok()?),
            _ => return None,
        };
        if positions.insert(name, position.parse().ok()?).is_some() || positions.len() > MOST {
            return None;
        }
    }
    Some(positions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_wrote_and_nothing_else() {
        let names = ["conversation/con_000102030405060708090a0b0c0d0eff", "actor/person/ann", "actor/operator/a/b"];
        let names: Vec<FeedName> = names.iter().map(|name| name.parse().unwrap()).collect();
        let text = encode(names.iter().zip([7, 0, u64::MAX]));
        assert_eq!(decode(&text), Some(names.clone().into_iter().zip([7, 0, u64::MAX]).collect()));
        assert_eq!(decode(&encode(std::iter::empty())), Some(BTreeMap::new()));
        let wrong =
            ["2", "1;", "1;c=1", "1;aperson/ann", "1;aperson/ann=-1", "1;x=1", "1;aperson/a=1;aperson/a=2", "1;é=1"];
        for wrong in wrong {
            assert_eq!(decode(&URL_SAFE_NO_PAD.encode(wrong)), None, "{wrong}");
        }
        assert_eq!(decode("not base64!"), None);
        assert_eq!(decode(""), None);
    }
}
