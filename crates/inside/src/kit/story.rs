//! A story that is told again and again, each time with another death in it.

use super::fail::fail;
use super::fated::{Fate, Fated};
use super::running::Process;
use super::world::World;
use loopd_operator::Reconcile;
use loopd_protocol::ConversationId;
use std::time::Duration;

/// What comes after the end of a story comes by then: a process waits a minute at most before it tries again.
const AFTER: Duration = Duration::from_secs(70);

/// A story as it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// All that there is after it: [`World::told`].
    pub told: String,
    /// What the process asked of its desk until the end, or until it died.
    pub requests: Vec<&'static str>,
}

/// Tells a story undisturbed, and then once with each [`Fate`] of each request that the Operator made in it, announcing
/// itself left out: its process dies before it and after it, where another one takes over, and the line drops request and
/// answer. The transcript, the work conversations with their calls, and how often each model was asked must be the same
/// each time: it is [`World::told`]. Returns the story as it was told undisturbed.
///
/// The story says and answers, and ends when it has seen what it waits for. Every second time the process that takes over
/// has the name of the one that died; else it waits until the leases of that are over.
///
/// # Expected flow
/// `make` makes a fresh world, and `reconcile` a fresh Operator, each time. What an Operator does outside of its world, in
/// files for example, the story looks at itself.
///
/// # Panics
/// With the number and the kind of the request, and both transcripts, where something was done twice, was lost, or came
/// otherwise. When the Operator is not the same each time with nothing happening to it: then its time must be paused, and
/// it may not depend on chance.
pub async fn survives<R: Reconcile>(
    make: impl AsyncFn() -> World,
    operator: &str,
    reconcile: impl Fn() -> R,
    story: impl AsyncFn(&World, ConversationId),
) -> Story {
    let Story { told: expected, requests } = tell(&make, operator, &reconcile, &story, (None, "")).await;
    for (number, name) in requests.iter().enumerate() {
        for fate in [Fate::DieBefore, Fate::DieAfter, Fate::LoseBefore, Fate::LoseAfter] {
            let next = if number % 2 == 0 { "one" } else { "other" };
            let Story { told, .. } = tell(&make, operator, &reconcile, &story, (Some(fate.at_any(number)), next)).await;
            if told != expected {
                fail(format!(
                    "{fate:?} at request {number}, `{name}`, is told otherwise.\n\
                     --- undisturbed\n{expected}\n--- with it\n{told}"
                ));
            }
        }
    }
    Story { told: expected, requests }
}

async fn tell<R: Reconcile>(
    make: &impl AsyncFn() -> World,
    operator: &str,
    reconcile: &impl Fn() -> R,
    story: &impl AsyncFn(&World, ConversationId),
    (fated, next): (Option<Fated>, &str),
) -> Story {
    let world = make().await;
    let room = world.room().await;
    let first = world.start_as(operator, reconcile(), Process { fated, ..Process::named("one") });
    let mut whole = std::pin::pin!(async {
        story(&world, room).await;
        world.pass(AFTER).await;
    });
    let fated = fated.filter(|fated| fated.fate().is_death());
    let Some(fated) = fated else {
        whole.await;
        return Story { told: world.told(room).await, requests: first.seen() };
    };
    tokio::select! {
        () = first.happened() => {}
        () = &mut whole => fail(format!("{fated:?} does not come: the operator is another one this time")),
    }
    let requests = first.seen();
    first.kill();
    let _second = world.start_as(operator, reconcile(), Process::named(next));
    whole.await;
    Story { told: world.told(room).await, requests }
}
