//! The keyword arguments of `local` and `open`, and the generator that they describe.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use engine::lease::{History, OpenOptions, open};
use engine::{
    CachedGenerator, CachedGeneratorBuilder, IdWidth, Layout, Local, OnEmpty, Secret, ThresholdFill,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Failure, Kind, Outcome};

/// A configuration that was read and checked. No `Debug`: the URL of a store may hold a
/// password.
#[derive(Clone)]
pub(crate) struct Config {
    source: Source,
    layout: Layout,
    width: IdWidth,
    plain: bool,
    best_effort: bool,
    blocks: Option<u32>,
    lease_duration: Option<Duration>,
    wait: Option<Duration>,
    borrow_limit: Option<Duration>,
    capacity: Option<usize>,
    threshold: Option<u32>,
    on_empty: OnEmpty,
}

/// Where leases come from.
#[derive(Clone)]
enum Source {
    Local {
        name: String,
        data_dir: Option<PathBuf>,
    },
    Store {
        url: String,
        namespace: String,
        /// None for plain IDs.
        secret_file: Option<PathBuf>,
        block_bits: Option<u32>,
        init_if_new: Option<History>,
        timeout: Option<Duration>,
    },
}

impl Config {
    /// Reads the arguments of `local`, which have a `name`, or of `open`, which have a `url`.
    pub(crate) fn read(options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = Options(options);
        let plain = options.get("plain")?.unwrap_or(false);
        let width = options.choice("width", &WIDTHS)?.unwrap_or_default();
        let layout = match options.get::<String>("layout")? {
            None => default_layout(width),
            Some(text) => text
                .parse::<Layout>()
                .map_err(|error| wrong_value("layout", &text, &error.to_string()))?,
        };
        check_width(&layout, width, plain)?;
        Ok(Self {
            source: Source::read(&options, plain)?,
            layout,
            width,
            plain,
            best_effort: options.get("best_effort")?.unwrap_or(false),
            blocks: options.number("blocks", 1..=256)?,
            lease_duration: options.time("lease_duration")?,
            wait: options.time("wait")?,
            borrow_limit: options.time("borrow_limit")?,
            capacity: options
                .number("capacity", 1..=u32::MAX)?
                .map(|slots| slots as usize),
            threshold: options.number("threshold", 1..=100)?,
            on_empty: options.choice("on_empty", &ON_EMPTY)?.unwrap_or_default(),
        })
    }

    /// The name of the ID space.
    pub(crate) fn name(&self) -> &str {
        match &self.source {
            Source::Local { name, .. } => name,
            Source::Store { namespace, .. } => namespace,
        }
    }

    /// Whether every ID is below 2^63.
    pub(crate) fn fits_signed(&self) -> bool {
        self.width.bits() < 64 || self.plain && self.layout.total_bits() < 64
    }

    /// Makes the generator, and waits for its first lease.
    pub(crate) fn open(&self) -> Outcome<CachedGenerator> {
        let builder = self.with_source()?;
        // Refuses what is wrong before a store is asked.
        builder.check()?;
        let built = match self.wait {
            Some(Duration::ZERO) => builder.build_detached(),
            _ => builder.build(),
        };
        built.map_err(Into::into)
    }

    fn with_source(&self) -> Outcome<CachedGeneratorBuilder> {
        let builder = self.builder();
        match &self.source {
            Source::Local { name, data_dir } => {
                let mut local = Local::new(name).accept_best_effort(self.best_effort);
                if let Some(path) = data_dir {
                    local = local.in_directory(path);
                }
                Ok(builder.local(local))
            }
            Source::Store {
                url,
                namespace,
                secret_file,
                block_bits,
                init_if_new,
                timeout,
            } => {
                let mut options = OpenOptions::new().accept_best_effort(self.best_effort);
                if let Some(timeout) = timeout {
                    options = options.timeout(*timeout);
                }
                // The message holds no part of the URL, which may hold a password.
                let store = open(url, &options).map_err(|error| wrong(error.to_string()))?;
                let mut builder = builder.lease_store(store).namespace(namespace);
                if let Some(path) = secret_file {
                    builder = builder.secret(Secret::from_file(path)?);
                }
                if let Some(bits) = block_bits {
                    builder = builder.block_bits(*bits);
                }
                if let Some(history) = init_if_new {
                    builder = builder.init_if_new(*history);
                }
                Ok(builder)
            }
        }
    }

    /// A builder with everything but the source of leases.
    fn builder(&self) -> CachedGeneratorBuilder {
        let mut builder = CachedGenerator::builder(self.layout)
            .id_width(self.width)
            .on_empty(self.on_empty);
        if self.plain {
            builder = builder.plain();
        }
        if let Some(count) = self.blocks {
            builder = builder.blocks(count);
        }
        if let Some(duration) = self.lease_duration {
            builder = builder.lease_duration(duration);
        }
        if let Some(wait) = self.wait.filter(|wait| !wait.is_zero()) {
            builder = builder.first_lease_within(wait);
        }
        if let Some(limit) = self.borrow_limit {
            builder = builder.borrow_limit(limit);
        }
        if let Some(slots) = self.capacity {
            builder = builder.capacity(slots);
        }
        if let Some(percent) = self.threshold {
            builder = builder.threshold_fill(ThresholdFill::percent(percent));
        }
        builder
    }
}

