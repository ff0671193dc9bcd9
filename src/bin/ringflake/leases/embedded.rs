//! The store in the data directory.
//!
//! Its namespaces have a name of their own for each layout and for plain IDs, and
//! blocks of one node, so that `--nodes` means what it says. A namespace is
//! initialised at its first use; what is known of the time before is decided as
//! [`data_dir`](crate::data_dir) says.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use ringflake::lease::{
    Acquire, Block, Epoch, Floor, Grant, History, Init, LeaseStore, Listing, Namespace,
    NamespaceError, OpenOptions, Renew, SqliteStore, StoreError, StoreLimits, StoreRecord,
    StoreReport,
};
use ringflake::{Clock, Layout, SystemClock};

use crate::data_dir::{DataDir, Past};
use crate::report::say;
use crate::secret::Key;

/// The namespace of the IDs of this layout and key.
pub(super) fn namespace(layout: &Layout, key: &Key) -> Result<Namespace, NamespaceError> {
    let name = name(layout, matches!(key, Key::Plain));
    let fingerprint = key.fingerprint(&name);
    Namespace::new(name, layout, fingerprint)?.with_block_bits(0)
}

/// The layout's text, in the characters that a name may have. No two layouts
/// share one: the text has the same parts in the same order for all of them, and
/// what separates two parts is never dropped.
fn name(layout: &Layout, plain: bool) -> String {
    let text = layout.to_string().to_ascii_lowercase();
    let mut name: String = text
        .chars()
        .map(|c| match c {
            '@' => '_',
            ':' => '.',
            'a'..='z' | '0'..='9' | '-' | '.' => c,
            _ => '-',
        })
        .collect();
    if plain {
        name += "-plain";
    }
    name
}

/// The limits of a namespace. A history that is lost costs `failover` and one tick
/// of waiting, and IDs that lie `horizon` ahead of the clock; nodes whose run was
/// killed come free after `horizon` at the latest. There is no server that could be
/// away for longer, nor a second primary, and all processes share one clock.
pub(crate) fn limits(layout: &Layout) -> StoreLimits {
    const HORIZON: Duration = Duration::from_secs(120);
    let ten_ticks = Duration::from_millis(layout.tick_ms().saturating_mul(10));
    StoreLimits::default()
        .with_horizon(HORIZON.max(ten_ticks).min(StoreLimits::MAX))
        .with_skew(Duration::from_secs(1))
        .with_failover(Duration::from_secs(2))
}

/// Makes the file before a namespace is initialised by hand. What its maker says of
/// the past holds for that namespace alone.
pub(crate) fn begin_by_hand(data_dir: &DataDir) -> Result<()> {
    let lock = data_dir.lock()?;
    lock.begin(lock.past()?)
}

/// The file in the data directory, which makes itself, gives out nodes that were
/// asked for, and is told of all releases at once.
#[derive(Debug)]
pub(super) struct Embedded {
    store: SqliteStore,
    data_dir: DataDir,
    /// The nodes that may be had; all if none are named.
    nodes: Option<Range<u64>>,
    /// Released, but the file was not told yet.
    released: Vec<(Block, Epoch)>,
    namespace: Namespace,
}

impl Embedded {
    /// The store in `data_dir`. Makes the directory, and no file.
    pub(super) fn new(
        data_dir: &DataDir,
        options: &OpenOptions,
        namespace: &Namespace,
        nodes: Option<Range<u64>>,
    ) -> Result<Self> {
        data_dir.create()?;
        Ok(Self {
            store: open(data_dir, options)?,
            data_dir: data_dir.clone(),
            nodes,
            released: Vec::new(),
            namespace: namespace.clone(),
        })
    }

