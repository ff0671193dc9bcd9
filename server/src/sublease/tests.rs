//! Leases of clients on stores in memory, whose clock is the tests'; and on a data directory.

use std::collections::HashSet;
use std::ops::Range;

use proptest::prelude::*;
use ringflake::lease::{
    Block, Confirmed, Epoch, Fence, Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace,
    OpenOptions, StoreLimits,
};
use ringflake::{CachedGenerator, Cipher, IdWidth, Layout, ManualClock, Secret, SystemClock};
use ringflake_kit::eventually;
use ringflake_kit::faulty_store::{Fault, Faulty, Op};
use tempfile::TempDir;

use super::text::Key;
use super::*;
use crate::config::{Config, NamespaceSettings, Settings, StoreUrl};
use crate::factory::GeneratorFactory;

const NOW: u64 = 1_760_000_000_000;
const HORIZON: Duration = Duration::from_secs(600);
const SECRET: Secret = Secret::from_bytes(*b"leases of others");

/// A namespace of few blocks, and the servers before its store.
#[derive(Clone)]
pub(crate) struct Site {
    clock: ManualClock,
    pub(crate) store: Faulty,
    namespace: Namespace,
    pub(crate) limits: Limits,
}

impl Site {
    /// With 2^`bits` blocks.
    pub(crate) fn new(bits: u32) -> Self {
        let clock = ManualClock::new(NOW);
        let layout = Layout::RANDFLAKE;
        let namespace = Namespace::new("orders", &layout, Fingerprint::of(&SECRET)).unwrap();
        let namespace = namespace.with_block_bits(17 - bits).unwrap();
        let mut store = MemoryStore::new(Arc::new(clock.clone()));
        let limits = StoreLimits::default().with_horizon(HORIZON);
        let init = Init::new(History::New, NOW).with_limits(limits);
        store.init(&namespace, &init).unwrap();
        Self {
            clock,
            store: Faulty::new(store),
            namespace,
            limits: Limits {
                leases_per_minute: 1000,
                ..Limits::default()
            },
        }
    }

    fn origin(&self) -> Origin {
        Origin {
            name: "orders".to_owned(),
            namespace: self.namespace.clone(),
            secret: Some(SECRET),
            id_width: IdWidth::Full,
            store: Box::new(self.store.clone()),
        }
    }

    /// A server; also one that is started again, as a server keeps nothing.
    pub(crate) fn server(&self) -> Subleases {
        let site = self.clone();
        let open = move |name: &str| match name {
            "orders" => Ok(site.origin()),
            _ => Err(OpenError::Unknown),
        };
        Subleases::new(Box::new(open), Arc::new(self.clock.clone()), &self.limits)
    }

