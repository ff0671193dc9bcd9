//! What the vector backends have in common: the operations that the cipher needs.
//!
//! An instruction set is a [`VectorOps`] full of closures. Closures inherit the
//! `target_feature` of the function around them, so there the intrinsics in
//! them are safe to call. All that is done with them is `inline(always)`: it must end up
//! in that same function, or each operation would become a call.

/// The blocks of a vector by their words: first ones, second, third and fourth.
pub(super) type Words<V> = [V; 4];

/// What an instruction set can do with `V`, a vector of 16-bit lanes.
pub(super) struct VectorOps<
    V,
    Splat,
    Xor,
    Add,
    Subtract,
    Rotate2,
    Rotate9Add,
    Rotate2Back,
    Rotate9Back,
    SwapBytes,
    Interleave,
    Deinterleave,
    Outside,
    Select,
    Compress,
    Expand,
    Load,
    Store,
    Pack,
    Unpack,
> {
    /// The place in the output of each lane's block, counted from 0.
    pub(super) order: V,
    /// The given 64 bits repeated over the vector.
    pub(super) splat: Splat,
    /// The bits that differ.
    pub(super) xor: Xor,
    /// Adds lane by lane, wrapping around.
    pub(super) add: Add,
    /// Subtracts the second lane by lane, wrapping around.
    pub(super) subtract: Subtract,
    /// Rotates each lane to the left by 2 bits.
    pub(super) rotate_2: Rotate2,
    /// Rotates each lane of the first to the left by 9 bits and adds the second.
    pub(super) rotate_9_add: Rotate9Add,
    /// Rotates each lane to the right by 2 bits.
    pub(super) rotate_2_back: Rotate2Back,
    /// Rotates each lane to the right by 9 bits.
    pub(super) rotate_9_back: Rotate9Back,
    /// Rotates each lane by 8 bits.
    pub(super) swap_bytes: SwapBytes,
    /// From vectors of first, second, third and fourth words to whole blocks, in the order
    /// that `order` describes and with the bytes of each word swapped.
    pub(super) interleave: Interleave,
    /// The inverse of `interleave`.
    pub(super) deinterleave: Deinterleave,
    /// Given fourth words, the lanes whose blocks lie outside of the domain of walks, a bit for
    /// each: those whose bit 7 is set.
    pub(super) outside: Outside,
    /// The lanes of the first where the bit is set, those of the second elsewhere.
    pub(super) select: Select,
    /// Writes the lanes whose bit is set side by side, in their order, from the first place on.
    /// What comes behind them is anything.
    pub(super) compress: Compress,
    /// The inverse: replaces the lanes whose bit is set by words from the first place on.
    pub(super) expand: Expand,
    /// A lane for each word.
    pub(super) load: Load,
    /// The inverse of `load`.
    pub(super) store: Store,
    /// Words, one vector behind the other, in the memory of the blocks.
    pub(super) pack: Pack,
    /// The inverse of `pack`.
    pub(super) unpack: Unpack,
}

/// A [`VectorOps`], whose closures have types without a name.
pub(super) trait Vectors<const LANES: usize> {
    /// The vector.
    type V: Copy;

    fn order(&self) -> Self::V;
    fn splat(&self, bits: u64) -> Self::V;
    fn xor(&self, a: Self::V, b: Self::V) -> Self::V;
    fn add(&self, a: Self::V, b: Self::V) -> Self::V;
    fn subtract(&self, a: Self::V, b: Self::V) -> Self::V;
    fn rotate_2(&self, v: Self::V) -> Self::V;
    fn rotate_9_add(&self, v: Self::V, addend: Self::V) -> Self::V;
    fn rotate_2_back(&self, v: Self::V) -> Self::V;
    fn rotate_9_back(&self, v: Self::V) -> Self::V;
    fn swap_bytes(&self, v: Self::V) -> Self::V;
    fn interleave(&self, words: Words<Self::V>) -> [u64; LANES];
    fn deinterleave(&self, blocks: [u64; LANES]) -> Words<Self::V>;
    fn outside(&self, fourth_words: Self::V) -> u32;
    fn select(&self, bits: u32, a: Self::V, b: Self::V) -> Self::V;
    fn compress(&self, words: Self::V, bits: u32, to: &mut [u16; LANES]);
    fn expand(&self, words: Self::V, bits: u32, from: &[u16; LANES]) -> Self::V;
    fn load(&self, from: &[u16; LANES]) -> Self::V;
    fn store(&self, words: Self::V) -> [u16; LANES];
    fn pack(&self, words: Words<Self::V>) -> [u64; LANES];
    fn unpack(&self, blocks: [u64; LANES]) -> Words<Self::V>;
}

