//! A vector register as numbers in memory, and back: the same for every instruction set.

/// Defines `store` and `load` for a register of `$lanes` words, and `pack` and `unpack` for four
/// of them, which are as many blocks in memory.
macro_rules! casts {
    ($feature:literal, $Vector:ty, $lanes:literal) => {
        #[target_feature(enable = $feature)]
        #[inline]
        pub(super) fn store(v: $Vector) -> [u16; $lanes] {
            // SAFETY: both sides are plain integers of the same size.
            unsafe { std::mem::transmute::<$Vector, [u16; $lanes]>(v) }
        }

        #[target_feature(enable = $feature)]
        #[inline]
        pub(super) fn load(words: &[u16; $lanes]) -> $Vector {
            // SAFETY: as above.
            unsafe { std::mem::transmute::<[u16; $lanes], $Vector>(*words) }
        }

        #[target_feature(enable = $feature)]
        #[inline]
        pub(super) fn pack(vectors: [$Vector; 4]) -> [u64; $lanes] {
            // SAFETY: as above.
            unsafe { std::mem::transmute::<[$Vector; 4], [u64; $lanes]>(vectors) }
        }

        #[target_feature(enable = $feature)]
        #[inline]
        pub(super) fn unpack(blocks: [u64; $lanes]) -> [$Vector; 4] {
            // SAFETY: as above.
            unsafe { std::mem::transmute::<[u64; $lanes], [$Vector; 4]>(blocks) }
        }
    };
}

pub(super) use casts;
