//! The encryption between a raw number and an ID.
//!
//! SPARX-64/128 is a block cipher of 64-bit blocks and 128-bit keys, so it maps the 2^64 raws one
//! to one onto the 2^64 IDs: distinct raws give distinct IDs. It hides order, rate and node from
//! anyone who has IDs but not the [`Secret`]. It does not authenticate: every 64-bit value decrypts
//! to some raw, so decrypting an ID proves nothing about where it came from.
//!
//! Source: Dinu, Perrin, Udovenko, Velichkov, Großschädl, Biryukov, "Design
//! Strategies for ARX with Provable Bounds: SPARX and LAX", ASIACRYPT 2016.
//!
//! [`Cipher::positive`] does the same to the 2^63 numbers below 2^63, for those who keep IDs as
//! signed numbers and want none below zero; `Cipher::js_safe` to those below 2^53, by another
//! cipher.
//!
//! # Bytes and words
//!
//! A raw is eight little-endian bytes, of which the cipher reads its four
//! 16-bit words big-endian; an ID is written the same way. The secret is eight
//! big-endian words.
//!
//! # Unsafe
//!
//! Only the files of the vector instruction sets contain it, apart from tests: `sse41`, `avx2`,
//! `avx512bw`, `avx512vbmi2`, `neon`; and the macro in `vectors` that writes their methods.

use std::fmt;
use std::sync::Arc;

mod arx;
mod backend;
#[cfg(feature = "js-safe")]
mod ff1;
mod kernel;
mod portable;
mod scalar;
mod schedule;
mod secret;
mod shared_words;
mod sparx64;
mod task;
mod vectors;
mod walk;
mod width;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512bw;
#[cfg(target_arch = "x86_64")]
mod avx512vbmi2;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
#[cfg(target_arch = "x86_64")]
mod sse41;

use self::backend::Engine;
#[cfg(feature = "js-safe")]
use self::ff1::Ff1;
use self::sparx64::Sparx64;

pub use self::backend::{Backend, BackendUnavailable};
pub use self::secret::{Secret, SecretError, shell_quoted};
#[cfg(unix)]
pub(crate) use self::secret::{as_owner, chown_to};
pub use self::width::{IdWidth, IdWidthUnavailable};

/// A one-to-one map between raws and IDs: SPARX-64/128, on all 64-bit numbers or on those
/// below 2<sup>63</sup>; FF1, on those below 2<sup>53</sup>; or none at all.
///
/// IDs that SPARX encrypted fall evenly into shards, by remainder, low bits or high bits,
/// whenever they were made, tested for 2 to 4,096 shards; plain ones do not.
///
/// Every call is a pure function of the key and its arguments: no lock, no
/// allocation, no shared state, so one `Cipher` serves any number of threads.
/// Runs are encrypted many blocks at a time by the [`Backend`] that was chosen
/// when the key was set up; all backends give the same IDs.
///
/// The expanded key stays in one heap allocation, which clones share, and is
/// overwritten with zeros when the last of them is dropped.
///
/// # Examples
///
/// ```
/// use ringflake::{Cipher, Secret};
///
/// let secret = Secret::from_hex("00112233445566778899aabbccddeeff")?;
/// let cipher = Cipher::sparx64(&secret);
///
/// let mut ids = [0; 100];
/// cipher.encrypt_run(7_000, &mut ids);
/// assert_eq!(ids[1], cipher.encrypt(7_001));
/// assert_eq!(cipher.decrypt(ids[99]), 7_099);
/// # Ok::<(), ringflake::SecretError>(())
/// ```
#[derive(Clone)]
pub struct Cipher {
    algorithm: Algorithm,
}

#[derive(Clone)]
enum Algorithm {
    /// Raws stay as they are.
    Plain,
    Sparx(Arc<Sparx64>),
    #[cfg(feature = "js-safe")]
    Ff1(Arc<Ff1>),
}

