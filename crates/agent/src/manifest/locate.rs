//! Where a value of a YAML text stands. Asked only once something is wrong with the value.

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};
use std::fmt;

/// One step into a manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The value of a key.
    Key(&'static str),
    /// An item of a list.
    Item(usize),
}

/// The place of the value at `path`, or of the nearest value around it.
pub(super) fn locate(yaml: &str, path: &[Step]) -> Option<Location> {
    let root: Spanned<Tree> = serde_saphyr::from_str(yaml).ok()?;
    let (mut at, mut tree) = (root.referenced, &root.value);
    for step in path {
        let child = match (step, tree) {
            (Step::Key(name), Tree::Map(entries)) => {
                entries.iter().find(|(key, _)| key == name).map(|(_, child)| child)
            }
            (Step::Item(index), Tree::List(items)) => items.get(*index),
            (Step::Key(_), Tree::List(_) | Tree::Leaf) | (Step::Item(_), Tree::Map(_) | Tree::Leaf) => None,
        };
        let Some(child) = child else { break };
        (at, tree) = (child.referenced, &child.value);
    }
    Some(at)
}

/// The shape of a YAML text.
enum Tree {
    Map(Vec<(String, Spanned<Self>)>),
    List(Vec<Spanned<Self>>),
    Leaf,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Tree::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_none<E: de::Error>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Tree::Leaf)
    }
}
