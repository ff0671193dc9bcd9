//! Which instruction set encrypts many blocks.
//!
//! The kernel in `kernel` is written once; a file for each instruction set gives
//! it the vector operations, and this one chooses among them. A backend's type
//! can be made only where its instructions were detected, so that holding an
//! [`Engine`] is the proof that it may run.
//!
//! Two ways to do with less code were measured beside an earlier form of this one. The loops of
//! `portable`, compiled anew for each instruction set, take 1.2 to 2.2 times as
//! long. One kernel on the crate `fearless_simd` 1.2, without any unsafe code
//! here, is as fast on AVX2 and on long runs of AVX-512, but takes 1.8 times as
//! long on runs of 64, has nothing between AVX2 and the AVX-512 of Ice Lake, and
//! adds seconds to every user's build.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;

use super::portable;
use super::scalar;
use super::schedule::Schedule;
use super::task::Task;
use super::walk;
use crate::events;

#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512bw::Avx512Bw, avx512vbmi2::Avx512Vbmi2, sse41::Sse41};

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
use super::neon::Neon;

/// The environment variable that forces a backend.
const VARIABLE: &str = "RINGFLAKE_BACKEND";

/// An implementation of [`Cipher::encrypt_run`](crate::Cipher::encrypt_run).
///
/// All of them give the same IDs. `Display` gives the name that the environment
/// variable `RINGFLAKE_BACKEND` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// `portable`: plain loops, 64 blocks at a time, for any processor.
    Portable,
    /// `sse4.1`: 8 blocks in a register; x86-64.
    Sse41,
    /// `avx2`: 16 blocks in a register; x86-64.
    Avx2,
    /// `avx512bw`: 32 blocks in a register; x86-64.
    Avx512Bw,
    /// `avx512vbmi2`: as `avx512bw`, with rotations in one instruction.
    Avx512Vbmi2,
    /// `neon`: 8 blocks in a register; 64-bit Arm.
    Neon,
}

impl Backend {
    /// Every backend, the fastest first.
    const ALL: [Self; 6] = [
        Self::Avx512Vbmi2,
        Self::Avx512Bw,
        Self::Avx2,
        Self::Sse41,
        Self::Neon,
        Self::Portable,
    ];

    /// The backends that this processor can run, the fastest first and
    /// [`Portable`](Self::Portable) always last.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::Backend;
    ///
    /// assert_eq!(Backend::available().last(), Some(Backend::Portable));
    /// ```
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(|&backend| Engine::new(backend).is_some())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Sse41 => "sse4.1",
            Self::Avx2 => "avx2",
            Self::Avx512Bw => "avx512bw",
            Self::Avx512Vbmi2 => "avx512vbmi2",
            Self::Neon => "neon",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// This processor cannot run the backend asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendUnavailable {
    /// The backend asked for.
    pub backend: Backend,
}

impl BackendUnavailable {
    pub(super) fn new(backend: Backend) -> Self {
        Self { backend }
    }
}

impl fmt::Display for BackendUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this processor cannot run the backend {}; choose one of {}",
            self.backend,
            available_names()
        )
    }
}

impl Error for BackendUnavailable {}

/// The names of the available backends.
fn available_names() -> String {
    let names: Vec<_> = Backend::available().map(Backend::name).collect();
    names.join(", ")
}

/// A backend that this processor is known to run.
#[derive(Clone, Copy)]
pub(super) enum Engine {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Sse41(Sse41),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512Bw(Avx512Bw),
    #[cfg(target_arch = "x86_64")]
    Avx512Vbmi2(Avx512Vbmi2),
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    Neon(Neon),
}

impl Engine {
    /// The engine of `backend`, if this processor can run it.
    pub(super) fn new(backend: Backend) -> Option<Self> {
        match backend {
            Backend::Portable => Some(Self::Portable),
            #[cfg(target_arch = "x86_64")]
            Backend::Sse41 => Sse41::detect().map(Self::Sse41),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2 => Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512Bw => Avx512Bw::detect().map(Self::Avx512Bw),
            #[cfg(target_arch = "x86_64")]
            Backend::Avx512Vbmi2 => Avx512Vbmi2::detect().map(Self::Avx512Vbmi2),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Backend::Neon => Neon::detect().map(Self::Neon),
            _ => None,
        }
    }

    /// The engine that the environment variable forces, or else the fastest.
    pub(super) fn from_environment() -> Self {
        let value = env::var_os(VARIABLE);
        let forced = value.as_deref().and_then(Self::forced);
        forced.unwrap_or_else(|| {
            let fastest = Self::fastest();
            if let Some(value) = value {
                events::unusable_backend(&value, fastest.backend(), available_names());
            }
            fastest
        })
    }

    fn forced(value: &OsStr) -> Option<Self> {
        let backend = Backend::ALL
            .into_iter()
            .find(|backend| value == backend.name())?;
        Self::new(backend)
    }

    fn fastest() -> Self {
        Backend::ALL
            .into_iter()
            .find_map(Self::new)
            .unwrap_or(Self::Portable)
    }

    pub(super) fn backend(self) -> Backend {
        match self {
            Self::Portable => Backend::Portable,
            #[cfg(target_arch = "x86_64")]
            Self::Sse41(_) => Backend::Sse41,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Backend::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bw(_) => Backend::Avx512Bw,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vbmi2(_) => Backend::Avx512Vbmi2,
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(_) => Backend::Neon,
        }
    }

    /// Does `task` to `blocks`, once.
    pub(super) fn perform(self, schedule: &Schedule, task: Task, blocks: &mut [u64]) {
        match self {
            Self::Portable => portable::perform(schedule, task, blocks),
            #[cfg(target_arch = "x86_64")]
            Self::Sse41(sse41) => sse41.perform(schedule, task, blocks),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.perform(schedule, task, blocks),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Bw(avx512bw) => avx512bw.perform(schedule, task, blocks),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vbmi2(avx512vbmi2) => avx512vbmi2.perform(schedule, task, blocks),
            #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
            Self::Neon(neon) => neon.perform(schedule, task, blocks),
        }
    }

    /// Encrypts those of `blocks` that lie outside the domain of walks until they lie inside.
    pub(super) fn walk_on(self, schedule: &Schedule, blocks: &mut [u64]) {
        if blocks.len() <= 64 {
            // Clearing much memory would take longer than the walks.
            self.walk_in(schedule, blocks, &mut [0; 128 + 16]);
        } else {
            self.walk_far(schedule, blocks);
        }
    }

    // Out of line, so that short runs have no long frame.
    #[inline(never)]
    fn walk_far(self, schedule: &Schedule, blocks: &mut [u64]) {
        // With so much, numbers and lists stay in the first cache.
        self.walk_in(schedule, blocks, &mut [0; 2048 + 256]);
    }

    /// The same, in pieces for which `room` is enough but for bad luck: the lists of a piece are
    /// together about as long as it is.
    fn walk_in(self, schedule: &Schedule, blocks: &mut [u64], room: &mut [u64]) {
        let most = room.len() / 9 * 8;
        let next = |blocks: &mut [u64]| self.step(schedule, blocks);
        for blocks in blocks.chunks_mut(most) {
            walk::walk_on(blocks, room, &next);
        }
    }

    /// One step of walks. A vector takes longer than one or two blocks by themselves.
    fn step(self, schedule: &Schedule, blocks: &mut [u64]) {
        match blocks {
            [] | [_] | [_, _] => {
                for block in blocks {
                    *block = scalar::encrypt(schedule, *block);
                }
            }
            _ => self.perform(schedule, Task::Encrypt, blocks),
        }
    }
}
