//! The events for `tracing`: level, fields and frequency of each, and never a secret or an
//! ID. `tests/backend_variable` tests the event of an unusable backend.

use std::panic::resume_unwind;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ringflake::lease::{Acquire, Block, Fingerprint, LeaseStore, Namespace, Renew, StoreLimits};
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Clock as _, Id, ManualClock, PaddingFill,
    ScheduledFill, Shutdown, TakeError, ThresholdFill,
};
use tracing::{Event, Level};

use ringflake_kit::events::{Fields, OnEvent};
use ringflake_kit::faulty_store::{Fault, Faulty, Op};
use ringflake_kit::small::{cached, clock_at, namespace, secret, shared_layout, store_with};
use ringflake_kit::tricky_clock::TrickyClock;
use ringflake_kit::{assert_matches, eventually};

/// Producers have threads of their own, so the subscriber is the process's, and
/// one test records at a time.
static RECORDING: Mutex<()> = Mutex::new(());
static EVENTS: Mutex<Vec<Emitted>> = Mutex::new(Vec::new());

/// The subscriber's reaction to an event of the thread that renews leases.
static REACTION: Mutex<Option<Reaction>> = Mutex::new(None);

type Reaction = Box<dyn Fn() + Send>;

#[derive(Clone, Debug)]
struct Emitted {
    at: Instant,
    level: Level,
    target: String,
    /// The message is among them.
    fields: Vec<(&'static str, String)>,
}

impl Emitted {
    fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(field, _)| *field == name);
        &found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
    }

    fn is(&self, event: &str) -> bool {
        self.field("message").starts_with(event)
    }

    /// Its level and its fields, but for the message.
    fn text(&self) -> String {
        let fields = self.fields.iter().filter(|(name, _)| *name != "message");
        let fields = fields.map(|(name, value)| format!(" {name}={value}"));
        self.level.to_string() + &fields.collect::<String>()
    }
}

fn record(event: &Event<'_>) {
    unpoisoned(&EVENTS).push(Emitted {
        at: Instant::now(),
        level: *event.metadata().level(),
        target: event.metadata().target().to_owned(),
        fields: Fields::of(event).0,
    });
    if thread::current().name() == Some("ringflake-lease")
        && let Some(reaction) = &*unpoisoned(&REACTION)
    {
        reaction();
    }
}

/// A test that failed leaves nothing half done behind.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything emitted from here on, by this test alone.
struct Recording {
    started: Instant,
    _alone: MutexGuard<'static, ()>,
}

impl Recording {
    fn start() -> Self {
        static SUBSCRIBED: Once = Once::new();
        let alone = unpoisoned(&RECORDING);
        SUBSCRIBED.call_once(|| tracing::subscriber::set_global_default(OnEvent(record)).unwrap());
        unpoisoned(&EVENTS).clear();
        unpoisoned(&REACTION).take();
        Self {
            started: Instant::now(),
            _alone: alone,
        }
    }

    fn react(&self, reaction: impl Fn() + Send + 'static) {
        *unpoisoned(&REACTION) = Some(Box::new(reaction));
    }

    fn all(&self) -> Vec<Emitted> {
        unpoisoned(&EVENTS).clone()
    }

    fn of(&self, event: &str) -> Vec<Emitted> {
        let mut all = self.all();
        all.retain(|emitted| emitted.is(event));
        all
    }

    /// Asserts that nothing louder than `DEBUG` was emitted.
    #[track_caller]
    fn assert_quiet(&self) {
        let loud = |emitted: &Emitted| emitted.level < Level::DEBUG;
        assert!(!self.all().iter().any(loud), "{:?}", self.all());
    }

    /// Asserts that `event` was emitted, at most once a second.
    #[track_caller]
    fn assert_throttled(&self, event: &str) {
        let emitted = self.of(event);
        assert_eq!(emitted[0].field("suppressed"), "0");
        for (passed, emitted) in emitted.iter().enumerate() {
            // A throttle that counts whole milliseconds may be short of one each.
            let earliest = Duration::from_millis(999) * passed as u32;
            assert!(
                emitted.at - self.started >= earliest,
                "{passed}: {emitted:?}"
            );
        }
    }
}