    fn try_acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        match &self.nodes {
            Some(nodes) => self.store.acquire_within(namespace, acquire, nodes.clone()),
            None => self.store.acquire(namespace, acquire),
        }
    }

    /// Initialises a namespace that the file lacks. Several processes may come to
    /// this at once; one of them does it.
    fn begin(&mut self, namespace: &Namespace) -> Result<(), StoreError> {
        let untouched = |error: anyhow::Error| StoreError::Unavailable {
            source: error.into(),
        };
        let lock = self.data_dir.lock().map_err(untouched)?;
        let past = lock.past().map_err(untouched)?;
        let mut history = match past {
            Past::None | Past::Recorded => History::New,
            Past::Lost => History::Unknown,
            Past::AnothersCopy => return Err(copied_directory(self.store.path())),
        };
        lock.begin(past).map_err(untouched)?;
        let mut made = self.init_with(namespace, history);
        if let (History::New, Err(StoreError::Copied { .. })) = (history, &made) {
            // The file had the namespace once, and was written over.
            history = History::Unknown;
            made = self.init_with(namespace, history);
        }
        match made {
            Ok(_) if history == History::Unknown => {
                say(format_args!(
                    "{} has no record of the IDs that may have been made before: those made now \
                     begin {} s ahead of the clock, above all of them",
                    self.store.path().display(),
                    limits(namespace.layout()).horizon().as_secs()
                ));
                Ok(())
            }
            Ok(_) | Err(StoreError::AlreadyInitialised { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn init_with(
        &mut self,
        namespace: &Namespace,
        history: History,
    ) -> Result<StoreRecord, StoreError> {
        let limits = limits(namespace.layout());
        let init = Init::new(history, SystemClock.unix_ms()).with_limits(limits);
        self.store.init(namespace, &init)
    }
}

/// What is said of a directory that is a copy, for want of a record to say it.
const COPIED: &str = "a directory with a leases.lock of its own";

fn copied_directory(store: &Path) -> StoreError {
    StoreError::Copied {
        store: format!("the directory of {}", store.display()),
        recorded: COPIED.to_owned(),
        found: "another".to_owned(),
    }
}

/// Whether a refusal is about the directory rather than about the file in it.
pub(super) fn is_about_directory(refusal: &StoreError) -> bool {
    matches!(refusal, StoreError::Copied { recorded, .. } if recorded == COPIED)
}

/// The store in `data_dir`, as it is.
pub(super) fn open(data_dir: &DataDir, options: &OpenOptions) -> Result<SqliteStore> {
    /// Twenty processes on a slow disk take turns in less.
    const TIMEOUT: Duration = Duration::from_secs(30);
    let options = options.clone().timeout(TIMEOUT);
    Ok(SqliteStore::new(data_dir.leases()?, &options)?)
}

impl LeaseStore for Embedded {
    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        match self.try_acquire(namespace, acquire) {
            Err(StoreError::NotInitialised { .. }) => {
                self.begin(namespace)?;
                let mut acquire = acquire.clone();
                // Others may have been first, and slow.
                acquire.now_unix_ms = SystemClock.unix_ms();
                self.try_acquire(namespace, &acquire)
            }
            answer => answer,
        }
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        self.store.renew(namespace, renew)
    }

    /// Only notes it: a release is informational, and a run that ends releases
    /// many blocks, one after the other.
    fn release(
        &mut self,
        _namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.released.push((block, epoch));
        Ok(())
    }

    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        self.store.init(namespace, init)
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        self.store.list(namespace)
    }

    fn bump_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        self.store.bump_floor(namespace, floor, now_unix_ms)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        self.store.check(namespace, now_unix_ms)
    }
}

impl Drop for Embedded {
    /// Tells the file what was released, in one transaction.
    fn drop(&mut self) {
        if !self.released.is_empty() {
            // A courtesy: the blocks come free by themselves.
            let _ = self.store.release_all(&self.namespace, &self.released);
        }
    }
}

#[cfg(test)]
mod tests {
    use ringflake::lease::Fingerprint;

    use super::*;

    #[test]
    fn each_layout_has_a_name_of_its_own() {
        let layouts = [
            "randflake",
            "baidu",
            "baidu-31-23-9",
            "twitter",
            "sonyflake-sized",
            "js-safe",
            "30/17/17@2024-10-27T03:33:20Z/2s",
            "30/17/17@2024-10-27T03:33:20Z/2ms",
            "30/17/17@2024-10-27T03:33:20.001Z/2ms",
            "3/17/17@2024-10-27T03:33:20Z/1s",
        ];
        let mut names = Vec::new();
        for layout in layouts {
            for plain in [false, true] {
                names.push(name(&layout.parse().unwrap(), plain));
            }
        }
        assert_eq!(names[0], "30-17-17_2024-10-27t03.33.20z-1s");
        let total = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), total, "{names:?}");
    }

    #[test]
    fn the_longest_name_is_one() {
        let text = "1/31/32@9999-12-31T23:59:59.999Z/9223000000000000001ms";
        let layout: Layout = text.parse().unwrap();
        let name = name(&layout, true);
        assert_eq!(name.len(), text.len() + "-plain".len());
        Namespace::new(name, &layout, Fingerprint::PLAIN).unwrap();
    }

    #[test]
    fn the_limits_suit_every_tick() {
        for tick in ["1ms", "1s", "3600s", "31622400s"] {
            let layout: Layout = format!("20/17/17@2024-10-27T03:33:20Z/{tick}")
                .parse()
                .unwrap();
            let directory = tempfile::tempdir().unwrap();
            let options = OpenOptions::new().accept_best_effort(true);
            let mut store = SqliteStore::new(directory.path().join("leases.db"), &options).unwrap();
            let space = namespace(&layout, &Key::Plain).unwrap();
            let init = Init::new(History::New, SystemClock.unix_ms()).with_limits(limits(&layout));
            store.init(&space, &init).unwrap();
        }
    }
}
