//! The names of namespaces in `leases.db`.
//!
//! | space | name | nodes in a block |
//! |---|---|---|
//! | named | `NAME`, and `NAME-plain` for plain IDs | up to 32 |
//! | of the layout | the layout's text, and with `-plain` for plain IDs | 1 |
//! | of the layout, where that belongs to another secret | with `-` and 8 digits of the fingerprint | 1 |

use super::error::LocalError;
use crate::cipher::{IdWidth, Secret};
use crate::layout::Layout;
use crate::lease::{Fingerprint, Namespace};

const PLAIN: &str = "-plain";

/// The identity of a space within its directory.
#[derive(Clone, Debug)]
pub(super) enum Which {
    /// By a name, which has a secret of its own.
    Named(String),
    /// By the layout and the secret, which the caller keeps.
    OfLayout(Option<Secret>),
}

/// The namespace before its secret is known.
pub(super) fn outline(
    which: &Which,
    layout: &Layout,
    plain: bool,
) -> Result<Namespace, LocalError> {
    let (mut name, block_bits) = match which {
        Which::Named(name) => {
            if name.ends_with(PLAIN) {
                return Err(LocalError::ReservedName { name: name.clone() });
            }
            // An error is about its own length.
            new(name.clone(), layout)?;
            if name.len() + PLAIN.len() > Namespace::MAX_NAME {
                return Err(LocalError::NameLength { bytes: name.len() });
            }
            (name.clone(), block_bits(layout))
        }
        Which::OfLayout(_) => (of_layout(layout), 0),
    };
    if plain {
        name += PLAIN;
    }
    new(name, layout)?
        .with_block_bits(block_bits)
        .map_err(LocalError::Name)
}

fn new(name: String, layout: &Layout) -> Result<Namespace, LocalError> {
    Namespace::new(name, layout, Fingerprint::PLAIN).map_err(LocalError::Name)
}

/// As many nodes to a block as leave room for 1,024 processes, and at most 32.
fn block_bits(layout: &Layout) -> u32 {
    let node_bits = layout.nodes().ilog2();
    node_bits.saturating_sub(10).min(Namespace::BLOCK_BITS)
}

/// The layout's text, in the characters that a name may have. No two layouts
/// share one: the text has the same parts in the same order for all of them, and
/// the separators of parts are never dropped.
fn of_layout(layout: &Layout) -> String {
    let text = layout.to_string().to_ascii_lowercase();
    text.chars()
        .map(|c| match c {
            '@' => '_',
            ':' => '.',
            'a'..='z' | '0'..='9' | '-' | '.' => c,
            _ => '-',
        })
        .collect()
}

/// `outline` with the fingerprint of `secret` for IDs of this width.
pub(super) fn keyed(outline: &Namespace, secret: Option<&Secret>, width: IdWidth) -> Namespace {
    let fingerprint = secret.map_or(Fingerprint::PLAIN, |secret| {
        Fingerprint::of_width(secret, width)
    });
    outline.clone().with_fingerprint(fingerprint)
}

/// The width of the IDs of a namespace on record, if it has this secret. Plain IDs have
/// any.
pub(super) fn width_of(record: &Namespace, secret: Option<&Secret>) -> Option<IdWidth> {
    let found = record.fingerprint();
    let mut all = IdWidth::ALL.into_iter();
    all.find(|&width| found == keyed(record, secret, width).fingerprint())
}

/// Refuses a namespace on record that has the secret, and IDs of another width.
pub(super) fn refuse_other_width(
    record: &Namespace,
    secret: Option<&Secret>,
    width: IdWidth,
) -> Result<(), LocalError> {
    match width_of(record, secret) {
        Some(recorded) if secret.is_some() && recorded != width => Err(LocalError::OtherWidth {
            namespace: record.name().to_owned(),
            recorded,
            given: width,
        }),
        _ => Ok(()),
    }
}

/// The namespace on record of this layout that belongs to this secret: there is
/// one at most. Plain IDs have the one of their name.
pub(super) fn of_secret<'a>(
    outline: &Namespace,
    records: &'a [Namespace],
    secret: Option<&Secret>,
) -> Option<&'a Namespace> {
    records.iter().find(|record| {
        width_of(record, secret).is_some()
            && match secret {
                None => record.name() == outline.name(),
                Some(_) => record.layout() == outline.layout(),
            }
    })
}

