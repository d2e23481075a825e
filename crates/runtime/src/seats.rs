//! Seats: so many at once and no more, the others in the order in which they came.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// A place in the queue: lower ranks first, and within one rank whoever came first. It may be kept by somebody who
/// stops waiting for a while, and is nobody else's: so it is not `Clone`.
#[derive(Debug)]
pub struct Place(Rank);

/// The rank, then the number in which it came.
type Rank = (u32, u64);

/// Seats that are shared. Everybody who takes one should name the same number of them.
#[derive(Debug, Default)]
pub struct Seats {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    arrivals: u64,
    waiting: BTreeMap<Rank, oneshot::Sender<Seat>>,
}

/// A seat; whoever waits longest has it next once it is dropped.
#[derive(Debug)]
pub struct Seat(Arc<Seats>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

impl Seats {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new place, behind all of its rank.
    pub fn place(&self, rank: u32) -> Place {
        let mut state = self.state();
        state.arrivals += 1;
        Place((rank, state.arrivals))
    }

    /// Waits for one of `most` seats. Whoever stops waiting leaves the queue.
    pub async fn take(self: &Arc<Self>, place: &Place, most: usize) -> Seat {
        loop {
            let answer = {
                let mut state = self.state();
                if state.taken < most {
                    state.taken += 1;
                    return Seat(self.clone());
                }
                let (sender, answer) = oneshot::channel();
                state.waiting.insert(place.0, sender);
                answer
            };
            let _leave = Leave(self, place.0);
            if let Ok(seat) = answer.await {
                return seat;
            }
        }
    }

    fn pass_on(self: &Arc<Self>) {
        let next = {
            let mut state = self.state();
            let next = state.waiting.pop_first();
            if next.is_none() {
                state.taken -= 1;
            }
            next
        };
        if let Some((_, next)) = next {
            // Whoever has gone meanwhile drops the seat, which passes it on; so it must not happen under the lock.
            drop(next.send(Seat(self.clone())));
        }
    }
}

/// Takes whoever waits no longer out of the queue.
struct Leave<'a>(&'a Seats, Rank);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let left = self.0.state().waiting.remove(&self.1);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const SOON: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn a_seat_goes_to_the_lowest_rank_and_then_to_whoever_came_first() {
        let seats = Arc::new(Seats::default());
        let held = seats.take(&seats.place(0), 1).await;
        let (before, after) = (seats.place(2), seats.place(2));
        let waiting = |place: Place| {
            let seats = seats.clone();
            tokio::spawn(async move { seats.take(&place, 1).await })
        };
        let mut second = waiting(after);
        let first = waiting(before);
        let other = waiting(seats.place(1));
        tokio::task::yield_now().await;
        drop(held);
        drop(other.await.unwrap());
        let seat = first.await.unwrap();
        assert!(timeout(SOON, &mut second).await.is_err());
        drop(seat);
        drop(second.await.unwrap());
        assert_eq!(seats.state().taken, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_is_not_lost_on_somebody_who_has_gone() {
        let seats = Arc::new(Seats::default());
        let held = seats.take(&seats.place(0), 1).await;
        let place = seats.place(0);
        assert!(timeout(SOON, seats.take(&place, 1)).await.is_err());
        // Given to somebody who never looked at it.
        let mut unread = Box::pin(seats.take(&place, 1));
        assert!(timeout(Duration::ZERO, &mut unread).await.is_err());
        drop(held);
        drop(unread);
        drop(timeout(SOON, seats.take(&seats.place(0), 1)).await.unwrap());
        let state = seats.state();
        assert_eq!((state.taken, state.waiting.len()), (0, 0));
    }
}
