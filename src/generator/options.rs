//! The options that both builders share.

/// Adds the options about the key to a builder with a field `setup`.
macro_rules! cipher_options {
    () => {
        /// Encrypts the IDs with `secret`. Instead of [`plain`](Self::plain).
        pub fn secret(mut self, secret: impl AsRef<crate::cipher::Secret>) -> Self {
            self.setup.secret = Some(secret.as_ref().clone());
            self
        }

        /// Leaves the IDs as they are: sorted by tick, and readable by anybody. Instead of
        /// [`secret`](Self::secret).
        pub fn plain(mut self) -> Self {
            self.setup.plain = true;
            self
        }

        /// The width of the IDs: [`IdWidth::Full`](crate::IdWidth::Full) unless given. The
        /// layout must not have more bits.
        ///
        /// Encrypted IDs of 63 bits are positive as signed numbers; in runs of 1,024 one takes
        /// some three times as long to make. Those of 53 bits are exact in JavaScript, need the
        /// feature `js-safe`, and take 0.7 us each. Plain IDs are as they are, and have as many
        /// bits as the layout.
        ///
        /// All generators that share a secret, a namespace or a `local` name must have the same
        /// width, for ever. See [one secret, one width](crate::IdWidth#one-secret-one-width).
        ///
        /// # Examples
        ///
        /// ```
        /// use ringflake::{DirectGenerator, IdWidth, Layout, Secret, StaticLease};
        ///
        /// let ids = DirectGenerator::builder(Layout::POSITIVE)
        ///     .secret(Secret::from_bytes([7; 16]))
        ///     .id_width(IdWidth::Positive)
        ///     .lease(StaticLease::assume_unique(Layout::POSITIVE, 7..8))
        ///     .build()?;
        /// assert!(ids.take()?.to_i64() >= 0);
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn id_width(mut self, width: crate::cipher::IdWidth) -> Self {
            self.setup.id_width = Some(width);
            self
        }
    };
}

/// Adds the options about a namespace of a store to a builder with a field `setup`.
macro_rules! namespace_options {
    () => {
        /// The name of the ID space that the store divides, as it was
        /// initialised. All programs that share it must have the same layout
        /// and secret.
        pub fn namespace(mut self, name: impl Into<String>) -> Self {
            self.setup.lease_options.namespace = Some(name.into());
            self
        }

        /// The binary logarithm of the nodes in a block, as the namespace was
        /// initialised: 5 unless given.
        pub fn block_bits(mut self, bits: u32) -> Self {
            self.setup.lease_options.block_bits = Some(bits);
            self
        }

        /// The name under which the store lists the blocks; by default the
        /// machine's name, if it is known, and the process number.
        pub fn holder(mut self, holder: crate::lease::Holder) -> Self {
            self.setup.lease_options.holder = Some(holder);
            self
        }
    };
}