    fn now(&self) -> u64 {
        let layout = self.namespace.layout();
        layout.tick_at(self.clock.unix_ms()).unwrap()
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn wanted(blocks: u64, seconds: u64) -> AcquireRequest {
    AcquireRequest {
        size: Size::Blocks(blocks),
        duration: Duration::from_secs(seconds),
        holder: None,
        had: Vec::new(),
    }
}

/// With the text of a lease as evidence.
fn having(text: &str) -> AcquireRequest {
    AcquireRequest {
        had: vec![text.to_owned()],
        ..wanted(1, 60)
    }
}

fn acquire(server: &Subleases, blocks: u64, seconds: u64) -> Result<Granted, Refusal> {
    server.acquire("orders", &wanted(blocks, seconds))
}

fn one(given: Result<Granted, Refusal>) -> Sublease {
    let mut leases = given.unwrap().leases;
    assert_eq!(leases.len(), 1);
    leases.remove(0)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Asserts that the outcome is this refusal.
macro_rules! refused {
    ($outcome:expr, $pattern:pat) => {
        let outcome = $outcome;
        assert!(matches!(outcome, Err($pattern)), "{outcome:?}");
    };
}

/// Asserts that the lease is lost to this fence.
macro_rules! fenced {
    ($outcome:expr, $fence:pat $(if $condition:expr)?) => {
        let outcome = $outcome;
        assert!(
            matches!(outcome, Err(Refusal::Lost($fence)) $(if $condition)?),
            "{outcome:?}"
        );
    };
}

/// All that was issued: by clients every tick of each rectangle at once, and by a generator ID
/// by ID.
#[derive(Default)]
struct Issued {
    /// Blocks and ticks.
    of_clients: HashSet<(u64, u64)>,
    of_generators: HashSet<(u64, u64)>,
    raws: HashSet<u64>,
}

impl Issued {
    fn by_client(&mut self, block: u64, ticks: Range<u64>) {
        for cell in ticks.map(|tick| (block, tick)) {
            assert!(self.of_clients.insert(cell), "two clients have {cell:?}");
            let is_ours = self.of_generators.contains(&cell);
            assert!(!is_ours, "a client has a generator's {cell:?}");
        }
    }

    fn by_generator(
        &mut self,
        namespace: &Namespace,
        ids: impl IntoIterator<Item = ringflake::Id>,
    ) {
        let cipher = Cipher::sparx64(&SECRET);
        for id in ids {
            let raw = cipher.decrypt(id.to_u64());
            assert!(self.raws.insert(raw), "{raw} comes twice");
            let parts = namespace.layout().unpack(raw).unwrap();
            let cell = (namespace.block_of(parts.node).index(), parts.tick);
            let is_a_clients = self.of_clients.contains(&cell);
            assert!(!is_a_clients, "a generator has a client's {cell:?}");
            self.of_generators.insert(cell);
        }
    }
}

/// What happens next; the first number chooses a client.
#[derive(Clone, Debug)]
enum Step {
    Acquire(u64, u64),
    Renew(usize, u64),
    /// With the text from before its last renewal.
    RenewAgain(usize, u64),
    Release(usize),
    Take,
    Pass(u64),
    Restart,
    /// The answer to the next call is lost.
    Cut(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..4_u64, 1..700_u64).prop_map(|(blocks, long)| Step::Acquire(blocks, long)),
        4 => (any::<usize>(), 1..700_u64).prop_map(|(which, long)| Step::Renew(which, long)),
        2 => (any::<usize>(), 1..700_u64).prop_map(|(which, long)| Step::RenewAgain(which, long)),
        2 => any::<usize>().prop_map(Step::Release),
        3 => Just(Step::Take),
        3 => (0..300_u64).prop_map(Step::Pass),
        1 => Just(Step::Restart),
        1 => any::<bool>().prop_map(Step::Cut),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_two_have_a_tick_of_a_node_whatever_happens(steps in steps()) {
        let site = Site::new(3);
        let generator = || {
            CachedGenerator::builder(*site.namespace.layout())
                .secret(&SECRET)
                .namespace("orders")
                .block_bits(site.namespace.block_bits())
                .lease_store(site.store.clone())
                .capacity(1024)
                .stripes(1)
                .clock(site.clock.clone())
                .build_detached()
                .unwrap()
        };
        let (mut server, mut ours) = (site.server(), generator());
        let mut issued = Issued::default();
        // Each with its text from before.
        let mut clients: Vec<(Sublease, String)> = Vec::new();
        for step in steps {
            match step {
                Step::Acquire(blocks, long) => {
                    let Ok(given) = acquire(&server, blocks, long) else { continue };
                    for lease in given.leases {
                        issued.by_client(lease.grant.block.index(), lease.ticks.clone());
                        clients.push((lease.clone(), lease.text));
                    }
                }
                Step::Renew(which, long) if !clients.is_empty() => {
                    let which = which % clients.len();
                    let (lease, before) = &mut clients[which];
                    match server.renew(&lease.text, seconds(long)) {
                        Ok(given) => {
                            let renewed = &given.leases[0];
                            assert_eq!(renewed.nodes, lease.nodes);
                            let more = lease.ticks.end..renewed.ticks.end;
                            issued.by_client(renewed.grant.block.index(), more);
                            *before = std::mem::replace(lease, renewed.clone()).text;
                        }
                        Err(Refusal::Lost(_)) => drop(clients.swap_remove(which)),
                        // It keeps what it knows of.
                        Err(_) => {}
                    }
                }
                Step::RenewAgain(which, long) if !clients.is_empty() => {
                    let (lease, before) = &clients[which % clients.len()];
                    // A copy of the client, or one that did not get the answer.
                    if *before != lease.text {
                        assert!(server.renew(before, seconds(long)).is_err());
                    }
                }
                Step::Release(which) if !clients.is_empty() => {
                    let (lease, _) = clients.swap_remove(which % clients.len());
                    let _ = server.release(&lease.text);
                }
                Step::Take => issued.by_generator(&site.namespace, ours.take()),
                Step::Pass(long) => site.pass(long),
                Step::Restart => {
                    ours = generator();
                    server = site.server();
                }
                Step::Cut(acquire) => {
                    let op = if acquire { Op::Acquire } else { Op::Renew };
                    site.store.fail_next(op, Fault::Cut);
                }
                Step::Renew(..) | Step::RenewAgain(..) | Step::Release(_) => {}
            }
        }
    }
}

#[test]
fn a_lease_is_a_rectangle_of_the_stores_namespace() {
    let site = Site::new(12);
    let server = site.server();
    let asked = |size| {
        let mut request = wanted(1, 60);
        request.size = size;
        server.acquire("orders", &request)
    };
    let given = asked(Size::Nodes(33)).unwrap();
    assert_eq!(given.parameters.layout, Layout::RANDFLAKE);
    assert_eq!(given.unix_ms, NOW);
    // Blocks of 32.
    assert_eq!(given.leases.len(), 2);
    for lease in &given.leases {
        assert_eq!(lease.nodes, site.namespace.nodes_of(lease.grant.block));
        assert_eq!(lease.ticks, site.now()..site.now() + 60);
    }
    for size in [
        Size::Blocks(0),
        Size::Blocks(17),
        Size::Nodes(0),
        Size::Nodes(16 * 32 + 1),
        Size::Nodes(u64::MAX),
    ] {
        let Refusal::Invalid(reason) = asked(size).unwrap_err() else {
            panic!("{size:?}")
        };
        assert!(
            reason.contains("1 to 16") && reason.contains("1 to 512"),
            "{reason}"
        );
    }
}

#[test]
fn a_text_is_renewed_once() {
    let site = Site::new(1);
    let server = site.server();
    let first = one(acquire(&server, 1, 60));
    site.pass(30);
    // By a server that never saw it.
    let second = one(site.server().renew(&first.text, seconds(60)));
    assert_eq!(second.ticks, first.ticks.start..first.ticks.end + 30);
    site.pass(10);
    let (end, renewed) = (first.ticks.end, second.ticks.end);
    fenced!(
        server.renew(&first.text, seconds(60)),
        Fence::End { known, recorded } if known == end && recorded == renewed
    );
    assert!(server.renew(&second.text, seconds(60)).is_ok());
}

#[test]
fn a_renewal_reaches_the_horizon_and_never_falls() {
    let site = Site::new(1);
    let server = site.server();
    let first = one(acquire(&server, 1, 100));
    assert_eq!(one(server.renew(&first.text, seconds(1))), first);
    let far = one(server.renew(&first.text, MOST_DURATION));
    assert_eq!(far.ticks.end, site.now() + HORIZON.as_secs());
}

#[test]
fn a_lease_that_ended_is_renewed_until_another_has_the_block() {
    let site = Site::new(0);
    let server = site.server();
    let first = one(acquire(&server, 1, 60));
    site.pass(1000);
    let again = one(server.renew(&first.text, seconds(60)));
    assert_eq!(again.ticks, first.ticks.start..site.now() + 60);
    site.pass(1000);
    let others = one(acquire(&server, 1, 60));
    assert!(others.ticks.start >= again.ticks.end);
    fenced!(server.renew(&again.text, seconds(60)), Fence::Epoch { .. });
    fenced!(server.release(&again.text), Fence::Epoch { .. });
}

#[test]
fn a_released_block_goes_on_where_it_would_have_ended() {
    let site = Site::new(0);
    let server = site.server();
    let first = one(acquire(&server, 1, 300));
    refused!(
        acquire(&server, 1, 60),
        Refusal::Store(StoreError::Exhausted { .. })
    );
    for _ in 0..2 {
        assert_eq!(one(server.release(&first.text)).ticks, first.ticks);
    }
    let next = one(acquire(&server, 1, 60));
    assert_eq!(next.ticks, first.ticks.end..first.ticks.end + 60);
    fenced!(server.renew(&first.text, seconds(600)), Fence::Epoch { .. });
}

#[test]
fn a_text_that_is_made_up_is_unknown() {
    let site = Site::new(1);
    let server = site.server();
    let lease = one(acquire(&server, 1, 60));
    let key = Key::of(Some(&Secret::from_bytes([0; 16])));
    for text in [
        text::write(&key, "orders", &lease.grant),
        text::write(&Key::of(Some(&SECRET)), "others", &lease.grant),
        String::new(),
        "x".repeat(10_000),
    ] {
        refused!(server.renew(&text, seconds(60)), Refusal::Unknown);
        refused!(server.release(&text), Refusal::Unknown);
        let refused = server.acquire("orders", &having(&text));
        refused!(refused, Refusal::Invalid(_));
    }
    assert!(server.renew(&lease.text, seconds(60)).is_ok());
}

#[test]
fn a_store_that_forgot_is_found_out_by_what_a_client_had() {
    let site = Site::new(0);
    let server = site.server();
    let before = site.store.inner.snapshot();
    let lost = one(acquire(&server, 1, 600));
    site.store.inner.restore(&before);
    fenced!(server.renew(&lost.text, seconds(600)), Fence::NeverGranted);

    let wanted = having(&lost.text);
    refused!(
        server.acquire("orders", &wanted),
        Refusal::Store(StoreError::HistoryLost { .. })
    );
    site.pass(StoreLimits::default().failover().as_secs() + 2);
    let next = one(server.acquire("orders", &wanted));
    assert!(next.ticks.start > lost.ticks.end, "{next:?}");
}

#[test]
fn the_latest_of_a_block_is_its_evidence() {
    let site = Site::new(0);
    let server = site.server();
    let first = one(acquire(&server, 1, 60));
    let later = one(server.renew(&first.text, seconds(90)));
    let service = server.service("orders").unwrap();
    let Grant { block, epoch, .. } = later.grant;
    let expected = [Confirmed::new(block, epoch, later.ticks.end)];
    for had in [[&first, &later], [&later, &first]] {
        let found = service.evidence(&had.map(|lease| lease.text.clone()));
        assert_eq!(found.unwrap(), expected);
    }
    let too_many = vec![first.text; MOST_HAD + 1];
    refused!(service.evidence(&too_many), Refusal::Invalid(_));
}

#[test]
fn what_anybody_can_write_is_no_evidence() {
    let site = Site::new(0);
    let origin = Origin {
        secret: None,
        ..site.origin()
    };
    let service = LeaseService::new(origin, 1);
    let made_up = Grant::new(Block::new(0), Epoch::FIRST, 0..site.now() + 100);
    let text = text::write(&service.key, "orders", &made_up);
    assert!(text::read(&text).unwrap().prove(&service.key).is_some());
    assert_eq!(service.evidence(&[text]).unwrap(), []);
}

#[test]
fn an_answer_that_is_lost_costs_the_lease_and_no_more() {
    let site = Site::new(1);
    let server = site.server();
    site.store.fail_next(Op::Acquire, Fault::Cut);
    refused!(
        acquire(&server, 1, 60),
        Refusal::Store(StoreError::Ambiguous { .. })
    );
    let held = one(acquire(&server, 1, 60));
    site.pass(30);
    site.store.fail_next(Op::Renew, Fault::Cut);
    refused!(
        server.renew(&held.text, seconds(60)),
        Refusal::Store(StoreError::Ambiguous { .. })
    );
    fenced!(server.renew(&held.text, seconds(60)), Fence::End { .. });
    let mut inner = site.store.inner.clone();
    assert_eq!(inner.list(&site.namespace).unwrap().blocks.len(), 2);
}

#[test]
fn a_store_that_is_away_costs_nothing() {
    let mut site = Site::new(1);
    site.limits.leases_per_minute = 1;
    let server = site.server();
    macro_rules! unavailable {
        ($outcome:expr) => {
            refused!($outcome, Refusal::Store(StoreError::Unavailable { .. }))
        };
    }
    site.store.fail(Fault::Down);
    unavailable!(acquire(&server, 1, 60));
    site.store.heal();
    let lease = one(acquire(&server, 1, 60));
    site.store.fail(Fault::Down);
    unavailable!(server.renew(&lease.text, seconds(60)));
    unavailable!(server.release(&lease.text));
    site.store.heal();
    assert!(server.renew(&lease.text, seconds(60)).is_ok());
    assert!(server.release(&lease.text).is_ok());
    let Counts {
        given,
        renewed,
        released,
        refused,
    } = server.counts();
    let counts = [given, renewed, released, refused].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(counts, [1, 1, 1, 3]);
}

#[test]
fn fewer_blocks_than_wanted_cost_no_more_than_they_are() {
    let mut site = Site::new(1);
    site.limits.leases_per_minute = 5;
    let server = site.server();
    assert_eq!(acquire(&server, 4, 60).unwrap().leases.len(), 2);
    site.pass(100);
    assert!(acquire(&server, 3, 60).is_ok());
}

#[test]
fn no_more_than_32_calls_wait_for_a_store() {
    let site = Site::new(6);
    let server = site.server();
    let service = server.service("orders").unwrap();
    let lease = one(acquire(&server, 1, 60));
    let mut permits: Vec<_> = (0..32).map(|_| service.enter_queue().unwrap()).collect();
    refused!(acquire(&server, 1, 60), Refusal::Busy);
    refused!(server.renew(&lease.text, seconds(60)), Refusal::Busy);
    refused!(server.release(&lease.text), Refusal::Busy);
    permits.pop();
    site.store.hold();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| acquire(&server, 1, 60));
        eventually("it holds the last permit", || {
            service.queued.load(Ordering::Relaxed) == 32
        });
        site.store.let_go();
        assert!(waiting.join().unwrap().is_ok());
    });
    assert_eq!(service.queued.load(Ordering::Relaxed), 31);
}

