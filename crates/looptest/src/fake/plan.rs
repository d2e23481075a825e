//! From an answer and the way it is to travel, to what happens on the connection, step by step.

use super::answer::{Content, Kind, Piece};
use loopd_script::{OnWire, Pace, Place, Stall};

/// One thing that happens on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Bytes go out.
    Send(Vec<u8>),
    /// Milliseconds pass.
    Pause(u64),
    /// Nothing happens until this gate is open.
    Wait(String),
    /// The connection breaks.
    Break,
}

/// How one answer travels.
#[derive(Debug, Clone, Default)]
pub(super) struct Way {
    pub(super) on_wire: OnWire,
    pub(super) pace: Pace,
    /// A stream breaks after so many words.
    pub(super) cut_after_words: Option<usize>,
    /// The error event of the provider, where one comes in the middle.
    pub(super) error: Option<Piece>,
}

/// What happens before the head of the response, what happens behind it, and how long the body says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) before: Vec<Act>,
    pub(super) body: Vec<Act>,
    /// The length, where it is announced: a stream does not know it.
    pub(super) length: Option<usize>,
}

/// Plans how `content` travels.
pub(super) fn plan(content: Content, way: &Way) -> Plan {
    let whole = matches!(content, Content::Whole(_));
    let pieces = pieces(content, way);
    let mut before = Vec::new();
    if way.pace.delay_ms > 0 {
        before.push(Act::Pause(way.pace.delay_ms));
    }
    let stall = way.on_wire.stall.as_ref();
    before.extend(stall.filter(|stall| stall.at == Place::Head).map(|stall| Act::Wait(stall.gate.clone())));
    if way.on_wire.cut == Some(Place::Head) {
        before.push(Act::Break);
        return Plan { before, body: Vec::new(), length: None };
    }
    let length = whole.then(|| pieces.iter().map(|piece| piece.text.len()).sum());
    Plan { before, body: body(&pieces, way, stall), length }
}

/// The pieces as they travel, with everything that the script does to them.
fn pieces(content: Content, way: &Way) -> Vec<Piece> {
    let on_wire = &way.on_wire;
    let (mut pieces, whole) = match content {
        Content::Whole(text) => (vec![Piece { kind: Kind::Plain, text }], true),
        Content::Events(pieces) => (pieces, false),
        Content::List(pieces) => (pieces, false),
    };
    if on_wire.malformed {
        let middle = pieces.len() / 2;
        if let Some(piece) = pieces.get_mut(middle) {
            break_json(piece);
        }
    }
    if whole {
        return pieces;
    }
    if let (Some(error), Some(inner)) = (&way.error, on_wire.error_inside) {
        pieces.truncate(inner.after_events);
        pieces.push(error.clone());
    }
    if on_wire.no_end {
        pieces.retain(|piece| piece.kind != Kind::End);
    }
    if on_wire.usage_twice {
        pieces = pieces
            .into_iter()
            .flat_map(|piece| vec![piece.clone(); 1 + usize::from(piece.kind == Kind::Usage)])
            .collect();
    }
    if on_wire.comments {
        for piece in &mut pieces {
            piece.text.insert_str(0, ": keep-alive\n\n");
        }
    }
    pieces
}

/// Puts a sign where none may be, so that what was JSON is none. It is not cut short: that would be another fault.
fn break_json(piece: &mut Piece) {
    if let Some(at) = piece.text.rfind("\":") {
        piece.text.replace_range(at + 1..at + 2, "=");
    }
}

/// The bytes with breaks, waits and pauses in their places.
fn body(pieces: &[Piece], way: &Way, stall: Option<&Stall>) -> Vec<Act> {
    let total = pieces.iter().map(|piece| piece.text.len()).sum();
    let words = way.cut_after_words.map(|words| offset_of_word(pieces, words));
    let cut = way.on_wire.cut.map(|place| offset(pieces, place)).into_iter().chain(words).min();
    let cut = cut.map(|at: usize| at.min(total));
    let wait = stall.filter(|stall| stall.at != Place::Head);
    let wait = wait.map(|stall| (offset(pieces, stall.at).min(total), Act::Wait(stall.gate.clone())));
    let mut acts = Vec::new();
    let mut at = 0;
    let mut spoke = false;
    for piece in pieces {
        if piece.kind == Kind::Word {
            if spoke && way.pace.word_ms > 0 {
                acts.push(Act::Pause(way.pace.word_ms));
            }
            spoke = true;
        }
        let end = at + piece.text.len();
        let limit = cut.map_or(end, |cut| cut.min(end));
        for (start, stop, act) in split(at, limit, wait.as_ref()) {
            acts.extend(act.cloned());
            let bytes = piece.text.as_bytes().get(start - at..stop - at).unwrap_or_default();
            let size = way.on_wire.chunk_bytes.unwrap_or(bytes.len()).max(1);
            acts.extend(bytes.chunks(size).map(|chunk| Act::Send(chunk.to_vec())));
        }
        if cut.is_some_and(|cut| cut <= end) {
            acts.extend(wait.iter().filter(|(place, _)| cut == Some(*place)).map(|(_, act)| act.clone()));
            acts.push(Act::Break);
            return acts;
        }
        at = end;
    }
    acts.extend(wait.iter().filter(|(place, _)| *place >= at).map(|(_, act)| act.clone()));
    acts
}

/// The ranges of `from..to`, each with what comes before it.
fn split(from: usize, to: usize, wait: Option<&(usize, Act)>) -> Vec<(usize, usize, Option<&Act>)> {
    match wait {
        Some((place, act)) if *place == from && from < to => vec![(from, to, Some(act))],
        Some((place, act)) if *place > from && *place < to => vec![(from, *place, None), (*place, to, Some(act))],
        Some(_) | None => vec![(from, to, None)],
    }
}

