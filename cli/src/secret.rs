//! Where the secret comes from.
//!
//! In this order: `--plain`; `--secret-file`; `RINGFLAKE_SECRET_FILE`; the file
//! `secret` in the data directory. The commands differ in what they do when
//! there is none of them. A namespace in the data directory that has a name has a
//! secret of its own there, and no other is accepted for it.

use std::io;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result, bail};
use ringflake::lease::{Fingerprint, refuse_foreign};
use ringflake::{
    BuildError, CachedGeneratorBuilder, Cipher, IdWidth, Layout, Local, Secret, SecretError,
    shell_quoted as quoted,
};

use crate::args::{KeyArgs, path_variable};
use crate::data_dir::DataDir;
use crate::report::{say, text, warn};

const VARIABLE: &str = "RINGFLAKE_SECRET_FILE";

/// The secret and the width that IDs are encrypted with.
#[derive(Debug)]
pub(crate) struct Key {
    /// None for plain IDs.
    secret: Option<Secret>,
    width: IdWidth,
}

impl Key {
    pub(crate) fn new(secret: Option<Secret>, width: IdWidth) -> Self {
        Self { secret, width }
    }

    pub(crate) fn cipher(&self) -> Result<Cipher> {
        Ok(match &self.secret {
            None => Cipher::plain(),
            Some(secret) => Cipher::of_width(secret, self.width)?,
        })
    }

    /// What a store keeps of it.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.secret().map_or(Fingerprint::PLAIN, |secret| {
            Fingerprint::of_width(secret, self.width)
        })
    }

    pub(crate) fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    pub(crate) fn give_to(&self, builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
        let builder = builder.id_width(self.width);
        match &self.secret {
            None => builder.plain(),
            Some(secret) => builder.secret(secret),
        }
    }
}

/// Refuses a width that generators refuse for this layout.
pub(crate) fn check_width(args: &KeyArgs, layout: &Layout) -> Result<(), BuildError> {
    let (bits, width) = (layout.total_bits(), args.id_width);
    if bits > width.bits() {
        return Err(BuildError::LayoutTooWide { bits, width });
    }
    if !args.plain && !width.layout_bits().contains(&bits) {
        return Err(BuildError::EncryptionWidens { bits, width });
    }
    Ok(())
}

/// The key to make IDs with that will be used: makes a secret and keeps it in
/// the data directory if there is none yet.
pub(crate) fn kept_or_made(args: &KeyArgs, data_dir: &DataDir) -> Result<Key> {
    if let Some(key) = existing(args, data_dir)? {
        return Ok(key);
    }
    let (path, made) = data_dir.find()?.keep_secret()?;
    if made {
        say_made(&path);
        warn_if_lost(data_dir, &path);
    }
    // Read back, because another process may have been faster.
    Ok(Key::new(Some(read(&path)?), args.id_width))
}

/// Warns that a new secret begins a new ID space beside one whose secret is gone.
fn warn_if_lost(data_dir: &DataDir, path: &Path) {
    // Whatever is wrong with the records is reported by the command itself.
    let lost = data_dir.without_secrets().unwrap_or_default();
    if !lost.is_empty() {
        warn(format_args!(
            "leases.db records namespaces of another secret, which is not in {}: {}\n\
             note: new IDs belong to a new ID space, and the new secret can't read the old IDs\n\
             help: if that secret is lost, stop, and restore it from a backup",
            path.display(),
            lost.join(", ")
        ));
    }
}

pub(crate) fn say_made(path: &Path) {
    let path = path.display();
    say(format_args!(
        "created the secret {path}; without it nobody can read these IDs"
    ));
}

/// The key that IDs were made with; an error if there is none.
pub(crate) fn kept_or_refused(args: &KeyArgs, data_dir: &DataDir) -> Result<Key> {
    match existing(args, data_dir)? {
        Some(key) => Ok(key),
        None => bail!(
            "no secret was given\n\
             help: give the secret of the IDs with --secret-file or {VARIABLE}, or its directory \
             with --data-dir\n\
             help: for IDs that are not encrypted, give --plain"
        ),
    }
}

/// The same for IDs of a data directory that were made without a namespace. The error names
/// the namespaces that have a secret there.
pub(crate) fn unnamed_or_refused(args: &KeyArgs, data_dir: &DataDir) -> Result<Key> {
    if let Some(key) = existing(args, data_dir)? {
        return Ok(key);
    }
    match &data_dir.with_secrets()[..] {
        [] => kept_or_refused(args, data_dir),
        names => bail!(
            "{} has no secret for IDs without a namespace\n\
             help: give --namespace {}, or another secret with --secret-file",
            data_dir.find()?.path().display(),
            names.join(" or --namespace ")
        ),
    }
}

fn existing(args: &KeyArgs, data_dir: &DataDir) -> Result<Option<Key>> {
    if args.plain {
        return Ok(Some(Key::new(None, args.id_width)));
    }
    let secret = match given(args) {
        Some((path, _)) => Some(read(&path)?),
        None => kept(data_dir)?,
    };
    Ok(secret.map(|secret| Key::new(Some(secret), args.id_width)))
}