// The sources of the events; each returns the IDs that it issued.

/// A generator of four IDs a tick of a second, under a clock that stands still.
fn four_a_tick(borrow_limit: u64) -> CachedGeneratorBuilder {
    let layout = shared_layout(48, 8, 2);
    cached(layout, 0..1, 0..1000)
        .borrow_limit(Duration::from_secs(borrow_limit))
        .threshold_fill(None)
}

fn take_some(ids: &CachedGenerator, count: usize) -> Vec<Id> {
    (0..count).map(|_| ids.take().unwrap()).collect()
}

/// Nothing out of the ordinary: takes, a batch, a handle, and a fill of 164.
fn normal_life() -> Vec<Id> {
    let ids = four_a_tick(900)
        .capacity(256)
        .stripes(1)
        .threshold_fill(ThresholdFill::slots(100))
        .build()
        .unwrap();
    let mut handle = ids.handle().unwrap();
    let mut issued = take_some(&ids, 2);
    issued.push(handle.take().unwrap());
    // The handle has 128, so this leaves 92, the first level below the threshold.
    let mut batch = [Id::default(); 34];
    assert_eq!(ids.take_batch(&mut batch), Ok(34));
    issued.extend(batch);
    eventually("the ring is filled", || ids.stats().fills.threshold == 1);
    drop(handle);
    issued
}

/// Takes that leave very few IDs, until some have assisted.
fn assisted_life() -> Vec<Id> {
    let ids = four_a_tick(900)
        .capacity(64)
        .threshold_fill(ThresholdFill::default())
        .build()
        .unwrap();
    let mut issued = Vec::new();
    eventually("takes assist", || {
        // Faster than a producer wakes up; each assist makes the four of a tick.
        issued.extend(take_some(&ids, 62));
        ids.stats().fills.assist > 1
    });
    issued
}

fn dry_life() -> Vec<Id> {
    let ids = four_a_tick(900).padding_fill(PaddingFill::Off);
    take_some(&ids.build().unwrap(), 3)
}

/// Forty fills of one ID each, eight of which end within a tenth of the limit.
fn life_on_credit() -> Vec<Id> {
    let ids = four_a_tick(10)
        .capacity(4)
        .threshold_fill(ThresholdFill::percent(100))
        .build()
        .unwrap();
    let mut issued = Vec::new();
    for _ in 0..40 {
        issued.extend(take_some(&ids, 1));
        eventually("the ring is full", || ids.stats().level == 4);
    }
    issued
}

fn refused_life() -> Vec<Id> {
    let ids = four_a_tick(0)
        .padding_fill(PaddingFill::Off)
        .build()
        .unwrap();
    let mut issued = take_some(&ids, 4);
    refusal(&ids);

    let ids = four_a_tick(0).capacity(8).build().unwrap();
    eventually("the fill is refused", || ids.stats().refusals > 0);
    issued.extend(take_some(&ids, 4));
    refusal(&ids);
    issued
}

#[track_caller]
fn refusal(ids: &CachedGenerator) {
    let taken = ids.take();
    assert_matches!(taken, Err(TakeError::Refused(_)));
}

/// A ring of 64, all of which are retired after a minute; and then none for a while.
fn stale_life() -> Vec<Id> {
    let layout = shared_layout(48, 8, 2);
    let clock = clock_at(layout, 0);
    let found_full = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&found_full);
    let ids = four_a_tick(900)
        .capacity(64)
        .clock(clock.clone())
        .scheduled_fill(
            ScheduledFill::every(ScheduledFill::MIN_PERIOD).max_age(Duration::from_secs(5)),
        )
        .on_full_hook(move |_| _ = count.fetch_add(1, Relaxed))
        .build()
        .unwrap();
    clock.advance(Duration::from_secs(60));
    eventually("the old ones are retired", || ids.stats().retired == 64);
    eventually("and replaced", || ids.stats().level == 64);
    let before = found_full.load(Relaxed);
    eventually("it is looked for others", || {
        found_full.load(Relaxed) >= before + 2
    });
    take_some(&ids, 8)
}

