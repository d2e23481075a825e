//! Things in the order in which they began, each found by its number without a look at the others.

use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Numbered<K, T> {
    things: Vec<T>,
    places: BTreeMap<K, usize>,
}

impl<K: Ord, T> Numbered<K, T> {
    pub(super) const fn new() -> Self {
        Self { things: Vec::new(), places: BTreeMap::new() }
    }

    pub(super) fn has(&self, number: &K) -> bool {
        self.places.contains_key(number)
    }

    /// Adds one behind the others. A number that is there already means this one from now on.
    pub(super) fn push(&mut self, number: K, thing: T) {
        self.places.insert(number, self.things.len());
        self.things.push(thing);
    }

    pub(super) fn get_mut(&mut self, number: &K) -> Option<&mut T> {
        self.places.get(number).and_then(|at| self.things.get_mut(*at))
    }

    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        self.things.last_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.things.len()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.things.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::cmp::Ordering;

    thread_local! {
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A number that counts how often one is compared.
    #[derive(Debug, PartialEq, Eq)]
    struct Counted(u64);

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    /// A server may send as many blocks as fit into an answer, in any order of their numbers.
    #[test]
    fn each_one_costs_the_same() {
        const MANY: u64 = 20_000;
        for step in [1, 7919] {
            COMPARED.set(0);
            let mut numbered = Numbered::new();
            for at in 0..MANY {
                let number = at * step % MANY;
                assert!(!numbered.has(&Counted(number)));
                numbered.push(Counted(number), number);
                assert_eq!(numbered.get_mut(&Counted(number)).copied(), Some(number));
            }
            let order: Vec<u64> = numbered.iter().copied().collect();
            assert_eq!(order, (0..MANY).map(|at| at * step % MANY).collect::<Vec<_>>());
            // Three looks at a tree of five levels at most; a search through all of them takes ten thousand.
            let each = COMPARED.get() as u64 / MANY;
            assert!(each < 150, "{each} comparisons for each");
        }
    }
}
