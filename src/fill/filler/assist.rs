//! Takes that help a stripe which is nearly empty.
//!
//! Between the request for a fill and its first IDs lies a wake-up: microseconds on a quiet
//! machine, and milliseconds where other threads have the cores. A ring that must not run
//! dry in that time has to be as large as the load of that time. So a take that leaves
//! fewer IDs than the low mark makes a run itself, about a microsecond's worth, and goes
//! on. This needs no scheduler: the taking thread is running.
//!
//! One thread at a time assists a stripe. The others go on, and take what is left and what
//! producers bring. The word `assist` of the stripe is the permission:
//!
//! ```text
//!             a take claims it                    made: gives it back
//!   free -----------------------> one assists --------------------------> free
//!                                      | refused, or a clock panicked
//!                                      v
//!                             none until a producer has served the stripe
//! ```
//!
//! So where nothing can be made, takes do not try again and again. If a clock panics in an assist,
//! the take still returns its ID, and the producers' next fill reports the panic. A thread that is
//! stopped in an assist keeps the permission, and the stripe then works as one without assists.
//!
//! A thread that is stopped while it publishes holds back what others publish in the same stripe. A
//! run for it would be hidden, so none is made: takes empty the stripe, go on to another one, and
//! assist that. So with two stripes or more, the takes of a core find IDs while some stripe has no
//! stopped thread.

use super::{Filler, LONGEST_RUN};
use crate::events;
use crate::fill::stripe::Stripe;
use crate::id::Id;
use crate::timeline::Refused;
use crate::unwind::catching;

impl Filler {
    /// Makes a run for a stripe in which a take has left fewer IDs than the low mark,
    /// unless another thread does.
    #[cold]
    pub(super) fn assist(&self, stripe: &Stripe) {
        if stripe.ring.is_held_back() || !stripe.assist.claim() {
            return;
        }
        if let Some(Ok(())) = catching(|| self.make_run_for(stripe)) {
            stripe.assist.free();
        }
    }

    fn make_run_for(&self, stripe: &Stripe) -> Result<(), Refused> {
        let Some(room) = self.reserve(stripe, self.run) else {
            // Producers have promised all the room.
            return Ok(());
        };
        // Before anything is made, see `recall`.
        let mark = self.recalls.mark();
        let mut run = [Id::default(); LONGEST_RUN];
        let made = self.source.mint(&mut run[..room.len()])?;
        let inserted = room.stock(&run[..made], mark);
        self.count_given_up(made - inserted);
        if inserted > 0 {
            stripe.count_assist();
            events::assisted(&self.throttles.assisted, inserted as u64);
        }
        Ok(())
    }
}
