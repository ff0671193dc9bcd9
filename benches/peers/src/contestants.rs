//! The generators, each as its own documentation says it is used.
//!
//! Where a generator is shared it is one for all threads; where its calls need
//! `&mut self` each thread has one with a node of its own, unless its crate
//! says to put it behind a lock.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crossbeam_queue::ArrayQueue;
use crossbeam_utils::CachePadded;
use ferroid::define_snowflake_id;
use ferroid::generator::thread_local::Ulid as FerroidUlid;
use ferroid::generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator};
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::{MonotonicClock, TWITTER_EPOCH};
use idgenerator::{CoreIdGenerator, IdGeneratorOptions};
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Cipher, DirectGenerator, Id, Layout, StaticLease,
};
use snowflake::SnowflakeIdGenerator;
use sparx::sparx64;
use ulid::Ulid;
use uuid::Uuid;

use crate::live_queue::LiveQueue;
use crate::peer::{Peer, Race};
use crate::race::{Contest, put};
use crate::reference::Reference;
use crate::stock::{self, LAYOUT};

/// The rows that verdicts are about.
pub(crate) const TAKE: &str = "ringflake, `take`";
pub(crate) const HANDLE: &str = "ringflake, `Handle::take`";
pub(crate) const UUID_V4: &str = "`uuid` v4";

/// IDs that a stock holds: eight megabytes of them.
const STOCK: usize = 1 << 20;

/// IDs a call of a batch take.
const BATCH: usize = 64;

/// How far the time in an ID may be from now. Some generators run ahead of the
/// clock by minutes in a second.
const TODAY: Duration = Duration::from_secs(86_400);

/// A contest in which a call gives one number, or `None`.
macro_rules! contest {
    ($stock:expr, $seat:expr, |$shared:pat_param, $own:pat_param| $take:expr) => {
        Contest::new($stock, $seat, |$shared, $own, [number]: &mut [_; 1]| {
            put(number, $take)
        })
    };
}

/// A row of the table: one contest for the burst and the sustained run, or one
/// for each.
macro_rules! peer {
    ($name:expr, $bits:literal, $contest:expr, $is_sane:expr, $cannot:literal) => {
        Peer {
            name: $name,
            bits: $bits,
            is_shared: false,
            most_threads: usize::MAX,
            cannot: $cannot,
            burst: Race::new($contest, $is_sane),
            sustained: Race::new($contest, $is_sane),
            stock: None,
        }
    };
    ($name:expr, $bits:literal, $full:expr, $live:expr, $is_sane:expr, $cannot:literal) => {
        Peer {
            name: $name,
            bits: $bits,
            is_shared: false,
            most_threads: usize::MAX,
            cannot: $cannot,
            burst: Race::new($full, $is_sane),
            sustained: Race::new($live, $is_sane),
            stock: Some(STOCK),
        }
    };
}

/// All rows, in the order of the table.
///
/// ferroid's clock is a thread that wakes every millisecond from the first use to the end
/// of the process, some microseconds each time. So it is there in the runs of all.
pub(crate) fn all() -> Vec<Peer> {
    let mut peers = ringflake();
    peers.extend(yardsticks());
    peers.extend(reference());
    peers.extend(random());
    peers.extend(snowflakes());
    peers.extend(ferroid());
    peers
}

fn ringflake() -> Vec<Peer> {
    // Half is left: who takes all has to wait for the last IDs, which another may be moving.
    let full = || built(stock::filled_once(2 * STOCK));
    let live = || stock::live(|ids| ids);
    let no_seat = |_: &CachedGenerator| ();
    let handle = |ids: &CachedGenerator| ids.handle().expect("a page of memory");
    let batch = |source: &CachedGenerator, _: &mut (), ids: &mut [Id; BATCH]| {
        stock::take_batch_patiently(source, ids)
    };
    vec![
        peer!(
            TAKE,
            64,
            contest!(full, no_seat, |ids, _| ids.take().ok()),
            contest!(live, no_seat, |ids, _| ids.take().ok()),
            is_ringflake,
            "tell the moment of the take: an ID has the time of its fill"
        ),
        peer!(
            "ringflake, `take_batch` of 64",
            64,
            Contest::new(full, no_seat, batch),
            Contest::new(live, no_seat, batch),
            is_ringflake,
            "as above"
        ),
        peer!(
            HANDLE,
            64,
            contest!(full, handle, |_, handle| handle.take().ok()),
            contest!(live, handle, |_, handle| handle.take().ok()),
            is_ringflake,
            "as above; share a handle between threads"
        ),
        peer!(
            "ringflake, in place, 64 a call",
            64,
            Contest::new(stock::without_a_ring, no_seat, batch),
            is_ringflake,
            "be as fast one by one"
        ),
        peer!(
            "ringflake, `DirectGenerator::take`",
            64,
            contest!(direct, |_| (), |ids, _| ids.take().ok()),
            is_ringflake,
            "give more than 131,072 IDs a second and node: it borrows none from the future"
        ),
    ]
}

