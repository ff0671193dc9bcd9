//! The kinds of steps on a grant log: the name of each, and its needs.

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// Stands in errors.
    pub(super) name: &'static str,
    /// The step needs to know which processes are alive.
    pub(super) needs_signs: bool,
}

impl Operation {
    pub(super) const ACQUIRE: Self = Self::new("acquire", true);
    pub(super) const RENEW: Self = Self::new("renew", true);
    pub(super) const RELEASE: Self = Self::new("release", false);
    pub(super) const RAISE: Self = Self::new("raise_floor", false);
    pub(super) const ADOPT: Self = Self::new("adopt", false);
    pub(super) const INIT: Self = Self::new("init", false);
    pub(super) const UPSTREAM_REPLY: Self =
        Self::new("write down what the upstream store said", false);

    const fn new(name: &'static str, needs_signs: bool) -> Self {
        Self { name, needs_signs }
    }
}
