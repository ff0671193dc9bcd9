//! What a client may do.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use ringflake::lease;

use crate::config::{ConfigError, TokenSettings};
use crate::log_limit::LogLimit;
use crate::named::named;
use crate::tokens::{Token, Tokens};

named! {
    /// A permission of a token. None contains another.
    pub(crate) enum Role {
        /// Takes IDs.
        Take = "take",
        /// Reads what an ID consists of.
        Inspect = "inspect",
        /// Reads figures of all namespaces, and settings.
        Admin = "admin",
    }
}

/// A limit of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    /// It may not use this namespace.
    Namespace,
    /// It has used up its rate.
    Rate { retry_after: Duration },
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespace => f.write_str("the token is for other namespaces"),
            Self::Rate { .. } => f.write_str("the token has used up its rate"),
        }
    }
}

/// The roles of a server's clients.
///
/// | role | who has it where no file of tokens is given for it |
/// |---|---|
/// | take | everybody, if no role has tokens, and only this machine can connect or the configuration opens the server to the network |
/// | inspect, admin | everybody, if no role has tokens and only this machine can connect |
///
/// So one file of tokens closes every role: behind a proxy on the same machine, all the world
/// is local.
pub(crate) struct Access {
    table: ArcSwap<Table>,
    refusals: LogLimit,
    /// Whether the last reload of the token and TLS files failed.
    is_stale: AtomicBool,
}

/// By role, in the order of [`Role::ALL`].
pub(crate) type Table = [Right; 3];

/// The holders of a role.
#[derive(Debug)]
pub(crate) enum Right {
    Everybody,
    Nobody,
    Tokens(Tokens),
}

impl Access {
    /// The rights that the files of tokens give.
    pub(crate) fn new(rights: Table) -> Self {
        Self {
            table: ArcSwap::from_pointee(rights),
            refusals: LogLimit::default(),
            is_stale: AtomicBool::new(false),
        }
    }

    /// Reads the files of tokens.
    ///
    /// `is_local` where only this machine can connect.
    pub(crate) fn read(
        files: &TokenSettings,
        is_local: bool,
        is_open: bool,
    ) -> Result<Table, ConfigError> {
        let has_none = files.is_empty();
        let right = |role, file: &Option<PathBuf>| match file {
            Some(file) => read_tokens(role, file).map(Right::Tokens),
            None if has_none && (is_local || is_open && role == Role::Take) => Ok(Right::Everybody),
            None => Ok(Right::Nobody),
        };
        let [take, inspect, admin] = files.files();
        Ok([
            right(Role::Take, take)?,
            right(Role::Inspect, inspect)?,
            right(Role::Admin, admin)?,
        ])
    }

    /// Whether the last reload failed, so that the files may differ from what is in use.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stale(&self, is_stale: bool) {
        self.is_stale.store(is_stale, Ordering::Relaxed);
    }

    /// Replaces the rights of all requests from now on. A token that stays, with the same rate,
    /// has used up as much of it as before.
    pub(crate) fn replace(&self, rights: Table) {
        for (right, before) in rights.iter().zip(&**self.table.load()) {
            if let (Right::Tokens(tokens), Right::Tokens(before)) = (right, before) {
                tokens.continue_from(before);
            }
        }
        self.table.store(Arc::new(rights));
    }
}

fn read_tokens(role: Role, file: &Path) -> Result<Tokens, ConfigError> {
    let tokens = Tokens::from_file(file)?;
    if role == Role::Admin && tokens.have_namespaces() {
        let reason = "an admin token reads the figures of all namespaces: leave out namespaces=";
        return Err(ConfigError::content(file, reason));
    }
    Ok(tokens)
}

/// The token of this role.
fn find<'a>(table: &'a Table, role: Role, token: Option<&[u8]>) -> Option<&'a Token> {
    match &table[role as usize] {
        Right::Tokens(tokens) => tokens.find(token?),
        Right::Everybody | Right::Nobody => None,
    }
}

impl Access {
    /// Whether `token` has that role, or everybody where it is `None`. Takes as long for
    /// every token of one length.
    pub(crate) fn allows(&self, role: Role, token: Option<&[u8]>) -> bool {
        let table = self.table.load();
        match &table[role as usize] {
            Right::Everybody => true,
            Right::Nobody => false,
            Right::Tokens(_) => find(&table, role, token).is_some(),
        }
    }

    /// Whether any client can have this role.
    pub(crate) fn is_anybodys(&self, role: Role) -> bool {
        !matches!(self.table.load()[role as usize], Right::Nobody)
    }

