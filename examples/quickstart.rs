//! The shortest way to encrypted, unique IDs, and back from an ID to its parts.
//!
//! ```sh
//! cargo run --features sqlite --example quickstart
//! ```

use std::error::Error;

use ringflake::Id;

fn main() -> Result<(), Box<dyn Error>> {
    // One generator for the whole process. This returns with a full ring, and a
    // thread in the background keeps it so. A service says `local("orders")`, which
    // keeps leases and secret in the user's data directory; this is an example, and
    // keeps them with what it was built from.
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/target/quickstart");
    let ids = ringflake::local_in(directory, "orders")?;

    // A take costs a few nanoseconds and waits for nobody.
    let id = ids.take()?;
    println!("as text      {id}");
    println!("as a u64     {}", id.to_u64());
    println!("as a BIGINT  {}", id.to_i64());

    // The text is the ID and nothing is lost on the way.
    assert_eq!(id.to_string().parse::<Id>()?, id);

    // With the namespace's secret, an ID tells when and on which node it was made.
    let parts = ids.inspect(id)?;
    println!("Unix time    {} ms", parts.unix_ms);
    println!("node         {}", parts.node);
    println!("sequence     {}", parts.sequence);
    assert!(ids.leases()[0].nodes().contains(&parts.node));

    // For many at once, one step instead of many.
    let mut batch = [Id::default(); 100];
    let count = ids.take_batch(&mut batch)?;
    assert_eq!(count, batch.len());
    assert!(!batch.contains(&id));

    println!("issued       {}", ids.stats().issued);
    assert_eq!(ids.stats().issued, 101);
    Ok(())
}
