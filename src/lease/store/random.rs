//! Pseudo-random numbers that need be no secret.

/// SplitMix64.
///
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014.
#[derive(Clone, Debug)]
pub(in crate::lease) struct SplitMix64(u64);

impl SplitMix64 {
    pub(in crate::lease) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(in crate::lease) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sequence of the reference implementation for the seed 1234567.
    #[test]
    fn the_numbers_are_those_of_the_source() {
        let mut random = SplitMix64::new(1_234_567);
        for number in [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ] {
            assert_eq!(random.next(), number);
        }
    }
}
