//! IDs of each width, and layouts that are refused where they don't fit. `uniqueness.rs` has
//! generators of each width.

use ringflake::{BuildError, Cipher, DirectGenerator, IdWidth, Layout, Lease, Secret};

use ringflake_kit::small::{clock_at, layout, lease, secret_of_its_own};
use ringflake_kit::{assert_matches, assert_says, in_full};

/// The widths that this build can encrypt to, each with a layout that fits.
fn available() -> Vec<(IdWidth, Layout)> {
    let all = [
        (IdWidth::Full, layout(30, 17, 17)),
        (IdWidth::Positive, layout(30, 16, 17)),
        (IdWidth::JsSafe, layout(31, 10, 12)),
    ];
    let is_available = |(width, _): &(IdWidth, Layout)| {
        Cipher::of_width(&Secret::from_bytes([0; 16]), *width).is_ok()
    };
    all.into_iter().filter(is_available).collect()
}

#[test]
fn the_width_holds_whatever_is_given_first() {
    for (width, layout) in available() {
        let secret = secret_of_its_own();
        let builder = || DirectGenerator::builder(layout).clock(clock_at(layout, 5));
        let part = |node| lease(layout, node..node + 1, 5..9);
        let first = builder().id_width(width).secret(&secret).lease(part(0));
        let last = builder().lease(part(1)).secret(&secret).id_width(width);
        let between = builder().secret(&secret).id_width(width).lease(part(2));
        let cipher = Cipher::of_width(&secret, width).unwrap();
        for (node, builder) in (0..).zip([first, last, between]) {
            assert_eq!(builder.check().unwrap().id_width, width);
            let id = builder.build().unwrap().take().unwrap();
            let raw = layout.pack(5, node, 0).unwrap();
            assert_eq!(id.to_u64(), cipher.encrypt(raw), "{width}, node {node}");
        }
    }
}

fn refusal(layout: Layout, width: IdWidth, secret: Option<&Secret>) -> Option<BuildError> {
    let builder = DirectGenerator::builder(layout).id_width(width);
    let builder = match secret {
        Some(secret) => builder.secret(secret),
        None => builder.plain(),
    };
    let builder = builder
        .lease(lease(layout, 0..1, 0..1))
        .clock(clock_at(layout, 0));
    let checked = builder.check().err();
    let built = builder.build().err();
    assert_eq!(format!("{checked:?}"), format!("{built:?}"));
    built
}

#[test]
fn a_layout_wider_than_the_ids_is_refused() {
    let secret = secret_of_its_own();
    for secret in [Some(&secret), None] {
        for (width, fits, too_wide, presets) in [
            (IdWidth::Positive, [30, 16, 17], [30, 17, 17], "positive-ms"),
            (IdWidth::JsSafe, [31, 10, 12], [31, 11, 12], "js-safe"),
        ] {
            let [time, node, sequence] = too_wide;
            let error = refusal(layout(time, node, sequence), width, secret).unwrap();
            let bits = width.bits() + 1;
            assert_matches!(error, BuildError::LayoutTooWide { bits: found, width: of }
                if (*found, *of) == (bits, width));
            let most = format!("at most {}", width.bits());
            assert_says(&in_full(&error), &[&bits.to_string(), &most, presets]);

            let [time, node, sequence] = fits;
            let refused = refusal(layout(time, node, sequence), width, secret);
            let is_off = secret.is_some() && width == IdWidth::JsSafe;
            if is_off && cfg!(not(feature = "js-safe")) {
                let error = refused.unwrap();
                assert_matches!(error, BuildError::IdWidthUnavailable(_));
                assert_says(
                    &error.to_string(),
                    &["53 bits", "feature `js-safe`", "plain IDs"],
                );
            } else {
                assert!(refused.is_none(), "{refused:?}");
            }
        }
    }
}

#[test]
fn a_layout_for_doubles_is_led_to_the_width_that_keeps_it() {
    let secret = secret_of_its_own();
    for width in [IdWidth::Full, IdWidth::Positive] {
        for time in [20, 31] {
            let error = refusal(layout(time, 10, 12), width, Some(&secret)).unwrap();
            assert_matches!(error, BuildError::EncryptionWidens { bits, width: of }
                if (*bits, *of) == (time + 22, width));
            let widened = format!("{} bits", width.bits());
            assert_says(
                &in_full(&error),
                &[&widened, "ID width js-safe", "plain IDs"],
            );
            // Without encryption they are as long as the layout.
            let plain = refusal(layout(time, 10, 12), width, None);
            assert!(plain.is_none(), "{plain:?}");
        }
        let wider = refusal(layout(32, 10, 12), width, Some(&secret));
        assert!(wider.is_none(), "{wider:?}");
    }
}

#[test]
fn two_widths_of_one_secret_do_not_share_nodes() {
    let (layout, secret) = (layout(30, 16, 17), secret_of_its_own());
    let builder = |lease: Lease, width| {
        DirectGenerator::builder(layout)
            .secret(&secret)
            .id_width(width)
            .lease(lease)
            .clock(clock_at(layout, 0))
    };
    let full = builder(lease(layout, 0..2, 0..9), IdWidth::Full);
    let full = full.build().unwrap();
    let taken = builder(lease(layout, 1..3, 0..9), IdWidth::Positive).build();
    assert_matches!(taken, Err(BuildError::LeaseTaken { .. }));
    // The reason: they make the same ID of many a raw.
    let (wide, positive) = (Cipher::sparx64(&secret), Cipher::positive(&secret));
    let same = (0..1_000).filter(|&raw| wide.encrypt(raw) == positive.encrypt(raw));
    assert!(same.count() > 400);
    drop(full);
}
