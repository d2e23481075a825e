//! Who gets the next slot.
//!
//! Slots are held by calls that execute; one that waits for a person holds none, and may exceed the slots when it goes
//! on, since holding it back would keep a decision from a Run that has it. Among those that wait, the highest priority
//! comes first, then whose caller has waited longest since its last turn: one caller with a thousand calls does not
//! keep the others waiting.

use loopd_protocol::{ActorKey, HarnessCallId, Priority};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub call: HarnessCallId,
    pub target: String,
    pub caller: ActorKey,
    pub priority: Priority,
}

/// What a target takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    /// How many of its calls execute at once.
    pub most: u32,
    /// Whether one may begin.
    pub open: bool,
}

#[derive(Debug)]
struct Line {
    offer: Offer,
    running: u32,
    queued: u32,
    /// By urgency, the lowest number first; within it callers take turns.
    waiting: BTreeMap<u8, VecDeque<(ActorKey, VecDeque<HarnessCallId>)>>,
}

impl Default for Line {
    /// Of a target that is not there: who waits for it gets a turn, and is told.
    fn default() -> Self {
        Self { offer: Offer { most: 1, open: true }, running: 0, queued: 0, waiting: BTreeMap::new() }
    }
}

/// The slots of one process.
#[derive(Debug)]
pub(super) struct Slots {
    most: u32,
    running: HashMap<HarnessCallId, String>,
    lines: BTreeMap<String, Line>,
    /// The target that got the last slot, so that the next one is another's turn.
    last: Option<String>,
}

