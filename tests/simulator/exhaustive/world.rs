//! The effect of each action, and the check of the promises after it.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use ringflake::lease::protocol::{Answer, Manager, Request, Step};
use ringflake::lease::{
    Acquire, Block, Grant, History, Incarnation, Init, LeasePlan, LeaseStore, Listing,
    MemorySnapshot, Namespace, StoreError, StoreLimits,
};

use super::state::{Action, FAR, Fault, INSTANTS, Luck, Slot, State, Swap, Whose};
use crate::flawed_store::{Connection, FlawedStore, Now, OTHERS};
use crate::mutations::{Mutation, Promise};
use crate::oracle::{Oracle, Violation, Watch, bounded, broken, is_forgotten, moved_ends};
use crate::process::{Flight, Process};
use crate::scenario::{SECRET, START_MS, namespace, tick};

const HORIZON: u64 = 12;
const FAILOVER: u64 = 1;
const LEASE: u64 = 10;
const HOUR_MS: u64 = 3_600_000;

/// Seeds by which the first and the second of two blocks are chosen, however often a
/// request is decided again.
const SEEDS: [u64; 2] = [698, 1960];

/// The one server on which all states are taken up in turn.
pub(super) struct World {
    store: FlawedStore,
    /// Of each table so far. Most actions leave the table as another state has it, and to parse
    /// its records takes longer than all else.
    listings: HashMap<MemorySnapshot, Rc<Listing>>,
    namespace: Namespace,
    mutation: Option<Mutation>,
    /// How many of [`INSTANTS`] there are.
    instants: usize,
    /// What may go wrong, and how many of it together.
    menu: &'static [Fault],
    faults: usize,
}

impl World {
    pub(super) fn new(
        mutation: Option<Mutation>,
        instants: usize,
        menu: &'static [Fault],
        faults: usize,
    ) -> Self {
        let init = Init::new(History::New, START_MS);
        Self::begun(init, mutation, instants, menu, faults)
    }

    /// One whose namespace was initialised so.
    pub(super) fn begun(
        init: Init,
        mutation: Option<Mutation>,
        instants: usize,
        menu: &'static [Fault],
        faults: usize,
    ) -> Self {
        // Of two blocks.
        let namespace = namespace(SECRET, 16);
        let limits = StoreLimits::default()
            .with_horizon(Duration::from_secs(HORIZON))
            .with_failover(Duration::from_secs(FAILOVER))
            .with_skew(Duration::from_millis(500));
        let init = init.with_limits(limits);
        Self {
            store: FlawedStore::new(&namespace, &init, mutation),
            listings: HashMap::new(),
            namespace,
            mutation,
            instants,
            menu,
            faults,
        }
    }

    fn lacks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(super) fn start(&mut self) -> State {
        let mut oracle = Oracle::new(self.namespace.blocks(), Watch::Promises);
        let slots = [(); 2].map(|()| self.slot(&mut oracle));
        State {
            time: INSTANTS[0],
            turns: 0,
            server: self.store.memory(),
            incarnation: 0,
            server_ahead: 0,
            listing: Rc::new(self.store.listing(&self.namespace)),
            backup: None,
            before: None,
            slots,
            under_way: None,
            oracle,
            faults: Vec::new(),
        }
    }

    /// A process that has just started.
    fn slot(&self, oracle: &mut Oracle) -> Slot {
        let index = oracle.enter();
        let plan = LeasePlan::new(1)
            .with_widen_to(1)
            .with_lease_duration(Duration::from_secs(LEASE));
        let manager = Manager::new(self.namespace.clone(), plan, 0).expect("the plan is valid");
        Slot {
            process: Process::steady(index, manager, self.mutation),
            ahead: 0,
            is_unsure: false,
            doubtful: Vec::new(),
            seen: 0,
        }
    }

    fn take_up(&mut self, state: &State) {
        self.store.remember(&state.server);
        self.store.set_incarnation(incarnation(state.incarnation));
    }

