//! Finding an ID space, and making it at its first use.

use std::path::PathBuf;

use super::definition::Local;
use super::directory::DataDir;
use super::error::LocalError;
use super::names::{self, Which};
use super::secret;
use super::space::LocalSpace;
use crate::cipher::Secret;
use crate::layout::Layout;
use crate::lease::past::Lock;
use crate::lease::{History, Namespace};

impl Local {
    /// The space as it is. Makes nothing.
    ///
    /// # Errors
    /// [`LocalError`]; [`LocalError::NoSecret`] if the space was never used.
    pub fn find(&self, layout: &Layout) -> Result<LocalSpace, LocalError> {
        let outline = self.outline(layout)?;
        let directory = self.directory()?;
        let secret = self.existing_secret(&directory)?;
        let (namespace, _) =
            self.resolve(&outline, &directory, &directory.records()?, secret.as_ref())?;
        Ok(self.space(namespace, secret, directory))
    }

    /// The space, made and on record. Any number of processes may do this at once;
    /// the [module](super) has the steps.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn make(&self, layout: &Layout) -> Result<LocalSpace, LocalError> {
        let outline = self.outline(layout)?;
        let directory = self.make_directory()?;
        if let Some(space) = self.made(&outline, &directory)? {
            return Ok(space);
        }
        let lock = directory.lock()?;
        // Another process may have been faster.
        if let Some(space) = self.made(&outline, &directory)? {
            return Ok(space);
        }
        // Others may be making IDs with a secret that was not drawn here, and no record would
        // show it.
        if let Some(secret) = self.kept_secret(&directory)?
            && !directory.has_drawn(&lock, &secret)?
        {
            return Err(self.brought(&directory));
        }
        let history = directory.begin_history(&lock)?;
        let (secret, made_secret) = self.own_secret(&directory, &lock)?;
        // No ID was ever made with a secret that was drawn a moment ago. A floor would only
        // keep what a wrong clock shows now.
        let history = match made_secret {
            Some(_) => History::Unused,
            None => history,
        };
        let (namespace, _) =
            self.resolve(&outline, &directory, &directory.records()?, secret.as_ref())?;
        let mut space = self.space(namespace, secret, directory);
        space.made_secret = made_secret;
        space.begin(&lock, history)?;
        space.begun = Some(history);
        Ok(space)
    }

    /// The space with its secret, which is made if there is none, but no record:
    /// for one that is to be initialised by hand.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn make_secret(&self, layout: &Layout) -> Result<LocalSpace, LocalError> {
        let outline = self.outline(layout)?;
        let mut made_secret = None;
        if self.own_file(&self.directory()?).is_some() {
            let directory = self.make_directory()?;
            let lock = directory.lock()?;
            directory.begin_if_new(&lock)?;
            // One that was lost is not made anew.
            let secret = self.kept_secret(&directory)?;
            self.resolve(&outline, &directory, &directory.records()?, secret.as_ref())?;
            (_, made_secret) = self.own_secret(&directory, &lock)?;
        }
        let mut space = self.find(layout)?;
        space.made_secret = made_secret;
        Ok(space)
    }

    /// The space, if its secret is there and it is on record.
    fn made(
        &self,
        outline: &Namespace,
        directory: &DataDir,
    ) -> Result<Option<LocalSpace>, LocalError> {
        // The records first: the secret of one that is there is there, too.
        let records = directory.records()?;
        let secret = self.kept_secret(directory)?;
        let (namespace, is_on_record) =
            self.resolve(outline, directory, &records, secret.as_ref())?;
        if !is_on_record {
            return Ok(None);
        }
        self.refuse_elsewhere(directory, secret.as_ref())?;
        Ok(Some(self.space(namespace, secret, directory.clone())))
    }

    /// Refuses a secret that a store was given: IDs are made with it there.
    pub(super) fn refuse_elsewhere(
        &self,
        directory: &DataDir,
        secret: Option<&Secret>,
    ) -> Result<(), LocalError> {
        match secret {
            Some(secret) if directory.is_elsewhere(secret)? => Err(self.brought(directory)),
            _ => Ok(()),
        }
    }

    fn brought(&self, directory: &DataDir) -> LocalError {
        LocalError::SecretBrought {
            path: self.own_file(directory),
            directory: directory.path().to_owned(),
        }
    }

    /// The space's namespace, and whether it is on record.
    fn resolve(
        &self,
        outline: &Namespace,
        directory: &DataDir,
        records: &[Namespace],
        secret: Option<&Secret>,
    ) -> Result<(Namespace, bool), LocalError> {
        let width = self.width().unwrap_or_default();
        let Which::Named(name) = &self.which else {
            // Also in a namespace of another layout.
            for record in records {
                names::refuse_other_width(record, secret, width)?;
            }
            return match names::of_secret(outline, records, secret) {
                Some(record) => Ok((record.clone(), true)),
                None => Ok((names::choose(outline, records, secret, width)?, false)),
            };
        };
        let offered = names::keyed(outline, secret, width);
        let Some(record) = records.iter().find(|it| it.name() == offered.name()) else {
            return Ok((offered, false));
        };
        let path = directory.secret_of(name);
        let namespace = name.clone();
        if secret.is_none() && !self.is_plain() {
            return Err(LocalError::SecretLost { namespace, path });
        }
        names::refuse_other_width(record, secret, width)?;
        if names::width_of(record, secret).is_none() {
            return Err(LocalError::OtherSecret { namespace, path });
        }
        record.verify(&offered)?;
        Ok((offered, true))
    }

    /// The secret, made unless it is there; and its file, if it is new.
    fn own_secret(
        &self,
        directory: &DataDir,
        lock: &Lock,
    ) -> Result<(Option<Secret>, Option<PathBuf>), LocalError> {
        let made = match self.own_file(directory) {
            Some(path) => secret::keep(&path, lock)?.then_some(path),
            None => None,
        };
        Ok((self.existing_secret(directory)?, made))
    }

    fn space(
        &self,
        namespace: Namespace,
        secret: Option<Secret>,
        directory: DataDir,
    ) -> LocalSpace {
        LocalSpace {
            namespace,
            secret,
            made_secret: None,
            begun: None,
            local: self.clone(),
            directory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_suit_every_tick() {
        for tick in ["1ms", "1s", "3600s", "31622400s"] {
            let layout = format!("20/17/17@2024-10-27T03:33:20Z/{tick}");
            let directory = tempfile::tempdir().unwrap();
            Local::of_layout(None)
                .in_directory(directory.path())
                .accept_best_effort(true)
                .make(&layout.parse().unwrap())
                .unwrap();
        }
    }
}
