use super::*;

#[test]
fn every_state_is_printed() {
    for (stocks, text) in [
        (CoreStocks::InUse, "in use"),
        (CoreStocks::OffForOrder, "off: one stripe, for order"),
        (CoreStocks::OffForMaxAge, "off: max_age is set"),
        (
            CoreStocks::OffForCapacity { needed: 2048 },
            "off: capacity is below 2048",
        ),
        (CoreStocks::Unsupported, "off: no restartable sequences"),
        #[cfg(target_arch = "x86_64")]
        (CoreStocks::SwitchedOff, "off: RINGFLAKE_RSEQ=off"),
    ] {
        assert_eq!(stocks.to_string(), text);
    }
}

#[test]
fn stocks_hold_an_eighth_of_the_capacity_at_most() {
    for (cores, slots) in [(1, 1 << 10), (2, 1 << 11), (3, 1 << 12), (64, 1 << 16)] {
        assert_eq!(smallest_capacity(cores), slots, "{cores} cores");
    }
}

#[test]
fn each_ticket_is_another_word_of_a_seized_stock() {
    let tickets = [new_ticket(), new_ticket()];
    assert_ne!(tickets[0], tickets[1]);
    assert_eq!(tickets.map(|ticket| ticket & LEVEL), [SEIZED; 2]);
}

#[test]
fn the_setting_is_on_or_off() {
    for (value, setting) in [("on", Some(true)), ("off", Some(false)), ("ON", None)] {
        assert_eq!(super::setting(value.as_ref()), setting, "{value}");
    }
}

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    target_arch = "x86_64",
    not(miri)
))]
mod sections {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicPtr;
    use std::sync::atomic::Ordering::{Acquire, Release};
    use std::time::{Duration, Instant};
    use std::{env, mem, ptr, thread};

    use ringflake_kit::affinity::{self, Cores, on_one_core};
    use ringflake_kit::child::{passes, this_test};
    use ringflake_kit::seccomp::{self, Answer};
    use ringflake_kit::{has, short_or_long};

    use super::section::membarrier;
    use super::*;

    const MARK: u64 = 7 << LEVEL_BITS;
    const LATER: u64 = 8 << LEVEL_BITS;

    /// `None` where the system has no restartable sequences, which the test reports.
    fn stocks() -> Option<Stocks> {
        let stocks = Stocks::new().unwrap();
        has(stocks.is_some(), "this system has no restartable sequences");
        stocks
    }

    fn ids(numbers: std::ops::RangeInclusive<u64>) -> Vec<Id> {
        numbers.map(Id::from_u64).collect()
    }

    /// The scheduler may interrupt a section, which then did nothing.
    const TRIES: usize = 100;

    fn pop(stocks: &Stocks, mark: u64) -> Option<Id> {
        (0..TRIES).find_map(|_| stocks.pop(mark))
    }

    /// Or one more than a stock can have.
    fn pop_all(stocks: &Stocks, mark: u64) -> Vec<Id> {
        let popped = std::iter::from_fn(|| pop(stocks, mark));
        popped.take(CAPACITY + 1).collect()
    }

    fn fill(stocks: &Stocks, mark: u64, ids: &[Id]) -> bool {
        (0..TRIES).any(|_| stocks.fill(mark, ids))
    }

    fn discard_stale(stocks: &Stocks, mark: u64) -> usize {
        let counts = (0..TRIES).map(|_| stocks.discard_stale(mark));
        counts.sum()
    }

    fn replace(stocks: &Stocks, old: u64, new: u64) -> bool {
        (0..TRIES).any(|_| section::replace(stocks.areas, stocks.all(), old, new))
    }

