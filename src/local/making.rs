//! Finding an ID space, and making it at its first use.

use super::definition::Local;
use super::directory::DataDir;
use super::error::LocalError;
use super::names::{self, Which};
use super::space::LocalSpace;
use crate::cipher::Secret;
use crate::layout::Layout;
use crate::lease::past::{Lock, Past};
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
        let records = if directory.leases().exists() {
            self.store(&directory)?.namespaces()?
        } else {
            Vec::new()
        };
        let found = self.on_record(&outline, &records, secret.as_ref())?;
        let namespace = match found {
            Some(namespace) => namespace,
            None => self.choose(&outline, &records, secret.as_ref())?,
        };
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
        self.refuse_brought_secret(&directory, &lock)?;
        let history = self.begin(&directory, &lock)?;
        let (secret, made_secret) = self.own_secret(&directory, &lock)?;
        // No ID was ever made with a secret that was drawn a moment ago. A floor would only
        // keep what a wrong clock shows now.
        let history = match made_secret {
            Some(_) => History::Unused,
            None => history,
        };
        let records = self.store(&directory)?.namespaces()?;
        let namespace = self.choose(&outline, &records, secret.as_ref())?;
        let mut space = self.space(namespace, secret, directory);
        space.made_secret = made_secret;
        space.begun = Some(space.begin(&lock, history)?);
        Ok(space)
    }

    /// The space with its secret, which is made if there is none, but no record:
    /// for one that is to be initialised by hand.
    ///
    /// # Errors
    /// [`LocalError`].
    pub fn make_secret(&self, layout: &Layout) -> Result<LocalSpace, LocalError> {
        let mut made_secret = None;
        if self.has_own_secret() {
            self.outline(layout)?;
            let directory = self.make_directory()?;
            let lock = directory.lock()?;
            if self.kept_secret(&directory)?.is_none() {
                if self.past(&directory, &lock)? == Past::None {
                    directory.begin(&lock, Past::None)?;
                }
                self.refuse_lost_secret(layout, &directory)?;
                (_, made_secret) = self.own_secret(&directory, &lock)?;
            }
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
        if !directory.leases().exists() {
            return Ok(None);
        }
        // The records first: the secret of one that is there is there, too.
        let records = self.store(directory)?.namespaces()?;
        let secret = self.kept_secret(directory)?;
        let Some(namespace) = self.on_record(outline, &records, secret.as_ref())? else {
            return Ok(None);
        };
        self.refuse_secret_elsewhere(directory, secret.as_ref())?;
        Ok(Some(self.space(namespace, secret, directory.clone())))
    }

    /// The namespace on record that is this space's.
    fn on_record(
        &self,
        outline: &Namespace,
        records: &[Namespace],
        secret: Option<&Secret>,
    ) -> Result<Option<Namespace>, LocalError> {
        let width = self.width_of_ids();
        let Which::Named(name) = &self.which else {
            // Also in a namespace of another layout.
            for record in records {
                names::refuse_other_width(record, secret, width)?;
            }
            let record = names::of_secret(outline, records, secret);
            return Ok(record.cloned());
        };
        let Some(record) = records
            .iter()
            .find(|record| record.name() == outline.name())
        else {
            return Ok(None);
        };
        let directory = self.directory()?;
        if self.has_own_secret() && secret.is_none() {
            return Err(LocalError::SecretLost {
                namespace: name.clone(),
                path: directory.secret_of(name),
            });
        }
        names::refuse_other_width(record, secret, width)?;
        if names::width_of(record, secret).is_none() {
            return Err(LocalError::OtherSecret {
                namespace: name.clone(),
                path: directory.secret_of(name),
            });
        }
        let offered = names::keyed(outline, secret, width);
        record.verify(&offered)?;
        Ok(Some(offered))
    }

    /// The namespace of a space that is not on record.
    fn choose(
        &self,
        outline: &Namespace,
        records: &[Namespace],
        secret: Option<&Secret>,
    ) -> Result<Namespace, LocalError> {
        let width = self.width_of_ids();
        match &self.which {
            Which::Named(_) => Ok(names::keyed(outline, secret, width)),
            Which::OfLayout(_) => names::choose(outline, records, secret, width),
        }
    }

    /// Refuses a secret that was not drawn here: others may be making IDs with it, and
    /// no record would show it.
    fn refuse_brought_secret(&self, directory: &DataDir, lock: &Lock) -> Result<(), LocalError> {
        match self.kept_secret(directory)? {
            Some(secret) if !directory.has_drawn(lock, &secret)? => {
                Err(LocalError::SecretBrought {
                    path: self.secret_file()?,
                    directory: directory.path().to_owned(),
                })
            }
            _ => Ok(()),
        }
    }

    fn refuse_lost_secret(&self, layout: &Layout, directory: &DataDir) -> Result<(), LocalError> {
        if !directory.leases().exists() {
            return Ok(());
        }
        let records = self.store(directory)?.namespaces()?;
        self.on_record(&self.outline(layout)?, &records, None)
            .map(drop)
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