impl<
    const LANES: usize,
    V,
    Splat,
    Xor,
    Add,
    Subtract,
    Rotate2,
    Rotate9Add,
    Rotate2Back,
    Rotate9Back,
    SwapBytes,
    Interleave,
    Deinterleave,
    Outside,
    Select,
    Compress,
    Expand,
    Load,
    Store,
    Pack,
    Unpack,
> Vectors<LANES>
    for VectorOps<
        V,
        Splat,
        Xor,
        Add,
        Subtract,
        Rotate2,
        Rotate9Add,
        Rotate2Back,
        Rotate9Back,
        SwapBytes,
        Interleave,
        Deinterleave,
        Outside,
        Select,
        Compress,
        Expand,
        Load,
        Store,
        Pack,
        Unpack,
    >
where
    V: Copy,
    Splat: Fn(u64) -> V,
    Xor: Fn(V, V) -> V,
    Add: Fn(V, V) -> V,
    Subtract: Fn(V, V) -> V,
    Rotate2: Fn(V) -> V,
    Rotate9Add: Fn(V, V) -> V,
    Rotate2Back: Fn(V) -> V,
    Rotate9Back: Fn(V) -> V,
    SwapBytes: Fn(V) -> V,
    Interleave: Fn(Words<V>) -> [u64; LANES],
    Deinterleave: Fn([u64; LANES]) -> Words<V>,
    Outside: Fn(V) -> u32,
    Select: Fn(u32, V, V) -> V,
    Compress: Fn(V, u32, &mut [u16; LANES]),
    Expand: Fn(V, u32, &[u16; LANES]) -> V,
    Load: Fn(&[u16; LANES]) -> V,
    Store: Fn(V) -> [u16; LANES],
    Pack: Fn(Words<V>) -> [u64; LANES],
    Unpack: Fn([u64; LANES]) -> Words<V>,
{
    type V = V;

    #[inline(always)]
    fn order(&self) -> V {
        self.order
    }

    #[inline(always)]
    fn splat(&self, bits: u64) -> V {
        (self.splat)(bits)
    }

    #[inline(always)]
    fn xor(&self, a: V, b: V) -> V {
        (self.xor)(a, b)
    }

    #[inline(always)]
    fn add(&self, a: V, b: V) -> V {
        (self.add)(a, b)
    }

    #[inline(always)]
    fn subtract(&self, a: V, b: V) -> V {
        (self.subtract)(a, b)
    }

    #[inline(always)]
    fn rotate_2(&self, v: V) -> V {
        (self.rotate_2)(v)
    }

    #[inline(always)]
    fn rotate_9_add(&self, v: V, addend: V) -> V {
        (self.rotate_9_add)(v, addend)
    }

    #[inline(always)]
    fn rotate_2_back(&self, v: V) -> V {
        (self.rotate_2_back)(v)
    }

    #[inline(always)]
    fn rotate_9_back(&self, v: V) -> V {
        (self.rotate_9_back)(v)
    }

    #[inline(always)]
    fn swap_bytes(&self, v: V) -> V {
        (self.swap_bytes)(v)
    }

    #[inline(always)]
    fn interleave(&self, words: Words<V>) -> [u64; LANES] {
        (self.interleave)(words)
    }

    #[inline(always)]
    fn deinterleave(&self, blocks: [u64; LANES]) -> Words<V> {
        (self.deinterleave)(blocks)
    }

    #[inline(always)]
    fn outside(&self, fourth_words: V) -> u32 {
        (self.outside)(fourth_words)
    }

    #[inline(always)]
    fn select(&self, bits: u32, a: V, b: V) -> V {
        (self.select)(bits, a, b)
    }

    #[inline(always)]
    fn compress(&self, words: V, bits: u32, to: &mut [u16; LANES]) {
        (self.compress)(words, bits, to)
    }

    #[inline(always)]
    fn expand(&self, words: V, bits: u32, from: &[u16; LANES]) -> V {
        (self.expand)(words, bits, from)
    }

    #[inline(always)]
    fn load(&self, from: &[u16; LANES]) -> V {
        (self.load)(from)
    }

    #[inline(always)]
    fn store(&self, words: V) -> [u16; LANES] {
        (self.store)(words)
    }

    #[inline(always)]
    fn pack(&self, words: Words<V>) -> [u64; LANES] {
        (self.pack)(words)
    }

    #[inline(always)]
    fn unpack(&self, blocks: [u64; LANES]) -> Words<V> {
        (self.unpack)(blocks)
    }
}
