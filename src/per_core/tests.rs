//! Which item a thread finds.

#[cfg(all(target_os = "linux", not(miri)))]
use std::{env, process::Command};

#[cfg(all(target_os = "linux", not(miri)))]
use ringflake_kit::affinity;

use super::number::{by_a_call, getcpu, rseq, thread_count};
use super::*;

/// Where the cores find their items.
fn found(count: usize, allowed: &[usize]) -> Vec<usize> {
    let places = places(count, allowed);
    let place = |&core: &usize| match &places {
        None => core % count,
        Some(places) => usize::from(places[core]),
    };
    allowed.iter().map(place).collect()
}

#[test]
fn each_allowed_core_has_an_item_of_its_own() {
    for allowed in [vec![0, 1, 2, 3], vec![0, 2, 4, 6], vec![5, 900, 1023]] {
        assert_eq!(
            found(4, &allowed),
            [0, 1, 2, 3][..allowed.len()],
            "{allowed:?}"
        );
    }
}

#[test]
fn cores_share_items_evenly_where_there_are_fewer() {
    assert_eq!(found(2, &[1, 3, 5, 7, 9]), [0, 1, 0, 1, 0]);
    let others = places(2, &[1, 3, 5]).unwrap();
    assert!(others.iter().all(|&place| place < 2), "other cores too");
}

#[test]
fn a_table_is_there_only_where_numbers_do_not_take_turns() {
    for (count, allowed, has_table) in [
        (4, &[0, 1, 2, 3, 4, 5][..], false),
        (4, &[8, 9], false),
        (1, &[3, 7], false),
        (2, &[], false),
        (4, &[1, 2], true),
        (2, &[0, 2], true),
    ] {
        let found = places(count, allowed).is_some();
        assert_eq!(found, has_table, "{count}, {allowed:?}");
    }
}

#[test]
fn a_core_finds_the_item_at_its_place() {
    let mut items = PerCore::new(4, |place| place);
    let found = |items: &PerCore<usize>, cores: [usize; 6]| cores.map(|core| items.place_of(core));
    items.places = None;
    let cores = [0, 2, 4, 7, 1026, usize::MAX];
    assert_eq!(found(&items, cores), [0, 2, 0, 3, 2, 3]);
    items.places = places(4, &[1, 2, 9, 1021]).map(Arc::new);
    // Cores beyond the table go round.
    let cores = [1, 2, 9, 1021, 3, CORES + 9];
    assert_eq!(found(&items, cores), [0, 1, 2, 3, 3, 2]);
}

#[test]
fn places_go_round_from_any_of_them() {
    let items = PerCore::try_new(4, |place| Ok::<_, ()>(place * 10)).unwrap();
    assert_eq!(items.iter().copied().collect::<Vec<_>>(), [0, 10, 20, 30]);
    assert_eq!(items.places_from(2).collect::<Vec<_>>(), [2, 3, 0, 1]);
    assert_eq!(items[3], 30);
    assert_eq!(items.len(), 4);
}

/// So that the takes of two cores share no cache line.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn threads_on_different_cores_find_different_items() {
    let items = PerCore::new(MAX_ITEMS, |place| place);
    let cores = affinity::allowed();
    let at_once = number::rseq::Areas::find().is_some();
    let found = |core| {
        thread::scope(|scope| {
            let bound = scope.spawn(|| {
                affinity::bind_to(core);
                (items.here(), items.here_at_once())
            });
            bound.join().unwrap()
        })
    };
    for (rank, core) in cores.into_iter().enumerate() {
        let place = rank % MAX_ITEMS;
        assert_eq!(found(core), (place, at_once.then_some(place)), "{core}");
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_process_that_is_bound_has_fewer_cores() {
    assert_eq!(allowed_cores(), affinity::allowed());
    // A quota of processor time may leave fewer.
    assert!((1..=affinity::allowed().len()).contains(&cores()));
    affinity::on_one_core(|| {
        assert_eq!(cores(), 1);
        assert_eq!(allowed_cores(), [affinity::here()]);
    });
}

#[test]
fn an_item_that_can_not_be_made_is_an_error() {
    let failed = PerCore::try_new(4, |place| if place < 2 { Ok(()) } else { Err(place) });
    assert_eq!(failed.unwrap_err(), 2);
}

#[test]
fn threads_without_a_core_keep_their_number() {
    let numbers = || [thread_count(), thread_count()];
    let others = (0..3).map(|_| thread::spawn(numbers).join().unwrap());
    let mut all: Vec<_> = others.chain([numbers()]).collect();
    assert!(all.iter().all(|[first, second]| first == second), "{all:?}");
    assert!(all.iter().all(|&[number, _]| number < 1 << 20), "{all:?}");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4);
}

/// Each way must name the core to which a thread is bound.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_thread_that_is_bound_to_a_core_finds_its_number() {
    for core in number::allowed_cores() {
        thread::scope(|scope| {
            scope.spawn(|| {
                affinity::bind_to(core);
                assert_eq!(CoreNumbers::find().here(), core);
                assert_eq!(getcpu(), Some(core));
                assert_eq!(by_a_call(), core);
            });
        });
    }
}

/// The area of a thread is there then, and says core 0 for ever.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn threads_find_their_cores_where_a_tunable_of_glibc_forbids_the_area() {
    let child = Command::new(env::current_exe().unwrap())
        .args([
            "per_core::tests::a_thread_that_is_bound_to_a_core_finds_its_number",
            "--exact",
        ])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[test]
fn glibc_since_2_35_registers_an_area() {
    // SAFETY: has no arguments.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a string that ends with a zero byte and is never freed.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    let minor: Option<u32> = version
        .to_str()
        .ok()
        .and_then(|version| version.strip_prefix("2."))
        .and_then(|minor| minor.parse().ok());
    // The kernel's answer to an area of no size: a kernel or a container without the call
    // says that it has none.
    // SAFETY: registers nothing.
    unsafe { libc::syscall(libc::SYS_rseq, 0, 0, 0, 0) };
    let has_the_call = std::io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL);
    assert_eq!(
        rseq::Areas::find().is_some(),
        minor.is_some_and(|minor| minor >= 35) && has_the_call,
        "{version:?}"
    );
}
