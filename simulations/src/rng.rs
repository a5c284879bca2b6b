//! Numbers from a seed: the only source of chance in a simulation.
//!
//! Invariant: the same seed gives the same numbers on every machine and in every version; nothing else is asked for
//! chance. Called by plans.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng as _, SeedableRng};

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below a bound; 0 for the bound 0. The bias for bounds far below 2^64 is of no account here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound.max(1)
    }

    /// A small number below a bound.
    pub fn small(&mut self, bound: u8) -> u8 {
        // Below a bound of eight bits.
        u8::try_from(self.below(u64::from(bound))).unwrap_or(0)
    }

    /// True so many times in a hundred.
    pub fn chance(&mut self, in_hundred: u64) -> bool {
        self.below(100) < in_hundred
    }

    /// One of some.
    pub fn pick<'a, T>(&mut self, some: &'a [T]) -> Option<&'a T> {
        let at = self.below(some.len() as u64);
        some.get(usize::try_from(at).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are written down: packets of other versions must replay.
    #[test]
    fn a_seed_has_the_same_numbers_for_ever() {
        let mut rng = Rng::new(7);
        let found = [rng.number(), rng.number(), rng.below(100)];
        assert_eq!(found, GOLDEN);
    }

    const GOLDEN: [u64; 3] = [12726360963827698830, 8784933628230385458, 19];
}
