//! The messages of an error, all lines of a variant in one place.
//!
//! ```text
//! describe! {
//!     StoreError,
//!     /// Why it matters.
//!     note,
//!     /// What to do about it.
//!     help;
//!
//!     Self::NotQuarantined { block } => "block {block} is not quarantined",
//!         help: "a check lists the quarantined blocks";
//!     Self::FloorAhead { wait } if *wait > DAY => ("no grant is possible for {}", span(*wait)),
//!         note: "the floor was raised over grants that may have been lost",
//!         help: "set the clock";
//!     Self::FloorAhead { wait } => ("no grant is possible for {}", span(*wait));
//!     Self::Io(error) => via error;
//! }
//! ```
//!
//! It implements `Display`, which writes the text or formats what is in parentheses, and the
//! methods `note` and `help`, which return `None` for an arm without such a line. Arms are those of
//! a `match self`. `via` takes message, note and help from the error that it names. Without `note`
//! and `help` in the first lines, as in `describe! { Fence; … }`, there is only `Display`.

macro_rules! describe {
    ($error:ident; $(
        $(#[$meta:meta])*
        $pattern:pat $(if $guard:expr)? =>
            $(via $source:ident)? $($text:literal)? $(($($format:tt)+))?;
    )+) => {
        impl ::std::fmt::Display for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {$(
                    $(#[$meta])*
                    $pattern $(if $guard)? => {
                        $(::std::fmt::Display::fmt($source, f))?
                        $(write!(f, $text))?
                        $(write!(f, $($format)+))?
                    }
                )+}
            }
        }
    };
    ($error:ident, $(#[$about_note:meta])* note, $(#[$about_help:meta])* help; $(
        $(#[$meta:meta])*
        $pattern:pat $(if $guard:expr)? =>
            $(via $source:ident)? $($text:literal)? $(($($format:tt)+))?
            $(, note: $($note:literal)? $(via $note_of:ident)?)?
            $(, help: $($help:literal)? $(via $help_of:ident)?)?;
    )+) => {
        $crate::describe::describe! { $error; $(
            $(#[$meta])*
            $pattern $(if $guard)? =>
                $(via $source)? $($text)? $(($($format)+))?;
        )+ }

        #[allow(unused_variables, reason = "an arm binds what its first line shows")]
        impl $error {
            $(#[$about_note])*
            pub fn note(&self) -> Option<&'static str> {
                match self {$(
                    $(#[$meta])*
                    $pattern $(if $guard)? => $crate::describe::describe!(
                        @line note $(via $source)? $($($note)? $(via $note_of)?)?
                    ),
                )+}
            }

            $(#[$about_help])*
            pub fn help(&self) -> Option<&'static str> {
                match self {$(
                    $(#[$meta])*
                    $pattern $(if $guard)? => $crate::describe::describe!(
                        @line help $(via $source)? $($($help)? $(via $help_of)?)?
                    ),
                )+}
            }
        }
    };
    (@line $method:ident) => { None };
    (@line $method:ident $text:literal) => { Some($text) };
    (@line $method:ident via $source:ident) => { $source.$method() };
}
pub(crate) use describe;

/// `Debug` of a type that shows its name alone.
macro_rules! opaque_debug {
    ($name:ident $(<$lifetime:lifetime>)?) => {
        impl ::std::fmt::Debug for $name $(<$lifetime>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use opaque_debug;
