//! What an instruction set gives to the kernel: a vector of 16-bit lanes, and what the cipher
//! does with it.

/// The blocks of a vector by their words: first ones, second, third and fourth.
pub(super) type Words<V> = [V; 4];

/// An instruction set. A value of the type exists only where the processor has it.
///
/// All methods, and the functions of the kernel that call them, are `inline(always)`: they end
/// up in a function with the `target_feature`, where each is an instruction or two. Elsewhere
/// each would be a call.
pub(super) trait Vectors<const LANES: usize>: Copy {
    type V: Copy;

    /// The place in the output of each lane's block, counted from 0.
    fn order(self) -> Self::V;
    /// The given 64 bits repeated over the vector.
    fn splat(self, bits: u64) -> Self::V;
    /// The bits that differ.
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;
    /// Adds lane by lane, wrapping around.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// Rotates each lane to the left by 2 bits.
    fn rotate_2(self, v: Self::V) -> Self::V;
    /// Rotates each lane of `v` to the left by 9 bits and adds `y`.
    fn rotate_9_add(self, v: Self::V, y: Self::V) -> Self::V;
    /// Rotates each lane by 8 bits.
    fn swap_bytes(self, v: Self::V) -> Self::V;
    /// From vectors of first, second, third and fourth words to whole blocks, in the order
    /// that `order` describes and with the bytes of each word swapped.
    fn interleave(self, words: Words<Self::V>) -> [u64; LANES];
    /// The inverse of `interleave`.
    fn deinterleave(self, blocks: [u64; LANES]) -> Words<Self::V>;
}

/// The methods of a [`Vectors`], whose bodies call intrinsics.
macro_rules! methods {
    ($(fn $name:ident($($argument:tt)*) -> $Output:ty $body:block)*) => {
        $(
            #[inline(always)]
            #[allow(unused_unsafe, reason = "every x86-64 processor has some of them")]
            fn $name($($argument)*) -> $Output {
                // SAFETY: there is a `Self`, so the processor has these instructions.
                unsafe { $body }
            }
        )*
    };
}

pub(super) use methods;
