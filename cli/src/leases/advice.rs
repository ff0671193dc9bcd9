//! What to do about a store's refusal, in the words of the command line.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use ringflake::lease::{Fence, Fingerprint, Obstacle, OpenOptions, SqliteStore, StoreError};
use ringflake::local;
use ringflake::shell_quoted as quoted;
use ringflake::{IdWidth, Layout, LocalError, Secret};

use crate::args::{KeyArgs, has_store_variable};
use crate::data_dir::DataDir;
use crate::secret;
use crate::words;

/// A run does not wait for so long. As in the help of the library's `StoreError`.
const FAR_AHEAD: Duration = Duration::from_secs(3600);

/// The layout and the key, as a command line names them.
pub(super) fn words_of(layout: &Layout, key: &KeyArgs) -> String {
    let mut words = String::new();
    if *layout != Layout::RANDFLAKE {
        words += " --layout ";
        words += &layout
            .name()
            .map_or_else(|| layout.to_string(), str::to_owned);
    }
    if key.plain {
        words += " --plain";
    } else if let Some(path) = &key.secret_file {
        words += &format!(" --secret-file {}", quoted(path.display()));
    }
    if key.id_width != IdWidth::Full {
        words += &width_of(key);
    }
    words
}

/// In front of a command about a data directory. With the variable set, that was read for the
/// secret of a store alone.
fn no_store() -> &'static str {
    match has_store_variable() {
        true => "RINGFLAKE_STORE= ",
        false => "",
    }
}

fn width_of(key: &KeyArgs) -> String {
    format!(" --id-width {}", key.id_width)
}

/// What to do about a refusal, with the commands and options of the command line.
#[derive(Debug)]
pub(super) struct Advice {
    /// What names the target on a command line.
    words: String,
    /// The words behind `raise-floor --over-lost-grants` that adopt a copy: those of the target,
    /// or `--all` and the file's place.
    adopted: String,
    /// How to give the copy's URL, if it is not the target's.
    adopted_url: &'static str,
    is_embedded: bool,
    is_file: bool,
    key: KeyArgs,
    data_dir: DataDir,
}

impl Advice {
    pub(super) fn new(key: &KeyArgs, data_dir: &DataDir, words: String, is_embedded: bool) -> Self {
        Self {
            adopted: words.clone(),
            adopted_url: "",
            words,
            is_embedded,
            is_file: is_embedded,
            key: key.clone(),
            data_dir: data_dir.clone(),
        }
    }

    /// For a file, named by these words, that holds every namespace it knows by itself.
    pub(super) fn of_file(mut self, file: &str) -> Self {
        self.adopted = format!(" --all{file}");
        // Of a tier, either file can be meant.
        self.is_file = self.adopted_url.is_empty();
        self
    }

    /// For a tier, whose copy is its upstream store: a copied file of its own makes it a new one.
    pub(super) fn of_tier(mut self, is_from_environment: bool) -> Self {
        self.adopted_url = match is_from_environment {
            true => ", with RINGFLAKE_STORE set to the URL after ?upstream=",
            false => ", with the URL after ?upstream=",
        };
        self
    }

    /// The command that adopts a copy.
    fn adoption(&self) -> String {
        format!(
            "'ringflake store raise-floor --over-lost-grants{}'{}",
            self.adopted, self.adopted_url
        )
    }

    pub(super) fn obstacle(&self, obstacle: &Obstacle) -> String {
        match obstacle {
            Obstacle::Copied => format!("{obstacle}: {}", self.adoption()),
            Obstacle::Exhausted { quarantined: 1.. } => {
                let words = &self.words;
                format!(
                    "{obstacle}: 'ringflake store check{words}' lists them, and 'ringflake store \
                     repair --block N{words}' repairs one"
                )
            }
            _ => obstacle.to_string(),
        }
    }

    pub(super) fn store(&self, error: Arc<StoreError>) -> anyhow::Error {
        let help = self.help(&error);
        let text = words::lines(&*error, error.note(), help.as_deref().or(error.help()));
        Explained { text, error }.into()
    }