fn offset(pieces: &[Piece], place: Place) -> usize {
    let behind = |count: usize| pieces.iter().take(count).map(|piece| piece.text.len()).sum::<usize>();
    match place {
        Place::Head => 0,
        Place::Bytes(bytes) => bytes,
        Place::Events(count) => behind(count),
        Place::InEvent(number) => {
            let length = number.checked_sub(1).and_then(|at| pieces.get(at)).map_or(0, |piece| piece.text.len());
            behind(number.saturating_sub(1)) + length / 2
        }
    }
}

/// The end of word `words`, or the last one; the start of the first, where it is 0. Without any words it is the middle:
/// what is cut is never complete.
fn offset_of_word(pieces: &[Piece], words: usize) -> usize {
    let mut at = 0;
    let mut ends = Vec::new();
    for piece in pieces {
        if piece.kind == Kind::Word {
            if words == 0 {
                return at;
            }
            ends.push(at + piece.text.len());
        }
        at += piece.text.len();
    }
    ends.get(words.saturating_sub(1)).or(ends.last()).copied().unwrap_or(at / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn stream() -> Content {
        let piece = |kind, text: &str| Piece { kind, text: text.into() };
        Content::Events(vec![
            piece(Kind::Plain, "{s}\n"),
            piece(Kind::Word, "one "),
            piece(Kind::Word, "{\"two\":2}"),
            piece(Kind::Usage, "{u}"),
            piece(Kind::End, "end"),
        ])
    }

    #[track_caller]
    fn check(content: Content, way: Way, expect: Expect) {
        let plan = plan(content, &way);
        let act = |act: &Act| match act {
            Act::Send(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
            other => format!("{other:?}"),
        };
        let line = |acts: &[Act]| acts.iter().map(act).collect::<Vec<_>>().join(" ");
        expect.assert_eq(&format!("{} | {} | {:?}", line(&plan.before), line(&plan.body), plan.length));
    }

    fn wire(on_wire: OnWire) -> Way {
        Way { on_wire, ..Way::default() }
    }

    #[test]
    fn every_way_is_a_list_of_acts() {
        check(stream(), Way::default(), expect![[r#" | "{s}\n" "one " "{\"two\":2}" "{u}" "end" | None"#]]);
        check(Content::Whole("body".into()), Way::default(), expect![[r#" | "body" | Some(4)"#]]);
        check(stream(), wire(OnWire::cut(Place::Head)), expect!["Break |  | None"]);
        check(stream(), wire(OnWire::cut(Place::Bytes(5))), expect![[r#" | "{s}\n" "o" Break | None"#]]);
        check(stream(), wire(OnWire::cut(Place::Events(2))), expect![[r#" | "{s}\n" "one " Break | None"#]]);
        check(stream(), wire(OnWire::cut(Place::InEvent(2))), expect![[r#" | "{s}\n" "on" Break | None"#]]);
        check(
            stream(),
            wire(OnWire::cut(Place::Bytes(999))),
            expect![[r#" | "{s}\n" "one " "{\"two\":2}" "{u}" "end" Break | None"#]],
        );
        check(
            Content::Whole("body".into()),
            wire(OnWire::cut(Place::InEvent(1))),
            expect![[r#" | "bo" Break | Some(4)"#]],
        );
        check(
            stream(),
            wire(OnWire::stall(Place::Head, "g")),
            expect![[r#"Wait("g") | "{s}\n" "one " "{\"two\":2}" "{u}" "end" | None"#]],
        );
        check(
            stream(),
            wire(OnWire::stall(Place::Bytes(6), "g")),
            expect![[r#" | "{s}\n" "on" Wait("g") "e " "{\"two\":2}" "{u}" "end" | None"#]],
        );
        check(
            stream(),
            wire(OnWire::stall(Place::Events(5), "g")),
            expect![[r#" | "{s}\n" "one " "{\"two\":2}" "{u}" "end" Wait("g") | None"#]],
        );
        check(Content::Whole("body".into()), wire(OnWire::chunks(3)), expect![[r#" | "bod" "y" | Some(4)"#]]);
        check(
            stream(),
            wire(OnWire { no_end: true, usage_twice: true, ..OnWire::default() }),
            expect![[r#" | "{s}\n" "one " "{\"two\":2}" "{u}" "{u}" | None"#]],
        );
        check(
            stream(),
            wire(OnWire { malformed: true, ..OnWire::default() }),
            expect![[r#" | "{s}\n" "one " "{\"two\"=2}" "{u}" "end" | None"#]],
        );
        check(
            Content::Whole("{\"a\":1}".into()),
            wire(OnWire { malformed: true, ..OnWire::default() }),
            expect![[r#" | "{\"a\"=1}" | Some(7)"#]],
        );
        let stall_and_cut = OnWire { cut: Some(Place::Events(1)), ..OnWire::stall(Place::Events(1), "g") };
        check(stream(), wire(stall_and_cut), expect![[r#" | "{s}\n" Wait("g") Break | None"#]]);
    }

    #[test]
    fn words_have_their_pace_and_their_number() {
        let words = |words| Way { cut_after_words: Some(words), ..Way::default() };
        check(stream(), words(0), expect![[r#" | "{s}\n" Break | None"#]]);
        check(stream(), words(1), expect![[r#" | "{s}\n" "one " Break | None"#]]);
        check(stream(), words(9), expect![[r#" | "{s}\n" "one " "{\"two\":2}" Break | None"#]]);
        let pace = Pace { delay_ms: 5, word_ms: 2 };
        check(
            stream(),
            Way { pace, ..Way::default() },
            expect![[r#"Pause(5) | "{s}\n" "one " Pause(2) "{\"two\":2}" "{u}" "end" | None"#]],
        );
    }
}
