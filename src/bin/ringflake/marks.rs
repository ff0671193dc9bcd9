//! High-water marks: what keeps two runs on one machine apart.
//!
//! # Why no two runs issue the same raw
//!
//! A run issues what its generator hands out, and that lies inside the lease
//! the generator was built with, whatever the clock says. Each lease comes from
//! [`Marks::grant`]. Under a lock that all processes share, it reads what has
//! been granted, adds a rectangle that overlaps none of it ([`slab`]), and
//! writes that to the disk before anybody has the lease. So the leases of all
//! runs are disjoint: at once or one after another, finished or killed, also if
//! the machine loses power.
//!
//! This holds as long as the directory does. A copy of it, or an older version
//! restored from a backup, grants the same rectangles once more.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ringflake::{Clock, Layout, Lease, SystemClock};

use self::slab::Slab;
pub(crate) use self::slab::Wish;
use crate::data_dir;

mod slab;

const FILE_NAME: &str = "marks.json";
const DRAFT_NAME: &str = "marks.json.new";
/// A file of its own, because the other one is replaced rather than written.
const LOCK_NAME: &str = "marks.lock";

/// What has been granted of each layout, by its text.
type Slabs = BTreeMap<String, Slab>;

/// The marks of one data directory.
#[derive(Debug)]
pub(crate) struct Marks {
    directory: PathBuf,
}

impl Marks {
    /// The marks in `directory`, which exists.
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// A lease that no other run has had, nor ever will.
    ///
    /// Waits while another process is in here.
    pub(crate) fn grant(&self, layout: &Layout, wish: &Wish) -> Result<Lease> {
        // Freed when it is closed, so also when this process is killed.
        let _lock = self.lock().with_context(|| self.complaint(LOCK_NAME))?;
        let mut slabs = self.read()?;
        let slab = slabs.entry(layout.to_string()).or_insert(Slab::NOTHING);

        // Only now: waiting for the lock may have taken a while.
        let now_unix_ms = SystemClock.unix_ms();
        layout.check_alive(now_unix_ms)?;
        let grant = slab.grant(layout, wish, now_unix_ms)?;
        self.write(&slabs)
            .with_context(|| self.complaint(FILE_NAME))?;
        Ok(Lease::new(*layout, grant.nodes, grant.ticks)?)
    }

    fn lock(&self) -> io::Result<File> {
        let file = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(self.directory.join(LOCK_NAME))?;
        file.lock()?;
        Ok(file)
    }

    fn read(&self) -> Result<Slabs> {
        match fs::read(self.directory.join(FILE_NAME)) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!(
                    "{}, which keeps runs apart, is damaged: restore it, or remove it \
                     once its times have passed",
                    self.directory.join(FILE_NAME).display()
                )
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Slabs::new()),
            Err(error) => Err(error).with_context(|| self.complaint(FILE_NAME)),
        }
    }

    /// Replaces the file in one step, durably.
    fn write(&self, slabs: &Slabs) -> io::Result<()> {
        let draft = self.directory.join(DRAFT_NAME);
        let mut file = File::create(&draft)?;
        file.write_all(&serde_json::to_vec(slabs)?)?;
        file.sync_all()?;
        fs::rename(&draft, self.directory.join(FILE_NAME))?;
        data_dir::sync(&self.directory)
    }

    fn complaint(&self, name: &str) -> String {
        let path = self.directory.join(name);
        format!("{} can't be used to keep runs apart", path.display())
    }
}