impl Cipher {
    /// Sets up SPARX-64/128 under `secret`, on the fastest backend available.
    ///
    /// The environment variable `RINGFLAKE_BACKEND`, read here and nowhere
    /// else, forces a backend by its name (see [`Backend`]). A value that names
    /// none, or one that this processor cannot run, is reported in a `tracing`
    /// warning and otherwise ignored, since every backend gives the same IDs.
    ///
    /// Costs well under a microsecond and one allocation.
    pub fn sparx64(secret: &Secret) -> Self {
        Self::with_engine(secret, Engine::from_environment(), false)
    }

    /// Sets up SPARX-64/128 under `secret` on a given backend.
    ///
    /// # Errors
    ///
    /// [`BackendUnavailable`] if this processor cannot run `backend`; see
    /// [`Backend::available`].
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Backend, Cipher, Secret};
    ///
    /// let secret = Secret::from_bytes([7; 16]);
    /// let cipher = Cipher::with_backend(&secret, Backend::Portable)?;
    /// assert_eq!(cipher.backend(), Backend::Portable);
    /// # Ok::<(), ringflake::BackendUnavailable>(())
    /// ```
    pub fn with_backend(secret: &Secret, backend: Backend) -> Result<Self, BackendUnavailable> {
        let engine = Engine::new(backend).ok_or(BackendUnavailable::new(backend))?;
        Ok(Self::with_engine(secret, engine, false))
    }

    /// Sets up a cipher for positive IDs: a one-to-one map of the raws below 2<sup>63</sup>
    /// onto the IDs below 2<sup>63</sup>, which [`Id::to_i64`](crate::Id::to_i64) gives as 0
    /// or more.
    ///
    /// For layouts of at most 63 bits, as `twitter`. It is SPARX-64/128 again, applied until
    /// the highest bit is clear (cycle-walking): twice on average, more than `n` times with a
    /// probability of 2<sup>-n</sup>. So a call takes twice as long on average as one of
    /// [`sparx64`](Self::sparx64). A run of 1,024 takes three to six times as long, one of 64
    /// up to nine times, since each run waits for its longest walk. A call has up to 18 kB on the
    /// stack, and 1.2 kB for 64 numbers or fewer. Its IDs are different ones: under the same
    /// secret the two agree only where the first try is positive.
    ///
    /// Raws and IDs of 2<sup>63</sup> and above are outside: [`encrypt`](Self::encrypt) and
    /// [`decrypt`](Self::decrypt) give them back as they are, and
    /// [`Inspector`](crate::Inspector) refuses them.
    ///
    /// The backend is chosen as by [`sparx64`](Self::sparx64).
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Cipher, Id, Secret};
    ///
    /// let secret = Secret::from_hex("00112233445566778899aabbccddeeff")?;
    /// let cipher = Cipher::positive(&secret);
    ///
    /// let id = Id::from_u64(cipher.encrypt(7_000));
    /// assert!(id.to_i64() >= 0);
    /// assert_eq!(cipher.decrypt(id.to_u64()), 7_000);
    /// assert_eq!(cipher.id_bits(), 63);
    /// # Ok::<(), ringflake::SecretError>(())
    /// ```
    pub fn positive(secret: &Secret) -> Self {
        Self::with_engine(secret, Engine::from_environment(), true)
    }

    /// [`positive`](Self::positive) on a given backend.
    ///
    /// # Errors
    ///
    /// [`BackendUnavailable`] if this processor cannot run `backend`; see
    /// [`Backend::available`].
    pub fn positive_with_backend(
        secret: &Secret,
        backend: Backend,
    ) -> Result<Self, BackendUnavailable> {
        let engine = Engine::new(backend).ok_or(BackendUnavailable::new(backend))?;
        Ok(Self::with_engine(secret, engine, true))
    }

    fn with_engine(secret: &Secret, engine: Engine, is_positive: bool) -> Self {
        Self {
            algorithm: Algorithm::Sparx(Sparx64::new(secret, engine, is_positive)),
        }
    }

    /// Sets up a cipher for IDs that JavaScript's numbers hold: a one-to-one map of the raws
    /// below 2<sup>53</sup> onto the IDs below 2<sup>53</sup>. Needs the feature `js-safe`.
    ///
    /// For layouts of at most 53 bits, as `js-safe`. It is NIST's FF1 (SP 800-38G) with
    /// AES-128: 53 digits of radix 2, the most significant bit first, under the 16 bytes of
    /// the secret and an empty tweak.
    ///
    /// An ID takes about 0.7 us, in a run as well: a producer makes 1.4 million a second.
    /// (`cargo bench --features js-safe --bench encrypt -- js_safe`, on a processor with AES
    /// instructions.)
    ///
    /// Numbers of 2<sup>53</sup> and above are outside, as in [`positive`](Self::positive). Calls
    /// copy the expanded key to the stack and overwrite the copies; the copy of the set-up may
    /// stay there.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Cipher, Secret};
    ///
    /// let secret = Secret::from_hex("00112233445566778899aabbccddeeff")?;
    /// let cipher = Cipher::js_safe(&secret);
    ///
    /// assert_eq!(cipher.encrypt(1), 261_380_776_365_329);
    /// assert_eq!(cipher.id_bits(), 53);
    /// # Ok::<(), ringflake::SecretError>(())
    /// ```
    #[cfg(feature = "js-safe")]
    pub fn js_safe(secret: &Secret) -> Self {
        Self {
            algorithm: Algorithm::Ff1(Arc::new(Ff1::new(secret))),
        }
    }

    /// The cipher for IDs of this width under `secret`.
    ///
    /// # Errors
    ///
    /// [`IdWidthUnavailable`] for [`IdWidth::JsSafe`] without the feature `js-safe`.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Cipher, IdWidth, Secret};
    ///
    /// let secret = Secret::from_bytes([7; 16]);
    /// assert_eq!(Cipher::of_width(&secret, IdWidth::Positive)?.id_bits(), 63);
    /// # Ok::<(), ringflake::IdWidthUnavailable>(())
    /// ```
    pub fn of_width(secret: &Secret, width: IdWidth) -> Result<Self, IdWidthUnavailable> {
        width.check_available()?;
        Ok(match width {
            #[cfg(feature = "js-safe")]
            IdWidth::JsSafe => Self::js_safe(secret),
            IdWidth::Positive => Self::positive(secret),
            _ => Self::sparx64(secret),
        })
    }

    /// About how many IDs of a run are made in a microsecond, by processors between the
    /// fastest and half as fast; a power of two.
    pub(crate) fn ids_in_a_microsecond(&self) -> usize {
        let sparx = match &self.algorithm {
            Algorithm::Plain => return 512,
            Algorithm::Sparx(sparx) => sparx,
            #[cfg(feature = "js-safe")]
            Algorithm::Ff1(_) => return 1,
        };
        let encryptions = match sparx.backend() {
            Backend::Avx512Vbmi2 | Backend::Avx512Bw => 512,
            Backend::Avx2 | Backend::Neon => 256,
            Backend::Sse41 => 128,
            Backend::Portable => 64,
        };
        // A walk takes two on average.
        encryptions >> u32::from(sparx.is_positive())
    }

    /// No encryption: an ID is its raw, and IDs sort by time.
    ///
    /// # Examples
    ///
    /// ```
    /// let cipher = ringflake::Cipher::plain();
    /// assert!(cipher.is_plain());
    /// assert_eq!(cipher.encrypt(42), 42);
    /// ```
    pub const fn plain() -> Self {
        Self {
            algorithm: Algorithm::Plain,
        }
    }

    /// Whether this is [`Cipher::plain`].
    pub const fn is_plain(&self) -> bool {
        matches!(self.algorithm, Algorithm::Plain)
    }

    /// Bits that an ID may have: 63 for [`Cipher::positive`], 53 for `Cipher::js_safe`, or
    /// else 64.
    ///
    /// Raws may have as many. Those of a plain cipher are its IDs, and have as many as their
    /// layout.
    pub fn id_bits(&self) -> u32 {
        match &self.algorithm {
            Algorithm::Sparx(sparx) if sparx.is_positive() => walk::BITS,
            #[cfg(feature = "js-safe")]
            Algorithm::Ff1(_) => ff1::BITS,
            _ => u64::BITS,
        }
    }

    /// The backend that [`encrypt_run`](Self::encrypt_run) uses;
    /// [`Backend::Portable`] for a plain cipher, and for IDs of 53 bits.
    pub fn backend(&self) -> Backend {
        match &self.algorithm {
            Algorithm::Sparx(sparx) => sparx.backend(),
            _ => Backend::Portable,
        }
    }

    /// The ID of one raw; any `u64` is allowed.
    ///
    /// About twenty nanoseconds, twice that for a [`positive`](Self::positive) ID on average;
    /// [`encrypt_run`](Self::encrypt_run) takes a quarter to a fortieth of that per ID.
    pub fn encrypt(&self, raw: u64) -> u64 {
        match &self.algorithm {
            Algorithm::Sparx(sparx) => sparx.encrypt(raw),
            #[cfg(feature = "js-safe")]
            Algorithm::Ff1(ff1) => ff1.encrypt(raw),
            Algorithm::Plain => raw,
        }
    }

    /// The raw of one ID; any `u64` is allowed, and decrypts to something.
    ///
    /// About twenty nanoseconds, twice that for a [`positive`](Self::positive) ID on average.
    pub fn decrypt(&self, id: u64) -> u64 {
        match &self.algorithm {
            Algorithm::Sparx(sparx) => sparx.decrypt(id),
            #[cfg(feature = "js-safe")]
            Algorithm::Ff1(ff1) => ff1.decrypt(id),
            Algorithm::Plain => id,
        }
    }

    /// Fills `out` with the IDs of consecutive raws:
    /// `out[i] = encrypt(first.wrapping_add(i))`.
    ///
    /// Any length and any start are allowed. Lengths that are multiples of 64
    /// are the fastest; a rest shorter than a vector of the backend (at most
    /// 32 blocks) costs as much as the whole vector.
    pub fn encrypt_run(&self, first: u64, out: &mut [u64]) {
        match &self.algorithm {
            Algorithm::Sparx(sparx) => sparx.encrypt_run(first, out),
            #[cfg(feature = "js-safe")]
            Algorithm::Ff1(ff1) => {
                count_up(first, out);
                for id in out {
                    *id = ff1.encrypt(*id);
                }
            }
            Algorithm::Plain => count_up(first, out),
        }
    }
}

