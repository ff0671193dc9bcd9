//! Tells what a store has confirmed, before anybody can use it.

use std::time::Instant;

use ringflake::Layout;
use ringflake::lease::{
    Acquire, Grant, Init, LeaseStore, Namespace, Renew, StoreError, StoreRecord,
};

use super::space;
use super::wire::{Flaw, Line, say};

/// By so much do flawed workers go too far.
const TOO_FAR: u64 = 20;

/// A store whose positive replies are told to the overseer.
#[derive(Debug)]
pub(crate) struct Witness {
    store: Box<dyn LeaseStore>,
    /// How many more replies arrive.
    left: Option<u32>,
    flaw: Option<Flaw>,
}

impl Witness {
    pub(crate) fn new(
        store: Box<dyn LeaseStore>,
        dies_after_reply: Option<u32>,
        flaw: Option<Flaw>,
    ) -> Self {
        Self {
            store,
            left: dies_after_reply,
            flaw,
        }
    }

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

    fn report(&self, renewed: bool, grant: &Grant, asked: Instant) {
        say(&Line::Granted {
            renewed,
            block: grant.block.index(),
            epoch: grant.epoch.get(),
            start: grant.ticks.start,
            end: grant.ticks.end,
            micros: asked.elapsed().as_micros() as u64,
        });
    }

    /// How much later an end is told to the generator than the store has confirmed.
    fn excess(&self) -> u64 {
        match self.flaw {
            Some(Flaw::PassesTheEnd) => TOO_FAR,
            _ => 0,
        }
    }

    /// A refusal is told as well.
    fn forward<T>(
        &mut self,
        operation: &'static str,
        ask: impl FnOnce(&mut dyn LeaseStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        ask(&mut *self.store).inspect_err(|error| {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(error) = source {
                text += &format!(": {error}");
                source = error.source();
            }
            let text = text.chars().take(900).collect();
            say(&Line::Failed {
                operation: operation.to_owned(),
                error: text,
            });
        })
    }
}

impl LeaseStore for Witness {
    ringflake_kit::forward!(init, release, list, raise_floor, repair, check);

    /// With the limits of all scenarios.
    fn init_if_new(&mut self, space: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        let init = init.clone().with_limits(space::limits());
        self.forward("init", |store| store.init_if_new(space, &init))
    }

    fn acquire(&mut self, space: &Namespace, acquire: &Acquire) -> Result<Vec<Grant>, StoreError> {
        let asked = Instant::now();
        let mut grants = self.forward("acquire", |store| store.acquire(space, acquire))?;
        self.die_if_due();
        for grant in &mut grants {
            if self.flaw == Some(Flaw::IgnoresTheMark) {
                grant.ticks.start = tick(space.layout(), acquire.now_unix_ms);
            }
            self.report(false, grant, asked);
            grant.ticks.end += self.excess();
        }
        Ok(grants)
    }

    /// The generator knows an end that may lie too far, and the store its own.
    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let asked = Instant::now();
        let mut renew = renew.clone();
        let known = renew.known_end - self.excess();
        renew.known_end = known;
        renew.new_end = renew.new_end.max(known);
        let end = self.forward("renew", |store| store.renew(space, &renew))?;
        self.die_if_due();
        let grant = Grant::new(renew.block, renew.epoch, known..end);
        self.report(true, &grant, asked);
        Ok(end + self.excess())
    }
}

pub(crate) fn tick(layout: &Layout, unix_ms: u64) -> u64 {
    layout.tick_at(unix_ms).unwrap()
}