    pub(super) fn local(&self, error: LocalError) -> anyhow::Error {
        let words = &self.words;
        let help = match &error {
            LocalError::Copied { directory } => format!(
                "go back to the original\n\
                 help: if nobody can use the original any more, and the clock is right, run \
                 '{}ringflake store raise-floor --over-lost-grants --all --data-dir {}'",
                no_store(),
                quoted(directory.display())
            ),
            LocalError::NoSecret { .. } => format!(
                "to create it, run 'ringflake generate{words}'\n\
                 help: to read IDs that were issued from another directory, give --data-dir"
            ),
            LocalError::OtherWidth {
                recorded, given, ..
            } => format!(
                "give --id-width {recorded}\n\
                 help: for {} bits, give another --namespace, which has its own secret, and keep \
                 its IDs apart from the old ones",
                given.bits()
            ),
            LocalError::SecretBrought { path, .. } => format!(
                "if programs elsewhere use {} with a store, give that store with --store URL\n\
                 help: if all of them have stopped for good, and the clock is right, run once \
                 'ringflake store init --history unknown --horizon 11min --failover 1min{words}', \
                 or with the limits of that store, if longer\n\
                 help: or, if no ID with a present or future time was issued with it, and nobody \
                 else uses it, run 'ringflake store init --history new{words}'",
                match path {
                    Some(_) => "it".to_owned(),
                    None => secret::source(&self.key, &self.data_dir),
                }
            ),
            LocalError::SecretUsed { .. } => "create another secret with 'ringflake keygen --out \
                 FILE', and give --secret-file FILE\n\
                 help: to move to the store for good, stop all programs that use the directory, \
                 move the directory away, and give its secret with --secret-file; if it has other \
                 namespaces, set RINGFLAKE_DATA_DIR to the moved directory for their programs \
                 before they start again, since a new directory gets new secrets"
                .to_owned(),
            _ => {
                return match error {
                    LocalError::Store(error) => self.store(error.into()),
                    error => error.into(),
                };
            }
        };
        anyhow::anyhow!(words::lines(&error, error.note(), Some(&help)))
    }

    /// Refuses a secret for a store that makes IDs from the data directory.
    pub(super) fn refuse_used(&self, secret: Option<&Secret>, url: &str) -> Result<()> {
        self.beside(secret, url, local::DataDir::refuse_used)
    }

    /// Sees that no IDs are made from the data directory with the secret of a store.
    pub(super) fn give_away(&self, secret: Option<&Secret>, url: &str) -> Result<()> {
        self.beside(secret, url, local::DataDir::give_away)
    }

    /// Does something about the data directory, unless the store is the one in there.
    fn beside(
        &self,
        secret: Option<&Secret>,
        url: &str,
        work: impl FnOnce(&local::DataDir, &Secret) -> Result<(), LocalError>,
    ) -> Result<()> {
        let (Some(secret), Some(directory)) = (secret, self.data_dir.try_find()) else {
            return Ok(());
        };
        if let Ok(store) = SqliteStore::from_url(url, &OpenOptions::new())
            && let (Ok(store), Ok(kept)) = (
                store.path().canonicalize(),
                directory.leases().canonicalize(),
            )
            && store == kept
        {
            return Ok(());
        }
        match work(&directory, secret) {
            // This user makes no IDs there.
            Err(LocalError::Directory { source, .. })
                if source.kind() == io::ErrorKind::PermissionDenied
                    || source.kind() == io::ErrorKind::ReadOnlyFilesystem =>
            {
                Ok(())
            }
            Err(LocalError::Store(error @ StoreError::Corrupt { .. })) => {
                let path = directory.path();
                let words = format!(" --data-dir {} --namespace NAME", quoted(path.display()));
                let its = Self::new(&self.key, &self.data_dir, words, true);
                let error = its.store(error.into());
                let text = format!(
                    "the data directory {} can't be searched for the secret",
                    path.display()
                );
                Err(error.context(text))
            }
            outcome => outcome.map_err(|error| self.local(error)),
        }
    }

    /// The width of IDs for which the secret at hand is on record.
    fn other_width(
        &self,
        namespace: &str,
        recorded: Fingerprint,
        offered: Fingerprint,
    ) -> Option<IdWidth> {
        let file = |print| secret::file_with(print, namespace, &self.key, &self.data_dir);
        let ((on_record, width), (at_hand, _)) = file(recorded).zip(file(offered))?;
        (on_record == at_hand).then_some(width)
    }