fn yardsticks() -> Vec<Peer> {
    vec![
        peer!(
            "`AtomicU64::fetch_add`",
            64,
            contest!(counter, |_| (), |counter, _| Some(
                counter.fetch_add(1, Relaxed)
            )),
            is_count,
            "be unique after a restart or in a second process; encrypt; tell a time"
        )
        .shared(),
        peer!(
            "`ArrayQueue::pop`",
            64,
            contest!(full_queue, |_| (), |queue, _| queue.pop()),
            contest!(LiveQueue::new, |_| (), |queue, _| Some(queue.pop())),
            is_count,
            "make IDs: it passes on what another thread counts"
        ),
        peer!(
            "`fetch_add`, then the `sparx` crate",
            64,
            contest!(counter, |_| (), |counter, _| {
                let mut block = counter.fetch_add(1, Relaxed).to_le_bytes();
                sparx64::encrypt_block(&mut block, &SPARX_KEYS);
                Some(u64::from_le_bytes(block))
            }),
            is_encrypted_count,
            "be unique after a restart or in a second process; tell a time; encrypt many at once"
        )
        .shared(),
    ]
}

fn reference() -> Vec<Peer> {
    fn next_id(reference: &Mutex<Reference>) -> Option<Id> {
        reference
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next_id()
    }
    vec![
        peer!(
            "`Mutex` around Randflake's algorithm",
            64,
            contest!(
                || Mutex::new(Reference::new(LAYOUT, stock::cipher(), 1)),
                |_| (),
                |reference, _| next_id(reference)
            ),
            is_ringflake,
            "give more than 131,072 IDs a second; span nodes; give batches"
        )
        .shared(),
        peer!(
            "the same with 27 bits of sequence",
            64,
            contest!(
                || Mutex::new(Reference::new(wide_layout(), stock::cipher(), 1)),
                |_| (),
                |reference, _| next_id(reference)
            ),
            is_wide,
            "have more than 128 nodes; span nodes; give batches"
        )
        .shared(),
    ]
}

fn random() -> Vec<Peer> {
    vec![
        peer!(
            UUID_V4,
            128,
            contest!(|| (), |()| (), |(), ()| Some(Uuid::new_v4().as_u128())),
            |id| Uuid::from_u128(id).get_version_num() == 4,
            "fit 64 bits; tell a time; be sorted; exclude a duplicate for certain"
        ),
        peer!(
            "`uuid` v7",
            128,
            contest!(|| (), |()| (), |(), ()| Some(Uuid::now_v7().as_u128())),
            |id| is_today((id >> 80) as u64),
            "fit 64 bits; hide its time; exclude a duplicate for certain"
        ),
        peer!(
            "`ulid`, `Ulid::generate`",
            128,
            contest!(|| (), |()| (), |(), ()| Some(Ulid::generate().0)),
            |id| is_today(Ulid(id).timestamp_ms()),
            "fit 64 bits; hide its time; exclude a duplicate for certain"
        ),
        peer!(
            "`ulid`, a monotonic generator a thread",
            128,
            contest!(|| (), |()| ulid::Generator::new(), |(), generator| {
                generator.generate().ok().map(|id| id.0)
            }),
            |id| is_today(Ulid(id).timestamp_ms()),
            "fit 64 bits; hide its time; exclude a duplicate for certain; be shared"
        ),
    ]
}