    #[test]
    fn ids_are_popped_in_the_order_in_which_they_were_given() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            assert_eq!(pop(&stocks, MARK), None, "empty at first");
            for count in 1..=CAPACITY as u64 {
                let given = ids(1..=count);
                assert!(fill(&stocks, MARK, &given));
                assert_eq!(stocks.level(), given.len());
                assert_eq!(pop_all(&stocks, MARK), given);
                assert_eq!(stocks.level(), 0);
            }
            assert!(!fill(&stocks, MARK, &[]));
        });
    }

    #[test]
    fn a_stock_that_is_not_empty_is_not_filled() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            assert!(fill(&stocks, MARK, &ids(1..=2)));
            assert!(!fill(&stocks, MARK, &ids(3..=4)));
            assert_eq!(pop(&stocks, MARK), Some(Id::from_u64(1)));
            assert!(!fill(&stocks, LATER, &ids(3..=4)));
            assert_eq!(pop_all(&stocks, MARK), ids(2..=2));
            assert!(fill(&stocks, LATER, &ids(3..=4)));
        });
    }

    #[test]
    fn s4_a_stale_stock_gives_nothing_and_is_discarded() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            assert_eq!(discard_stale(&stocks, MARK), 0, "it is empty");
            assert!(!stocks.has_some(MARK));
            assert!(fill(&stocks, MARK, &ids(1..=100)));
            assert_eq!(discard_stale(&stocks, MARK), 0, "it is fresh");
            assert!(stocks.has_some(MARK));
            for other in [LATER, MARK - (1 << LEVEL_BITS), 0] {
                assert_eq!(pop(&stocks, other), None);
                assert!(!stocks.has_some(other));
            }
            assert_eq!(stocks.level(), 100);
            assert_eq!(discard_stale(&stocks, LATER), 100);
            assert_eq!((stocks.level(), pop(&stocks, MARK)), (0, None));
            assert!(fill(&stocks, LATER, &ids(1..=1)));
            assert_eq!(pop_all(&stocks, LATER), ids(1..=1));
        });
    }

    /// The section behind `discard_stale`, of a stock that another thread has changed meanwhile.
    #[test]
    fn a_word_is_replaced_only_where_it_is_the_old_one() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            assert!(fill(&stocks, MARK, &ids(1..=3)));
            assert!(!replace(&stocks, MARK | 2, MARK));
            assert!(replace(&stocks, MARK | 3, MARK | 1));
            assert_eq!(pop_all(&stocks, MARK), ids(3..=3));
        });
    }

    #[test]
    fn any_thread_seizes_what_a_stock_has() {
        let Some(stocks) = stocks() else { return };
        let mut out = [Id::default(); CAPACITY];
        assert_eq!(stocks.seize(&mut out), None);
        for count in [1, 5, CAPACITY as u64] {
            assert!(on_one_core(|| fill(&stocks, MARK, &ids(1..=count))));
            assert_eq!(stocks.seize(&mut out), Some((MARK, count as usize)));
            assert_eq!(out[..count as usize], ids(1..=count));
            assert_eq!((stocks.level(), stocks.seize(&mut out)), (0, None));
        }
    }

    const TICKET: u64 = 9 << LEVEL_BITS | SEIZED;

    #[test]
    fn a_stock_that_is_being_seized_is_left_alone() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            let core = affinity::here();
            let stock = &stocks.all()[core];
            assert!(fill(&stocks, MARK, &ids(1..=5)));
            let seized = section::seize(stocks.areas, stock, core, TICKET);
            assert_eq!(seized, Some(MARK | 5));
            assert!(!stocks.has_one_here());
            for mark in [MARK, LATER, TICKET - SEIZED] {
                assert_eq!(pop(&stocks, mark), None);
                assert_eq!(discard_stale(&stocks, mark), 0);
            }
            assert!(!fill(&stocks, MARK, &ids(1..=1)));
            assert_eq!(stocks.seize(&mut [Id::default(); CAPACITY]), None);
            assert_eq!((stocks.level(), stock.word.load(Relaxed)), (0, TICKET));
        });
    }

    /// A section that had read the word before it was exchanged commits after that.
    #[test]
    fn a_commit_over_the_ticket_is_not_undone() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            let stock = &stocks.all()[affinity::here()];
            let seize_while = |first_abort: &dyn Fn()| {
                let calls = AtomicU64::new(0);
                let word = section::seize_by(stock, TICKET, || {
                    if calls.fetch_add(1, Relaxed) == 0 {
                        first_abort();
                    }
                    true
                });
                (word, calls.into_inner())
            };
            assert!(fill(&stocks, MARK, &ids(1..=5)));
            let pops = || stock.word.store(MARK | 4, Relaxed);
            assert_eq!(seize_while(&pops), (Some(MARK | 4), 4));
            // The commit took the last one.
            stock.word.store(MARK | 1, Relaxed);
            let pops_the_last = || stock.word.store(MARK, Relaxed);
            assert_eq!(seize_while(&pops_the_last), (None, 2));
            // After the commit another thread was faster.
            stock.word.store(MARK | 5, Relaxed);
            let is_seized = || stock.word.store(TICKET + EMPTY, Relaxed);
            assert_eq!(seize_while(&is_seized), (None, 2));
            assert_eq!(stock.word.load(Relaxed), TICKET + EMPTY);
        });
    }

    /// The IDs are nobody's then: a section that was not aborted may pop one.
    #[test]
    fn a_seizure_whose_abort_fails_gives_nothing() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            let stock = &stocks.all()[affinity::here()];
            assert!(fill(&stocks, MARK, &ids(1..=5)));
            assert_eq!(section::seize_by(stock, TICKET, || false), None);
            assert_eq!(pop(&stocks, MARK), None);
            assert_eq!(stocks.seize(&mut [Id::default(); CAPACITY]), None);
        });
    }

    /// As where a sandbox begins after the build.
    #[test]
    fn a_thread_that_may_abort_no_section_seizes_nothing() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            assert!(fill(&stocks, MARK, &ids(1..=5)));
            let core = affinity::here();
            assert!(membarrier::abort_section_on(core));
            let refused = Answer {
                value: membarrier::ABORT,
                error: libc::EPERM,
            };
            seccomp::answer(libc::SYS_membarrier, 0, &[refused]);
            assert!(!membarrier::abort_section_on(core));
            assert_eq!(stocks.seize(&mut [Id::default(); CAPACITY]), None);
            assert_eq!(pop_all(&stocks, MARK), ids(1..=5));
        });
    }

    #[test]
    fn a_kernel_needs_two_commands() {
        let [abort, register] = [membarrier::ABORT, membarrier::REGISTER].map(libc::c_long::from);
        assert!(membarrier::are_among(abort | register | 1));
        for lacks_one in [-1, 0, abort, register, !(abort | register) & 0xfff] {
            assert!(!membarrier::are_among(lacks_one), "{lacks_one:#x}");
        }
    }

    /// As in a child that a signal handler forked: it goes on with IDs in hand.
    #[test]
    fn u1_a_wiped_stock_is_not_filled() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            let stock = &stocks.all()[affinity::here()];
            stock.word.store(0, Relaxed);
            assert!(!fill(&stocks, MARK, &ids(1..=5)));
            assert_eq!((pop(&stocks, MARK), pop(&stocks, 0)), (None, None));
            assert_eq!((discard_stale(&stocks, MARK), stocks.level()), (0, 0));
            assert_eq!(stock.word.load(Relaxed), 0);
        });
    }

    #[test]
    fn each_core_has_a_stock_of_its_own() {
        let Some(stocks) = stocks() else { return };
        let cores = affinity::allowed();
        let on = |core, work: &(dyn Fn() + Sync)| {
            thread::scope(|scope| {
                _ = scope.spawn(move || {
                    affinity::bind_to(core);
                    work();
                });
            });
        };
        for &core in &cores {
            let number = core as u64;
            on(core, &|| {
                assert!(fill(&stocks, MARK, &ids(number..=number)))
            });
        }
        for &core in &cores {
            let number = core as u64;
            on(core, &|| {
                assert_eq!(pop_all(&stocks, MARK), ids(number..=number))
            });
        }
    }

    /// The process was allowed another core since.
    #[test]
    fn a_core_without_a_stock_has_nothing() {
        let Some(mut stocks) = stocks() else { return };
        stocks.cores = 0;
        assert!(!stocks.has_one_here());
        assert_eq!(pop(&stocks, MARK), None);
        assert!(!fill(&stocks, MARK, &ids(1..=1)));
        assert_eq!(discard_stale(&stocks, LATER), 0);
        assert!(!replace(&stocks, 0, MARK));
    }

    /// As where a sandbox or another library has taken it away.
    #[test]
    fn a_thread_without_an_area_has_no_stock() {
        let Some(stocks) = stocks() else { return };
        const UNREGISTER: libc::c_int = 1;
        const SIGNATURE: libc::c_uint = 0x5305_3053;
        on_one_core(|| {
            assert!(stocks.has_one_here());
            let thread: usize;
            // SAFETY: the first word of what `fs` leads to is its own address.
            unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) thread) };
            let area = thread.wrapping_add_signed(stocks.areas.offset());
            // SAFETY: glibc has registered this area with this length and signature, and this
            // thread needs none.
            let error = unsafe { libc::syscall(libc::SYS_rseq, area, 32, UNREGISTER, SIGNATURE) };
            assert_eq!(error, 0, "{}", io::Error::last_os_error());
            assert!(!stocks.has_one_here());
            assert_eq!(pop(&stocks, MARK), None);
            assert!(!fill(&stocks, MARK, &ids(1..=1)));
        });
        assert_eq!(stocks.level(), 0);
    }

    /// The pointer to the descriptor is cleared, whether a section commits or not: else the
    /// kernel would look for it when this library is unloaded.
    #[test]
    fn no_section_leaves_a_pointer_behind() {
        let Some(stocks) = stocks() else { return };
        let pointer = || {
            let value: u64;
            let offset = stocks.areas.offset() + 8;
            // SAFETY: the field `rseq_cs` of this thread's area.
            unsafe { std::arch::asm!("mov {}, fs:[{}]", out(reg) value, in(reg) offset) };
            value
        };
        on_one_core(|| {
            assert_eq!((pop(&stocks, MARK), pointer()), (None, 0));
            assert_eq!((fill(&stocks, MARK, &ids(1..=5)), pointer()), (true, 0));
            assert_eq!((fill(&stocks, MARK, &ids(1..=5)), pointer()), (false, 0));
            assert_eq!((pop(&stocks, MARK).is_some(), pointer()), (true, 0));
            assert_eq!((discard_stale(&stocks, LATER), pointer()), (4, 0));
        });
    }

    #[test]
    fn s4_a_forked_child_has_empty_stocks() {
        let Some(stocks) = stocks() else { return };
        on_one_core(|| {
            assert!(fill(&stocks, MARK, &ids(1..=5)));
            let popped = || [0, MARK].iter().any(|&mark| pop(&stocks, mark).is_some());
            let popped = ringflake_kit::child::in_a_fork(|| popped().into());
            assert_eq!(popped, Ok(0));
            assert_eq!(pop_all(&stocks, MARK), ids(1..=5));
        });
    }

    #[test]
    fn the_environment_switches_them_off() {
        if stocks().is_none() {
            return;
        }
        let needed = (8 * affinity::allowed().len() * CAPACITY).next_power_of_two();
        let given = env::var("RINGFLAKE_RSEQ").ok();
        let (large, small) = match given.as_deref() {
            Some("off") => (CoreStocks::SwitchedOff, CoreStocks::SwitchedOff),
            _ => (CoreStocks::InUse, CoreStocks::OffForCapacity { needed }),
        };
        assert_eq!(CoreStocks::for_capacity(needed), large);
        assert_eq!(CoreStocks::for_capacity(needed / 2), small);
        if given.is_some() {
            return;
        }
        // Again, in processes with another environment.
        for value in ["off", "on", "perhaps"] {
            passes(this_test().env("RINGFLAKE_RSEQ", value));
        }
    }

    /// Where glibc registers no area, there are none.
    #[test]
    fn a_tunable_of_glibc_switches_them_off() {
        let found = CoreStocks::for_capacity(1 << 30);
        if env::var_os("GLIBC_TUNABLES").is_some() {
            assert_eq!(found, CoreStocks::Unsupported);
            assert!(Stocks::new().unwrap().is_none());
            return;
        }
        let mut child = this_test();
        child.env_remove("RINGFLAKE_RSEQ");
        passes(child.env("GLIBC_TUNABLES", "glibc.pthread.rseq=0"));
    }

    /// A pop that the kernel does not know of: what a section would be without a descriptor.
    fn bare_pop(stocks: &Stocks, mark: u64) -> Option<Id> {
        let stock = stocks.all().get(stocks.areas.exact_number())?;
        let word = stock.word.load(Relaxed).wrapping_sub(1);
        let id = stock
            .ids
            .get(word.wrapping_sub(mark) as usize)?
            .load(Relaxed);
        stock.word.store(word, Relaxed);
        Some(Id::from_u64(id))
    }

    /// Threads that take, and are interrupted and migrated all the time.
    struct Storm {
        stocks: Stocks,
        pop: fn(&Stocks, u64) -> Option<Id>,
        /// Whether stocks are seized without an abort of what is under way.
        seizes_at_once: bool,
        /// The mark, which recalls change.
        mark: AtomicU64,
        /// The IDs that were made: all numbers below.
        made: AtomicU64,
        /// A bit for each ID that was given out.
        given: Vec<AtomicU64>,
        twice: AtomicU64,
        /// How many were dropped by a recall.
        dropped: AtomicU64,
        in_handlers: AtomicU64,
        seized: AtomicU64,
    }

    #[derive(Debug, PartialEq, Eq)]
    struct Damage {
        twice: u64,
        lost: i64,
    }

    impl Storm {
        const BATCH: u64 = CAPACITY as u64 + 1;

        fn give(&self, id: Id) {
            let (word, bit) = (id.to_u64() / 64, 1 << (id.to_u64() % 64));
            if self.given[word as usize].fetch_or(bit, Relaxed) & bit != 0 {
                self.twice.fetch_add(1, Relaxed);
            }
        }

        /// A take, as a generator does it.
        fn take(&self) {
            let mark = self.mark.load(Acquire);
            if let Some(id) = (self.pop)(&self.stocks, mark) {
                return self.give(id);
            }
            let first = self.made.fetch_add(Self::BATCH, Relaxed);
            let batch = ids(first..=first + Self::BATCH - 1);
            self.give(batch[0]);
            let dropped = self.stocks.discard_stale(mark);
            self.dropped.fetch_add(dropped as u64, Relaxed);
            if !self.stocks.fill(mark, &batch[1..]) {
                batch[1..].iter().for_each(|&id| self.give(id));
            }
        }

        /// A take that finds nothing else.
        fn seize(&self) {
            let mut ids = [Id::default(); CAPACITY];
            let count = if self.seizes_at_once {
                let seized = self.stocks.memory.iter().find_map(|stock| {
                    let word = section::seize_by(stock, TICKET, || true)?;
                    Some((stock, word, (word & LEVEL) as usize))
                });
                let Some((stock, word, count)) = seized else {
                    return;
                };
                for (place, id) in stock.ids[..count].iter().zip(&mut ids) {
                    *id = Id::from_u64(place.load(Relaxed));
                }
                stock.word.store(word - count as u64, Release);
                count
            } else {
                let Some((_, count)) = self.stocks.seize(&mut ids) else {
                    return;
                };
                count
            };
            self.seized.fetch_add(count as u64, Relaxed);
            ids[..count].iter().for_each(|&id| self.give(id));
        }

        fn new(stocks: Stocks) -> Self {
            // Without this a control would wait for the damage of pops that never are.
            on_one_core(|| {
                assert!(fill(&stocks, MARK, &ids(1..=2)));
                assert_eq!(pop_all(&stocks, MARK), ids(1..=2));
            });
            Self {
                stocks,
                pop: Stocks::pop,
                seizes_at_once: false,
                mark: AtomicU64::new(MARK),
                made: AtomicU64::new(0),
                given: Vec::new(),
                twice: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
                in_handlers: AtomicU64::new(0),
                seized: AtomicU64::new(0),
            }
        }

        /// Runs until `count` IDs are made, with more threads than cores.
        fn run(mut self, count: u64) -> (Damage, Self) {
            /// The storm of this process, for handlers.
            static STORM: AtomicPtr<Storm> = AtomicPtr::new(ptr::null_mut());
            /// One at a time.
            static TURN: Mutex<()> = Mutex::new(());

            extern "C" fn take_in_a_handler(_: libc::c_int) {
                // SAFETY: the pointer is cleared only after all threads that get the signal have
                // ended, and before the storm is dropped.
                let Some(storm) = (unsafe { STORM.load(Acquire).as_ref() }) else {
                    return;
                };
                let mark = storm.mark.load(Acquire);
                if let Some(id) = (storm.pop)(&storm.stocks, mark) {
                    storm.in_handlers.fetch_add(1, Relaxed);
                    storm.give(id);
                }
            }

            let turn = TURN.lock().unwrap_or_else(|broken| broken.into_inner());
            let cores = Cores::of_this_thread();
            let threads = 2 * cores.count().clamp(1, 4) + 2;
            // Each thread may make one batch too many.
            let words = (count + (threads as u64 + 1) * Self::BATCH).div_ceil(64);
            self.given = (0..words).map(|_| AtomicU64::new(0)).collect();
            STORM.store(&raw mut self, Release);
            let storm = &self;
            // SAFETY: zeros are an action without flags and with an empty mask.
            let mut action: libc::sigaction = unsafe { mem::zeroed() };
            action.sa_sigaction = take_in_a_handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            // SAFETY: the handler uses atomics alone. No other test uses this signal.
            let failed = unsafe { libc::sigaction(libc::SIGUSR1, &action, ptr::null_mut()) };
            assert_eq!(failed, 0, "{}", io::Error::last_os_error());
            // A pop that gives what nobody made has seen enough.
            let is_over = || storm.made.load(Relaxed) >= count || storm.twice.load(Relaxed) > count;
            let running: Vec<AtomicU64> = (0..threads).map(|_| AtomicU64::new(0)).collect();
            thread::scope(|scope| {
                let workers = running.iter().enumerate().map(|(number, running)| {
                    let cores = &cores;
                    scope.spawn(move || {
                        // SAFETY: has no arguments.
                        running.store(unsafe { libc::pthread_self() }, Release);
                        for round in number.. {
                            // Every other thread stays where the scheduler puts it.
                            if number % 2 == 0 {
                                cores.go_to(round);
                            }
                            (0..2000)
                                .take_while(|_| !is_over())
                                .for_each(|_| storm.take());
                            if is_over() {
                                break;
                            }
                        }
                    })
                });
                let workers: Vec<_> = workers.collect();
                for round in 0.. {
                    // One that has panicked makes no more.
                    if is_over() || workers.iter().any(|worker| worker.is_finished()) {
                        break;
                    }
                    let began = Instant::now();
                    for thread in &running {
                        let thread = thread.load(Acquire);
                        if thread != 0 {
                            // SAFETY: joined by the scope, and so there still.
                            unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
                        }
                    }
                    storm.seize();
                    if round % 16 == 0 {
                        storm.mark.fetch_add(1 << LEVEL_BITS, Release);
                    }
                    while began.elapsed() < Duration::from_micros(20) {
                        std::hint::spin_loop();
                    }
                }
            });
            STORM.store(ptr::null_mut(), Release);
            drop(turn);
            let given = storm
                .given
                .iter()
                .map(|word| u64::from(word.load(Relaxed).count_ones()));
            let given =
                given.sum::<u64>() + storm.dropped.load(Relaxed) + storm.stocks.level() as u64;
            let damage = Damage {
                twice: storm.twice.load(Relaxed),
                lost: storm.made.load(Relaxed) as i64 - given as i64,
            };
            (damage, self)
        }
    }

    /// R1: more threads than cores, half of which change cores all the time; each is sent
    /// signals whose handler takes too, and recalls come between. Each ID is marked.
    #[test]
    fn r1_no_id_is_popped_twice_and_none_is_lost() {
        let Some(stocks) = stocks() else { return };
        let count = short_or_long(20_000_000, 1_000_000_000);
        let (damage, storm) = Storm::new(stocks).run(count);
        assert_eq!(damage, Damage { twice: 0, lost: 0 });
        let [in_handlers, seized] = [storm.in_handlers, storm.seized].map(AtomicU64::into_inner);
        assert!(in_handlers > 0 && seized > 0, "{in_handlers}, {seized}");
    }

    /// The same with pops that are not restarted, so that the test is known to see damage.
    #[test]
    fn r1_without_a_restart_ids_are_popped_twice() {
        let deadline = Instant::now() + Duration::from_secs(300);
        while let Some(stocks) = stocks() {
            let mut storm = Storm::new(stocks);
            storm.pop = bare_pop;
            let (damage, _) = storm.run(5_000_000);
            if damage.twice > 0 {
                return;
            }
            assert!(Instant::now() < deadline, "no damage: {damage:?}");
        }
    }

    /// The same with stocks that are seized while sections go on.
    #[test]
    fn r1_without_an_abort_seized_ids_are_popped_too() {
        if affinity::allowed().len() < 2 {
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(300);
        while let Some(stocks) = stocks() {
            let mut storm = Storm::new(stocks);
            storm.seizes_at_once = true;
            let (damage, _) = storm.run(5_000_000);
            if damage.twice > 0 {
                return;
            }
            assert!(Instant::now() < deadline, "no damage: {damage:?}");
        }
    }
}
