use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};

use ringflake::{Layout, StaticLease};
use ringflake_kit::events::said;

use super::*;

/// A generator on nodes that no other of this process has.
pub(crate) fn generator() -> CachedGenerator {
    static NEXT: AtomicU64 = AtomicU64::new(40_000);
    let node = NEXT.fetch_add(64, Ordering::Relaxed);
    let lease = StaticLease::assume_unique(Layout::RANDFLAKE, node..node + 64);
    CachedGenerator::builder(Layout::RANDFLAKE)
        .plain()
        .lease(lease)
        .build()
        .unwrap()
}

fn namespaces(
    most: usize,
    build: impl Fn(&str) -> Result<CachedGenerator, OpenError> + Send + Sync + 'static,
) -> Namespaces {
    Namespaces::new(Box::new(build), most)
}

#[test]
fn a_namespace_is_made_once_for_all_who_ask() {
    const ASKERS: usize = 4;
    let built = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&built);
    let all = namespaces(1, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(generator())
    });
    let start = Barrier::new(ASKERS);
    let got = std::thread::scope(|scope| {
        let ask = || {
            start.wait();
            all.open("orders").unwrap()
        };
        [(); ASKERS]
            .map(|()| scope.spawn(ask))
            .map(|asker| asker.join().unwrap())
    });
    assert_eq!(built.load(Ordering::Relaxed), 1);
    let first = all.get("orders").unwrap();
    assert!(got.iter().all(|namespace| Arc::ptr_eq(namespace, &first)));
}

#[test]
fn a_cause_is_logged_once_however_many_names_meet_it() {
    let all = namespaces(64, |name| {
        Err(OpenError::UrlFile {
            path: name.into(),
            source: Arc::new(io::ErrorKind::StorageFull.into()),
        })
    });
    let lines = said(|| {
        for number in 0..1_000 {
            all.open(&format!("n{number}")).unwrap_err();
        }
    });
    assert_eq!(lines.len(), 1, "{:?}", &lines[..2]);
    assert!(lines[0].contains("n0"), "{}", lines[0]);
}

#[test]
fn a_name_does_not_wait_for_another_one() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let all = namespaces(2, move |name| {
        if name == "slow" {
            // Until the other one is there.
            wait.lock().unwrap().recv().unwrap();
        }
        Ok(generator())
    });
    std::thread::scope(|scope| {
        // Gone with this test, should it fail: then nobody waits for it.
        let go = go;
        let slow = scope.spawn(|| all.open("slow").unwrap());
        ringflake_kit::eventually("it is being made", || {
            lock(&all.making).slots.contains_key("slow")
        });
        all.open("quick").unwrap();
        assert!(all.get("slow").is_none());
        // It counts already.
        let error = all.open("third").unwrap_err();
        assert!(matches!(error, OpenError::TooMany { most: 2 }), "{error}");
        go.send(()).unwrap();
        assert_eq!(slow.join().unwrap().name, "slow");
    });
    let names: Vec<_> = all.all().iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["quick", "slow"]);
}

#[test]
fn a_failure_is_tried_again_and_leaves_room() {
    let tries = AtomicU32::new(0);
    let all = namespaces(1, move |_| match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Err(OpenError::Unknown),
        _ => Ok(generator()),
    });
    assert!(matches!(all.open("a"), Err(OpenError::Unknown)));
    all.open("b").unwrap();
    assert!(matches!(all.open("a"), Err(OpenError::TooMany { most: 1 })));
    all.open("b").unwrap();
}

#[test]
fn an_end_is_reported_for_each_and_nothing_comes_after() {
    let all = namespaces(3, |_| Ok(generator()));
    let held = all.open("held").unwrap();
    all.open("free").unwrap();
    assert_eq!(all.unready(), []);
    let ends = all.shutdown(Duration::from_secs(60));
    let expected = [("free", Shutdown::Released), ("held", Shutdown::InUse)];
    assert_eq!(ends, expected.map(|(name, end)| (name.to_owned(), end)));
    held.generator.take().unwrap();
    assert!(matches!(all.open("held"), Err(OpenError::Stopping)));
    assert!(all.get("held").is_none());
}