const fn urgency(priority: Priority) -> u8 {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

impl Slots {
    pub fn new(most: u32) -> Self {
        Self { most, running: HashMap::new(), lines: BTreeMap::new(), last: None }
    }

    pub fn target(&mut self, name: &str, offer: Offer) {
        self.lines.entry(name.to_owned()).or_default().offer = offer;
    }

    /// There is no such target any more. Returns those that waited for it, which nothing here knows from now on.
    pub fn close(&mut self, name: &str) -> Vec<HarnessCallId> {
        let Some(line) = self.lines.remove(name) else { return Vec::new() };
        if line.running > 0 {
            self.lines.insert(name.to_owned(), Line { running: line.running, ..Line::default() });
        }
        line.waiting.into_values().flatten().flat_map(|(_, calls)| calls).collect()
    }

    /// Slots, running and queued calls of a target.
    pub fn of(&self, target: &str) -> (u32, u32, u32) {
        self.lines.get(target).map_or((0, 0, 0), |line| (line.offer.most, line.running, line.queued))
    }

    /// The call waits for its turn, unless it waits already or has its slot: being told twice gives no second turn.
    pub fn wait(&mut self, waiting: Waiting) {
        let Waiting { call, target, caller, priority } = waiting;
        if self.running.contains_key(&call) {
            return;
        }
        let line = self.lines.entry(target).or_default();
        let callers = line.waiting.entry(urgency(priority)).or_default();
        match callers.iter_mut().find(|(known, _)| *known == caller) {
            Some((_, calls)) if calls.contains(&call) => return,
            Some((_, calls)) => calls.push_back(call),
            None => callers.push_back((caller, VecDeque::from([call]))),
        }
        line.queued += 1;
    }

    /// The call takes a slot, whether or not there is a free one.
    pub fn enter(&mut self, call: HarnessCallId, target: &str) {
        if self.running.insert(call, target.to_owned()).is_none() {
            self.lines.entry(target.to_owned()).or_default().running += 1;
        }
    }

    /// The call holds no slot any more; false when it held none.
    pub fn leave(&mut self, call: HarnessCallId) -> bool {
        let Some(target) = self.running.remove(&call) else { return false };
        if let Some(line) = self.lines.get_mut(&target) {
            line.running = line.running.saturating_sub(1);
        }
        true
    }

    /// Takes a call out of the line.
    pub fn forget(&mut self, call: HarnessCallId) {
        for line in self.lines.values_mut() {
            for callers in line.waiting.values_mut() {
                for (_, calls) in callers.iter_mut() {
                    let before = calls.len();
                    calls.retain(|known| *known != call);
                    line.queued = line.queued.saturating_sub(u32::try_from(before - calls.len()).unwrap_or(0));
                }
                callers.retain(|(_, calls)| !calls.is_empty());
            }
        }
    }

    /// The next call whose turn it is, with its slot taken.
    pub fn next(&mut self) -> Option<HarnessCallId> {
        if self.running.len() >= self.most as usize {
            return None;
        }
        let target = self.next_target()?;
        let line = self.lines.get_mut(&target)?;
        let (urgency, callers) = line.waiting.iter_mut().find(|(_, callers)| !callers.is_empty())?;
        let urgency = *urgency;
        let (caller, mut calls) = callers.pop_front()?;
        let call = calls.pop_front()?;
        if !calls.is_empty() {
            callers.push_back((caller, calls));
        }
        if callers.is_empty() {
            line.waiting.remove(&urgency);
        }
        line.queued = line.queued.saturating_sub(1);
        self.last = Some(target.clone());
        self.enter(call, &target);
        Some(call)
    }

    /// The most urgent target with room; among equals the one after the last.
    fn next_target(&self) -> Option<String> {
        let ready = |line: &Line| {
            let urgency = line.waiting.iter().find(|(_, callers)| !callers.is_empty()).map(|(urgency, _)| *urgency);
            urgency.filter(|_| line.offer.open && line.running < line.offer.most)
        };
        let ready = self.lines.iter().filter_map(|(name, line)| ready(line).map(|urgency| (urgency, name)));
        let behind = |name: &String| self.last.as_ref().is_some_and(|last| name <= last);
        ready.min_by_key(|(urgency, name)| (*urgency, behind(name), (*name).clone())).map(|(_, name)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u8) -> HarnessCallId {
        HarnessCallId([number; 16])
    }

    fn waiting(number: u8, target: &str, caller: &str, priority: Priority) -> Waiting {
        let caller = format!("person/{caller}").parse().unwrap();
        Waiting { call: call(number), target: target.to_owned(), caller, priority }
    }

    #[track_caller]
    fn check(most: u32, waits: &[(u8, &str, &str, Priority)], expected: &[u8]) {
        let mut slots = Slots::new(most);
        slots.target("a", Offer { most: 2, open: true });
        slots.target("b", Offer { most: 2, open: true });
        for (number, target, caller, priority) in waits {
            slots.wait(waiting(*number, target, caller, *priority));
        }
        let mut order = Vec::new();
        while let Some(next) = slots.next() {
            order.push(next.0[0]);
            // One at a time, so that only the order counts.
            slots.leave(next);
        }
        assert_eq!(order, expected);
    }

    #[test]
    fn callers_and_targets_take_turns_and_priority_goes_first() {
        use Priority::{High, Low, Normal};
        check(
            1,
            &[(1, "a", "ann", Normal), (2, "a", "ann", Normal), (3, "a", "ann", Normal), (4, "a", "bob", Normal)],
            &[1, 4, 2, 3],
        );
        check(1, &[(1, "a", "ann", Low), (2, "a", "ann", Normal), (3, "a", "bob", High)], &[3, 2, 1]);
        check(1, &[(1, "a", "ann", Normal), (2, "a", "ann", Normal), (3, "b", "bob", Normal)], &[1, 3, 2]);
    }

    #[test]
    fn slots_are_bounded_over_all_and_per_target() {
        let mut slots = Slots::new(3);
        slots.target("a", Offer { most: 2, open: true });
        slots.target("b", Offer { most: 2, open: true });
        for number in 1..=4 {
            slots.wait(waiting(number, "a", "ann", Priority::Normal));
        }
        for number in 5..=7 {
            slots.wait(waiting(number, "b", "ann", Priority::Normal));
        }
        let mut running = Vec::new();
        while let Some(next) = slots.next() {
            running.push(next.0[0]);
        }
        assert_eq!((running, slots.of("a"), slots.of("b")), (vec![1, 5, 2], (2, 2, 2), (2, 1, 2)));
        // What goes on after a question takes its slot back, full or not.
        slots.enter(call(9), "a");
        assert_eq!((slots.of("a").1, slots.next()), (3, None));
        slots.forget(call(3));
        assert_eq!(slots.of("a").2, 1);
        assert!(slots.leave(call(5)) && !slots.leave(call(5)));
        // Who has a slot does not get another one.
        slots.wait(waiting(9, "a", "ann", Priority::High));
        assert_eq!(slots.of("a").2, 1);
    }
}