fn panicking_life() -> Vec<Id> {
    let clock = TrickyClock::new(shared_layout(48, 8, 2).tick_start_unix_ms(0));
    clock.panic_after(0, 3);
    let ids = four_a_tick(900)
        .capacity(64)
        .clock(clock)
        .threshold_fill(ThresholdFill::percent(100))
        .build()
        .unwrap();
    let issued = take_some(&ids, 8);
    eventually("the ring is filled", || {
        let stats = ids.stats();
        stats.panics == 3 && stats.level == 64
    });
    issued
}

/// A store with one namespace, and a clock that it shares with generators.
struct Leased {
    clock: ManualClock,
    store: Faulty,
}

impl Leased {
    fn new() -> Self {
        let layout = shared_layout(48, 8, 2);
        let clock = clock_at(layout, 1_000);
        let space = Namespace::new("events", &layout, Fingerprint::of(&secret())).unwrap();
        let store = Faulty::new(store_with(&space, &clock, StoreLimits::default()));
        Self { clock, store }
    }

    /// One block for 21 seconds.
    fn build(&self) -> CachedGenerator {
        CachedGenerator::builder(shared_layout(48, 8, 2))
            .secret(secret())
            .lease_store(self.store.clone())
            .namespace("events")
            .lease_duration(Duration::from_secs(20))
            .clock(self.clock.clone())
            .borrow_limit(Duration::ZERO)
            .capacity(64)
            .build()
            .unwrap()
    }

