//! The shortest way to encrypted, unique IDs, and back from an ID to its parts.
//!
//! ```sh
//! cargo run --example quickstart
//! ```

use std::error::Error;

use ringflake::{CachedGenerator, Id, Layout, Secret, StaticLease};

fn main() -> Result<(), Box<dyn Error>> {
    // Whoever has the secret can read an ID; to all others it is a random
    // number. A service keeps it in a file: `Secret::from_file`.
    let secret = Secret::from_hex("000102030405060708090a0b0c0d0e0f")?;

    // 32 nodes, which no other process may use while this one runs. That is
    // for you to see to, hence the name; a lease store does it for a fleet.
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, 0..32);

    // One generator for the whole process. `build` returns with a full ring,
    // and a thread in the background keeps it so.
    let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        .secret(&secret)
        .lease(lease)
        .build()?;

    // A take costs a few nanoseconds and waits for nobody.
    let id = ids.take()?;
    println!("as text      {id}");
    println!("as a u64     {}", id.to_u64());
    println!("as a BIGINT  {}", id.to_i64());

    // The text is the ID and nothing is lost on the way.
    assert_eq!(id.to_string().parse::<Id>()?, id);

    // With the secret, an ID tells when and on which node it was made.
    let parts = ids.inspect(id)?;
    println!("Unix time    {} ms", parts.unix_ms);
    println!("node         {}", parts.node);
    println!("sequence     {}", parts.sequence);
    assert!((0..32).contains(&parts.node));

    // For many at once, one step instead of many.
    let mut batch = [Id::default(); 100];
    let count = ids.take_batch(&mut batch)?;
    assert_eq!(count, batch.len());
    assert!(!batch.contains(&id));

    println!("issued       {}", ids.stats().issued);
    assert_eq!(ids.stats().issued, 101);
    Ok(())
}
