//! A state of the small world, and what can happen in it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use ringflake::lease::table::Txn;
use ringflake::lease::{Block, Epoch, Listing};

use crate::flawed_store::{Contents, Memory};
use crate::oracle::Oracle;
use crate::process::Process;

/// The true time, in seconds after the start. A grant of the start ends at 11, and one that is
/// renewed at 3 at 14; a floor that is raised at the start is at 14, and there is room above
/// it from 3 on.
pub(super) const INSTANTS: [u64; 6] = [0, 3, 11, 14, 25, 28];

/// How far a wrong clock is off, in seconds.
pub(super) const FAR: i64 = 7_200;

/// What one turn of a process meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Luck {
    /// Its reply comes.
    Reply,
    /// The reply to its commit is lost, after this many that are answered.
    Loss(u32),
    /// Another process acquires a block between its read and its commit.
    Rival,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Server,
    Process(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A process does what its manager says; of two free blocks it gets the one or the other.
    Turn {
        who: usize,
        second_block: bool,
        luck: Luck,
    },
    /// The commit whose reply was lost reaches the table.
    Arrive,
    /// The next instant comes.
    Pass,
    BackUp,
    RollBack {
        new_incarnation: bool,
    },
    Crash(usize),
    /// It releases its leases at its next turns, and ends.
    ShutDown(usize),
    SetClock(Whose, i64),
    SetClocksRight,
    Damage(Block),
    Repair,
    /// An import acquires the same ticks of the past twice: this many, up to now.
    Import(u64),
    /// The server restarts with what it has written, which is everything unless a mutation
    /// writes later.
    RestartServer,
    /// A generator is built anew on the same leases, which changes nothing unless a mutation
    /// forgets its cursor.
    RestartGenerator(usize),
}

/// The faults, each at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Loss,
    RollBack,
    Restart,
    Clock,
    Rival,
    Damage,
    Import,
}

impl Action {
    /// The fault that it is, if it is one.
    pub(super) fn fault(self) -> Option<Fault> {
        match self {
            Self::Turn { luck, .. } => match luck {
                Luck::Reply => None,
                Luck::Loss(_) => Some(Fault::Loss),
                Luck::Rival => Some(Fault::Rival),
            },
            Self::RollBack { .. } => Some(Fault::RollBack),
            Self::Crash(_) | Self::ShutDown(_) | Self::RestartServer => Some(Fault::Restart),
            Self::RestartGenerator(_) => Some(Fault::Restart),
            Self::SetClock(..) => Some(Fault::Clock),
            Self::Damage(_) => Some(Fault::Damage),
            Self::Import(_) => Some(Fault::Import),
            Self::Arrive | Self::Pass | Self::BackUp | Self::SetClocksRight | Self::Repair => None,
        }
    }
}

/// A process, and what the projection needs to know of it beside.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) process: Process,
    /// How far its clock is ahead, in seconds.
    pub(super) ahead: i64,
    /// Whether the outcome of its last request is unknown.
    pub(super) is_unsure: bool,
    /// Grants whose renewal has an unknown outcome: they may be released.
    pub(super) doubtful: Vec<(Block, Epoch)>,
    /// The table's content at the last read, which may be cached.
    pub(super) seen: u64,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    /// The true time, in seconds after the start.
    pub(super) time: u64,
    /// How many turns there were: each is an hour of the monotonic clock.
    pub(super) turns: u64,
    pub(super) server: Memory,
    /// The number of the server's incarnation.
    pub(super) incarnation: u64,
    /// How far the server's clock is ahead, in seconds.
    pub(super) server_ahead: i64,
    pub(super) listing: Rc<Listing>,
    pub(super) backup: Option<(Contents, Rc<Listing>)>,
    /// Before the last request, for a server that writes later.
    pub(super) before: Option<Contents>,
    pub(super) slots: [Slot; 2],
    /// A commit whose reply was lost, and whether it is of one who knows what the server has
    /// forgotten.
    pub(super) under_way: Option<(Txn, bool)>,
    pub(super) oracle: Oracle,
    pub(super) faults: Vec<Fault>,
}

impl State {
    /// The projection that tells states apart, as the head of this module explains.
    pub(super) fn digest(&self) -> u64 {
        let swapped = [false, true].map(|swapped| self.digest_as(Swap(swapped)));
        swapped[0].min(swapped[1])
    }

    fn digest_as(&self, swap: Swap) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.time, self.server_ahead).hash(&mut hasher);
        let table = self.table_digest(swap);
        table.hash(&mut hasher);
        if let Some((_, backup)) = &self.backup {
            swap.hash_listing(backup, &mut hasher);
        }
        // What a mutation needs.
        format!("{:?}", self.before).hash(&mut hasher);
        if let Some(under_way) = &self.under_way {
            swap.hash_text(&format!("{under_way:?}"), &mut hasher);
        }
        self.oracle
            .hash_state(|block| swap.block(block), &mut hasher);
        let mut faults: Vec<_> = self.faults.iter().map(|fault| *fault as u8).collect();
        faults.sort_unstable();
        faults.hash(&mut hasher);
        let slots = self.slots.each_ref();
        let mut slots = slots.map(|slot| (slot.ahead, slot.digest(table, &self.oracle, swap)));
        slots.sort_unstable();
        slots.hash(&mut hasher);
        hasher.finish()
    }

    /// Its state with all clocks right and no other process.
    pub(super) fn digest_of(&self, who: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        let table = self.table_digest(Swap(false));
        (self.time, table).hash(&mut hasher);
        let slot = self.slots[who].digest(table, &self.oracle, Swap(false));
        slot.hash(&mut hasher);
        hasher.finish()
    }

    /// Of the server and what it holds.
    pub(super) fn table_digest(&self, swap: Swap) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.incarnation.hash(&mut hasher);
        swap.hash_listing(&self.listing, &mut hasher);
        hasher.finish()
    }
}

impl Slot {
    fn digest(&self, table: u64, oracle: &Oracle, swap: Swap) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.process
            .hash_state(|block| swap.block(block), &mut hasher);
        for (block, epoch) in &self.doubtful {
            (swap.block(*block), epoch).hash(&mut hasher);
        }
        (self.is_unsure, self.seen == table).hash(&mut hasher);
        let index = self.process.index;
        oracle.hash_process(index, |block| swap.block(block), &mut hasher);
        hasher.finish()
    }
}

/// Whether the two blocks are taken for each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Swap(pub(super) bool);

impl Swap {
    fn block(self, block: Block) -> u64 {
        block.index() ^ u64::from(self.0)
    }

    /// What any decision about this namespace depends on.
    fn hash_listing(self, listing: &Listing, state: &mut impl Hasher) {
        (listing.record.floor, &listing.record.incarnation).hash(state);
        let known = listing.blocks.iter();
        let mut known: Vec<_> = known
            .map(|it| (self.block(it.block), it.epoch, it.hwm_end, it.released))
            .collect();
        known.sort_unstable();
        known.hash(state);
        for found in &listing.quarantined {
            found.block.map(|block| self.block(block)).hash(state);
        }
    }

    /// One block is named at most.
    fn hash_text(self, text: &str, state: &mut impl Hasher) {
        let [one, other] = [0, 1].map(|index| format!("/block/{index:020}"));
        match self.0 && text.contains(&one) {
            true => text.replace(&one, &other).hash(state),
            false if self.0 => text.replace(&other, &one).hash(state),
            false => text.hash(state),
        }
    }
}
