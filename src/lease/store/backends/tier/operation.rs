//! The kinds of steps on a grant log: the name of each, and its needs.

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operation {
    /// Stands in errors.
    pub(super) name: &'static str,
    /// The step needs a clock that can be trusted.
    pub(super) needs_clock: bool,
    /// The step needs to know which processes are alive.
    pub(super) needs_signs: bool,
}

impl Operation {
    pub(super) const ACQUIRE: Self = Self::new("acquire", true, true);
    /// Follows an `ACQUIRE`, which has checked the clock.
    pub(super) const GRANT: Self = Self::new("acquire", false, true);
    pub(super) const RENEW: Self = Self::new("renew", true, true);
    pub(super) const RELEASE: Self = Self::new("release", false, false);
    pub(super) const RAISE: Self = Self::new("raise_floor", false, false);
    pub(super) const RAISE_BY_THE_CLOCK: Self = Self::new("raise_floor", true, false);
    pub(super) const ADOPT: Self = Self::new("adopt", false, false);
    pub(super) const INIT: Self = Self::new("init", false, false);
    pub(super) const UPSTREAM_REPLY: Self =
        Self::new("write down what the upstream store said", false, false);

    const fn new(name: &'static str, needs_clock: bool, needs_signs: bool) -> Self {
        Self {
            name,
            needs_clock,
            needs_signs,
        }
    }
}
