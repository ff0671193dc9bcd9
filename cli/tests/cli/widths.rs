//! IDs of 63 and of 53 bits.

use crate::home::{Home, ONE, assert_flawless, distinct, stderr};
use ringflake_kit::{assert_says, unix_ms};

/// A width, its bits, a layout that fits it, and how many IDs a test makes of it.
const NARROW: [(&str, u32, &str, usize); 2] = [
    ("positive", 63, "positive", 100_000),
    ("js-safe", 53, "js-safe", 2_000),
];

#[test]
fn ids_of_each_width_are_below_its_bound_and_are_read() {
    for (width, bits, layout, count) in NARROW {
        let home = Home::new();
        let space = format!("--layout {layout} --id-width {width}");
        let ids = home.generate(&format!("{space} -n {count}"));
        assert_eq!((ids.len(), distinct(&ids)), (count, count), "{width}");
        assert!(ids.iter().all(|id| id >> bits == 0), "{width}");
        // Encrypted ones fill the width, and do not begin with the time.
        assert!(ids.iter().any(|id| id >> (bits - 1) == 1), "{width}");

        let few: String = ids[..50].iter().map(|id| format!("{id}\n")).collect();
        let parts = home.inspect(format!("{space} --input u64"), &few);
        let now = unix_ms();
        for part in parts {
            assert!(part.unix_ms.abs_diff(now) < 600_000, "{width}: {part:?}");
        }

        let wide = home.run(format!("inspect {space} --input u64 {}", 1_u64 << bits));
        assert_eq!(wide.status.code(), Some(1));
        assert_says(
            &stderr(&wide),
            &["argument 1", &format!("above the {bits}")],
        );

        assert_flawless(&home.print(format!("verify {space} -n {count} --threads 2")));
    }
}

#[test]
fn a_store_keeps_the_width_that_it_was_initialised_with() {
    let home = Home::new();
    let secret = home.write_secret("shared", ONE);
    let url = format!("sqlite:{}", home.path("shared.db"));
    let space =
        format!("--store {url} --namespace orders --layout positive --secret-file {secret}");
    home.print(format!(
        "store init --history new {space} --id-width positive"
    ));
    for command in ["generate", "verify -n 10", "store check"] {
        let refused = home.refuse(format!("{command} {space}"));
        assert_says(
            &refused,
            &["orders", "63 bits", "--id-width positive", "another secret"],
        );
    }
    let ids = home.generate(&format!("{space} --id-width positive"));
    assert!(ids.iter().all(|id| id >> 63 == 0));
    // The advice names the width as well.
    let missing = format!("{space} --id-width positive").replace("orders", "bills");
    // Nor has another namespace the secret, at whatever width.
    for width in ["full", "positive"] {
        let bills = space.replace("orders", "bills");
        let refused = home.refuse(format!(
            "store init --history new {bills} --id-width {width}"
        ));
        assert_says(&refused, &["bills", "as namespace \"orders\""]);
    }
    let refused = home.refuse(format!("store check {missing}"));
    assert_says(&refused, &["'ringflake store init", "--id-width positive"]);
}
