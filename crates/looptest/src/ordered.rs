//! Finding an unordered map in State. A `HashMap` is written in another order by every process, so that neither digests
//! nor replays agree, on another day and in another place than the test.

use crate::fail::{fail, must};
use loopd_fixture::excerpt;
use loopd_kernel::transcript::Head;
use loopd_kernel::{Cx, Event, Loop, RunId, Seq, TimeMs, erase};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How often the same thing is done. Each decoding makes new maps with new seeds, so two entries agree by chance half of the
/// time, and thirty-two times in a row never.
const ROUNDS: usize = 32;

/// Runs `init` and then one transition for each of `events`, every time over and over from the same State: State and
/// decision have to come out byte for byte the same.
///
/// # Panics
/// When they do not, which means that a `HashMap` or something else that is not pure is in the Loop. A Failure of the Loop
/// fails the test as well.
#[track_caller]
pub fn state_is_ordered<L: Loop>(definition: L, input: &L::Input, events: impl IntoIterator<Item = Event>) {
    let input = must("the input does not serialise", serde_json::to_string(input));
    let definition = erase(definition, Vec::new());
    let mut state = must("init", definition.init(&input));
    for _ in 1..ROUNDS {
        let again = must("init", definition.init(&input));
        if again != state {
            fail(differs("init writes its State", &state, &again));
        }
    }
    for (number, event) in (1..).zip(events) {
        let cx = Cx {
            run: RunId([1; 16]),
            consumed: Seq(number),
            now: TimeMs(0),
            iteration: 1,
            transcript: Head::default(),
        };
        let what = format!("the transition of {}", event.name());
        let first = must(&what, definition.transition(&cx, &state, event.clone()));
        for _ in 1..ROUNDS {
            let again = must(&what, definition.transition(&cx, &state, event.clone()));
            if again.1 != first.1 {
                fail(differs(&format!("{what} writes its State"), &first.1, &again.1));
            }
            if again.0 != first.0 {
                let (first, again) = (format!("{:?}", first.0), format!("{:?}", again.0));
                fail(differs(&format!("{what} decides"), &first, &again));
            }
        }
        state = first.1;
    }
}

/// Whether `state` reads as `S` and is written the same again, every time.
pub(crate) fn check<S: DeserializeOwned + Serialize>(state: &str) -> Result<(), String> {
    let round = || serde_json::from_str::<S>(state).and_then(|state| serde_json::to_string(&state));
    for _ in 0..ROUNDS {
        match round() {
            Ok(again) if again == state => {}
            Ok(again) => return Err(differs("State is written", state, &again)),
            Err(error) => return Err(format!("the State does not read: {error}")),
        }
    }
    Ok(())
}

fn differs(what: &str, first: &str, again: &str) -> String {
    let (first, again) = excerpt::contrast(first, again, 200);
    format!("{what} differently each time; use BTreeMap instead of HashMap\n- {first}\n+ {again}\n")
}
