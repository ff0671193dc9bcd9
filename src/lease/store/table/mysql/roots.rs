//! The authorities that this machine knows, as a file: the driver knows those of
//! the web by heart, and reads others from a file only.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::lease::store::connect::tls;

/// A file that is there as long as this is.
pub(super) struct RootsFile {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    _memory: File,
}

impl RootsFile {
    /// None where this machine knows no authority.
    pub(super) fn of_this_machine() -> io::Result<Option<Self>> {
        let mut pem = String::new();
        for certificate in tls::roots_of_this_machine() {
            let text = STANDARD.encode(&certificate);
            pem += "-----BEGIN CERTIFICATE-----\n";
            for at in (0..text.len()).step_by(64) {
                pem += &text[at..text.len().min(at + 64)];
                pem.push('\n');
            }
            pem += "-----END CERTIFICATE-----\n";
        }
        if pem.is_empty() {
            return Ok(None);
        }
        Self::holding(pem.as_bytes()).map(Some)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// In memory: a container may have no disk that can be written to.
    #[cfg(target_os = "linux")]
    fn holding(bytes: &[u8]) -> io::Result<Self> {
        use std::os::fd::{AsRawFd, FromRawFd};

        // SAFETY: the name ends with a zero and lives as long as the program.
        let file = unsafe { libc::memfd_create(c"roots".as_ptr(), libc::MFD_CLOEXEC) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just made, and nobody else has it.
        let mut memory = unsafe { File::from_raw_fd(file) };
        memory.write_all(bytes)?;
        Ok(Self {
            path: format!("/proc/self/fd/{}", memory.as_raw_fd()).into(),
            _memory: memory,
        })
    }

    /// Under a name that nobody had before.
    #[cfg(not(target_os = "linux"))]
    fn holding(bytes: &[u8]) -> io::Result<Self> {
        use std::sync::atomic::{AtomicU64, Ordering};

        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "ringflake-roots-{}-{}.pem",
            std::process::id(),
            // Relaxed: a number of its own is all that is asked for.
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        // From here on it goes with this.
        let roots = Self { path };
        file.write_all(bytes)?;
        Ok(roots)
    }
}

#[cfg(not(target_os = "linux"))]
impl Drop for RootsFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_as_long_as_it_is_there() {
        let file = RootsFile::holding(b"certificates").unwrap();
        let path = file.path().to_owned();
        for _ in 0..2 {
            assert_eq!(std::fs::read(&path).unwrap(), b"certificates");
        }
        drop(file);
        assert_ne!(std::fs::read(&path).unwrap_or_default(), b"certificates");
    }
}