    /// Counts `amount` IDs (or one request) in this namespace against the limits of a token.
    /// [`allows`](Self::allows) must have accepted the token.
    ///
    /// # Errors
    /// The limit that is exceeded; nothing is counted then.
    pub(crate) fn spend(
        &self,
        role: Role,
        token: Option<&[u8]>,
        namespace: &str,
        amount: u64,
    ) -> Result<(), Exceeded> {
        self.spend_each(role, token, namespace, 1, amount).1
    }

    /// Like [`spend`](Self::spend) for each of several requests, one after the other. Returns how
    /// many of them are allowed, and the limit that the others exceed.
    pub(crate) fn spend_each(
        &self,
        role: Role,
        token: Option<&[u8]>,
        namespace: &str,
        requests: usize,
        amount: u64,
    ) -> (usize, Result<(), Exceeded>) {
        let table = self.table.load();
        let Some(token) = find(&table, role, token) else {
            return (requests, Ok(()));
        };
        if !token.may_use(namespace) {
            return (0, Err(Exceeded::Namespace));
        }
        let (allowed, spent) = token.spend(requests, amount, Instant::now());
        let spent = spent.map_err(|retry_after| Exceeded::Rate { retry_after });
        (allowed, spent)
    }

    /// Logs a refused request, at most once a minute for each peer and role. It has a `namespace`
    /// if a limit of the token refused it.
    pub(crate) fn log_refusal(
        &self,
        peer: &str,
        role: Role,
        token: Option<&[u8]>,
        namespace: Option<&str>,
        reason: &str,
    ) {
        let Some(suppressed) = self.refusals.permit(&format!("{peer} {role}")) else {
            return;
        };
        // A name that is too long can be as long as a request.
        let namespace = namespace.filter(|name| name.len() <= lease::Namespace::MAX_NAME);
        let table = self.table.load();
        let tokens = Role::ALL
            .into_iter()
            .find_map(|role| find(&table, role, token));
        let token = tokens.and_then(Token::name);
        tracing::warn!(
            peer,
            role = role.name(),
            token,
            namespace,
            reason,
            suppressed,
            "request refused"
        );
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table.load();
        f.debug_map()
            .entries(Role::ALL.iter().zip(&**table))
            .finish()
    }
}

#[cfg(test)]
impl Access {
    pub(crate) fn everybody() -> Table {
        Role::ALL.map(|_| Right::Everybody)
    }

    pub(crate) fn open() -> Arc<Self> {
        Arc::new(Self::new(Self::everybody()))
    }

    /// Each role has a token of its name.
    pub(crate) fn named() -> Table {
        Role::ALL.map(|role| Right::Tokens(Tokens::limited(role.name(), None, f64::MAX)))
    }

    pub(crate) fn by_name() -> Arc<Self> {
        Arc::new(Self::new(Self::named()))
    }

    /// Each role has the token `t`, for these namespaces and this many IDs or requests.
    pub(crate) fn limited(namespace: Option<&str>, amount: u32) -> Table {
        Role::ALL.map(|_| Right::Tokens(Tokens::limited("t", namespace, amount.into())))
    }

    /// What the token of [`limited`](Self::limited) has used.
    pub(crate) fn spent(&self, role: Role) -> u64 {
        let table = self.table.load();
        find(&table, role, Some(b"t")).map_or(0, Token::spent)
    }

    /// Each client and role of which a refusal was logged.
    pub(crate) fn refused(&self) -> Vec<String> {
        self.refusals.causes()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringflake_kit::assert_says;
    use ringflake_kit::events::said;

    use super::*;

    const TAKE: &str = "take-0123456789abcdef";
    const ADMIN: &str = "admin-0123456789abcdef";

    fn names(has: impl Fn(&Role) -> bool) -> Vec<&'static str> {
        Role::ALL.into_iter().filter(has).map(Role::name).collect()
    }

