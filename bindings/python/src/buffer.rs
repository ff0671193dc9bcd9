//! Buffers of other objects, by `memoryview` and `ctypes`: the stable ABI of Python 3.9 has no
//! buffer protocol.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use engine::Id;

use crate::error::{Failure, Kind};

/// A writable, contiguous buffer of 64-bit integers. While this exists, its owner can neither
/// move nor free the memory.
pub(crate) struct Buffer<'py> {
    /// A ctypes array on the memory, which keeps the export of the buffer.
    _array: Bound<'py, PyAny>,
    start: *mut u64,
    length: usize,
}

impl<'py> Buffer<'py> {
    pub(crate) fn of(object: &Bound<'py, PyAny>, fits_signed: bool) -> PyResult<Self> {
        let py = object.py();
        let view = PyMemoryView::from(object)?;
        let format: String = view.getattr("format")?.extract()?;
        let size: usize = view.getattr("itemsize")?.extract()?;
        let native = [
            '@',
            '=',
            if cfg!(target_endian = "little") {
                '<'
            } else {
                '>'
            },
        ];
        let kind = format.strip_prefix(native).unwrap_or(&format);
        let is_signed = match kind {
            "Q" | "L" | "N" if size == 8 => false,
            "q" | "l" | "n" if size == 8 => true,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "a buffer of 64-bit integers is needed, such as array('Q') or NumPy's uint64: \
                     this one has format {format:?} and items of {size} bytes"
                )));
            }
        };
        if view.getattr("readonly")?.extract()? {
            return Err(PyTypeError::new_err("the buffer is read-only"));
        }
        if !view.getattr("c_contiguous")?.extract::<bool>()? {
            return Err(PyValueError::new_err(
                "the buffer is not contiguous: give a contiguous one",
            ));
        }
        if is_signed && !fits_signed {
            return Err(Failure::new(
                Kind::Config,
                "the buffer has signed integers, and these IDs have 64 bits: give an unsigned one, \
                 such as array('Q'), or make the generator with `width=\"positive\"`",
            )
            .into());
        }
        let bytes: usize = view.getattr("nbytes")?.extract()?;
        let ctypes = py.import("ctypes")?;
        let array = ctypes
            .getattr("c_char")?
            .mul(bytes)?
            .call_method1("from_buffer", (view,))?;
        let start: usize = ctypes.call_method1("addressof", (&array,))?.extract()?;
        Ok(Self {
            _array: array,
            start: start as *mut u64,
            length: bytes / size,
        })
    }

    /// In IDs.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Copies IDs into the buffer, from item `at` on. The GIL is held, so no Python code reads
    /// half of them.
    pub(crate) fn write(&self, at: usize, ids: &[Id]) {
        assert!(at <= self.length && ids.len() <= self.length - at);
        // SAFETY: within the buffer, by the assertion.
        let start = unsafe { self.start.add(at) }.cast::<u8>();
        // By bytes, because a buffer may be unaligned.
        // SAFETY: writable memory of a buffer that is exported, and an `Id` is a `u64`.
        unsafe { start.copy_from_nonoverlapping(ids.as_ptr().cast(), size_of_val(ids)) };
    }
}
