//! A service that takes IDs from whatever source it is given, and its tests, which give it
//! one whose IDs are known beforehand, and one that fails when they say so.
//! `cargo run --features testing --example test_a_service`

use std::error::Error;
use std::sync::Arc;

use ringflake::testing::{FailOnDemand, Sequence};
use ringflake::{Id, IdSource, Refused, TakeError};

/// A caller's answer in place of an order.
#[derive(Debug, PartialEq)]
enum Rejection {
    /// Try again, in about so many milliseconds.
    Busy(u128),
    /// No attempt will help: this instance has to be replaced.
    Broken,
}

/// The service. In production `ids` is a `CachedGenerator`.
struct Orders {
    ids: Arc<dyn IdSource + Send + Sync>,
    open: Vec<(Id, String)>,
}

impl Orders {
    fn place(&mut self, what: &str) -> Result<Id, Rejection> {
        let id = self.ids.take().map_err(|error| match error.retry_after() {
            Some(wait) => Rejection::Busy(wait.as_millis()),
            None => Rejection::Broken,
        })?;
        self.open.push((id, what.to_owned()));
        Ok(id)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let ids = Arc::new(FailOnDemand::new(Sequence::starting_at(1_000)));
    let mut orders = Orders {
        ids: Arc::clone(&ids) as Arc<dyn IdSource + Send + Sync>,
        open: Vec::new(),
    };

    // The IDs are known, so the answer can be compared as a whole.
    assert_eq!(orders.place("tea"), Ok(Id::from_u64(1_000)));

    // No ID to be had for a moment: the caller learns when to come back, and no order is kept.
    ids.fail_next(1, TakeError::Empty);
    assert_eq!(orders.place("milk"), Err(Rejection::Busy(1)));
    assert_eq!(orders.open.len(), 1);
    assert_eq!(orders.place("milk"), Ok(Id::from_u64(1_001)));

    // For good: a process that was forked has no IDs of its own.
    ids.fail(Refused::Forked.into());
    assert_eq!(orders.place("sugar"), Err(Rejection::Broken));
    ids.recover();
    assert_eq!(orders.place("sugar"), Ok(Id::from_u64(1_002)));

    println!(
        "{} orders, each with the ID that was expected",
        orders.open.len()
    );
    Ok(())
}