    pub(super) fn actions(&self, state: &State) -> Vec<Action> {
        let mut actions = vec![Action::BackUp, Action::Pass, Action::Arrive, Action::Repair];
        // Until one is granted, the blocks are alike.
        let is_fresh = state.listing.blocks.is_empty() && state.under_way.is_none();
        for who in 0..2 {
            for second_block in [false, true] {
                if second_block && (is_fresh || !self.wants_block(state, who)) {
                    continue;
                }
                let lucks = [Luck::Reply, Luck::Loss(0), Luck::Loss(1), Luck::Rival];
                actions.extend(lucks.map(|luck| Action::Turn {
                    who,
                    second_block,
                    luck,
                }));
            }
            actions.extend([Action::Crash(who), Action::ShutDown(who)]);
            actions.push(Action::RestartGenerator(who));
            for ahead in [FAR, -FAR] {
                actions.push(Action::SetClock(Whose::Process(who), ahead));
            }
        }
        for ahead in [FAR, -FAR] {
            actions.push(Action::SetClock(Whose::Server, ahead));
        }
        for new_incarnation in [true, false] {
            actions.push(Action::RollBack { new_incarnation });
        }
        actions.extend(
            state
                .listing
                .blocks
                .iter()
                .map(|known| Action::Damage(known.block)),
        );
        actions.extend([Action::Import(1), Action::Import(3), Action::SetClocksRight]);
        actions.push(Action::RestartServer);
        actions.retain(|action| self.is_possible(state, *action));
        actions
    }

    fn may_come(&self, state: &State, fault: Fault) -> bool {
        let is_left = !state.faults.contains(&fault) && state.faults.len() < self.faults;
        is_left && self.menu.contains(&fault)
    }

    fn is_possible(&self, state: &State, action: Action) -> bool {
        if let Some(fault) = action.fault()
            && !self.may_come(state, fault)
        {
            return false;
        }
        let listing = &state.listing;
        let is_right = state.server_ahead == 0 && state.slots.iter().all(|slot| slot.ahead == 0);
        match action {
            // Two commits in one request: a floor that is raised, and what is above it.
            Action::Turn {
                luck: Luck::Loss(1),
                ..
            } => listing.record.incarnation != incarnation(state.incarnation),
            Action::Turn { .. } => true,
            Action::Arrive => state.under_way.is_some(),
            Action::Pass => next_instant(state.time, self.instants).is_some(),
            // It is for a roll-back that is still to come.
            Action::BackUp => state.backup.is_none() && self.may_come(state, Fault::RollBack),
            Action::RollBack { .. } => state.backup.is_some(),
            Action::SetClocksRight => !is_right,
            Action::Repair => !listing.quarantined.is_empty() && is_right,
            Action::RestartServer => self.lacks(Mutation::LazyCommit) && state.before.is_some(),
            Action::RestartGenerator(_) => self.lacks(Mutation::CursorRestarts),
            Action::ShutDown(who) => !state.slots[who].process.stopping,
            _ => true,
        }
    }

    fn wants_block(&self, state: &State, who: usize) -> bool {
        let mut slot = state.slots[who].clone();
        let (step, _) = slot.next(state.time, state.turns + 1);
        matches!(step, Step::Ask(Request::Acquire(_)))
    }

    pub(super) fn after(&mut self, state: &State, action: Action) -> Result<State, Violation> {
        let mut next = state.clone();
        self.take_up(state);
        next.faults.extend(action.fault());
        match self.act(&mut next, action) {
            // A grant from before the roll-back is granted again.
            Err(Violation {
                promise: Promise::S1,
                detail,
            }) if next.faults.contains(&Fault::RollBack) => {
                return broken(Promise::S8, detail);
            }
            result => result?,
        }
        next.server = self.store.memory();
        self.list(&mut next);
        next.oracle.fill(0);
        if !self.may_come(&next, Fault::RollBack) {
            next.backup = None;
        }
        Ok(next)
    }

    fn list(&mut self, state: &mut State) {
        let table = self.store.snapshot();
        let listing = self.listings.entry(table);
        let listing = listing.or_insert_with(|| Rc::new(self.store.listing(&self.namespace)));
        state.listing = Rc::clone(listing);
    }

    fn act(&mut self, state: &mut State, action: Action) -> Result<(), Violation> {
        match action {
            Action::Turn {
                who,
                second_block,
                luck,
            } => {
                self.turn(state, who, SEEDS[usize::from(second_block)], luck)?;
            }
            Action::Arrive => {
                if let Some((txn, reminds)) = state.under_way.take() {
                    let before = Rc::clone(&state.listing);
                    self.store.arrive(&txn, self.now(state, 0).unix_ms);
                    self.list(state);
                    if reminds && state.listing.record != before.record {
                        state.oracle.remind_of_all(0);
                    }
                    self.give_what_is_new(state, &before)?;
                }
            }
            Action::Pass => {
                let next = next_instant(state.time, self.instants);
                state.time = next.unwrap_or(state.time);
            }
            Action::BackUp => {
                state.backup = Some((self.store.contents(), Rc::clone(&state.listing)))
            }
            Action::RollBack { new_incarnation } => {
                if let Some((backup, listing)) = state.backup.take() {
                    self.store.restore(&backup);
                    state.listing = listing;
                }
                state.before = None;
                if new_incarnation {
                    state.incarnation += 1;
                    self.store.set_incarnation(incarnation(state.incarnation));
                } else {
                    state.oracle.roll_back(0, &state.listing);
                }
            }
            Action::Crash(who) => self.replace(state, who),
            Action::ShutDown(who) => state.slots[who].process.release(),
            Action::SetClock(Whose::Server, ahead) => state.server_ahead = ahead,
            Action::SetClock(Whose::Process(who), ahead) => state.slots[who].ahead = ahead,
            Action::SetClocksRight => set_clocks_right(state),
            Action::Damage(block) => {
                self.store.damage(&self.namespace, block);
            }
            Action::Repair => {
                let namespace = self.namespace.clone();
                self.others(state).repair_all(&namespace, &state.listing);
            }
            Action::Import(length) => self.import(state, length)?,
            Action::RestartServer => {
                if let Some(before) = state.before.take() {
                    self.store.restore(&before);
                }
            }
            Action::RestartGenerator(who) => {
                let process = &mut state.slots[who].process;
                process.restart_generator();
                process.issue_all(state.turns * HOUR_MS, &mut state.oracle)?;
            }
        }
        Ok(())
    }

