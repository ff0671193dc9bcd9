//! One secret in two namespaces.

use std::fmt;
use std::sync::Barrier;
use std::thread;

use super::{Suite, limits};
use crate::cipher::{IdWidth, Secret};
use crate::layout::Layout;
use crate::lease::{Fingerprint, History, Init, LeaseStore, Namespace, StoreError};

/// How often two namespaces are made at once.
const RACES: usize = 12;

/// A namespace whose IDs have this width.
fn keyed(name: &str, secret: &Secret, width: IdWidth) -> Namespace {
    let print = Fingerprint::of_width(secret, width);
    let space = Namespace::new(name, &Layout::JS_SAFE, print).unwrap();
    space.with_block_bits(10).unwrap()
}

/// A secret that no other test has.
fn secret(of: &str) -> Secret {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hmac_sha256::HMAC::mac(of, "conformance of secrets")[..16]);
    Secret::from_bytes(bytes)
}

#[track_caller]
fn in_use<T: fmt::Debug>(refused: Result<T, StoreError>, space: &Namespace, owner: &Namespace) {
    match refused {
        Err(StoreError::SecretInUse { namespace, other }) => {
            assert_eq!((&*namespace, &*other), (space.name(), owner.name()));
        }
        other => panic!("{other:?} where {owner} has the secret of {space}"),
    }
}

fn absent(store: &mut dyn LeaseStore, space: &Namespace) {
    refused!(store.list(space), NotInitialised);
}

impl Suite<'_> {
    pub(super) fn refuses_one_secret_in_two_namespaces(&self) {
        let (mut store, first) = self.namespace("first-use", 5);
        let init = Init::new(History::New, (self.now)()).with_limits(limits());
        for layout in [Layout::RANDFLAKE, Layout::TWITTER] {
            let second = Namespace::new("second-use", &layout, first.fingerprint()).unwrap();
            in_use(store.init(&second, &init), &second, &first);
            absent(&mut *store, &second);
        }
        for name in ["plain", "plain-too"] {
            let plain = Namespace::new(name, &Layout::RANDFLAKE, Fingerprint::PLAIN).unwrap();
            store.init(&plain, &init).unwrap();
        }
    }

    pub(super) fn refuses_one_secret_at_two_widths(&self) {
        let mut store = (self.open)();
        let begin = |secret: &Secret| {
            let init = Init::new(History::New, (self.now)()).with_limits(limits());
            init.with_secret(secret)
        };
        for width in IdWidth::ALL {
            let of_first = secret(width.name());
            let first = keyed(&format!("{width}-first"), &of_first, width);
            store.init(&first, &begin(&of_first)).unwrap();
            for other in IdWidth::ALL {
                let second = keyed(&format!("{width}-{other}"), &of_first, other);
                in_use(store.init(&second, &begin(&of_first)), &second, &first);
                absent(&mut *store, &second);
                // The name is free.
                let of_another = secret(second.name());
                let another = keyed(second.name(), &of_another, other);
                store.init(&another, &begin(&of_another)).unwrap();
            }
        }
    }

    /// Of two that are made at once one is refused.
    pub(super) fn refuses_one_secret_at_two_widths_at_once(&self) {
        let mut stores = [(self.open)(), (self.open)()];
        for race in 0..RACES {
            let secret = secret(&format!("race {race}"));
            let init = Init::new(History::New, (self.now)()).with_limits(limits());
            let init = &init.with_secret(&secret);
            let spaces = [IdWidth::Full, IdWidth::Positive]
                .map(|width| keyed(&format!("race-{race}-{width}"), &secret, width));
            let start = &Barrier::new(2);
            let made = thread::scope(|scope| {
                let both = stores.iter_mut().zip(&spaces);
                let both: Vec<_> = both
                    .map(|(store, space)| {
                        scope.spawn(move || {
                            start.wait();
                            store.init(space, init)
                        })
                    })
                    .collect();
                both.into_iter()
                    .map(|one| one.join().unwrap())
                    .collect::<Vec<_>>()
            });
            let winner = usize::from(made[0].is_err());
            let [won, lost] = [winner, 1 - winner].map(|place| &spaces[place]);
            for (made, space) in made.into_iter().zip(&spaces) {
                match space == won {
                    true => assert_eq!(made.unwrap().namespace, *won),
                    false => in_use(made, lost, won),
                }
            }
            let [store, _] = &mut stores;
            store.list(won).unwrap();
            absent(&mut **store, lost);
        }
    }
}