    fn advance(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    /// Has its block fenced, and another one in its place.
    fn fence(&self, ids: &CachedGenerator) {
        self.store.fail_next(Op::Renew, Fault::Fence);
        self.advance(8);
        eventually("the block is replaced", || ids.leases().len() == 2);
        self.renew(ids);
        self.renew(ids);
        eventually("the lost one is closed", || ids.leases().len() == 1);
    }

    fn renew(&self, ids: &CachedGenerator) {
        let end = || ids.stats().lease_end_unix_ms;
        let before = end();
        self.advance(8);
        eventually("the lease is renewed", || end() > before);
    }
}

/// Has it give up its block, and waits for another one.
fn replace(ids: &CachedGenerator) {
    ids.invalidate();
    eventually("there is another", || ids.leases().len() == 1);
}

/// Ends a generator, and waits for the thread that kept its leases: it is to emit nothing
/// in the next test. A drop alone does not wait for that for long.
fn end(ids: CachedGenerator) {
    let ended = ids.shutdown(Duration::from_secs(60));
    assert_eq!(ended, Shutdown::Released);
}

fn quietly_leased_life() -> Vec<Id> {
    let leased = Leased::new();
    let ids = leased.build();
    let issued = take_some(&ids, 2);
    leased.renew(&ids);
    end(ids);
    issued
}

fn troubled_life() -> Vec<Id> {
    let leased = Leased::new();
    let ids = leased.build();
    let mut issued = take_some(&ids, 2);
    let status = || ids.lease_status().unwrap();

    leased.store.fail(Fault::Down);
    leased.advance(8);
    eventually("the outage is noticed", || {
        status().health.last_error.is_some()
    });
    leased.advance(20);
    eventually("the end is noticed", || {
        status().expired_since_unix_ms.is_some()
    });
    leased.store.heal();
    eventually("a take succeeds", || {
        let taken = ids.take();
        issued.extend(&taken);
        taken.is_ok()
    });

    leased.fence(&ids);

    replace(&ids);
    issued.extend(take_some(&ids, 2));
    end(ids);
    issued
}

type Life = fn() -> Vec<Id>;

const LIVES: [(&str, Life); 9] = [
    ("normal", normal_life),
    ("leased", quietly_leased_life),
    ("trouble", troubled_life),
    ("dry", dry_life),
    ("assisted", assisted_life),
    ("credit", life_on_credit),
    ("refused", refused_life),
    ("stale", stale_life),
    ("panicking", panicking_life),
];

/// The life, how often, the event, and its level and fields, where `*` stands for anything.
/// `once` is once for each line; `more` means that others follow those of the lines; and
/// `throttled` that they are a second apart.
const EVENTS_OF_LIVES: &str = "\
normal    | once      | generator started        | DEBUG capacity=256 stripes=1 threshold=100 core_stocks=off: one stripe, for order producers=1 leases=nodes 0..1, ticks 0..1000
normal    | once      | ring filled              | TRACE cause=padding count=256 micros=*
normal    | once      | ring filled              | TRACE cause=threshold count=164 micros=*
normal    | once      | generator stopped        | DEBUG
leased    | once      | generator started        | DEBUG * leases=nodes 0..32, ticks 1000..1021
leased    | once      | lease acquired           | DEBUG namespace=events grant=block 0 epoch 1 ticks 1000..1021
leased    | more      | lease extended           | TRACE namespace=events grant=block 0 epoch 1 ticks 1000..1029
leased    | once      | lease closed             | DEBUG namespace=events grant=block 0 epoch 1*
leased    | more      | lease store asked        | TRACE namespace=events request=acquire micros=*
leased    | more      | lease store asked        | TRACE namespace=events request=renew micros=*
trouble   | throttled | lease store failed       | WARN namespace=events request=renew error=*is unavailable* cause=the plug is pulled suppressed=0
trouble   | once      | lease store recovered    | INFO namespace=events since_unix_ms=BEGIN+8s
trouble   | once      | leases ended             | ERROR namespace=events since_unix_ms=BEGIN+21s
trouble   | once      | leases in force again    | INFO namespace=events
trouble   | once      | lease given up           | WARN namespace=events grant=block 1 epoch 1*
trouble   | once      | lease acquired           | DEBUG namespace=events grant=block 0*
trouble   | once      | lease acquired           | DEBUG namespace=events grant=block 1*
trouble   | once      | lease acquired           | DEBUG namespace=events grant=block 2*
dry       | throttled | ring ran dry             | DEBUG suppressed=0
assisted  | throttled | ring assisted            | TRACE count=* suppressed=0
credit    | throttled | borrowing near its limit | WARN borrowed=9s limit=10s suppressed=0
refused   | more      | refused                  | WARN reason=* suppressed=*
refused   | more      | refused                  | WARN reason=* suppressed=*
refused   | more      | refused                  | WARN reason=* suppressed=*
stale     | once      | stale IDs retired        | DEBUG count=64 max_age=5s
panicking | throttled | producer panicked        | ERROR suppressed=0
";

fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut is_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        is_open = part.is_empty();
    }
    rest.is_empty() || is_open
}

#[test]
fn each_event_has_its_level_fields_and_frequency_and_no_secret_or_id() {
    let begin = shared_layout(48, 8, 2).tick_start_unix_ms(1_000);
    let after = |seconds: u64| (begin + seconds * 1_000).to_string();
    let table = EVENTS_OF_LIVES
        .replace("BEGIN+8s", &after(8))
        .replace("BEGIN+21s", &after(21));
    let rows: Vec<[&str; 4]> = table
        .lines()
        .map(|line| {
            let mut columns = line.split('|').map(str::trim);
            [(); 4].map(|()| columns.next().expect("four columns"))
        })
        .collect();
    for (name, live) in LIVES {
        let recording = Recording::start();
        let issued = live();
        let all = recording.all();
        if matches!(name, "normal" | "leased") {
            recording.assert_quiet();
        }
        // P1: takes, batch and handle emit nothing.
        assert!(name != "normal" || all.len() == 4, "{all:?}");
        let of_it = || rows.iter().filter(|[life, ..]| *life == name);
        for [_, often, event, _] in of_it() {
            let expected = of_it().filter(|[.., other, _]| other == event);
            let expected: Vec<_> = expected.map(|[.., text]| *text).collect();
            let emitted = recording.of(event);
            let is_enough = match *often {
                "once" => emitted.len() == expected.len(),
                _ => emitted.len() >= expected.len(),
            };
            assert!(is_enough, "{name}, {event}: {emitted:?}");
            for (emitted, pattern) in emitted.iter().zip(expected) {
                let text = emitted.text();
                assert!(is_like(&text, pattern), "{event}: {text}, not {pattern}");
            }
            if *often == "throttled" {
                recording.assert_throttled(event);
            }
        }
        let forbidden = forbidden(&issued);
        for emitted in &all {
            let is_known = rows.iter().any(|[.., event, _]| emitted.is(event));
            assert!(is_known && emitted.target == "ringflake", "{emitted:?}");
            let text = format!("{:?}", emitted.fields).to_lowercase();
            for part in &forbidden {
                assert!(!text.contains(part), "{part} in {text}");
            }
        }
    }
}

