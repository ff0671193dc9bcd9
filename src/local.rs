//! IDs on one machine without any set-up: leases and secrets in a data directory.
//!
//! A program needs only [`local`](crate::local()). The data directory holds one file
//! of leases for all namespaces, a secret for each namespace, and a lock:
//!
//! | file | content |
//! |---|---|
//! | `leases.db` | the [`SqliteStore`](crate::lease::SqliteStore) with the record of every namespace |
//! | `leases.db.lock` | locked while one of the others is made; a note on the past |
//! | `NAME.secret` | the secret of the namespace `NAME` |
//! | `secret` | the secret of the command line, for namespaces without a name |
//!
//! # States
//! Of one namespace in one directory. Each arrow is taken by one process, which
//! holds the lock; all of them together are one hold of it.
//!
//! ```text
//! nothing --note--> noted --leases.db, noted--> begun --mark, NAME.secret--> keyed --record--> on record
//!                     |           |               |              |             |
//!                     v crash     v crash         v crash        v crash       v crash
//!                past: none    past: lost   past: recorded   a mark of    past: recorded
//!                                                              nothing
//! ```
//! A process that finds the secret readable and the namespace on record takes no
//! lock. From there on the store's own rules hold (see [`lease`](crate::lease)).
//!
//! # Why no ID comes twice
//! 1. An ID is issued only under a grant of `leases.db`, to a namespace on record.
//! 2. `leases.db` never grants a rectangle of one namespace twice, and a copy of it
//!    grants nothing. So two equal IDs of one secret need two records.
//! 3. A secret that is not on record makes IDs only if the note has its mark: it was
//!    drawn here, and no other directory takes it unless somebody vouches for it.
//!    Plain IDs have no secret; those of two directories are the same.
//! 4. A record begins with [`History::Unused`](crate::lease::History) if its secret was drawn
//!    in the same hold of the lock, and with [`History::New`](crate::lease::History) only if
//!    the note says that every record ever made in this directory is in `leases.db` (none or
//!    recorded, in the table of `lease/store/backends/sqlite/past.rs`). In every other case it begins
//!    with [`History::Unknown`](crate::lease::History), above all that may have been issued
//!    from here.
//! 5. A secret has one namespace, and so one layout and one width of IDs. Each named namespace has a secret
//!    of its own, drawn at random. The nameless ones are chosen by the record: the
//!    one whose fingerprint is the secret's, if there is one. Only if there is none
//!    is one made, under the lock, after the record was read once more; the store
//!    refuses it if another has the secret.
//! 6. A secret that is used with a store on the command line no longer belongs here:
//!    the note says so, and rule 3 refuses it. One that is on record here is refused
//!    for a store.
//!
//! A crash leaves a prefix of the arrows. Each prefix is a state of that table, or
//! a secret with its mark and without a record, from which no ID was made.
//!
//! Rule 5 rests on `leases.db`. If that is lost, or is replaced by an older state
//! of itself, the note says so from then on and rule 4 gives every later record an
//! unknown history, whatever name it gets.
//!
//! # What it rests on
//! * Nobody vouches, with `ringflake store init --history new`, for a secret that makes IDs
//!   elsewhere. A secret that was drawn here is used elsewhere only through a store that the
//!   command line knows of here. Reading IDs elsewhere is fine.
//! * The directory lies on a local disk; see
//!   [`SqliteStore`](crate::lease::SqliteStore).
//! * A virtual machine that is resumed from a snapshot with its memory loses records
//!   unnoticed: run `ringflake store raise-floor --over-lost-grants` then.

mod definition;
mod directory;
mod error;
mod making;
mod names;
mod secret;
mod space;
mod store;

pub use self::definition::Local;
pub use self::directory::DataDir;
pub use self::error::LocalError;
pub use self::space::LocalSpace;
pub use self::store::LocalStore;
