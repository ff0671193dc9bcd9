//! What a client may do.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::{ConfigError, TokenSettings};
use crate::tokens::Tokens;

/// What a token is for. Each is a right of its own: none contains another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Takes IDs.
    Take,
    /// Reads what an ID consists of.
    Inspect,
    /// Is given leases of its own.
    Lease,
    /// Reads figures of all namespaces, and settings.
    Admin,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Take, Self::Inspect, Self::Lease, Self::Admin];

    /// As it is written in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Take => "take",
            Self::Inspect => "inspect",
            Self::Lease => "lease",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Who may do what.
pub(crate) trait Rights: Send + Sync {
    /// Whether `token` has that right, or everybody where it is `None`. Takes as long for
    /// every token of one length.
    fn allows(&self, role: Role, token: Option<&[u8]>) -> bool;

    /// Whether there is anybody who has it.
    fn is_anybodys(&self, role: Role) -> bool {
        let _ = role;
        true
    }
}

/// The rights of a server's clients.
///
/// | role | while no token is given for it |
/// |---|---|
/// | take, inspect | everybody has it where only this machine can connect, or the configuration says that the network may without tokens |
/// | admin | everybody has it where only this machine can connect, and no role has tokens |
/// | lease | nobody has it |
///
/// A token that is none of any role gives no right at all, where there are tokens.
pub(crate) struct Access(ArcSwap<Table>);

/// By role, in the order of [`Role::ALL`].
type Table = [Right; 4];

/// Who has a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Everybody,
    Nobody,
    Those(Tokens),
}

impl Access {
    /// The rights that the files of tokens give.
    pub(crate) fn new(rights: Table) -> Self {
        Self(ArcSwap::from_pointee(rights))
    }

    /// Reads the files of tokens.
    ///
    /// `is_local` where only this machine can connect.
    pub(crate) fn read(
        files: &TokenSettings,
        is_local: bool,
        is_open: bool,
    ) -> Result<Table, ConfigError> {
        let files = [&files.take, &files.inspect, &files.lease, &files.admin];
        let has_none = files.iter().all(|file| file.is_none());
        let mut table = Role::ALL.map(|role| {
            let is_everybodys = match role {
                Role::Take | Role::Inspect => is_local || is_open,
                Role::Admin => is_local && has_none,
                Role::Lease => false,
            };
            match is_everybodys {
                true => Right::Everybody,
                false => Right::Nobody,
            }
        });
        for (right, file) in table.iter_mut().zip(files) {
            if let Some(file) = file {
                *right = Right::Those(Tokens::from_file(file)?);
            }
        }
        Ok(table)
    }

    /// Those of `rights` count from now on.
    pub(crate) fn replace(&self, rights: Table) {
        self.0.store(Arc::new(rights));
    }
}

impl Rights for Access {
    fn allows(&self, role: Role, token: Option<&[u8]>) -> bool {
        let rights = self.0.load();
        match &rights[role as usize] {
            // A wrong token is an error also where none is needed.
            Right::Everybody => token.is_none_or(|token| knows(&rights, token)),
            Right::Nobody => false,
            Right::Those(tokens) => token.is_some_and(|token| tokens.contain(token)),
        }
    }

    fn is_anybodys(&self, role: Role) -> bool {
        self.0.load()[role as usize] != Right::Nobody
    }
}

/// Whether the token is one of some role, or there are none. Looks at all of them.
fn knows(rights: &Table, token: &[u8]) -> bool {
    let (mut are_there, mut is_known) = (false, false);
    for right in rights {
        if let Right::Those(tokens) = right {
            are_there = true;
            is_known |= tokens.contain(token);
        }
    }
    is_known || !are_there
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rights = self.0.load();
        f.debug_map()
            .entries(Role::ALL.iter().zip(&**rights))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TAKE: &str = "take-0123456789abcdef";
    const ADMIN: &str = "admin-0123456789abcdef";

    /// Which roles somebody with this token has.
    fn roles(access: &Access, token: Option<&str>) -> Vec<&'static str> {
        let token = token.map(str::as_bytes);
        let has = |role: &Role| access.allows(*role, token);
        Role::ALL.into_iter().filter(has).map(Role::name).collect()
    }

    /// The roles that somebody has.
    fn given(access: &Access) -> Vec<&'static str> {
        let given = |role: &Role| access.is_anybodys(*role);
        Role::ALL
            .into_iter()
            .filter(given)
            .map(Role::name)
            .collect()
    }

    fn take_from(file: Option<std::path::PathBuf>) -> TokenSettings {
        TokenSettings {
            take: file,
            ..TokenSettings::default()
        }
    }

    fn access(files: &TokenSettings, is_local: bool, is_open: bool) -> Access {
        Access::new(Access::read(files, is_local, is_open).unwrap())
    }

    fn file(directory: &tempfile::TempDir, token: &str) -> Option<std::path::PathBuf> {
        let path = directory.path().join(&token[..4]);
        fs::write(&path, token).unwrap();
        ringflake_kit::tls::only_for_us(&path);
        Some(path)
    }

    #[test]
    fn a_role_is_shown_by_its_name() {
        assert_eq!(
            Role::ALL.map(|role| role.to_string()),
            Role::ALL.map(Role::name)
        );
    }

    #[test]
    fn without_tokens_this_machine_may_all_but_lease() {
        let none = TokenSettings::default();
        for (is_local, is_open, expected) in [
            (true, false, &["take", "inspect", "admin"][..]),
            (false, true, &["take", "inspect"]),
            (false, false, &[]),
        ] {
            let access = access(&none, is_local, is_open);
            assert_eq!(roles(&access, None), expected);
            assert_eq!(roles(&access, Some(TAKE)), expected);
            assert_eq!(given(&access), expected);
        }
    }

    #[test]
    fn a_role_with_tokens_is_theirs_alone() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = take_from(file(&directory, TAKE));
        let local = access(&files, true, false);
        assert_eq!(given(&local), ["take", "inspect"]);
        assert_eq!(roles(&local, None), ["inspect"]);
        assert_eq!(roles(&local, Some(TAKE)), ["take", "inspect"]);
        // No token at all is better than a wrong one.
        assert_eq!(roles(&local, Some(ADMIN)), [""; 0]);

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
    fn rights_are_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = take_from(file(&directory, TAKE));
        let access = access(&files, false, false);
        files.take = file(&directory, ADMIN);
        access.replace(Access::read(&files, false, false).unwrap());
        assert_eq!(roles(&access, Some(TAKE)), [""; 0]);
        assert_eq!(roles(&access, Some(ADMIN)), ["take"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let files = take_from(file(&directory, TAKE));
        ringflake_kit::tls::allow(files.take.as_ref().unwrap(), 0o644);
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
