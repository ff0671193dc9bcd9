//! The file of the report: tried before the run, written whole after it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, bail};

/// A file that can be written, and still is as it was.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// Beside it, until it takes its place.
    draft: PathBuf,
}

impl Output {
    /// Makes sure that `path` can be written. What stands there stays.
    pub(super) fn new(path: &Path) -> Result<Self> {
        let refused = || format!("the report can't be written to {}", path.display());
        if path.is_dir() {
            bail!("{}: it is a directory; name a file in it", refused());
        }
        let Some(name) = path.file_name() else {
            bail!("{}: it has no file name", refused());
        };
        if let Err(error) = OpenOptions::new().append(true).open(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(error).with_context(refused);
        }
        let mut draft_name = name.to_owned();
        draft_name.push(format!(".{}.draft", process::id()));
        let draft = path.with_file_name(draft_name);
        let made = OpenOptions::new().write(true).create_new(true).open(&draft);
        made.with_context(refused)?;
        Ok(Self {
            path: path.to_owned(),
            draft,
        })
    }

    /// Puts `text` there, all of it or nothing.
    pub(super) fn write(self, text: &str) -> Result<()> {
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&self.draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&self.draft, &self.path)
        };
        write().with_context(|| format!("the report can't be written to {}", self.path.display()))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Gone already if the report was written.
        let _ = fs::remove_file(&self.draft);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files_in(directory: &tempfile::TempDir) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_report_takes_the_place_of_another_at_the_end_or_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tune.html");
        drop(Output::new(&path).unwrap());
        assert_eq!(files_in(&directory), 0);
        fs::write(&path, "old").unwrap();
        let output = Output::new(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        output.write("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(files_in(&directory), 1);
    }

    #[test]
    fn what_can_not_be_written_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        for wrong in [
            directory.path(),
            &directory.path().join("missing/tune.html"),
            &file.join("tune.html"),
            Path::new("/"),
            Path::new(""),
        ] {
            let error = Output::new(wrong).unwrap_err().to_string();
            assert!(error.contains("can't be written"), "{error}");
        }
    }
}