/// The secret and the IDs, as they could be written.
fn forbidden(issued: &[Id]) -> Vec<String> {
    let secret = secret();
    let secret = secret.expose();
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let bytes = format!("{secret:?}");
    let mut forbidden = vec![
        String::from_utf8_lossy(&secret[..8]).to_lowercase(),
        hex[..8].to_owned(),
        hex[24..].to_owned(),
        // Without the brackets, and not to the end.
        bytes[1..20].to_owned(),
    ];
    for id in issued {
        let number = id.to_u64();
        forbidden.extend([id.to_string(), number.to_string(), format!("{number:x}")]);
    }
    forbidden
}

#[test]
fn a_subscriber_that_panics_costs_no_lease() {
    let recording = Recording::start();
    recording.react(|| resume_unwind(Box::new("the subscriber fails")));
    let leased = Leased::new();
    let ids = leased.build();
    leased.renew(&ids);
    leased.fence(&ids);
    replace(&ids);
    take_some(&ids, 2);
    // Waits for the thread, which a drop does not do for long.
    let _ = ids.shutdown(Duration::from_secs(60));
    assert_eq!(leased.store.calls(Op::Release), 1);
}

#[test]
fn a_subscriber_may_ask_how_the_leases_stand() {
    let recording = Recording::start();
    let leased = Leased::new();
    let ids = leased.build();
    let asks = ids.clone();
    recording.react(move || drop(asks.lease_status()));
    leased.renew(&ids);
    replace(&ids);
    // The subscriber has a clone, and lets it go before the generator ends.
    unpoisoned(&REACTION).take();
    take_some(&ids, 2);
    end(ids);
}

#[test]
fn a_damaged_block_is_told_once_however_often_it_is_met() {
    let recording = Recording::start();
    let layout = shared_layout(48, 8, 2);
    let clock = clock_at(layout, 10);
    let space = namespace("reported-once", &layout, Fingerprint::PLAIN, 6);
    let mut store = store_with(&space, &clock, StoreLimits::default());
    let now = clock.unix_ms();
    let grants = store.acquire(&space, &Acquire::new(2, 5, now)).unwrap();
    for grant in &grants {
        assert!(store.damage(&space, grant.block));
    }
    assert!(recording.of("block quarantined").is_empty());
    for _ in 0..3 {
        // The other two blocks.
        let _ = store.acquire(&space, &Acquire::new(4, 5, now));
        for grant in &grants {
            let renew = Renew::new(grant, grant.ticks.end + 1, now);
            store.renew(&space, &renew).unwrap_err();
        }
        store.list(&space).unwrap();
        store.check(&space, now).unwrap();
    }
    let emitted = recording.of("block quarantined");
    assert_eq!(emitted.len(), 2, "{emitted:?}");
    for (emitted, block) in emitted.iter().zip([0, 1]) {
        let reason = emitted.field("reason");
        assert!(reason.contains("flat JSON"), "{emitted:?}");
        let expected = format!("WARN namespace=reported-once block={block} reason={reason}");
        assert_eq!(emitted.text(), expected);
    }
    assert!(!store.damage(&space, Block::new(7)));
}