    fn now(&self, state: &State, token: u64) -> Now {
        let ms = state.time * 1000;
        Now {
            unix_ms: (START_MS + ms).saturating_add_signed(state.server_ahead * 1000),
            uptime_ms: ms,
            token,
        }
    }

    fn others(&mut self, state: &State) -> Connection<'_> {
        let now = self.now(state, 0);
        self.store.connect(OTHERS, now)
    }

    /// Another process takes the place of one that has ended.
    fn replace(&mut self, state: &mut State, who: usize) {
        self.store.disconnect(state.slots[who].process.index);
        state.slots[who] = self.slot(&mut state.oracle);
    }

    fn turn(
        &mut self,
        state: &mut State,
        who: usize,
        seed: u64,
        luck: Luck,
    ) -> Result<(), Violation> {
        state.turns += 1;
        let (step, now_ms) = state.slots[who].next(state.time, state.turns);
        match step {
            Step::Ask(mut request) => {
                let mut again = false;
                loop {
                    let answer = self.ask(state, who, &request, seed, luck)?;
                    let listing = Rc::clone(&state.listing);
                    let table = state.table_digest(Swap(false));
                    let slot = &mut state.slots[who];
                    slot.process.number += 1;
                    slot.process.flight = Some(Flight {
                        number: slot.process.number,
                        request: request.clone(),
                        void: false,
                        again,
                    });
                    slot.note(&request, &answer);
                    slot.seen = table;
                    match slot.process.answer(now_ms, answer, || (*listing).clone()) {
                        Some(repeated) => (request, again) = (repeated, true),
                        None => break,
                    }
                }
            }
            Step::Wait(_) => {}
            Step::Done => {
                self.replace(state, who);
                return Ok(());
            }
        }
        state.slots[who]
            .process
            .issue_all(now_ms, &mut state.oracle)
    }

    /// Sends a request and holds the answer against the promises.
    fn ask(
        &mut self,
        state: &mut State,
        who: usize,
        request: &Request,
        seed: u64,
        luck: Luck,
    ) -> Result<Answer, Violation> {
        if self.lacks(Mutation::LazyCommit) {
            state.before = Some(self.store.contents());
        }
        let before = Rc::clone(&state.listing);
        let now = self.now(state, seed);
        let server_now = tick(now.unix_ms);
        let true_now = tick(START_MS) + state.time;
        let process = state.slots[who].process.index;
        let known = state.oracle.known(process);
        let known_to_rival = state.oracle.known(state.slots[1 - who].process.index);
        let mut store = self.store.connect(process, now).seeded(seed);
        match luck {
            Luck::Reply => {}
            Luck::Loss(after) => store = store.losing(after),
            Luck::Rival => store = store.with_rival(known_to_rival.clone()),
        }
        let answer = request.send(&mut store, &self.namespace);
        let rival = store.take_rival();
        if let Some(txn) = store.take_under_way() {
            let reminds = known.iter().any(|it| is_forgotten(it, server_now, &before));
            state.under_way = Some((txn, reminds));
        }
        self.list(state);
        let oracle = &mut state.oracle;
        let held = Some(&*before);
        if let Some(rival) = &rival {
            oracle.acquired(0, server_now, held, &known_to_rival, rival)?;
        }
        let is_same = before.record.incarnation == incarnation(state.incarnation);
        let mut lost = known
            .iter()
            .filter(|it| is_forgotten(it, server_now, &before));
        if let (Answer::Acquired(Ok(grants)), Some(lost), true, None) =
            (&answer, lost.next(), is_same, &rival)
        {
            let detail = format!("{grants:?} is granted to who knows of {lost}");
            return broken(Promise::S8, detail);
        }
        oracle.reply(0, server_now, held, &known, (request, &answer))?;
        oracle.confirm(process, request, &answer);
        // S7, by the server's clock; and nothing is moved out of reach by one wrong clock.
        for end in moved_ends(request, &answer) {
            bounded(end, server_now + HORIZON, Promise::S7)?;
            bounded(end, true_now + HORIZON, Promise::Live)?;
        }
        Ok(answer)
    }

    /// Enters what nobody was told of.
    fn give_what_is_new(&self, state: &mut State, before: &Listing) -> Result<(), Violation> {
        for block in &state.listing.blocks {
            let mut known = before.blocks.iter();
            let known = known.find(|known| known.block == block.block);
            let (epoch, mark) = known.map_or((None, 0), |it| (Some(it.epoch), it.hwm_end));
            let start = match epoch == Some(block.epoch) {
                true => mark,
                false => block.start.unwrap_or(mark),
            };
            if start < block.hwm_end {
                state.oracle.give(block.block, start..block.hwm_end, 0)?;
            }
        }
        Ok(())
    }

    fn import(&mut self, state: &mut State, length: u64) -> Result<(), Violation> {
        let now_ms = START_MS + state.time * 1000;
        let now = tick(now_ms);
        let past = Acquire::past(1, now - length..now, now_ms);
        let namespace = self.namespace.clone();
        for _ in 0..2 {
            let granted = self.others(state).acquire(&namespace, &past);
            for grant in granted.iter().flatten() {
                state.oracle.import(grant, 0)?;
            }
        }
        Ok(())
    }

    /// S5: another secret asks for a block.
    pub(super) fn resist(&mut self, state: &State) -> Result<(), Violation> {
        self.take_up(state);
        let namespace = self.namespace.clone();
        self.others(state).resist(&namespace)
    }

    /// Whether a process gets a lease once all clocks are right and the store answers: after
    /// the horizon and the failover time, and once more where it is the first to notice a loss.
    pub(super) fn check_recovery(&mut self, state: &State, who: usize) -> Result<(), Violation> {
        const ROUNDS: u64 = 2;
        const TURNS: usize = 4;
        let mut state = state.clone();
        self.take_up(&state);
        state.under_way = None;
        set_clocks_right(&mut state);
        for _ in 0..ROUNDS {
            state.time += HORIZON + FAILOVER + 1;
            for _ in 0..TURNS {
                self.turn(&mut state, who, SEEDS[0], Luck::Reply)?;
                if state.slots[who].process.is_served(state.turns * HOUR_MS) {
                    return Ok(());
                }
            }
        }
        let listing = &state.listing;
        let detail = format!("process {who} gets no lease from {listing:?}");
        broken(Promise::Live, detail)
    }
}

