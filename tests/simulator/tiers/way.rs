//! The way from a machine to the upstream store, and what happens meanwhile.

use super::*;

/// How the network is, and what it will do next.
#[derive(Debug)]
pub(super) struct Net {
    random: SplitMix64,
    flaw: Option<Flaw>,
    is_healed: bool,
    pub(super) is_away: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    NeverSent,
    ReplyLost,
    RequestLost,
}

/// How a ledger is lost while a request is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Noticed,
    Unnoticed,
}

impl Net {
    pub(super) fn new(seed: u64, flaw: Option<Flaw>) -> Self {
        Self {
            random: SplitMix64::new(!seed),
            flaw,
            is_healed: false,
            is_away: false,
        }
    }

    pub(super) fn heal(&mut self) {
        (self.is_away, self.is_healed) = (false, true);
    }

    fn fate(&mut self) -> Fate {
        match self.random.below(20) {
            _ if self.is_healed => Fate::Answered,
            _ if self.is_away => Fate::NeverSent,
            0 => Fate::NeverSent,
            1 => Fate::ReplyLost,
            2 => Fate::RequestLost,
            _ => Fate::Answered,
        }
    }

    fn losing(&mut self) -> Option<Loss> {
        if self.happens(3) {
            return Some(Loss::Noticed);
        }
        let loses = self.flaw == Some(Flaw::WritesAreLost) && self.happens(20);
        loses.then_some(Loss::Unnoticed)
    }

    fn happens(&mut self, percent: u64) -> bool {
        !self.is_healed && self.random.chance(percent)
    }
}

/// The upstream store as a process of a machine sees it.
pub(super) struct Way {
    pub(super) server: MemoryStore,
    pub(super) net: Arc<Mutex<Net>>,
    pub(super) oracle: Arc<Mutex<Oracle>>,
    pub(super) tier: MemoryTier,
    /// The process that goes on while this one waits.
    pub(super) other: Option<Arc<Mutex<Option<Process>>>>,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").finish_non_exhaustive()
    }
}

impl Way {
    fn forward<T>(
        &mut self,
        _: &'static str,
        ask: impl FnOnce(&mut MemoryStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        // The state to restore meanwhile, if any.
        let losing = lock(&self.net).losing();
        let before = losing.map(|loss| (self.tier.snapshot(), loss));
        self.others_go_on();
        let fate = lock(&self.net).fate();
        let answer = match fate {
            Fate::Answered => ask(&mut self.server),
            Fate::NeverSent => Err(unavailable()),
            Fate::ReplyLost => {
                let _ = ask(&mut self.server);
                lock(&self.oracle).met.meet("replies swallowed");
                Err(ambiguous())
            }
            Fate::RequestLost => Err(ambiguous()),
        };
        match before {
            None => {}
            Some((before, Loss::Noticed)) => {
                let met = "ledgers put back while a request was under way";
                lock(&self.oracle).met.meet(met);
                self.tier.put_back(&before);
            }
            Some((before, Loss::Unnoticed)) => self.tier.put_back_unnoticed(&before),
        }
        self.others_go_on();
        answer
    }

    fn others_go_on(&self) {
        let Some(other) = &self.other else { return };
        let mut random = {
            let net = &mut lock(&self.net);
            if !net.happens(40) {
                return;
            }
            SplitMix64::new(net.random.roll())
        };
        // Not there if it waits itself.
        let process = lock(other).take();
        if let Some(mut process) = process {
            let met = "requests overtaken by another process";
            lock(&self.oracle).met.meet(met);
            process.act(&mut random);
            *lock(other) = Some(process);
        }
    }

    fn flaw(&self) -> Option<Flaw> {
        lock(&self.net).flaw
    }
}

impl LeaseStore for Way {
    ringflake::forward_store! { self.forward =>
        init release list raise_floor check write_test
    }

    fn acquire(&mut self, space: &Namespace, ask: &Acquire) -> Result<Vec<Grant>, StoreError> {
        let mut grants = self.forward("acquire", |server| server.acquire(space, ask))?;
        if self.flaw() == Some(Flaw::GrantsBeginEarly) {
            for grant in &mut grants {
                grant.ticks.start -= 3;
            }
        } else {
            for grant in &grants {
                lock(&self.oracle).pass(grant.block, grant.ticks.clone());
            }
        }
        Ok(grants)
    }

    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        let answer = self.forward("renew", |server| server.renew(space, renew));
        let answer = match (self.flaw(), answer) {
            (Some(Flaw::LostRenewalsAreAdopted), Err(StoreError::Ambiguous { .. }))
            | (Some(Flaw::FencesAreIgnored), Err(StoreError::Fenced { .. })) => {
                return Ok(renew.new_end);
            }
            (Some(Flaw::RenewalsAreRoundedUp), Ok(_)) => return Ok(renew.new_end),
            (_, answer) => answer?,
        };
        if answer > renew.known_end {
            lock(&self.oracle).pass(renew.block, renew.known_end..answer);
        }
        Ok(answer)
    }
}