fn snowflakes() -> Vec<Peer> {
    static DRIFTING: LazyLock<Mutex<CoreIdGenerator>> = LazyLock::new(|| {
        let options = IdGeneratorOptions::new();
        id_generator(options.worker_id(1).worker_id_bit_len(6))
    });
    static WIDE: LazyLock<Mutex<CoreIdGenerator>> = LazyLock::new(|| {
        let options = IdGeneratorOptions::new().worker_id(1);
        id_generator(options.worker_id_bit_len(1).seq_bit_len(21))
    });
    vec![
        peer!(
            "`snowflaked`, `sync::Generator`",
            64,
            contest!(
                || snowflaked::sync::Generator::new(1),
                |_| (),
                |generator, _| Some(generator.generate::<u64>())
            ),
            is_snowflake,
            "encrypt; span nodes; give batches; go on after 4,096 IDs in a millisecond; \
             survive a clock that steps back (it panics)"
        )
        .shared(),
        peer!(
            "`snowflaked`, a generator a thread",
            64,
            contest!(
                counter,
                |node: &Counter| snowflaked::Generator::new(node.fetch_add(1, Relaxed) as u16),
                |_, generator| Some(generator.generate::<u64>())
            ),
            is_snowflake,
            "as above; be shared"
        )
        .up_to(1024),
        peer!(
            "`rs-snowflake`, `generate`",
            64,
            contest!(counter, rs_snowflake, |_, generator| Some(
                generator.generate() as u64
            )),
            is_snowflake,
            "be shared; encrypt; span nodes; give batches; go on after 4,096 IDs in a \
             millisecond; tell the time (it looks at the clock once in 4,096 IDs)"
        )
        .up_to(32),
        peer!(
            "`rs-snowflake`, `lazy_generate`",
            64,
            contest!(counter, rs_snowflake, |_, generator| Some(
                generator.lazy_generate() as u64
            )),
            is_snowflake,
            "be shared; encrypt; span nodes; give batches; tell the time (it looks at the \
             clock once in its life)"
        )
        .up_to(32),
        peer!(
            "`idgenerator`, 6/8 bits",
            64,
            contest!(|| &*DRIFTING, |_| (), |generator, _| {
                let mut generator = generator.lock().unwrap_or_else(PoisonError::into_inner);
                Some(generator.next_id())
            }),
            |id| is_id_generator(id, 14),
            "encrypt; span nodes; give batches; be used without a lock; keep its speed (it runs \
             at most 2,000 ms ahead of the clock)"
        )
        .shared(),
        peer!(
            "`idgenerator`, 1/21 bits",
            64,
            contest!(|| &*WIDE, |_| (), |generator, _| {
                let mut generator = generator.lock().unwrap_or_else(PoisonError::into_inner);
                Some(generator.next_id())
            }),
            |id| is_id_generator(id, 22),
            "as above; have more than two nodes"
        )
        .shared(),
    ]
}

define_snowflake_id!(
    /// As many IDs in a millisecond as any generator here can make, and a node
    /// for each of two threads.
    WideId, u64,
    reserved: 0,
    timestamp: 42,
    machine_id: 1,
    sequence: 21
);

fn ferroid() -> Vec<Peer> {
    fn clock() -> MonotonicClock {
        MonotonicClock::with_epoch(TWITTER_EPOCH)
    }
    fn wait(_: u64) {
        spin_loop();
    }
    vec![
        peer!(
            "`ferroid`, Twitter's bits, atomic",
            64,
            contest!(
                || AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(1, clock()),
                |_| (),
                |generator, _| Some(generator.next_id(wait).to_raw())
            ),
            |id| is_ferroid(id >> 22),
            "encrypt; span nodes; give batches; go on after 4,096 IDs in a millisecond"
        )
        .shared(),
        peer!(
            "`ferroid`, 42/1/21 bits, atomic",
            64,
            contest!(
                || AtomicSnowflakeGenerator::<WideId, _>::new(1, clock()),
                |_| (),
                |generator, _| Some(generator.next_id(wait).to_raw())
            ),
            |id| is_ferroid(id >> 22),
            "encrypt; span nodes; give batches; have more than two nodes"
        )
        .shared(),
        peer!(
            "`ferroid`, 42/1/21 bits, a basic one a thread",
            64,
            contest!(
                counter,
                |node: &Counter| {
                    let node = node.fetch_add(1, Relaxed);
                    BasicSnowflakeGenerator::<WideId, _>::new(node, clock())
                },
                |_, generator| Some(generator.next_id(wait).to_raw())
            ),
            |id| is_ferroid(id >> 22),
            "as above; be shared"
        )
        .up_to(2),
        peer!(
            "`ferroid`, monotonic ULID, thread-local",
            128,
            contest!(|| (), |()| (), |(), ()| Some(
                FerroidUlid::new_ulid_mono(|_| spin_loop()).to_raw()
            )),
            |id| is_today(Ulid(id).timestamp_ms()),
            "fit 64 bits; hide its time; exclude a duplicate for certain"
        ),
    ]
}

