//! The extension module of the Python package `ringflake`. The package's own files are in
//! `python/ringflake`.

#![warn(clippy::unwrap_used, clippy::expect_used)]
#![allow(unreachable_pub, reason = "what PyO3's macros make is public")]

mod buffer;
mod config;
mod error;
mod fork;
mod generator;
mod text;

use engine::Id;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::generator::{Generator, to_id};

/// Makes a generator and opens it.
#[pyfunction]
#[pyo3(signature = (options, /))]
fn open_now(py: Python<'_>, options: Bound<'_, PyDict>) -> PyResult<Generator> {
    let generator = Generator::unopened(&options)?;
    generator.open(py)?;
    Ok(generator)
}

/// Makes a generator that is opened by its first use.
#[pyfunction]
#[pyo3(signature = (options, /))]
fn open_later(options: Bound<'_, PyDict>) -> PyResult<Generator> {
    Generator::unopened(&options)
}

/// Returns the ID of a text, as `take_text` and `to_text` write it with the same prefix.
///
/// Raises `ParseError` if the text is no ID, or has another prefix.
#[pyfunction]
#[pyo3(signature = (text, prefix=None, /))]
fn parse(text: &str, prefix: Option<&str>) -> PyResult<u64> {
    Ok(self::text::parse(text, prefix)?.to_u64())
}

/// Returns the text of an ID: `3ip9iuvinajdb`, or `order_3ip9iuvinajdb` with the prefix `order`.
#[pyfunction]
#[pyo3(signature = (an_id, prefix=None, /))]
fn to_text(an_id: &Bound<'_, PyAny>, prefix: Option<&str>) -> PyResult<String> {
    let id: Id = to_id(an_id)?;
    Ok(self::text::write(id, prefix)?)
}

/// Refuses subinterpreters: their objects would be shared through statics.
fn check_interpreter(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the GIL is held, so there is a current interpreter.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the current interpreter.
    match unsafe { ffi::PyInterpreterState_GetID(interpreter) } {
        0 => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(
            "ringflake can't be used in a subinterpreter: use it in the main interpreter, or in \
             another process",
        )),
    }
}

// State is protected by the GIL, see `generator`.
#[pymodule(gil_used = true)]
fn _ringflake(module: &Bound<'_, PyModule>) -> PyResult<()> {
    check_interpreter(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Generator>()?;
    module.add_function(wrap_pyfunction!(open_now, module)?)?;
    module.add_function(wrap_pyfunction!(open_later, module)?)?;
    module.add_function(wrap_pyfunction!(parse, module)?)?;
    module.add_function(wrap_pyfunction!(to_text, module)?)?;
    fork::register(module.py())
}
