//! Sources of IDs for the tests of a service: no ring, no threads, no lease.
//!
//! A service that asks for an [`IdSource`](crate::IdSource) is given one of these in a test:
//! [`Sequence`] where the IDs should be known beforehand, [`FailOnDemand`] where the service
//! should be seen to bear that there are none. Time, where a real generator is under test,
//! is a [`ManualClock`].
//!
//! The IDs are unique within one source and nowhere else, so this is for
//! `[dev-dependencies]`.
//!
//! # Examples
//!
//! ```
//! use ringflake::testing::{FailOnDemand, Sequence};
//! use ringflake::{IdSource, TakeError};
//!
//! /// The service: answers with an ID, or with a status of 503.
//! fn create_order(ids: &dyn IdSource) -> Result<String, u16> {
//!     ids.take().map(|id| id.to_string()).map_err(|_| 503)
//! }
//!
//! let ids = FailOnDemand::new(Sequence::new());
//! assert_eq!(create_order(&ids), Ok("1".to_owned()));
//! ids.fail_next(1, TakeError::Empty);
//! assert_eq!(create_order(&ids), Err(503));
//! assert_eq!(create_order(&ids), Ok("2".to_owned()));
//! ```

mod fail_on_demand;
mod sequence;

pub use self::fail_on_demand::FailOnDemand;
pub use self::sequence::Sequence;
pub use crate::clock::ManualClock;
