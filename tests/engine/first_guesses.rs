//! What callers write without looking it up, as far as no test of the item itself does. That it
//! builds is most of the test.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, SystemTime};

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Cipher, DirectGenerator, Id, IdKind, IdSource,
    Inspector, Layout, Secret, StaticLease, Stats, TakeError, TypedId,
};

const LAYOUT: Layout = Layout::RANDFLAKE;
const SECRET: Secret = Secret::from_bytes([7; 16]);
static IDS: LazyLock<CachedGenerator> = LazyLock::new(|| cached(70_000));

fn cached(node: u64) -> CachedGenerator {
    CachedGenerator::builder(LAYOUT)
        .secret(&SECRET)
        .lease(StaticLease::assume_unique(LAYOUT, node..node + 1))
        .build()
        .unwrap()
}

#[derive(Debug)]
enum User {}

impl IdKind for User {
    const PREFIX: &'static str = "user";
}

/// One error, whichever generator it comes from.
fn or_later<T>(taken: Result<T, TakeError>) -> Result<T, Duration> {
    taken.map_err(|error| error.retry_after().unwrap_or(Duration::MAX))
}

#[test]
fn a_generator_is_used_as_one_guesses() -> Result<(), Box<dyn Error + Send + Sync>> {
    let id: Id = IDS.take()?;
    let since: Duration = SystemTime::now().duration_since(IDS.inspect(id)?.time())?;
    assert!(since < Duration::from_secs(3_600));
    assert!(IDS.is_ready() && IDS.capacity() >= IDS.stats().level);
    let taken: Vec<Id> = IDS.iter().take(10).collect::<Result<_, _>>()?;
    assert_eq!(taken.len(), 10);
    for id in IDS.into_iter().take(3) {
        assert_eq!(IDS.inspect(id?)?.node, 70_000);
    }
    // In other threads, and as objects.
    let direct = DirectGenerator::builder(LAYOUT).secret(&SECRET);
    let direct = direct.lease(StaticLease::assume_unique(LAYOUT, 70_002..70_003));
    let (ids, direct) = (cached(70_001), direct.build()?);
    let clones = (ids.clone(), direct.clone());
    let taken = thread::spawn(move || (or_later(clones.0.take()), or_later(clones.1.take())));
    let (one, other) = taken.join().map_err(|_| "the thread panicked")?;
    assert_ne!(one, other);
    let sources: [Arc<dyn IdSource + Send + Sync>; 2] = [Arc::new(ids), Arc::new(direct)];
    let taken: Result<Vec<Id>, TakeError> = sources.iter().map(|source| source.take()).collect();
    assert_eq!(taken?.len(), 2);
    assert_eq!(Stats::default().issued, 0);
    Ok(())
}

/// A worker whose one error is that of takes.
fn sixteen_from_a_handle(ids: &CachedGenerator) -> Result<[Id; 16], TakeError> {
    let mut handle = ids.handle()?;
    let mut batch = [Id::default(); 16];
    assert_eq!(handle.take_batch(&mut batch)?, batch.len());
    Ok(batch)
}

#[test]
fn a_handle_and_a_secret_are_used_as_one_guesses() -> Result<(), Box<dyn Error>> {
    let batch = sixteen_from_a_handle(&cached(70_003))?;
    assert_eq!(BTreeSet::from(batch).len(), batch.len());

    // By value, by reference and shared.
    let build = |node: u64, encrypt: &dyn Fn(CachedGeneratorBuilder) -> CachedGeneratorBuilder| {
        let builder = CachedGenerator::builder(LAYOUT);
        let builder = builder.lease(StaticLease::assume_unique(LAYOUT, node..node + 1));
        let id = encrypt(builder).build()?.take()?;
        let inspector = Inspector::new(LAYOUT, Cipher::sparx64(&SECRET));
        Ok::<u64, Box<dyn Error>>(inspector.inspect(id)?.node)
    };
    let shared = Arc::new(SECRET);
    assert_eq!(build(70_004, &|builder| builder.secret(SECRET))?, 70_004);
    assert_eq!(build(70_005, &|builder| builder.secret(&SECRET))?, 70_005);
    assert_eq!(build(70_006, &|builder| builder.secret(&shared))?, 70_006);

    // The kind is named once, where the ID is taken.
    let user: TypedId<User> = IDS.take().map(TypedId::from_id)?;
    assert_eq!(user.to_string(), format!("user_{}", user.id()));
    // From the digits and from the bytes.
    let secret: Secret = "07070707070707070707070707070707".parse()?;
    assert_eq!(secret.expose(), SECRET.expose());
    assert_eq!(Secret::from([7; 16]).expose(), SECRET.expose());
    assert!("07".parse::<Secret>().is_err());
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

#[cfg(feature = "serde")]
#[test]
fn ids_and_layouts_are_fields_of_what_is_serialized() -> Result<(), Box<dyn Error>> {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Row {
        id: Id,
        user: TypedId<User>,
        #[serde(with = "ringflake::serde::as_i64")]
        number: Id,
        layout: Layout,
        parent: Option<Id>,
    }
    let json = r#"{"id":"2ls","user":"user_2ls","number":2748,"layout":"41/10/12@2010-11-04T01:42:54.657Z/1ms","parent":null}"#;
    let row: Row = serde_json::from_str(json)?;
    let id = Id::from_u64(0xabc);
    assert_eq!((row.id, row.number, row.layout), (id, id, Layout::TWITTER));
    assert_eq!(serde_json::to_string(&row)?, json);
    Ok(())
}