    /// What helps against another secret or another width on record.
    fn other_fingerprint(
        &self,
        namespace: &str,
        recorded: Fingerprint,
        offered: Fingerprint,
    ) -> String {
        if let Some(width) = self.other_width(namespace, recorded, offered) {
            return format!(
                "its IDs have {} bits: give --id-width {width}; for another width, give another \
                 --namespace with another secret, and keep its IDs apart from these",
                width.bits()
            );
        }
        format!(
            "{}\nhelp: to go on with {}, give another {}, and keep its IDs apart from the old ones",
            self.other_secret(namespace, recorded),
            secret::source(&self.key, &self.data_dir),
            if self.is_embedded {
                "--data-dir"
            } else {
                "--namespace"
            }
        )
    }

    fn other_secret(&self, namespace: &str, recorded: Fingerprint) -> String {
        if recorded == Fingerprint::PLAIN {
            return "its IDs are plain: give --plain".to_owned();
        }
        match secret::file_with(recorded, namespace, &self.key, &self.data_dir) {
            Some((path, width)) if width != self.key.id_width => format!(
                "give --secret-file {} --id-width {width}",
                quoted(path.display())
            ),
            Some((path, _)) => format!("give --secret-file {}", quoted(path.display())),
            None => "give the secret that it belongs to with --secret-file".to_owned(),
        }
    }

    /// The commands and options that help; none where the store's own words will do.
    fn help(&self, error: &StoreError) -> Option<String> {
        let words = &self.words;
        Some(match error {
            StoreError::NotInitialised { .. } => format!(
                "if no ID with a present or future time was issued with its layout and secret, \
                 run 'ringflake store init --history new{words}'\n\
                 help: else, once the clock is right, run the same with '--history unknown' and \
                 the old --horizon and --failover, or longer"
            ),
            StoreError::AlreadyInitialised { .. } => format!(
                "if it was restored, or another store was used meanwhile: stop all processes, and \
                 once the clock is right, run 'ringflake store raise-floor \
                 --over-lost-grants{words}'\n\
                 help: else use it; 'ringflake store check{words}' shows its state"
            ),
            StoreError::FingerprintMismatch {
                namespace,
                recorded,
                offered,
            } => self.other_fingerprint(namespace, *recorded, *offered),
            StoreError::LayoutMismatch { .. } => "give the same --layout and --block-bits\n\
                 help: for another layout, give another --namespace with another secret, and \
                 keep its IDs apart from the old ones"
                .to_owned(),
            StoreError::SecretInUse { namespace, other } if namespace == other => format!(
                "once the clock is right, run 'ringflake store init --history unknown{} --id-width \
                 WIDTH' with the --id-width and the --layout that it had, and the old --horizon and \
                 --failover, or longer times\n\
                 help: or create another secret with 'ringflake keygen --out FILE', and give \
                 --secret-file FILE",
                // The given width is another one.
                words.replace(&width_of(&self.key), "")
            ),
            StoreError::SecretInUse { .. } => format!(
                "create another secret with 'ringflake keygen --out FILE', and give \
                 --secret-file FILE\n\
                 help: {}",
                if self.is_embedded {
                    "or give another --namespace, which has its own secret"
                } else {
                    "or use the other --namespace"
                }
            ),
            StoreError::HistoryUnknown { .. } => format!(
                "once the clock is right, run 'ringflake store init --history unknown{words}' with \
                 the old --horizon and --failover, or longer\n\
                 help: if no ID with a present or future time was issued with its layout and \
                 secret, run the same with '--history new'"
            ),
            StoreError::FloorTooFar { tick, .. } => format!(
                "choose an earlier tick\n\
                 help: if so long a pause is intended, run 'ringflake store raise-floor --to-tick \
                 {tick} --force{words}'"
            ),
            StoreError::NotQuarantined { .. } => {
                format!("'ringflake store check{words}' lists the quarantined blocks")
            }
            // Of a release: nothing else that a command does names a lease.
            StoreError::Fenced {
                fence: Fence::NeverGranted | Fence::Epoch { .. },
                ..
            } => format!("'ringflake store ls --all{words}' shows the blocks and their epochs"),
            StoreError::Fenced {
                fence: Fence::Quarantined { .. },
                block,
            } => format!(
                "once the clock is right, run 'ringflake store repair --block {block}{words}'"
            ),
            StoreError::NotDurable { .. } => {
                "change that setting, or accept the risk with --best-effort".to_owned()
            }
            StoreError::Copied { .. } => format!(
                "go back to the original\n\
                 help: if nobody can use the original any more, and the clock is right, run {}",
                self.adoption()
            ),
            StoreError::FloorAhead { retry_after, .. } if *retry_after > FAR_AHEAD => format!(
                "if that clock is behind, set it right\n\
                 help: otherwise wait until then\n\
                 help: only if it is right and no ID was issued with a time so far ahead: \
                 stop all processes, {}, run 'ringflake store init --history unknown{words}' with \
                 the old --horizon and --failover, or longer, for the new one, and never use the \
                 old one again",
                if self.is_embedded {
                    "move the data directory away, copy its secrets into a new one with 'cp -p'"
                } else {
                    "choose another store"
                }
            ),
            StoreError::FloorAhead { .. } => {
                "try again after that time, or give a longer --wait".to_owned()
            }
            StoreError::Corrupt { .. } if self.is_embedded => format!(
                "if the file is damaged: stop all processes that use it, move leases.db and \
                 leases.db-journal in the data directory aside, and keep leases.db.lock and the \
                 secrets; once the clock is right, the next run begins above all earlier leases\n\
                 help: before that run, if a namespace was initialised with a longer --horizon or \
                 --failover than the default, run '{}ringflake store init --history \
                 unknown{words}' with them, and with its own name, layout and kind of IDs",
                no_store()
            ),
            StoreError::Corrupt { .. } if self.is_file => format!(
                "if the file is damaged: stop all processes that use it, move it and its -journal \
                 aside, and keep its .lock; then, once the clock is right, run 'ringflake store \
                 init --history unknown{words}', and the same for its other namespaces, with their \
                 old --horizon and --failover, or longer"
            ),
            StoreError::Ambiguous {
                operation: "raise_floor",
                ..
            } => "run the same command again before anybody uses the store".to_owned(),
            StoreError::Ambiguous {
                operation: "init", ..
            } => "run the same command again; the answer 'already has a namespace' means that it \
                  was done"
                .to_owned(),
            StoreError::Ambiguous {
                operation: "repair",
                ..
            } => "run the same command again; the answer 'is not quarantined' means that it was \
                  done"
                .to_owned(),
            StoreError::Ambiguous {
                operation: "release",
                ..
            } => "run the same command again".to_owned(),
            StoreError::Exhausted { .. } if self.is_embedded => {
                "wait until one of the other runs ends, or give a longer --wait".to_owned()
            }
            _ => return None,
        })
    }
}

