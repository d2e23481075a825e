//! Random moments that a seed repeats.

/// Small, and the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        // xorshift64*: good enough to choose moments.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The seed of this series: the one that was asked for, or another one each time.
#[expect(clippy::disallowed_methods, reason = "a seed that differs from one series to the next; it is printed")]
pub fn seed() -> u64 {
    let fresh = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        u64::from(now.subsec_nanos()) << 20 | u64::from(std::process::id())
    };
    number("LOOPD_SEED").unwrap_or_else(fresh)
}
