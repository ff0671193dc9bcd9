//! The figures of a generator, for the [`metrics`](https://docs.rs/metrics) facade: whichever
//! recorder the program has installed, for Prometheus or another system, gets them.
//!
//! [`guide::monitoring`](crate::guide::monitoring) has the table of all metrics, and says at which
//! values to wake somebody.
//!
//! ```
//! use ringflake::metrics::Publisher;
//! # use ringflake::{CachedGenerator, Layout, StaticLease};
//! # let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 910..911);
//! # let ids = CachedGenerator::builder(Layout::RANDFLAKE).plain().lease(lease).build()?;
//!
//! // Once, at the start, beside the recorder of the program.
//! let publisher = Publisher::new(&ids).with_labels([("namespace", "orders")]);
//!
//! // Each time that the recorder is read, or every ten seconds.
//! publisher.publish();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Design
//! *Nothing on the way of a take.* A [`Publisher`] reads
//! [`stats`](crate::CachedGenerator::stats) and
//! [`lease_status`](crate::CachedGenerator::lease_status), which stay the truth, and hands their
//! values on. The generator knows nothing of it.
//!
//! *Counters add up.* A publisher adds to each what its generator has counted since the last
//! publication, and at first since it was built. So a generator that is built anew under the
//! labels of one that has ended goes on where that stopped, and what happened between two
//! publications is in the next one. `Stats::issued` goes down when a handle is dropped that
//! has IDs left; what is published stays until it is exceeded. A second publisher of one
//! generator to one recorder would count all of it again: keep the first one.
//!
//! *Gauges stay.* Those of a generator that has ended keep their last values in the recorder,
//! until another generator is published under the same labels.
//!
//! *Not a strong reference.* A publisher holds a [`WeakGenerator`](crate::WeakGenerator). It
//! has the generator for the microseconds in which it reads, and not while it calls the
//! recorder.
//!
//! *Other people's code.* A recorder may panic: that goes to the caller of
//! [`publish`](Publisher::publish). No lock is held while the recorder is called.
//!
//! *A fork.* A child publishes nothing: the figures are its parent's.

mod catalogue;
mod counters;
mod publisher;
mod report;

pub use self::publisher::Publisher;