/// Refuses a secret that the command line or the environment names, unless it is that of the
/// namespace of this name in the data directory.
pub(crate) fn check_named(
    args: &KeyArgs,
    name: &str,
    local: &Local,
    layout: &Layout,
    data_dir: &DataDir,
) -> Result<()> {
    let Some((path, source)) = given(args).filter(|_| !args.plain) else {
        return Ok(());
    };
    let meant = data_dir.find()?.secret_of(name);
    let given = read(&path)?;
    let is_given = |kept: Secret| kept.expose() == given.expose();
    if local
        .secret(layout)
        .is_ok_and(|kept| kept.is_some_and(is_given))
    {
        return Ok(());
    }
    bail!(
        "namespace {name} in the data directory has its own secret, {}, and {source} names {}\n\
         help: leave out the secret\n\
         help: or leave out --namespace, so that this secret has its own ID space",
        meant.display(),
        path.display()
    )
}

/// The file, out of those that are known here, whose secret has this fingerprint in
/// the namespace of this name, and the width for which it has it.
pub(crate) fn file_with(
    print: Fingerprint,
    name: &str,
    args: &KeyArgs,
    data_dir: &DataDir,
) -> Option<(PathBuf, IdWidth)> {
    let kept = data_dir.try_find();
    let kept = kept
        .iter()
        .flat_map(|kept| [kept.secret(), kept.secret_of(name)]);
    let named = [args.secret_file.clone(), path_variable(VARIABLE)];
    let mut files = named.into_iter().flatten().chain(kept);
    files.find_map(|path| {
        let secret = Secret::from_file(&path).ok()?;
        let mut all = IdWidth::ALL.into_iter();
        let width = all.find(|&width| Fingerprint::of_width(&secret, width) == print)?;
        Some((path, width))
    })
}

/// Where the secret comes from, for people.
pub(crate) fn source(args: &KeyArgs, data_dir: &DataDir) -> String {
    let path = given(args).map(|(path, _)| path);
    let path = path.or_else(|| Some(data_dir.try_find()?.secret()));
    match path {
        _ if args.plain => "--plain".to_owned(),
        Some(path) => format!("the secret {}", path.display()),
        None => "the given secret".to_owned(),
    }
}

/// Writes a new secret to `path`, which must not exist.
pub(crate) fn make(path: &Path, data_dir: &DataDir) -> Result<()> {
    if !path.exists() {
        refuse_foreign(&absolute(path)?)?;
    }
    let secret = Secret::generate()?;
    // Before anybody can read it.
    note(&secret, data_dir);
    match secret.to_new_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
            "{} exists already\n\
             note: a secret is never overwritten\n\
             help: name another file, or move this one away",
            path.display()
        ),
        outcome => {
            outcome.with_context(|| format!("the secret can't be written to {}", path.display()))
        }
    }
}

/// Records a new secret in the data directory. A failure is only a warning.
pub(crate) fn note(secret: &Secret, data_dir: &DataDir) {
    let noted = data_dir
        .find()
        .and_then(|directory| Ok(directory.note_new_secret(secret)?));
    if let Err(error) = noted {
        warn(format_args!(
            "the new secret is not recorded in the data directory, so 'ringflake generate' will \
             ask for its history: {}",
            text(&error)
        ));
    }
}

/// The file that is given, and by what. Not by clap's `env`: that would make `--plain` clash
/// with the variable.
fn given(args: &KeyArgs) -> Option<(PathBuf, &'static str)> {
    let option = args.secret_file.clone().map(|path| (path, "--secret-file"));
    option.or_else(|| Some((path_variable(VARIABLE)?, VARIABLE)))
}

/// The secret in the data directory, if there is one.
fn kept(data_dir: &DataDir) -> Result<Option<Secret>> {
    let Some(data_dir) = data_dir.try_find() else {
        return Ok(None);
    };
    match read(&data_dir.secret()) {
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

/// Warns of a secret that others can read. As of files with a password, one of root may be read by
/// its group, which the service's user is in. Any other is this user's own.
#[cfg(unix)]
fn warn_if_shared(path: &Path) {
    use std::os::unix::fs::MetadataExt;

    let Ok(metadata) = std::fs::metadata(path) else {
        return;
    };
    let is_of_root = metadata.uid() == 0;
    let readable_by_others = if is_of_root { 0o004 } else { 0o044 };
    let mode = metadata.mode() & 0o7777;
    if !metadata.is_file() || mode & readable_by_others == 0 {
        return;
    }
    let word = quoted(path.display());
    let help = if is_of_root {
        format!(
            "as root, run 'chgrp GROUP {word} && chmod g=r,o= {word}', with a group of the users \
             that need it"
        )
    } else {
        format!("run 'chmod go-r {word}'")
    };
    warn(format_args!(
        "other users can read the secret {} (mode {mode:04o})\nhelp: {help}",
        path.display()
    ));
}