/// The namespace to be made for a secret that has none: the layout's if nobody has
/// it, or else one of the secret's own.
pub(super) fn choose(
    outline: &Namespace,
    records: &[Namespace],
    secret: Option<&Secret>,
    width: IdWidth,
) -> Result<Namespace, LocalError> {
    let on_record = |name: &str| records.iter().find(|record| record.name() == name);
    let first = keyed(outline, secret, width);
    let Some(taken) = on_record(first.name()) else {
        return Ok(first);
    };
    if secret.is_none() {
        taken.verify(&first)?;
        return Ok(first);
    }
    let print = first.fingerprint().to_string();
    let name = format!("{}-{}", outline.name(), &print[..8]);
    let own = new(name, outline.layout())?
        .with_block_bits(outline.block_bits())
        .map_err(LocalError::Name)?;
    let own = keyed(&own, secret, width);
    if let Some(taken) = on_record(own.name()) {
        taken.verify(&own)?;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout::RANDFLAKE;
    const FULL: IdWidth = IdWidth::Full;

    fn secret(byte: u8) -> Secret {
        Secret::from_bytes([byte; 16])
    }

    fn outline_of(layout: &Layout, plain: bool) -> Namespace {
        outline(&Which::OfLayout(None), layout, plain).unwrap()
    }

    fn named(name: &str, plain: bool) -> Result<Namespace, LocalError> {
        outline(&Which::Named(name.to_owned()), &LAYOUT, plain)
    }

    #[test]
    fn each_layout_has_a_name_of_its_own() {
        let layouts = [
            "randflake",
            "baidu",
            "baidu-2026",
            "region-type-machine",
            "baidu-31-23-9",
            "twitter",
            "sonyflake-sized",
            "positive",
            "positive-ms",
            "js-safe",
            "30/17/17@2024-10-27T03:33:20Z/2s",
            "30/17/17@2024-10-27T03:33:20Z/2ms",
            "30/17/17@2024-10-27T03:33:20.001Z/2ms",
            "3/17/17@2024-10-27T03:33:20Z/1s",
        ];
        let mut names = Vec::new();
        for layout in layouts {
            for plain in [false, true] {
                let space = outline_of(&layout.parse().unwrap(), plain);
                names.push(space.name().to_owned());
            }
        }
        assert_eq!(names[0], "30-17-17_2024-10-27t03.33.20z-1s");
        let total = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), total, "{names:?}");
    }

    #[test]
    fn the_longest_name_is_one() {
        let text = "1/31/32@9999-12-31T23:59:59.999Z/9223000000000000001ms";
        let layout: Layout = text.parse().unwrap();
        let plain = outline_of(&layout, true);
        assert_eq!(plain.name().len(), text.len() + PLAIN.len());
        let first = keyed(&outline_of(&layout, false), Some(&secret(1)), FULL);
        let second = choose(
            &outline_of(&layout, false),
            &[first],
            Some(&secret(2)),
            FULL,
        )
        .unwrap();
        assert_eq!(second.name().len(), text.len() + 1 + 8);
    }

    #[test]
    fn a_name_leaves_room_for_that_of_plain_ids() {
        let (longest, longer) = ("x".repeat(58), "x".repeat(59));
        assert_eq!(named(&longest, true).unwrap().name().len(), 64);
        for plain in [false, true] {
            assert!(matches!(
                named(&longer, plain),
                Err(LocalError::NameLength { bytes: 59 })
            ));
            assert!(matches!(
                named("orders-plain", plain),
                Err(LocalError::ReservedName { .. })
            ));
            assert!(matches!(named("Orders", plain), Err(LocalError::Name(_))));
        }
    }

    #[test]
    fn a_secret_keeps_the_namespace_that_it_has() {
        let outline = outline_of(&LAYOUT, false);
        let mut records: Vec<Namespace> = Vec::new();
        for byte in 0..4 {
            let secret = secret(byte);
            assert_eq!(of_secret(&outline, &records, Some(&secret)), None);
            let chosen = choose(&outline, &records, Some(&secret), FULL).unwrap();
            assert_eq!(byte == 0, chosen.name() == outline.name(), "{chosen}");
            records.push(chosen.clone());
            assert_eq!(of_secret(&outline, &records, Some(&secret)), Some(&chosen));
        }
        // Also under another name.
        let given = keyed(&named("orders", false).unwrap(), Some(&secret(9)), FULL);
        records.push(given.clone());
        assert_eq!(
            of_secret(&outline, &records, Some(&secret(9))),
            Some(&given)
        );
        // The first keeps its namespace, independent of later records.
        let first = records[0].clone();
        assert_eq!(
            of_secret(&outline, &records, Some(&secret(0))),
            Some(&first)
        );
        let other_layout = outline_of(&Layout::TWITTER, false);
        assert_eq!(of_secret(&other_layout, &records, Some(&secret(0))), None);
        let plain = outline_of(&LAYOUT, true);
        records.push(named("orders", true).unwrap());
        assert_eq!(of_secret(&plain, &records, None), None);
    }

    #[test]
    fn a_record_tells_the_width_of_its_secret() {
        let (outline, ours) = (outline_of(&LAYOUT, false), secret(1));
        for width in IdWidth::ALL {
            let record = keyed(&outline, Some(&ours), width);
            assert_eq!(width_of(&record, Some(&ours)), Some(width));
            assert_eq!(width_of(&record, Some(&secret(2))), None);
        }
    }

    #[test]
    fn blocks_leave_room_for_many_processes() {
        for (layout, blocks, nodes) in [
            (Layout::RANDFLAKE, 4096, 32),
            (Layout::TWITTER, 1024, 1),
            ("44/12/8@2024-01-01T00:00:00Z/1s".parse().unwrap(), 1024, 4),
            ("44/2/8@2024-01-01T00:00:00Z/1s".parse().unwrap(), 4, 1),
        ] {
            let which = Which::Named("orders".to_owned());
            let space = outline(&which, &layout, false).unwrap();
            assert_eq!((space.blocks(), space.block_nodes()), (blocks, nodes));
        }
    }
}