/// A store's error with what helps on the command line.
#[derive(Debug)]
struct Explained {
    text: String,
    error: Arc<StoreError>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Explained {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The text is the store's own.
        self.error.source()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use ringflake::lease::{Block, Epoch};
    use ringflake_kit::snapshot::{assert_snapshot, entry};

    use super::*;
    use crate::report;

    fn advice(is_embedded: bool) -> Advice {
        let key = KeyArgs {
            secret_file: Some("orders.key".into()),
            plain: false,
            id_width: IdWidth::Full,
        };
        let words = " --store URL --namespace orders --secret-file orders.key".to_owned();
        let data_dir = DataDir::new(Some("/nowhere".into()));
        Advice::new(&key, &data_dir, words, is_embedded)
    }

    fn store_errors() -> Vec<StoreError> {
        let namespace = || "orders".to_owned();
        let print = |byte| Fingerprint::of(&Secret::from_bytes([byte; 16]));
        let mismatch = |recorded| StoreError::FingerprintMismatch {
            namespace: namespace(),
            recorded,
            offered: print(2),
        };
        let in_use = |other: &str| StoreError::SecretInUse {
            namespace: namespace(),
            other: other.to_owned(),
        };
        let block = Block::new(7);
        let fenced = |fence| StoreError::Fenced { block, fence };
        let floor_ahead = |floor, seconds| StoreError::FloorAhead {
            floor,
            floor_unix_ms: 1_760_000_659_000 + seconds * 1000,
            now_unix_ms: 1_760_000_000_000,
            retry_after: Duration::from_secs(seconds),
        };
        let ambiguous = |operation| StoreError::Ambiguous {
            operation,
            source: "timed out".into(),
        };
        let [held, recorded] = [2, 1].map(Epoch::new);
        let reason = "its grant number (epoch) is 9, but its mark is tick 3, which is impossible: \
                      each grant moves the mark by at least one tick"
            .to_owned();
        vec![
            StoreError::NotInitialised {
                namespace: namespace(),
            },
            StoreError::AlreadyInitialised {
                namespace: namespace(),
            },
            StoreError::HistoryUnknown {
                namespace: namespace(),
                reason: "sqlite:leases.db: there was such a file, and it was removed".into(),
            },
            mismatch(print(1)),
            mismatch(Fingerprint::PLAIN),
            in_use("orders"),
            in_use("invoices"),
            StoreError::FloorTooFar {
                tick: 4711,
                tick_unix_ms: 1_760_086_400_000,
                latest: 815,
                latest_unix_ms: 1_760_000_000_000,
                idle: Duration::from_secs(86_400),
            },
            StoreError::NotQuarantined { block },
            fenced(Fence::NeverGranted),
            fenced(Fence::Epoch { held, recorded }),
            fenced(Fence::Quarantined { reason }),
            StoreError::NotDurable {
                store: "redis at db:6379".into(),
                reason: "appendonly is no".into(),
            },
            StoreError::Copied {
                store: "sqlite:leases.db".into(),
                recorded: "inode 1".into(),
                found: "inode 2".into(),
            },
            floor_ahead(4711, 90),
            floor_ahead(40_000, 36_000),
            StoreError::Exhausted {
                wanted: 3,
                blocks: 4096,
                retry_after: Duration::from_secs(90),
            },
            StoreError::Unavailable {
                source: "connection reset".into(),
            },
            StoreError::Corrupt {
                detail: "sqlite:leases.db is damaged".into(),
                source: None,
            },
            ambiguous("acquire"),
            ambiguous("raise_floor"),
            ambiguous("init"),
            ambiguous("repair"),
            ambiguous("release"),
        ]
    }

    fn local_errors() -> Vec<LocalError> {
        let namespace = "orders".to_owned();
        let (path, directory) = (PathBuf::from("/data/orders.key"), PathBuf::from("/data"));
        let brought = |path| LocalError::SecretBrought {
            path,
            directory: "/data".into(),
        };
        vec![
            LocalError::Copied {
                directory: directory.clone(),
            },
            LocalError::NoSecret {
                namespace: namespace.clone(),
                path: path.clone(),
            },
            LocalError::OtherWidth {
                namespace: namespace.clone(),
                recorded: IdWidth::Positive,
                given: IdWidth::Full,
            },
            brought(Some(path.clone())),
            brought(None),
            LocalError::SecretUsed {
                namespace: namespace.clone(),
                directory: directory.clone(),
            },
            LocalError::SecretLost { namespace, path },
            LocalError::NoHome,
            LocalError::Directory {
                path: directory,
                source: io::ErrorKind::StorageFull.into(),
            },
        ]
    }

    #[test]
    fn a_lost_record_is_made_anew_with_its_own_width() {
        let mut advice = advice(false);
        advice.key.id_width = IdWidth::Positive;
        advice.words += " --id-width positive";
        let error = StoreError::SecretInUse {
            namespace: "orders".into(),
            other: "orders".into(),
        };
        let said = advice.store(error.into()).to_string();
        let command = "--namespace orders --secret-file orders.key --id-width WIDTH'";
        assert!(said.contains(command), "{said}");
    }

    #[test]
    fn every_piece_of_advice_reads_as_in_its_snapshot() {
        let mut text = String::new();
        let corrupt = || StoreError::Corrupt {
            detail: "sqlite:shared.db is damaged".into(),
            source: None,
        };
        let file = advice(false).of_file(" --store URL");
        text += &entry("a file", report::text(&file.store(corrupt().into())), &[]);
        for (place, is_embedded) in [("a store", false), ("leases.db", true)] {
            let advice = advice(is_embedded);
            for error in store_errors() {
                text += &entry(place, report::text(&advice.store(error.into())), &[]);
            }
            for error in local_errors() {
                text += &entry(place, report::text(&advice.local(error)), &[]);
            }
            for obstacle in [Obstacle::Copied, Obstacle::Exhausted { quarantined: 3 }] {
                text += &entry(place, advice.obstacle(&obstacle), &[]);
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages/advice.txt");
        assert_snapshot(path, &text);
    }
}
