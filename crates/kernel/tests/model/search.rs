//! The search: breadth-first over all states, so that the first way to a violation is a shortest one.

use super::spec::Spec;
use super::world::{Action, State, Violation};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// All states that can be reached, and how each was reached first.
pub struct Explored {
    spec: Spec,
    states: Vec<State>,
    /// The state before and what happened there; the start has none.
    origin: Vec<Option<(usize, Action)>>,
    /// Where each kind of violation was met first.
    pub found: BTreeMap<Violation, usize>,
}

/// Which states are known: a table of places in the list of all states, at most half full, so that looking one up
/// costs the same however many there are.
struct Known {
    table: Vec<u32>,
    packed: Vec<u128>,
}

impl Known {
    const FREE: u32 = u32::MAX;

    fn new() -> Self {
        Self { table: vec![Self::FREE; 1 << 12], packed: Vec::new() }
    }

    /// Where the state is, and whether it is new.
    fn place(&mut self, packed: u128) -> (usize, bool) {
        if 2 * self.packed.len() > self.table.len() {
            self.table = vec![Self::FREE; 4 * self.table.len()];
            for at in 0..self.packed.len() {
                let slot = self.slot(self.packed[at]);
                self.table[slot] = at as u32;
            }
        }
        let slot = self.slot(packed);
        if self.table[slot] != Self::FREE {
            return (self.table[slot] as usize, false);
        }
        self.table[slot] = self.packed.len() as u32;
        self.packed.push(packed);
        (self.packed.len() - 1, true)
    }

    /// The slot of this state, or the free one where it belongs.
    fn slot(&self, packed: u128) -> usize {
        let mixed = (packed as u64 ^ (packed >> 61) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (mixed >> 32) as usize & (self.table.len() - 1);
        while self.table[slot] != Self::FREE && self.packed[self.table[slot] as usize] != packed {
            slot = (slot + 1) & (self.table.len() - 1);
        }
        slot
    }
}

/// Visits all states, or stops at the first violation of the kind that is looked for.
pub fn explore(spec: Spec, look_for: Option<Violation>) -> Explored {
    let mut known = Known::new();
    known.place(State::START.packed());
    let mut all = Explored { spec, states: vec![State::START], origin: vec![None], found: BTreeMap::new() };
    // Who leads to whom before the Call has settled, for the question whether it still can.
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    while at < all.states.len() && look_for.is_none_or(|kind| !all.found.contains_key(&kind)) {
        let state = all.states[at];
        let settled = state.is_settled();
        spec.next(&state, |action, next| {
            let (to, new) = known.place(next.packed());
            if new {
                all.states.push(next);
                all.origin.push(Some((at, action)));
                if let Some(kind) = spec.violation(&next) {
                    all.found.entry(kind).or_insert(to);
                }
            }
            if let Some(kind) = spec.wrong_step(&state, action) {
                all.found.entry(kind).or_insert(to);
            }
            if !settled && look_for.is_none() {
                edges.push((to, at));
            }
        });
        at += 1;
    }
    if look_for.is_none()
        && let Some(stuck) = all.first_stuck(edges)
    {
        all.found.insert(Violation::NeverSettles, stuck);
    }
    all
}

impl Explored {
    /// How many states there are.
    pub const fn count(&self) -> usize {
        self.states.len()
    }

    /// The first state from which no way leads to a settlement.
    fn first_stuck(&self, mut edges: Vec<(usize, usize)>) -> Option<usize> {
        edges.sort_unstable();
        let mut settles: Vec<bool> = self.states.iter().map(State::is_settled).collect();
        let mut todo: Vec<usize> = (0..settles.len()).filter(|at| settles[*at]).collect();
        while let Some(to) = todo.pop() {
            let first = edges.partition_point(|edge| edge.0 < to);
            for (_, from) in edges[first..].iter().take_while(|edge| edge.0 == to) {
                if !std::mem::replace(&mut settles[*from], true) {
                    todo.push(*from);
                }
            }
        }
        settles.iter().position(|settles| !settles)
    }

    /// The way to a violation, one line each: when, and what happened.
    pub fn trace(&self, kind: Violation) -> Option<String> {
        let mut at = *self.found.get(&kind)?;
        let mut actions = Vec::new();
        while let Some((before, action)) = self.origin[at] {
            actions.push(action);
            at = before;
        }
        let mut time = 0;
        let mut text = format!("{:?}, {:?}: {kind:?}\n", self.spec.class, self.spec.flaw);
        for action in actions.into_iter().rev() {
            match action {
                Action::Tick => time += 1,
                action => writeln!(text, "  {time:>2}  {}", words(action)).expect("a string takes everything"),
            }
        }
        Some(text)
    }
}

fn words(action: Action) -> String {
    let who = |worker: usize| if worker == 0 { "A" } else { "B" };
    match action {
        Action::Tick => "time passes".into(),
        Action::Dies(worker) => format!("{} dies", who(worker)),
        Action::Claims(worker) => format!("{} takes the run over", who(worker)),
        Action::Renews(worker) => format!("{} renews its lease", who(worker)),
        Action::Intends(worker) => format!("{} commits an intent", who(worker)),
        Action::Sends(worker) => format!("{} sends", who(worker)),
        Action::WindowCloses(worker) => format!("{} has not sent in time and records that", who(worker)),
        Action::Lands => "a request lands".into(),
        Action::Replies(worker) => format!("{} hears the reply", who(worker)),
        Action::Refuses(worker) => format!("the request of {} is refused", who(worker)),
        Action::Cancels(worker) => format!("the run is cancelled, {} settles it as never sent", who(worker)),
        Action::GivesUp(worker) => format!("{} gives the attempt up", who(worker)),
        Action::RunsAgain(worker) => format!("{} wants the call again", who(worker)),
        Action::Asks(worker) => format!("{} settles it as unknown and asks a person", who(worker)),
        Action::ProbesLanded(worker) => format!("{} probes: landed", who(worker)),
        Action::ProbesNothing(worker) => format!("{} probes: not landed", who(worker)),
        Action::WantsAgain(worker) => format!("{} believes the probe and wants the call again", who(worker)),
        Action::Settles(worker) => format!("{} settles it as landed", who(worker)),
        Action::Fails(worker) => format!("{} settles it as failed", who(worker)),
        Action::DepositsLateResult(worker) => format!("{} is fenced and deposits its result", who(worker)),
        Action::PersonSaysLanded => "the person finds it in the ledger".into(),
        Action::PersonSaysNot => "the person says: it did not happen".into(),
        Action::PersonSaysRetry => "the person says: do it again".into(),
    }
}
