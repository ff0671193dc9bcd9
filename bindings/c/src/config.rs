//! The configuration of a generator: its text, and the generator that it describes.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use engine::lease::{History, OpenOptions, open};
use engine::{
    CachedGenerator, CachedGeneratorBuilder, IdWidth, Layout, Local, OnEmpty, Secret, ThresholdFill,
};

use crate::status::ringflake_status::RINGFLAKE_CONFIG;
use crate::status::{Failure, Outcome};

const KEYS: [&str; 21] = [
    "best-effort",
    "block-bits",
    "blocks",
    "borrow-limit",
    "capacity",
    "data-dir",
    "detached",
    "id-width",
    "init-if-new",
    "layout",
    "lease-duration",
    "local",
    "namespace",
    "on-empty",
    "plain",
    "producers",
    "secret-file",
    "store",
    "threshold",
    "timeout",
    "wait",
];
/// Keys that are allowed only beside `local`, and only beside `store`.
const OF_LOCAL: [&str; 1] = ["data-dir"];
const OF_STORE: [&str; 5] = [
    "namespace",
    "secret-file",
    "block-bits",
    "init-if-new",
    "timeout",
];

/// A configuration that was read and checked. No `Debug`: the URL of a store may hold a
/// password.
#[derive(Clone)]
pub(crate) struct Config {
    source: Source,
    layout: Layout,
    id_width: IdWidth,
    plain: bool,
    best_effort: bool,
    blocks: Option<u32>,
    lease_duration: Option<Duration>,
    wait: Option<Duration>,
    detached: bool,
    borrow_limit: Option<Duration>,
    capacity: Option<usize>,
    threshold: Option<u32>,
    producers: Option<usize>,
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
    /// The configuration with this local name, and nothing else.
    pub(crate) fn local(name: &str) -> Outcome<Self> {
        Self::of(Entries(vec![("local", name)]))
    }

    /// Reads lines of `key = value`.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        Self::of(Entries::parse(text)?)
    }

    fn of(entries: Entries<'_>) -> Outcome<Self> {
        let plain = entries.read("plain", boolean)?.unwrap_or(false);
        let detached = entries.read("detached", boolean)?.unwrap_or(false);
        if detached && entries.get("wait").is_some() {
            return Err(wrong(
                "`detached = true` does not wait for a lease: leave out `detached` or `wait`",
            ));
        }
        let layout = entries.read("layout", |text| {
            text.parse::<Layout>().map_err(|error| error.to_string())
        })?;
        let layout = layout.unwrap_or(Layout::RANDFLAKE);
        let id_width = entries.read("id-width", id_width)?.unwrap_or_default();
        check_width(&layout, id_width, plain)?;
        Ok(Self {
            source: Source::of(&entries, plain)?,
            layout,
            id_width,
            plain,
            best_effort: entries.read("best-effort", boolean)?.unwrap_or(false),
            blocks: entries.read("blocks", |text| number(text, 1..=256))?,
            lease_duration: entries.read("lease-duration", time)?,
            wait: entries.read("wait", time)?,
            detached,
            borrow_limit: entries.read("borrow-limit", time)?,
            capacity: entries.read("capacity", |text| number(text, 1..=usize::MAX))?,
            threshold: entries.read("threshold", |text| {
                number(text.strip_suffix('%').unwrap_or(text), 1..=100)
            })?,
            producers: entries.read("producers", |text| number(text, 1..=64))?,
            on_empty: entries.read("on-empty", on_empty)?.unwrap_or_default(),
        })
    }

    /// Makes the generator. With `local` it also makes the directory, the secret and the
    /// record, if they do not exist.
    pub(crate) fn open(&self) -> Outcome<CachedGenerator> {
        let builder = self.with_source()?;
        // Refuses what is wrong before a store is asked.
        builder.check()?;
        let built = match self.detached {
            true => builder.build_detached(),
            false => builder.build(),
        };
        built.map_err(Into::into)
    }

    fn with_source(&self) -> Outcome<CachedGeneratorBuilder> {
        let builder = self.builder();
        let Source::Store {
            url,
            namespace,
            secret_file,
            block_bits,
            init_if_new,
            timeout,
        } = &self.source
        else {
            return Ok(self.with_local(builder));
        };
        let mut options = OpenOptions::new().accept_best_effort(self.best_effort);
        if let Some(timeout) = timeout {
            options = options.timeout(*timeout);
        }
        // The message holds no part of the URL, which may hold a password.
        let store = open(url, &options).map_err(|error| wrong(format!("`store`: {error}")))?;
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

    fn with_local(&self, builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
        let Source::Local { name, data_dir } = &self.source else {
            return builder;
        };
        let mut local = Local::new(name).accept_best_effort(self.best_effort);
        if let Some(path) = data_dir {
            local = local.in_directory(path);
        }
        builder.local(local)
    }

    /// A builder with everything but the source of leases.
    fn builder(&self) -> CachedGeneratorBuilder {
        let mut builder = CachedGenerator::builder(self.layout)
            .id_width(self.id_width)
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
        if let Some(wait) = self.wait {
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
        if let Some(count) = self.producers {
            builder = builder.producers(count);
        }
        builder
    }
}

impl Source {
    fn of(entries: &Entries<'_>, plain: bool) -> Outcome<Self> {
        let (other, not_allowed) = match (entries.get("local"), entries.get("store")) {
            (Some(_), None) => ("local", &OF_STORE[..]),
            (None, Some(_)) => ("store", &OF_LOCAL[..]),
            (None, None) => {
                return Err(wrong(
                    "no source of leases: give `local = NAME` for one machine, or `store = URL` \
                     for a store that several machines share",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "both `local` and `store` are given: leave out one of them",
                ));
            }
        };
        if let Some(key) = not_allowed.iter().find(|key| entries.get(key).is_some()) {
            return Err(wrong(format!(
                "`{key}` does not go with `{other}`: leave out one of them"
            )));
        }
        if let Some(name) = entries.get("local") {
            return Ok(Self::Local {
                name: name.to_owned(),
                data_dir: entries.get("data-dir").map(PathBuf::from),
            });
        }
        let namespace = entries.get("namespace").ok_or_else(|| {
            wrong("`store` needs `namespace = NAME`, the name that the store was initialised with")
        })?;
        let secret_file = entries.get("secret-file").map(PathBuf::from);
        match (plain, &secret_file) {
            (true, Some(_)) => {
                return Err(wrong(
                    "`plain = true` encrypts nothing: leave out `plain` or `secret-file`",
                ));
            }
            (false, None) => {
                return Err(wrong(
                    "`store` needs `secret-file = PATH`, the same secret for every program of the \
                     namespace, or `plain = true` for IDs that are not encrypted",
                ));
            }
            _ => {}
        }
        Ok(Self::Store {
            url: entries.get("store").unwrap_or_default().to_owned(),
            namespace: namespace.to_owned(),
            secret_file,
            block_bits: entries.read("block-bits", |text| number(text, 0..=32))?,
            init_if_new: entries.read("init-if-new", history)?,
            timeout: entries.read("timeout", |text| match time(text)? {
                Duration::ZERO => Err("give at least 1ms".to_owned()),
                timeout => Ok(timeout),
            })?,
        })
    }
}

/// The keys of a text with their values.
struct Entries<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Entries<'a> {
    /// A message quotes no line and no value that has no known key: it may be a secret.
    fn parse(text: &'a str) -> Outcome<Self> {
        let mut entries = Self(Vec::new());
        for (index, line) in text.lines().enumerate() {
            let (line, at) = (line.trim(), index + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                return Err(wrong(format!("line {at} has no `=`: write key = value")));
            };
            let (key, value) = (key.trim_end(), value.trim_start());
            let Some(key) = KEYS.into_iter().find(|known| *known == key) else {
                let of_key = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'_';
                let key = match key.len() <= 32 && key.bytes().all(of_key) {
                    true => format!("unknown key `{key}`"),
                    false => "no known key".to_owned(),
                };
                let keys = KEYS.join(", ");
                return Err(wrong(format!("line {at} has {key}: the keys are {keys}")));
            };
            if value.is_empty() {
                return Err(wrong(format!(
                    "line {at}: `{key}` has no value: give one, or leave out the line"
                )));
            }
            if value.starts_with(['"', '\'']) {
                return Err(wrong(format!(
                    "line {at}: the value of `{key}` is quoted: write it without quotes"
                )));
            }
            if entries.get(key).is_some() {
                return Err(wrong(format!(
                    "line {at}: `{key}` is given twice: leave out one of the lines"
                )));
            }
            entries.0.push((key, value));
        }
        Ok(entries)
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let entry = self.0.iter().find(|(given, _)| *given == key);
        entry.map(|(_, value)| *value)
    }

    /// Reads the value of a key, if it is given. `read` fails with what is allowed.
    fn read<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Outcome<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let outcome = read(value).map(Some);
        outcome.map_err(|allowed| wrong(format!("`{key} = {value}` is wrong: {allowed}")))
    }
}