/// Fills `out` with consecutive raws.
fn count_up(first: u64, out: &mut [u64]) {
    for (id, offset) in out.iter_mut().zip(0..) {
        *id = first.wrapping_add(offset);
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.algorithm {
            Algorithm::Sparx(sparx) => f
                .debug_struct("Cipher")
                .field("algorithm", &"SPARX-64/128")
                .field("id_bits", &self.id_bits())
                .field("backend", &format_args!("{}", sparx.backend()))
                .finish_non_exhaustive(),
            #[cfg(feature = "js-safe")]
            Algorithm::Ff1(_) => f
                .debug_struct("Cipher")
                .field("algorithm", &"FF1, AES-128")
                .field("id_bits", &self.id_bits())
                .finish_non_exhaustive(),
            Algorithm::Plain => f.write_str("Cipher(plain)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_as_many_positive_ids_are_made_in_a_microsecond() {
        let secret = Secret::from_bytes([1; 16]);
        for backend in Backend::available() {
            let wide = Cipher::with_backend(&secret, backend).unwrap();
            let positive = Cipher::positive_with_backend(&secret, backend).unwrap();
            let halved = wide.ids_in_a_microsecond() / 2;
            assert_eq!(positive.ids_in_a_microsecond(), halved, "{backend}");
        }
    }
}