/// Adds the common options to a builder with a field `setup`.
macro_rules! shared_options {
    () => {
        crate::generator::options::cipher_options!();
        crate::generator::options::namespace_options!();

        /// The nodes and ticks to make IDs from: a [`Lease`](crate::Lease), or a
        /// [`StaticLease`](crate::StaticLease) that begins when this is built.
        /// Instead of [`lease_store`](Self::lease_store).
        pub fn lease(
            mut self,
            lease: impl Into<crate::generator::lease_options::LeaseSource>,
        ) -> Self {
            self.setup.lease = Some(lease.into());
            self
        }

        /// Leases blocks of nodes from `store`, and keeps them: a thread renews
        /// them well before they end, replaces those that are lost and takes more
        /// when IDs are borrowed faster than the clock moves. Takes never wait for
        /// it. Needs a [`namespace`](Self::namespace).
        ///
        /// [`build`](Self::build) asks the store for the first blocks, and waits for
        /// them: see [`first_lease_within`](Self::first_lease_within). Dropping the
        /// generator releases them, and waits for that for a second at most.
        ///
        /// Generators of one process whose stores are opened by the same URL and options
        /// share the first one's thread and connection, and drop the others unused: a
        /// hundred of them are one to the server. They renew together, and share nothing
        /// else: each has a manager, leases and a namespace of its own. A store without a
        /// [`key`](crate::LeaseStore::key) is kept by its generator alone.
        ///
        /// # Examples
        ///
        /// ```
        /// use std::sync::Arc;
        /// use std::time::Duration;
        /// use ringflake::lease::{Fingerprint, History, Init, LeaseStore, MemoryStore, Namespace};
        /// use ringflake::{CachedGenerator, Clock, Layout, SystemClock};
        ///
        /// // Once for all: `ringflake store init` does the same.
        /// let mut store = MemoryStore::new(Arc::new(SystemClock));
        /// let orders = Namespace::new("orders", &Layout::RANDFLAKE, Fingerprint::PLAIN)?;
        /// store.init(&orders, &Init::new(History::New, SystemClock.unix_ms()))?;
        ///
        /// let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        ///     .plain()
        ///     .lease_store(store)
        ///     .namespace("orders")
        ///     .blocks(2)
        ///     .lease_duration(Duration::from_secs(300))
        ///     .build()?;
        /// let node = ids.inspect(ids.take()?)?.node;
        /// assert!(ids.leases().iter().any(|lease| lease.nodes().contains(&node)));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn lease_store(mut self, store: impl crate::lease::LeaseStore + 'static) -> Self {
            self.setup.store = Some(Box::new(store));
            self
        }

        /// Leases, namespace and secret from a data directory on this machine, made
        /// at their first use: see [`Local`](crate::Local). Instead of
        /// [`lease_store`](Self::lease_store), [`namespace`](Self::namespace),
        /// [`block_bits`](Self::block_bits) and [`secret`](Self::secret). Needs the
        /// feature `sqlite`.
        ///
        /// With [`plain`](Self::plain) the IDs are not encrypted, and have a
        /// namespace of their own. The borrow limit of a ring is as long as leases
        /// reach unless one is given.
        #[cfg(feature = "sqlite")]
        pub fn local(mut self, local: crate::local::Local) -> Self {
            self.setup.local = Some(local);
            self
        }

        /// Initialises the namespace with this history if the store has none of
        /// this name when [`build`](Self::build) asks for the first lease. Of
        /// several processes one does it, and all go on. Limits are those of
        /// [`StoreLimits::default`](crate::lease::StoreLimits).
        ///
        /// With [`History::Unknown`](crate::lease::History) leases begin above all possible earlier
        /// grants, after the failover time: a minute. Until then `build` fails with
        /// [`StoreError::FloorAhead`](crate::lease::StoreError::FloorAhead), which says when to try
        /// again; it waits for the last ten seconds, or as long as
        /// [`first_lease_within`](Self::first_lease_within) says.
        ///
        /// A store that can't be reached is initialised when it can. One that has shown the
        /// namespace is not: if that is gone then, it was lost. If the outcome of an
        /// initialisation is unknown and the namespace is not there afterwards, it is
        /// initialised with an unknown history.
        ///
        /// [`History::New`](crate::lease::History) is your assertion, at each start of
        /// the program, that a missing namespace never existed;
        /// [`History::Unused`](crate::lease::History), that neither did any ID of its layout
        /// and secret, so that imports can have the time before. Both are refused if the
        /// store may have lost it: a store at best effort, one in memory, and a SQLite
        /// file that was removed, copied, or put there by others. A server can't know
        /// of its losses through a restored backup or a dropped table, nor SQLite that
        /// its file was removed together with the note in `PATH.lock`. Don't let
        /// programs with this option start after such a loss before the namespace is
        /// initialised by hand, with an unknown history and limits no shorter than its old ones.
        ///
        /// # Examples
        ///
        /// ```no_run
        /// use ringflake::lease::{History, OpenOptions, open};
        /// use ringflake::{CachedGenerator, Layout, Secret};
        ///
        /// let store = open("postgres://ids@db.example.com/ids", &OpenOptions::new())?;
        /// let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        ///     .secret(Secret::from_file("ringflake.key")?)
        ///     .lease_store(store)
        ///     .namespace("orders")
        ///     .init_if_new(History::New)
        ///     .build()?;
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn init_if_new(mut self, history: crate::lease::History) -> Self {
            self.setup.lease_options.init_if_new = Some(history);
            self
        }

        /// For how long [`build`](Self::build) waits for the first lease where the store
        /// can't be reached, has no block free, or waits out grants that may have been
        /// lost: 10 s unless given, and any time is allowed. It asks again after a
        /// quarter of a second, then less often, and every two seconds in the end; or
        /// once, when the store has said that leases begin within that time. It ends at
        /// the latest a time-out of the store later, with
        /// [`BuildError::NoLeaseYet`](crate::BuildError::NoLeaseYet). An error that
        /// waiting does not help is returned at once. With `local` it is also
        /// how long other processes in the data directory are waited for: at least a second,
        /// and 30 s unless given.
        ///
        /// A program that should start without its store is built with
        /// [`build_detached`](Self::build_detached), for which this has no meaning.
        pub fn first_lease_within(mut self, patience: std::time::Duration) -> Self {
            self.setup.lease_options.first_lease_within = Some(patience);
            self
        }

        /// Calls `hook` with the store's refusal each time that [`build`](Self::build) is
        /// about to ask for the first lease again, so that a program can report the reason
        /// of the wait; and with the reason if another process keeps a data directory locked
        /// for more than a second. A panic in it is caught.
        ///
        /// It is called in the thread that keeps the leases, which other generators may
        /// share, or, about a data directory, in the one that calls `build`. It must neither
        /// block nor fork.
        pub fn on_lease_wait_hook(
            mut self,
            hook: impl Fn(&crate::lease::StoreError) + Send + Sync + 'static,
        ) -> Self {
            self.setup.lease_options.wait_hook = Some(crate::lease::WaitHook::new(hook));
            self
        }

        /// How far ahead of the clock the first leases reach, where that is to be less than
        /// [`lease_duration`](Self::lease_duration): from more than nothing to that,
        /// rounded up to whole ticks. The first renewal, after a tenth to three twentieths
        /// of this time, brings them to the full length; leases that start in the future, as
        /// above a floor that was raised, grow once the clock comes near.
        ///
        /// For a program that often runs for a moment: one that is killed in that time
        /// leaves its nodes held for no longer than this.
        pub fn first_lease_duration(mut self, duration: std::time::Duration) -> Self {
            self.setup.lease_options.first_lease_duration = Some(duration);
            self
        }

        /// How many blocks are held at all times, from 1 (the default) to
        /// [`LeasePlan::MAX_BLOCKS`](crate::lease::LeasePlan::MAX_BLOCKS). Each
        /// gives `2^block_bits x 2^sequence_bits` IDs a tick without borrowing.
        pub fn blocks(mut self, count: u32) -> Self {
            self.setup.lease_options.blocks = Some(count);
            self
        }

        /// The maximum of blocks that are held when borrowing grows; not fewer
        /// than [`blocks`](Self::blocks), and by default eight times as many. The
        /// additional blocks are let go when they are no longer needed. A
        /// generator that does not borrow does not widen.
        pub fn widen_to(mut self, count: u32) -> Self {
            self.setup.lease_options.widen_to = Some(count);
            self
        }

        /// How far ahead of the clock leases are kept: the time that IDs flow on
        /// without the store, 600 s by default. Bounded by the namespace's
        /// horizon.
        ///
        /// Once the clock has passed the end of every lease, no ID is served until one is
        /// in force again. The generator notices the end within 250 ms, but not while the
        /// store is being asked. Until then takes go on with IDs that were made before it.
        pub fn lease_duration(mut self, lease_duration: std::time::Duration) -> Self {
            self.setup.lease_options.lease_duration = Some(lease_duration);
            self
        }

        /// Another clock than the system's. By default, on Linux, layouts with ticks of 100 ms or
        /// more read the time of the last timer interrupt, which is cheaper and lags by up to 10 ms;
        /// all others read [`SystemClock`](crate::SystemClock).
        pub fn clock(mut self, clock: impl crate::clock::Clock + 'static) -> Self {
            self.setup.clock = Some(std::sync::Arc::new(clock));
            self
        }
    };
}

pub(super) use {cipher_options, namespace_options, shared_options};
