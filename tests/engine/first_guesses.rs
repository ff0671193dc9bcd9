//! Fifty things that callers write without looking them up. That they build is most of the
//! test; each is also asked for what a reader expects of it.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringflake::{
    CachedGenerator, CachedGeneratorBuilder, Cipher, DirectGenerator, Id, IdKind, IdSource,
    Inspector, Layout, OnEmpty, Secret, StaticLease, Stats, TakeError, TypedId,
};

const LAYOUT: Layout = Layout::RANDFLAKE;
const SECRET: Secret = Secret::from_bytes([7; 16]);
const ID: Id = Id::from_u64(0xabc);
const PLAIN: Cipher = Cipher::plain();
static IDS: LazyLock<CachedGenerator> = LazyLock::new(|| cached(70_000));

fn cached(node: u64) -> CachedGenerator {
    CachedGenerator::builder(LAYOUT)
        .secret(&SECRET)
        .lease(StaticLease::assume_unique(LAYOUT, node..node + 1))
        .build()
        .unwrap()
}

fn direct(node: u64) -> DirectGenerator {
    DirectGenerator::builder(LAYOUT)
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

#[test]
fn an_id_turns_into_what_is_at_hand() -> Result<(), Box<dyn Error + Send + Sync>> {
    // 1 to 6: numbers.
    assert_eq!(Id::from(0xabc_u64), ID);
    assert_eq!(Id::from(0xabc_i64), ID);
    assert_eq!(u64::from(ID), 0xabc);
    assert_eq!(i64::from(Id::from(-1_i64)), -1);
    assert_eq!(Id::from_u64(u64::MAX).to_i64(), -1);
    assert_eq!(Id::default().to_u64(), 0);
    // 7 to 13: texts.
    assert_eq!("2ls".parse::<Id>()?, ID);
    assert_eq!(Id::try_from("2ls")?, ID);
    assert_eq!(Id::try_from(String::from("2ls"))?, ID);
    assert_eq!(ID.to_string(), "2ls");
    assert_eq!(format!("{ID:x} {ID:#X} {ID:>5}"), "abc 0xABC   2ls");
    assert_eq!(ID.to_fixed_text().as_str(), "00000000002ls");
    assert_eq!(Id::from_fixed_text("00000000002ls")?, ID);
    // 14 to 16: bytes.
    assert_eq!(Id::from_be_bytes(ID.to_be_bytes()), ID);
    assert_eq!(Id::from_le_bytes(ID.to_le_bytes()), ID);
    assert_eq!(ID.to_be_bytes()[6..], [0xa, 0xbc]);
    // 17 to 20: keys and order.
    assert_eq!(HashMap::from([(ID, "an order")])[&ID], "an order");
    assert_eq!(
        BTreeSet::from([ID, Id::from(1_u64)]).first(),
        Some(&Id::from(1_u64))
    );
    assert!(Id::from(1_u64) < ID && Some(ID) > None);
    assert_eq!(format!("{ID:?}"), "Id(2ls)");
    // 21, 22: of a kind.
    let user: TypedId<User> = "user_2ls".parse()?;
    assert_eq!((user.id(), user), (ID, TypedId::from_id(ID)));
    assert!("order_2ls".parse::<TypedId<User>>().is_err());
    Ok(())
}

#[test]
fn a_secret_and_a_layout_come_from_what_is_at_hand() -> Result<(), Box<dyn Error>> {
    // 23 to 25: secrets.
    let secret: Secret = "07070707070707070707070707070707".parse()?;
    assert_eq!(secret.expose(), SECRET.expose());
    assert_eq!(Secret::from([7; 16]).expose(), SECRET.expose());
    assert!("07".parse::<Secret>().is_err());
    // 26 to 29: layouts.
    let layout: Layout = "30/17/17@2024-10-27T03:33:20Z/1s".parse()?;
    assert_eq!(layout, LAYOUT);
    assert_eq!(layout.to_string().parse(), Ok(layout));
    assert_eq!("twitter".parse(), Ok(Layout::TWITTER));
    let hour = UNIX_EPOCH + Duration::from_secs(1_750_000_000);
    let window = Layout::TWITTER.ids_between(hour..hour + Duration::from_secs(3_600));
    assert!(window.is_some_and(|ids| ids.start() < ids.end()));
    // 30: figures.
    assert_eq!(Stats::default().issued, 0);
    assert!(PLAIN.is_plain());
    Ok(())
}

/// 31: one error, whichever generator it comes from.
fn or_later<T>(taken: Result<T, TakeError>) -> Result<T, Duration> {
    taken.map_err(|error| error.retry_after().unwrap_or(Duration::MAX))
}

#[test]
fn a_generator_is_used_as_one_guesses() -> Result<(), Box<dyn Error>> {
    // 32: a static.
    let id: Id = IDS.take()?;
    // 33 to 37: reading back.
    assert_eq!(IDS.inspect(id)?.node, 70_000);
    let since: Duration = SystemTime::now().duration_since(IDS.inspect(id)?.time())?;
    assert!(since < Duration::from_secs(3_600));
    assert_eq!(
        Inspector::new(LAYOUT, Cipher::sparx64(&SECRET))
            .inspect(id)?
            .node,
        70_000
    );
    assert_eq!(IDS.inspector().inspect(id)?.node, 70_000);
    assert_eq!(IDS.layout(), &LAYOUT);
    // 38, 39: figures.
    assert!(IDS.capacity() >= IDS.stats().level);
    assert!(IDS.is_ready());
    // 40 to 44: several.
    let [a, b] = IDS.take_array()?;
    assert_ne!(a, b);
    assert_eq!(IDS.take_vec(100)?.len(), 100);
    assert_eq!(
        IDS.iter().take(10).collect::<Result<Vec<Id>, _>>()?.len(),
        10
    );
    let mut left = 3;
    for id in &*IDS {
        assert_eq!(IDS.inspect(id?)?.node, 70_000);
        left -= 1;
        if left == 0 {
            break;
        }
    }
    let mut batch = [Id::default(); 64];
    assert_eq!(IDS.take_batch(&mut batch)?, 64);
    // 45, 46: threads.
    let (ids, direct) = (cached(70_001), direct(70_002));
    let clones = (ids.clone(), direct.clone());
    let taken = thread::spawn(move || (or_later(clones.0.take()), or_later(clones.1.take())));
    let (one, other) = taken.join().map_err(|_| "the thread panicked")?;
    assert_ne!(one, other);
    // 47: a stock of one's own.
    let mut handle = ids.handle()?;
    handle.take()?;
    // 48, 49: objects.
    let sources: [Arc<dyn IdSource + Send + Sync>; 2] = [Arc::new(ids.clone()), Arc::new(direct)];
    let taken: Result<Vec<Id>, TakeError> = sources.iter().map(|source| source.take()).collect();
    assert_eq!(taken?.len(), 2);
    // 50: without keeping it alive.
    let weak = ids.downgrade();
    assert!(weak.upgrade().is_some());
    drop((ids, handle, sources));
    assert!(weak.upgrade().is_none());
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
    let widths = (
        LAYOUT.time_bits(),
        LAYOUT.node_bits(),
        LAYOUT.sequence_bits(),
    );
    assert_eq!(widths, (30, 17, 17));
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
        ("layout/node_fields.rs", "pack", "fn compose("),
        ("layout/node_fields.rs", "unpack", "fn split("),
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

/// Further guesses, with the feature for them.
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
    assert_eq!((row.id, row.number, row.layout), (ID, ID, Layout::TWITTER));
    assert_eq!(serde_json::to_string(&row)?, json);
    Ok(())
}

#[test]
fn a_wait_is_a_duration_and_an_error_is_an_error() {
    let policy = OnEmpty::Wait(Duration::from_millis(5));
    assert_eq!(format!("{policy:?}"), "Wait(5ms)");
    let error: Box<dyn Error + Send + Sync> = TakeError::Empty.into();
    assert!(error.to_string().contains("empty"));
    assert_eq!(
        or_later::<Id>(Err(TakeError::Empty)),
        Err(Duration::from_millis(1))
    );
}