#[cold]
fn wrong(message: impl Into<String>) -> Box<Failure> {
    Failure::new(RINGFLAKE_CONFIG, message)
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("give true or false".to_owned()),
    }
}

fn number<T: FromStr + PartialOrd + Display>(
    text: &str,
    allowed: RangeInclusive<T>,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| allowed.contains(number));
    number.ok_or_else(|| format!("give {} to {}", allowed.start(), allowed.end()))
}

/// A whole number with a unit.
fn time(text: &str) -> Result<Duration, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let ms: Option<u64> = match unit.trim_start() {
        "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let time = ms.and_then(|ms| number.parse::<u64>().ok()?.checked_mul(ms));
    time.map(Duration::from_millis)
        .ok_or_else(|| "give a whole number with its unit, such as 500ms, 90s, 2min or 1h".into())
}

fn id_width(text: &str) -> Result<IdWidth, String> {
    let names = || IdWidth::ALL.map(IdWidth::name).join(", ");
    IdWidth::from_name(text).ok_or_else(|| format!("give one of {}", names()))
}

fn history(text: &str) -> Result<History, String> {
    match text {
        "new" => Ok(History::New),
        "unknown" => Ok(History::Unknown),
        _ => Err(
            "give new if no ID with a present or future time was issued with this layout and \
             secret, and unknown if in doubt"
                .to_owned(),
        ),
    }
}

fn on_empty(text: &str) -> Result<OnEmpty, String> {
    match text {
        "generate" => Ok(OnEmpty::Generate),
        "error" => Ok(OnEmpty::Error),
        _ => time(text).map(OnEmpty::Wait).map_err(|_| {
            "give generate, error, or the longest time to wait, such as 5ms".to_owned()
        }),
    }
}

/// Refuses what a builder refuses, in the words of the configuration.
fn check_width(layout: &Layout, width: IdWidth, plain: bool) -> Outcome<()> {
    let (bits, allowed) = (layout.total_bits(), width.layout_bits());
    if bits > width.bits() || !plain && !allowed.contains(&bits) {
        let plain = match bits <= width.bits() {
            true => ", or `plain = true`",
            false => "",
        };
        return Err(wrong(format!(
            "the layout has {bits} bits, and `id-width = {width}` needs one of {} to {}: give \
             another `layout` or `id-width`{plain}",
            allowed.start(),
            allowed.end(),
        )));
    }
    Ok(())
}