type Counter = CachePadded<AtomicU64>;

fn counter() -> Counter {
    CachePadded::new(AtomicU64::new(0))
}

fn full_queue() -> ArrayQueue<u64> {
    let queue = ArrayQueue::new(STOCK);
    for number in stock::raws(STOCK) {
        queue.push(number).expect("the queue has room");
    }
    queue
}

fn built(builder: CachedGeneratorBuilder) -> CachedGenerator {
    builder.build().expect("the configuration is valid")
}

fn direct() -> DirectGenerator {
    let layout = stock::layout_of_its_own();
    DirectGenerator::builder(layout)
        .secret(stock::secret())
        .lease(StaticLease::assume_unique(layout, 0..layout.nodes()))
        .build()
        .expect("the configuration is valid")
}

/// Randflake's layout with more of it for the sequence.
fn wide_layout() -> Layout {
    let layout = Layout::builder()
        .bits(30, 7, 27)
        .tick(Duration::from_secs(1))
        .epoch_unix_ms(LAYOUT.epoch_unix_ms());
    layout.build().expect("a valid layout")
}

/// Made once: a new one sleeps for a second.
fn id_generator(options: IdGeneratorOptions) -> Mutex<CoreIdGenerator> {
    let mut generator = CoreIdGenerator::default();
    generator.init(options).expect("the options are valid");
    Mutex::new(generator)
}

/// A generator with a node that no other thread of the round has.
fn rs_snowflake(node: &Counter) -> SnowflakeIdGenerator {
    SnowflakeIdGenerator::new(1, node.fetch_add(1, Relaxed) as i32)
}

static CIPHER: LazyLock<Cipher> = LazyLock::new(stock::cipher);

static SPARX_KEYS: LazyLock<sparx64::KeySchedule> =
    LazyLock::new(|| sparx64::key_schedule_encrypt(stock::secret().expose()));

fn is_ringflake(id: Id) -> bool {
    has_today(LAYOUT, id)
}

fn is_wide(id: Id) -> bool {
    has_today(wide_layout(), id)
}

fn has_today(layout: Layout, id: Id) -> bool {
    let parts = layout.unpack(CIPHER.decrypt(id.to_u64()));
    parts.is_ok_and(|parts| is_today(parts.unix_ms))
}

fn is_count(number: u64) -> bool {
    number < 1 << 40
}

fn is_encrypted_count(id: u64) -> bool {
    let mut block = id.to_le_bytes();
    sparx64::decrypt_block(&mut block, &SPARX_KEYS);
    is_count(u64::from_le_bytes(block))
}

/// Twitter's widths, with the milliseconds counted from 1970.
fn is_snowflake(id: u64) -> bool {
    is_today(id >> 22)
}

fn is_ferroid(millis: u64) -> bool {
    is_today(millis + TWITTER_EPOCH.as_millis() as u64)
}

fn is_id_generator(id: i64, shift: u32) -> bool {
    /// Its default for the start of time.
    const BASE_UNIX_MS: u64 = 1_582_136_402_000;
    is_today((id >> shift) as u64 + BASE_UNIX_MS)
}

fn is_today(unix_ms: u64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_millis() as u64;
    now.abs_diff(unix_ms) < TODAY.as_millis() as u64
}
