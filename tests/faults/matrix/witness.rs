//! Tells what a store has confirmed, before anybody can use it.

use std::time::Instant;

use ringflake::Layout;
use ringflake::lease::{
    Acquire, Block, BlockState, Epoch, Floor, Grant, Init, LeaseStore, Listing, Namespace, Renew,
    StoreError, StoreRecord, StoreReport,
};

use super::space;
use super::wire::{Flaw, Line, say};

/// By so much do flawed workers go too far.
const TOO_FAR: u64 = 20;

/// A store whose positive replies are told to the overseer.
#[derive(Debug)]
pub(crate) struct Witness {
    store: Box<dyn LeaseStore>,
    /// How many more replies are heard.
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

    fn tell(&self, renewed: bool, grant: &Grant, asked: Instant) {
        say(&Line::Granted {
            renewed,
            block: grant.block.index(),
            epoch: grant.epoch.get(),
            start: grant.ticks.start,
            end: grant.ticks.end,
            micros: asked.elapsed().as_micros() as u64,
        });
    }

    /// What the generator gets to hear of an end.
    fn heard(&self, end: u64) -> u64 {
        match self.flaw {
            Some(Flaw::PassesTheEnd) => end + TOO_FAR,
            _ => end,
        }
    }

    /// The end that the store knows, of one that the generator heard.
    fn confirmed(&self, end: u64) -> u64 {
        match self.flaw {
            Some(Flaw::PassesTheEnd) => end - TOO_FAR,
            _ => end,
        }
    }
}

fn failed<T>(operation: &str, result: Result<T, StoreError>) -> Result<T, StoreError> {
    result.inspect_err(|error| {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(error);
        while let Some(error) = source {
            text += &format!(": {error}");
            source = error.source();
        }
        let end = (0..=1000).rfind(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or(0));
        say(&Line::Failed {
            operation: operation.to_owned(),
            error: text,
        });
    })
}

impl LeaseStore for Witness {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.store.init(namespace, init)
    }

    /// With the limits of all scenarios.
    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        let init = init.clone().with_limits(space::limits());
        failed("init", self.store.init_if_new(namespace, &init))
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        let asked = Instant::now();
        let mut grants = failed("acquire", self.store.acquire(namespace, acquire))?;
        self.die_if_due();
        for grant in &mut grants {
            if self.flaw == Some(Flaw::IgnoresTheMark) {
                grant.ticks.start = tick(namespace.layout(), acquire.now_unix_ms);
            }
            self.tell(false, grant, asked);
            grant.ticks.end = self.heard(grant.ticks.end);
        }
        Ok(grants)
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let asked = Instant::now();
        let mut renew = renew.clone();
        let known = self.confirmed(renew.known_end);
        renew.known_end = known;
        renew.new_end = renew.new_end.max(known);
        let end = failed("renew", self.store.renew(namespace, &renew))?;
        self.die_if_due();
        let grant = Grant::new(renew.block, renew.epoch, known..end);
        self.tell(true, &grant, asked);
        Ok(self.heard(end))
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        failed("release", self.store.release(namespace, block, epoch))
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.store.list(namespace)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.store.raise_floor(namespace, floor, now_unix_ms)
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        self.store.repair(namespace, block, now_unix_ms)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        failed("check", self.store.check(namespace, now_unix_ms))
    }
}

pub(crate) fn tick(layout: &Layout, unix_ms: u64) -> u64 {
    layout.tick_at(unix_ms).unwrap()
}
