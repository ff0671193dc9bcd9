//! Tells what a store has confirmed, before anybody can use it.

use anyhow::Chain;
use ringflake::lease::{
    Acquire, Grant, Init, LeaseStore, Namespace, Renew, StoreError, StoreRecord,
};

use super::grant_log::Tenure;
use super::space;
use super::wire::{Flaw, Line, say};

/// By so many ticks do flawed workers go too far: no renewal is due before the end.
const TOO_FAR: u64 = 300;

/// A store that reports its positive replies to the overseer.
#[derive(Debug)]
pub(crate) struct Witness {
    pub(crate) store: Box<dyn LeaseStore>,
    /// How many more replies arrive.
    pub(crate) left: Option<u32>,
    pub(crate) flaw: Option<Flaw>,
}

impl Witness {
    /// Between the store's commit and its reply.
    fn die_if_due(&mut self) {
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                // SAFETY: a signal to this very process.
                unsafe { libc::raise(libc::SIGKILL) };
            }
        }
    }

    /// The ticks that a flaw adds to a confirmed end.
    fn excess(&self) -> u64 {
        match self.flaw {
            Some(Flaw::PassesTheEnd) => TOO_FAR,
            _ => 0,
        }
    }

    /// Reports refusals as well.
    fn forward<T>(
        &mut self,
        operation: &'static str,
        ask: impl FnOnce(&mut dyn LeaseStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        ask(&mut *self.store).inspect_err(|error| {
            let chain = Chain::new(error).map(ToString::to_string);
            let chain: Vec<_> = chain.collect();
            say(&Line::Failed {
                operation: operation.to_owned(),
                error: chain.join(": ").chars().take(900).collect(),
            });
        })
    }
}

impl LeaseStore for Witness {
    ringflake::forward_store! { self.forward =>
        init release list raise_floor repair check write_test
    }

    /// With the limits of all scenarios.
    fn init_if_new(&mut self, space: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        let init = init.clone().with_limits(space::limits());
        self.forward("init", |store| store.init_if_new(space, &init))
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        let mut grants = self.forward("acquire", |store| store.acquire(space, acquire))?;
        self.die_if_due();
        for grant in &mut grants {
            if self.flaw == Some(Flaw::IgnoresTheMark) {
                grant.ticks.start = space.layout().tick_at(acquire.now_unix_ms).unwrap();
            }
            say(&Line::Granted(Tenure {
                block: grant.block.index(),
                epoch: grant.epoch.get(),
                ticks: grant.ticks.clone(),
            }));
            grant.ticks.end += self.excess();
        }
        Ok(grants)
    }

    /// The generator knows an end that may lie too far, and the store its own.
    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let mut renew = renew.clone();
        let known = renew.known_end - self.excess();
        renew.known_end = known;
        renew.new_end = renew.new_end.max(known);
        let end = self.forward("renew", |store| store.renew(space, &renew))?;
        self.die_if_due();
        say(&Line::Renewed(Tenure {
            block: renew.block.index(),
            epoch: renew.epoch.get(),
            ticks: known..end,
        }));
        Ok(end + self.excess())
    }
}
