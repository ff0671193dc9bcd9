//! What callers write without looking it up, as far as no other test does. That it builds is
//! most of the test.

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::User;
use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Id, IdSource, Layout, Secret, StaticLease, TakeError,
    TypedId,
};

const SECRET: Secret = Secret::from_bytes([7; 16]);
static IDS: LazyLock<CachedGenerator> =
    LazyLock::new(|| builder(70_000).secret(&SECRET).build().unwrap());

fn builder(node: u64) -> CachedGeneratorBuilder {
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, node..node + 1);
    CachedGenerator::builder(Layout::RANDFLAKE).lease(lease)
}

/// An error says when to try again.
fn or_later<T>(taken: Result<T, TakeError>) -> Result<T, Duration> {
    taken.map_err(|error| error.retry_after().unwrap_or(Duration::MAX))
}

#[test]
fn a_generator_is_used_as_one_guesses() -> Result<(), Box<dyn Error + Send + Sync>> {
    let id: Id = IDS.take()?;
    let since: Duration = SystemTime::now().duration_since(IDS.inspect(id)?.time())?;
    assert!(since < Duration::from_secs(3_600));
    assert!(IDS.is_ready() && IDS.capacity() >= IDS.stats().level);
    let mut batch = [Id::default(); 200];
    assert_eq!(IDS.handle()?.take_batch(&mut batch)?, batch.len());
    assert_eq!(batch.iter().collect::<HashSet<_>>().len(), batch.len());
    for id in IDS.into_iter().take(3) {
        assert_eq!(IDS.inspect(id?)?.node, 70_000);
    }
    let user: TypedId<User> = IDS.take().map(TypedId::from_id)?;
    assert_eq!(user.to_string(), format!("user_{}", user.id()));
    let source: Arc<dyn IdSource + Send + Sync> = Arc::new(IDS.clone());
    let taken = thread::spawn(move || or_later(source.take()));
    assert_ne!(taken.join().map_err(|_| "the thread panicked")?, Ok(id));
    Ok(())
}

/// What other libraries call it leads to the item by the search of the documentation.
#[test]
fn other_names_are_found_by_the_search_of_the_docs() {
    for (file, alias, item) in [
        ("id.rs", "new", "fn from_u64("),
        ("id.rs", "as_u64", "fn to_u64("),
        ("id.rs", "as_i64", "fn to_i64("),
        ("id.rs", "MAX", "struct Id("),
        ("typed_id.rs", "new", "fn from_id("),
        ("typed_id.rs", "take_typed", "fn from_id("),
        ("layout/preset.rs", "SNOWFLAKE", "const TWITTER:"),
        ("layout/builder.rs", "time_bits", "fn bits("),
        ("fill/policy.rs", "percent", "fn below("),
        ("ring.rs", "new", "fn with_capacity("),
        ("cipher/secret.rs", "from_env", "fn from_hex("),
        ("generator/empty.rs", "is_retryable", "fn retry_after("),
        ("generator/empty.rs", "is_transient", "fn retry_after("),
        ("id.rs", "MIN", "struct Id("),
        ("id.rs", "parse_str", "struct Id("),
        ("id.rs", "to_bytes", "fn to_be_bytes("),
        ("id.rs", "from_bytes", "fn from_be_bytes("),
        ("typed_id.rs", "into_inner", "fn id("),
        ("layout.rs", "worker_id", "node: u64"),
        ("layout.rs", "machine_id", "node: u64"),
        ("layout/builder.rs", "new", "fn builder("),
        ("layout/builder.rs", "node_bits", "fn bits("),
        ("layout/builder.rs", "sequence_bits", "fn bits("),
        ("layout/preset.rs", "default", "const RANDFLAKE:"),
        (
            "layout/preset.rs",
            "NodeFields",
            "const REGION_TYPE_MACHINE:",
        ),
        ("lease/fixed.rs", "new", "fn assume_unique("),
        ("lease/fixed.rs", "worker_id", "fn assume_unique("),
        ("cipher/secret.rs", "new", "fn from_bytes("),
        ("facade.rs", "encrypt", "fn seal("),
        ("facade.rs", "decrypt", "fn open("),
        ("generator/builder.rs", "new", "fn builder("),
        ("generator/direct_builder.rs", "new", "fn builder("),
        ("generator/backfill_builder.rs", "new", "fn builder("),
        ("generator/cached.rs", "generate", "fn take("),
        ("generator/cached.rs", "next_id", "fn take("),
        ("generator/cached.rs", "try_take", "fn take("),
        ("generator/common.rs", "decode", "fn inspect("),
        ("generator/cached.rs", "close", "fn shutdown("),
        ("generator/common.rs", "take_many", "fn take_vec("),
        ("generator/figures.rs", "len", "fn stats("),
    ] {
        let path = format!("{}/src/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        let alias = format!("#[doc(alias = \"{alias}\")]");
        let (_, after) = text
            .split_once(&alias)
            .unwrap_or_else(|| panic!("{file}: {alias}"));
        let mut lines = after.lines().skip(1).map(str::trim_start);
        let found = lines.find(|line| !line.starts_with("#["));
        assert!(
            found.is_some_and(|line| line.contains(item)),
            "{file}: {alias}: {found:?}"
        );
    }
}

#[test]
fn a_secret_is_given_as_one_guesses() -> Result<(), Box<dyn Error>> {
    let shared = Arc::new(Secret::from([7; 16]));
    let builders = [
        builder(70_001).secret("07070707070707070707070707070707".parse::<Secret>()?),
        builder(70_002).secret(&SECRET),
        builder(70_003).secret(&shared),
    ];
    for (node, builder) in (70_001..).zip(builders) {
        let id = builder.build()?.take()?;
        assert_eq!(IDS.inspect(id)?.node, node);
    }
    Ok(())
}
