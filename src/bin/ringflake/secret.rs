//! Where the secret comes from, and how one is kept.
//!
//! In this order: `--plain`; `--secret-file`; `RINGFLAKE_SECRET_FILE`; the file
//! `secret` in the data directory. The commands differ in what they do when
//! there is none of them.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use ringflake::lease::Fingerprint;
use ringflake::{CachedGeneratorBuilder, Cipher, Secret, SecretError};
use zeroize::Zeroizing;

use crate::args::{KeyArgs, SecretArgs, path_variable};
use crate::data_dir::{self, DataDir, Past};
use crate::report::say;

const VARIABLE: &str = "RINGFLAKE_SECRET_FILE";
pub(crate) const FILE_NAME: &str = "secret";

/// What IDs are encrypted with.
#[derive(Debug)]
pub(crate) enum Key {
    Plain,
    Secret(Secret),
}

impl Key {
    pub(crate) fn cipher(&self) -> Cipher {
        match self {
            Self::Plain => Cipher::plain(),
            Self::Secret(secret) => Cipher::sparx64(secret),
        }
    }

    /// What a store keeps of it under this namespace's name.
    pub(crate) fn fingerprint(&self, name: &str) -> Fingerprint {
        match self {
            Self::Plain => Fingerprint::PLAIN,
            Self::Secret(secret) => Fingerprint::of(secret, name),
        }
    }

    pub(crate) fn give_to(&self, builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
        match self {
            Self::Plain => builder.plain(),
            Self::Secret(secret) => builder.secret(secret),
        }
    }
}

/// The key to make IDs with that will be used: makes a secret and keeps it in
/// the data directory if there is none yet.
pub(crate) fn kept_or_made(args: &KeyArgs, data_dir: &DataDir) -> Result<Key> {
    if let Some(key) = chosen(args)? {
        return Ok(key);
    }
    if let Some(secret) = kept(data_dir)? {
        return Ok(Key::Secret(secret));
    }
    let (path, made) = make_kept(data_dir)?;
    if made {
        say(format_args!(
            "made a secret and keep it in {}; without it nobody can read these IDs",
            path.display()
        ));
    }
    // Read back, because another process may have been faster.
    Ok(Key::Secret(read(&path)?))
}

/// The key that IDs were made with; an error if there is none.
pub(crate) fn kept_or_refused(args: &KeyArgs, data_dir: &DataDir) -> Result<Key> {
    if let Some(key) = chosen(args)? {
        return Ok(key);
    }
    match kept(data_dir)? {
        Some(secret) => Ok(Key::Secret(secret)),
        None => bail!(
            "there is no secret: give the one that the IDs are made with by --secret-file or \
             {VARIABLE}, its directory by --data-dir, or --plain for IDs that are not encrypted"
        ),
    }
}

/// A secret for IDs that nobody will keep: a random one if there is no other.
pub(crate) fn secret_or_random(args: &SecretArgs, data_dir: &DataDir) -> Result<Secret> {
    let chosen = match file_of(args) {
        Some(path) => Some(read(&path)?),
        None => kept(data_dir)?,
    };
    match chosen {
        Some(secret) => Ok(secret),
        None => Ok(Secret::generate()?),
    }
}

/// Writes a new secret to `path`, which must not exist.
pub(crate) fn make(path: &Path) -> Result<()> {
    match write_new(path, &Secret::generate()?) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
            "{} exists, and a secret is never overwritten: name another file, or move it away",
            path.display()
        ),
        outcome => {
            outcome.with_context(|| format!("the secret can't be written to {}", path.display()))
        }
    }
}

/// Puts a new secret into the data directory, unless there is one; returns its
/// path and whether it is new.
///
/// Of several processes that do this at once, one puts its secret there. It is
/// complete by the time it has its name, and on the disk when this returns. In a
/// directory without a past the record of leases comes first: see [`data_dir`].
pub(crate) fn make_kept(data_dir: &DataDir) -> Result<(PathBuf, bool)> {
    let lock = data_dir.lock()?;
    let directory = data_dir.path()?;
    let path = directory.join(FILE_NAME);
    let context = || format!("the secret can't be written to {}", path.display());
    let past = lock.past()?;
    if past == Past::None {
        lock.begin(past)?;
    }
    let draft = directory.join(format!(".{FILE_NAME}-new"));
    // One that a process left which was killed.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
    .with_context(context)?;
    write_new(&draft, &Secret::generate()?).with_context(context)?;
    // Unlike a renaming this never overwrites.
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft).with_context(context)?;
    match linked {
        Ok(()) => {
            data_dir::sync(directory).with_context(context)?;
            Ok((path, true))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok((path, false)),
        Err(error) => Err(error).with_context(context),
    }
}

/// The text of a secret file: 32 hexadecimal digits and a newline.
pub(crate) fn to_text(secret: &Secret) -> Zeroizing<String> {
    // Large enough from the start: growing would leave a copy behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * secret.expose().len() + 1));
    for byte in secret.expose() {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    text
}

/// The key that the command line or the environment names, if they do.
fn chosen(args: &KeyArgs) -> Result<Option<Key>> {
    if args.plain {
        return Ok(Some(Key::Plain));
    }
    let secret = file_of(&args.secret).map(|path| read(&path)).transpose()?;
    Ok(secret.map(Key::Secret))
}

/// Not clap's `env`: that would make `--plain` clash with the variable.
fn file_of(args: &SecretArgs) -> Option<PathBuf> {
    let given = args.secret_file.clone();
    given.or_else(|| path_variable(VARIABLE))
}

/// The secret in the data directory, if there is one.
fn kept(data_dir: &DataDir) -> Result<Option<Secret>> {
    let Some(path) = data_dir.file(FILE_NAME) else {
        return Ok(None);
    };
    match read(&path) {
        Ok(secret) => Ok(Some(secret)),
        Err(SecretError::FileUnreadable { source, .. })
            if source.kind() == io::ErrorKind::NotFound =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn read(path: &Path) -> Result<Secret, SecretError> {
    let secret = Secret::from_file(path)?;
    #[cfg(unix)]
    warn_if_shared(path);
    Ok(secret)
}

#[cfg(unix)]
fn warn_if_shared(path: &Path) {
    use std::os::unix::fs::PermissionsExt;

    const READABLE_BY_OTHERS: u32 = 0o044;
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & READABLE_BY_OTHERS != 0 {
        say(format_args!(
            "warning: others can read the secret in {} (mode {mode:04o}): chmod 600 it",
            path.display()
        ));
    }
}

/// Writes `secret` to a new file that only its owner may read, durably. The
/// file is gone if that fails half-way.
fn write_new(path: &Path, secret: &Secret) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let write = |mut file: File| {
        file.write_all(to_text(secret).as_bytes())?;
        file.sync_all()
    };
    write(file).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(path);
    })
}
