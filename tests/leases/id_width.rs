//! A local space has IDs of one width.

use std::path::Path;

use ringflake::local::DataDir;
use ringflake::{BuildError, CachedGenerator, IdWidth, Layout, Local, LocalError, Secret};
use ringflake_kit::{assert_matches, assert_says, in_full};

const LAYOUT: Layout = Layout::POSITIVE;
const WIDTHS: [IdWidth; 2] = [IdWidth::Full, IdWidth::Positive];

fn build(local: Local, layout: Layout) -> Result<CachedGenerator, BuildError> {
    let builder = CachedGenerator::builder(layout).capacity(64);
    builder.local(local).build()
}

fn in_directory(local: Local, directory: &Path) -> Local {
    local.in_directory(directory).accept_best_effort(true)
}

#[track_caller]
fn assert_other_width(
    built: Result<CachedGenerator, BuildError>,
    namespace: &str,
    widths: (IdWidth, IdWidth),
) {
    let error = built.unwrap_err();
    let BuildError::Local(LocalError::OtherWidth {
        namespace: found,
        recorded,
        given,
    }) = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!((found.as_str(), (*recorded, *given)), (namespace, widths));
    let said = format!("{} bits ({recorded})", recorded.bits());
    assert_says(&error.to_string(), &[namespace, &said]);
}

#[test]
fn a_named_space_keeps_the_width_that_it_was_made_with() {
    let directory = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let orders = || in_directory(Local::new("orders"), directory.path());
    for (name, width, other) in [
        ("orders", IdWidth::Positive, IdWidth::Full),
        ("bills", IdWidth::Full, IdWidth::Positive),
    ] {
        let local = || in_directory(Local::new(name), directory.path());
        let ids = build(local().id_width(width), LAYOUT).unwrap();
        assert_eq!(u128::from(ids.take().unwrap().to_u64()) >> width.bits(), 0);
        assert_other_width(build(local().id_width(other), LAYOUT), name, (width, other));
    }
    // The builder's word counts, and without any it is the full width.
    assert_other_width(
        build(orders(), LAYOUT),
        "orders",
        (IdWidth::Positive, IdWidth::Full),
    );
    let builder = CachedGenerator::builder(LAYOUT).id_width(IdWidth::Positive);
    builder.local(orders()).capacity(64).build().unwrap();
    let widths = (IdWidth::Positive, IdWidth::Full);
    let of_builder = CachedGenerator::builder(LAYOUT).id_width(IdWidth::Full);
    assert_other_width(of_builder.local(orders()).build(), "orders", widths);
    // Plain IDs have no secret, and a space of their own.
    build(orders().plain(), LAYOUT).unwrap();
    let too_wide = build(orders().id_width(IdWidth::Positive), Layout::RANDFLAKE);
    assert_matches!(too_wide, Err(BuildError::LayoutTooWide { bits: 64, .. }));
}

#[test]
fn a_builder_and_its_local_space_agree_on_the_width() {
    let directory = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let of = |builder, local| {
        let orders = in_directory(Local::new("orders"), directory.path());
        let generator = CachedGenerator::builder(LAYOUT).capacity(64);
        generator.id_width(builder).local(orders.id_width(local))
    };
    for [builder, local] in [WIDTHS, [IdWidth::Positive, IdWidth::Full]] {
        let checked = of(builder, local).check().map(drop);
        let built = of(builder, local).build().map(drop);
        for error in [checked, built].map(Result::unwrap_err) {
            assert_matches!(error, BuildError::TwoWidths { builder: of, local: at }
                if (*of, *at) == (builder, local));
            let both = [builder, local].map(|width| width.to_string());
            assert_says(&in_full(&error), &[&both[0], &both[1], "only one width"]);
        }
    }
    // Nothing was made.
    assert!(!directory.path().join("leases.db").exists());
    let positive = of(IdWidth::Positive, IdWidth::Positive).build().unwrap();
    assert!(positive.take().unwrap().to_i64() >= 0);
}

#[test]
fn a_secret_has_one_width_in_a_directory() {
    let directory = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = DataDir::new(directory.path());
    let (path, _) = data.keep_secret().unwrap();
    let secret = Secret::from_file(path).unwrap();
    let local = || in_directory(Local::of_layout(Some(&secret)), directory.path());
    let positive = || local().id_width(IdWidth::Positive);
    drop(build(positive(), LAYOUT).unwrap());
    drop(build(positive(), LAYOUT).unwrap());
    let name = "30-16-17_2024-10-27t03.33.20z-1s";
    let widths = (IdWidth::Positive, IdWidth::Full);
    assert_other_width(build(local(), LAYOUT), name, widths);
    // Nor in another layout.
    assert_other_width(build(local(), Layout::RANDFLAKE), name, widths);
    // And it belongs to the directory.
    let used = data.refuse_used(&secret);
    assert_matches!(used, Err(LocalError::SecretUsed { namespace, .. }) if namespace == name);
}
