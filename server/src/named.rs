//! Enums whose variants have names.

/// Adds `ALL`, `name` and `Display`, and with a description for the error also `from_name`.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $type:ident $(, $what:literal)? {
        $($(#[$of:meta])* $variant:ident = $name:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $type {
            $($(#[$of])* $variant,)*
        }

        impl $type {
            /// All of them.
            $vis const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// As it is written.
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            $(
                /// The one with this name.
                ///
                /// # Errors
                /// The names that there are.
                $vis fn from_name(name: &str) -> Result<Self, String> {
                    let mut all = Self::ALL.into_iter();
                    all.find(|one| one.name() == name).ok_or_else(|| {
                        let names = Self::ALL.map(Self::name).join(", ");
                        format!("{name:?} is no {}: give one of {names}", $what)
                    })
                }
            )?
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use named;