impl Source {
    fn read(options: &Options<'_, '_>, plain: bool) -> PyResult<Self> {
        if let Some(name) = options.get("name")? {
            let data_dir = options.get("data_dir")?;
            return Ok(Self::Local { name, data_dir });
        }
        let secret_file: Option<PathBuf> = options.get("secret_file")?;
        if plain && secret_file.is_some() {
            return Err(
                wrong("`plain=True` encrypts nothing: leave out `plain` or `secret_file`").into(),
            );
        }
        if !plain && secret_file.is_none() {
            return Err(wrong(
                "a store needs `secret_file`, the same secret for every program of the namespace, \
                 or `plain=True` for IDs that are not encrypted",
            )
            .into());
        }
        let timeout = options.time("timeout")?;
        if timeout.is_some_and(|timeout| timeout < Duration::from_millis(1)) {
            return Err(wrong("`timeout` is wrong: give at least 0.001 seconds").into());
        }
        Ok(Self::Store {
            url: options.required("url")?,
            namespace: options.required("namespace")?,
            secret_file,
            block_bits: options.number("block_bits", 0..=32)?,
            init_if_new: options.choice("init_if_new", &HISTORIES)?,
            timeout,
        })
    }
}

/// Keyword arguments with their values. `None` stands for the default.
struct Options<'a, 'py>(&'a Bound<'py, PyDict>);

impl<'py> Options<'_, 'py> {
    fn get<T: FromPyObjectOwned<'py>>(&self, key: &str) -> PyResult<Option<T>> {
        let value = self.0.get_item(key)?.filter(|value| !value.is_none());
        let Some(value) = value else {
            return Ok(None);
        };
        let kind = value.get_type();
        let value = value.extract().map_err(|error: T::Error| {
            let error: PyErr = error.into();
            let py = kind.py();
            match error.is_instance_of::<PyOverflowError>(py) {
                true => wrong(format!("`{key}` is wrong: the number is out of range")).into(),
                false => PyTypeError::new_err(format!("`{key}` is wrong: {}", error.value(py))),
            }
        })?;
        Ok(Some(value))
    }

    fn required<T: FromPyObjectOwned<'py>>(&self, key: &str) -> PyResult<T> {
        let value = self.get(key)?;
        value.ok_or_else(|| PyTypeError::new_err(format!("`{key}` is required")))
    }

    fn number(&self, key: &str, allowed: RangeInclusive<u32>) -> PyResult<Option<u32>> {
        let Some(value) = self.get::<i64>(key)? else {
            return Ok(None);
        };
        match u32::try_from(value) {
            Ok(number) if allowed.contains(&number) => Ok(Some(number)),
            _ => {
                let allowed = format!("give {} to {}", allowed.start(), allowed.end());
                Err(wrong_value(key, &value.to_string(), &allowed).into())
            }
        }
    }

    /// Seconds.
    fn time(&self, key: &str) -> PyResult<Option<Duration>> {
        let Some(seconds) = self.get::<f64>(key)? else {
            return Ok(None);
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) => Ok(Some(time)),
            Err(_) => {
                let value = seconds.to_string();
                Err(wrong_value(key, &value, "give seconds, 0 or more").into())
            }
        }
    }

    fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> PyResult<Option<T>> {
        let Some(value) = self.get::<String>(key)? else {
            return Ok(None);
        };
        match choices.iter().find(|(name, _)| *name == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => {
                let names: Vec<_> = choices
                    .iter()
                    .map(|(name, _)| format!("{name:?}"))
                    .collect();
                let allowed = format!("give one of {}", names.join(", "));
                Err(wrong_value(key, &format!("{value:?}"), &allowed).into())
            }
        }
    }
}

const WIDTHS: [(&str, IdWidth); 3] = [
    ("full", IdWidth::Full),
    ("positive", IdWidth::Positive),
    ("js_safe", IdWidth::JsSafe),
];
const ON_EMPTY: [(&str, OnEmpty); 2] = [("generate", OnEmpty::Generate), ("error", OnEmpty::Error)];
const HISTORIES: [(&str, History); 2] = [("new", History::New), ("unknown", History::Unknown)];

fn default_layout(width: IdWidth) -> Layout {
    match width {
        IdWidth::Positive => Layout::POSITIVE,
        IdWidth::JsSafe => Layout::JS_SAFE,
        _ => Layout::RANDFLAKE,
    }
}

#[cold]
fn wrong(message: impl Into<String>) -> Box<Failure> {
    Failure::new(Kind::Config, message)
}

#[cold]
fn wrong_value(key: &str, value: &str, allowed: &str) -> Box<Failure> {
    wrong(format!("`{key}={value}` is wrong: {allowed}"))
}

/// Refuses what a builder refuses, in the words of the keyword arguments.
fn check_width(layout: &Layout, width: IdWidth, plain: bool) -> Outcome<()> {
    let (bits, allowed) = (layout.total_bits(), width.layout_bits());
    if bits > width.bits() || !plain && !allowed.contains(&bits) {
        let name = width.name().replace('-', "_");
        return Err(wrong(format!(
            "the layout has {bits} bits, and `width=\"{name}\"` needs one of {} to {}: give \
             another `layout` or `width`",
            allowed.start(),
            allowed.end(),
        )));
    }
    Ok(())
}
