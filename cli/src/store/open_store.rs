//! The store that a command is about, opened and ready to be asked.

use anyhow::Result;
use clap::Args;
use ringflake::lease::{LeaseStore, Namespace, StoreError};
use ringflake::{Clock, SystemClock};

use crate::args::TargetArgs;
use crate::data_dir::DataDir;
use crate::format::FormatArgs;
use crate::leases::{Purpose, StoreTarget};

/// The options that all of these commands have.
#[derive(Args)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    pub(super) output: FormatArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
}

/// A store with the namespace that a command is about.
pub(super) struct OpenStore {
    pub(super) target: StoreTarget,
    pub(super) store: Box<dyn LeaseStore>,
    pub(super) now_unix_ms: u64,
}

impl OpenStore {
    /// The store as `args` name it. Its file must exist where it is one of ours.
    pub(super) fn open(args: &CommonArgs, data_dir: &DataDir) -> Result<Self> {
        let target = StoreTarget::find(&args.target, data_dir, Purpose::LookAfter)?;
        if target.file().is_some_and(|path| !path.exists()) {
            return Err(target.explain(StoreError::NotInitialised {
                namespace: target.namespace.name().to_owned(),
            }));
        }
        Ok(Self {
            store: target.open()?,
            target,
            now_unix_ms: SystemClock.unix_ms(),
        })
    }

    /// What the store answers about the namespace at this time, or what to do about its refusal.
    pub(super) fn ask<T>(
        &mut self,
        request: impl FnOnce(&mut dyn LeaseStore, &Namespace, u64) -> Result<T, StoreError>,
    ) -> Result<T> {
        let answer = request(&mut *self.store, &self.target.namespace, self.now_unix_ms);
        answer.map_err(|error| self.target.explain(error))
    }
}
