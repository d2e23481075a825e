//! Seeded chance. What it yields depends on seed and stream alone, never on the order in which others draw.

/// A small generator (SplitMix64).
#[derive(Clone)]
pub struct Chance(u64);

impl Chance {
    /// The generator of one purpose. Streams of one seed have nothing to do with each other.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut mixed = Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed.word();
        mixed
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.word() % n
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