/// A directory where nobody else may put a secret.
fn private_directory() -> TempDir {
    let directory = ringflake_kit::server::data_directory();
    ringflake_kit::tls::allow(directory.path(), 0o700);
    directory
}

/// A server whose configuration says this, and the generators of its namespaces.
pub(crate) fn configured(settings: Settings) -> (Arc<GeneratorFactory>, Subleases) {
    let config = Config::new(Settings {
        best_effort: Some(true),
        ..settings
    });
    let config = Arc::new(config.unwrap());
    let limits = Limits {
        leases_per_minute: 1000,
        ..config.limits.clone()
    };
    let factory = Arc::new(GeneratorFactory::new(config));
    let of_server = Arc::clone(&factory);
    let open = Box::new(move |name: &str| of_server.origin(name));
    (
        factory,
        Subleases::new(open, Arc::new(SystemClock), &limits),
    )
}

/// The servers of a data directory, one after the other, with generators of their own.
#[test]
fn servers_of_a_data_directory_give_disjoint_leases() {
    let directory = private_directory();
    let mut cells = HashSet::new();
    let mut last: Option<Sublease> = None;
    // Killed, as it were: they give nothing back.
    let mut killed = Vec::new();
    for _ in 0..3 {
        let (factory, server) = configured(Settings {
            data_dir: Some(directory.path().to_owned()),
            ..Settings::default()
        });
        assert!(matches!(factory.origin("others"), Err(OpenError::Unknown)));
        let generator = factory.build("orders").unwrap();
        let given = acquire(&server, 3, 60).unwrap();
        let mut added: Vec<_> = given
            .leases
            .iter()
            .map(|lease| (lease.nodes.clone(), lease.ticks.clone()))
            .collect();
        // The one from before the restart.
        if let Some(last) = last.replace(given.leases[0].clone()) {
            let renewed = one(server.renew(&last.text, seconds(100)));
            added.push((renewed.nodes, last.ticks.end..renewed.ticks.end));
        }
        for (nodes, ticks) in added {
            for node in nodes {
                for tick in ticks.clone() {
                    assert!(cells.insert((node, tick)), "{node} has {tick} twice");
                }
            }
        }
        for _ in 0..1000 {
            let parts = generator.inspect(generator.take().unwrap()).unwrap();
            assert!(!cells.contains(&(parts.node, parts.tick)), "{parts:?}");
        }
        killed.push(generator);
    }
}