impl Slot {
    /// Each turn is an hour of the monotonic clock, so that all that the manager plans is due.
    fn next(&mut self, time: u64, turn: u64) -> (Step, u64) {
        let now_ms = turn * HOUR_MS;
        self.process.ahead_ms = (time as i64 + self.ahead) * 1000 - now_ms as i64;
        (self.process.next(now_ms), now_ms)
    }

    fn note(&mut self, request: &Request, answer: &Answer) {
        self.is_unsure = matches!(answer.error(), Some(StoreError::Ambiguous { .. }));
        if let (Request::Renew(renew), true) = (request, self.is_unsure) {
            self.doubtful.push((renew.block, renew.epoch));
        }
    }
}

fn set_clocks_right(state: &mut State) {
    state.server_ahead = 0;
    state.slots.iter_mut().for_each(|slot| slot.ahead = 0);
}

fn next_instant(time: u64, instants: usize) -> Option<u64> {
    INSTANTS
        .into_iter()
        .take(instants)
        .find(|next| *next > time)
}

fn incarnation(number: u64) -> Incarnation {
    match number {
        0 => Incarnation::new("memory"),
        _ => Incarnation::new(number.to_string()),
    }
}

#[test]
fn the_seeds_choose_the_one_and_the_other_block() {
    let chosen = SEEDS.map(|seed| {
        let mut world = World::new(None, 1, &[], 0);
        let state = world.start();
        let namespace = world.namespace.clone();
        let mut store = world.others(&state).seeded(seed);
        let grants: Result<Vec<Grant>, _> =
            store.acquire(&namespace, &Acquire::new(1, 1, START_MS));
        grants.expect("both are free")[0].block
    });
    assert_eq!(chosen, [Block::new(0), Block::new(1)]);
}
