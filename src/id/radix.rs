//! The number in the radices of `std::fmt`, with its flags.

use std::fmt;

use super::Id;

macro_rules! as_the_number {
    ($($radix:ident),*) => {$(
        impl fmt::$radix for Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$radix::fmt(&self.to_u64(), f)
            }
        }
    )*};
}

as_the_number!(Binary, LowerHex, Octal, UpperHex);