/// Its record is `orders-plain` in the data directory, and it is served as `orders`.
#[test]
fn a_lease_of_a_local_plain_namespace_is_renewed_and_released() {
    let directory = private_directory();
    let plain = NamespaceSettings {
        plain: Some(true),
        ..NamespaceSettings::default()
    };
    let (factory, server) = configured(Settings {
        data_dir: Some(directory.path().to_owned()),
        namespaces: [("orders".to_owned(), plain)].into(),
        ..Settings::default()
    });
    let _generator = factory.build("orders").unwrap();
    let given = acquire(&server, 1, 60).unwrap();
    assert_eq!(given.parameters.namespace, "orders");
    let lease = one(server.renew(&given.leases[0].text, seconds(90)));
    assert!(lease.ticks.end > given.leases[0].ticks.end);
    let released = server.release(&lease.text).unwrap();
    assert_eq!(released.parameters.namespace, "orders");
}

/// Any server renews them, with a tier or without.
#[test]
fn leases_of_a_server_with_a_tier_come_from_the_store_above_it() {
    let directory = private_directory();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("secret"), &SECRET.expose()[..]).unwrap();
    ringflake_kit::tls::allow(&at("secret"), 0o600);
    let url = format!("sqlite:{}", at("leases.db").display());
    let options = OpenOptions::new().accept_best_effort(true);
    let mut store = ringflake::lease::open(&url, &options).unwrap();
    let namespace = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::of(&SECRET));
    let init = Init::new(History::New, SystemClock.unix_ms());
    store.init(&namespace.unwrap(), &init).unwrap();
    let server = |name: &str, tier: bool| {
        let orders = NamespaceSettings {
            store: Some(StoreUrl::new(url.as_str())),
            secret_file: Some(at("secret")),
            tier: Some(tier),
            ..NamespaceSettings::default()
        };
        let (factory, server) = configured(Settings {
            data_dir: Some(at(name)),
            namespaces: [("orders".to_owned(), orders)].into(),
            ..Settings::default()
        });
        factory.make_data_dir().unwrap();
        (factory.build("orders").unwrap(), server)
    };
    let (generator, first) = server("a", true);
    let lease = one(acquire(&first, 1, 60));
    for _ in 0..1000 {
        let parts = generator.inspect(generator.take().unwrap()).unwrap();
        assert!(!lease.nodes.contains(&parts.node), "{parts:?}");
    }
    for (name, tier) in [("b", true), ("c", false)] {
        let (_, other) = server(name, tier);
        let next = one(other.acquire("orders", &having(&lease.text)));
        assert_ne!(next.nodes, lease.nodes);
        assert!(other.release(&next.text).is_ok());
    }
    let (_, last) = server("d", false);
    assert!(
        last.release(&one(last.renew(&lease.text, seconds(90))).text)
            .is_ok()
    );
}

#[test]
fn blocks_are_given_away_at_a_limited_rate() {
    let mut site = Site::new(3);
    site.limits.leases_per_minute = 4;
    let server = site.server();
    let began = Instant::now();
    refused!(acquire(&server, 5, 60), Refusal::Invalid(_));
    assert_eq!(acquire(&server, 4, 60).unwrap().leases.len(), 4);
    let refused = acquire(&server, 4, 60);
    let Err(Refusal::OverBudget(wait)) = refused else {
        panic!("{refused:?}")
    };
    // The budget has its own clock, on which some of the minute may have passed by now.
    let least = seconds(59).saturating_sub(began.elapsed());
    assert!(wait <= seconds(60) && wait > least, "{wait:?}");
}