    /// Which roles somebody with this token has.
    fn roles(access: &Access, token: Option<&str>) -> Vec<&'static str> {
        names(|role| access.allows(*role, token.map(str::as_bytes)))
    }

    /// The roles that somebody has.
    fn given(access: &Access) -> Vec<&'static str> {
        names(|role| access.is_anybodys(*role))
    }

    fn take_from(file: Option<PathBuf>) -> TokenSettings {
        TokenSettings {
            take: file,
            ..TokenSettings::default()
        }
    }

    fn access(files: &TokenSettings, is_local: bool, is_open: bool) -> Access {
        Access::new(Access::read(files, is_local, is_open).unwrap())
    }

    fn file(directory: &tempfile::TempDir, token: &str) -> Option<PathBuf> {
        let path = directory.path().join(&token[..4]);
        fs::write(&path, token).unwrap();
        ringflake_kit::tls::only_for_us(&path);
        Some(path)
    }

    #[test]
    fn without_tokens_this_machine_may_do_everything() {
        let none = TokenSettings::default();
        for (is_local, is_open, expected) in [
            (true, false, &["take", "inspect", "admin"][..]),
            (false, true, &["take"]),
            (false, false, &[]),
        ] {
            let access = access(&none, is_local, is_open);
            assert_eq!(roles(&access, None), expected);
            assert_eq!(roles(&access, Some(TAKE)), expected);
            assert_eq!(given(&access), expected);
        }
    }

    #[test]
    fn one_file_of_tokens_closes_every_role() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = take_from(file(&directory, TAKE));
        for (is_local, is_open) in [(true, false), (true, true), (false, true)] {
            let access = access(&files, is_local, is_open);
            assert_eq!(given(&access), ["take"]);
            assert_eq!(roles(&access, None), [""; 0]);
            assert_eq!(roles(&access, Some(TAKE)), ["take"]);
            assert_eq!(roles(&access, Some(ADMIN)), [""; 0]);
        }

        files.admin = file(&directory, ADMIN);
        let network = access(&files, false, false);
        assert_eq!(given(&network), ["take", "admin"]);
        assert_eq!(roles(&network, None), [""; 0]);
        assert_eq!(roles(&network, Some(TAKE)), ["take"]);
        assert_eq!(roles(&network, Some(ADMIN)), ["admin"]);
        let shown = format!("{network:?}");
        assert!(!shown.contains("0123456789"), "{shown}");
    }

    #[test]
    fn a_rate_that_is_used_up_stays_so_when_the_files_are_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let read = |rate: u32| {
            let limited = format!("{TAKE} rate={rate}");
            Access::read(&take_from(file(&directory, &limited)), true, false).unwrap()
        };
        let access = Access::new(read(1_000_000));
        let spend = |ids| access.spend(Role::Take, Some(TAKE.as_bytes()), "orders", ids);
        // A thousand seconds of debt.
        assert_eq!(spend(1_000_000_000), Ok(()));
        access.replace(read(1_000_000));
        assert!(spend(1).is_err());
        // Another rate begins anew.
        access.replace(read(1_000));
        assert_eq!(spend(1_000), Ok(()));
    }

    #[test]
    fn an_admin_token_can_not_be_limited_to_namespaces() {
        let directory = tempfile::tempdir().unwrap();
        let files = TokenSettings {
            admin: file(&directory, &format!("{ADMIN} namespaces=orders")),
            ..TokenSettings::default()
        };
        let error = Access::read(&files, true, false).unwrap_err();
        assert_says(&error.to_string(), &["leave out namespaces="]);
    }

    #[test]
    fn a_refusal_is_logged_by_peer_and_token_name_and_not_a_second_time() {
        let directory = tempfile::tempdir().unwrap();
        let access = access(
            &take_from(file(&directory, &format!("{TAKE} name=billing"))),
            true,
            false,
        );
        let lines = said(|| {
            for _ in 0..3 {
                let token = Some(TAKE.as_bytes());
                access.log_refusal("192.0.2.1:5", Role::Admin, token, None, "wrong role");
            }
            access.log_refusal("192.0.2.2:5", Role::Take, None, None, "no token");
            for (peer, name) in [("192.0.2.3:5", "orders"), ("192.0.2.4:5", &"x".repeat(65))] {
                access.log_refusal(peer, Role::Take, None, Some(name), "its limit");
            }
        });
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert_says(&lines[2], &["192.0.2.3:5", "orders"]);
        assert!(!lines[3].contains("xxx"), "{lines:?}");
        assert_says(
            &lines[0],
            &["192.0.2.1:5", "admin", "billing", "wrong role"],
        );
        assert!(!lines.concat().contains(TAKE), "{lines:?}");
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let files = take_from(file(&directory, TAKE));
        // Root's files may be read by others: root decides who they are.
        let us = std::os::unix::fs::MetadataExt::uid(&fs::metadata(directory.path()).unwrap());
        let mode = if us == 0 { 0o666 } else { 0o644 };
        ringflake_kit::tls::allow(files.take.as_ref().unwrap(), mode);
        let error = Access::read(&files, true, false).unwrap_err();
        let ConfigError::Unreadable { source, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied);
    }
}
