//! Methods of a store that another store carries out.

use crate::lease::store::lease_store::LeaseStore;

/// Implements these methods of [`LeaseStore`] by those of `$store`, a store within `$this`.
macro_rules! forward {
    (|$this:ident| $store:expr => $($operation:ident)+) => {
        $($crate::lease::forward!(@ $operation [$this $store]);)+
    };
    (@ init $to:tt) => {
        $crate::lease::forward!(# $to init(init: &$crate::lease::Init) -> $crate::lease::StoreRecord);
    };
    (@ init_if_new $to:tt) => {
        $crate::lease::forward!(# $to init_if_new(init: &$crate::lease::Init)
            -> $crate::lease::StoreRecord);
    };
    (@ acquire $to:tt) => {
        $crate::lease::forward!(# $to acquire(acquire: &$crate::lease::Acquire)
            -> Vec<$crate::lease::Grant>);
    };
    (@ renew $to:tt) => {
        $crate::lease::forward!(# $to renew(renew: &$crate::lease::Renew) -> u64);
    };
    (@ renew_all [$this:ident $store:expr]) => {
        fn renew_all(
            &mut $this,
            renewals: &[(&$crate::lease::Namespace, &$crate::lease::Renew)],
        ) -> Vec<Result<u64, $crate::lease::StoreError>> {
            $store.renew_all(renewals)
        }
    };
    (@ release $to:tt) => {
        $crate::lease::forward!(# $to release(block: $crate::lease::Block,
            epoch: $crate::lease::Epoch) -> ());
    };
    (@ list $to:tt) => {
        $crate::lease::forward!(# $to list() -> $crate::lease::Listing);
    };
    (@ raise_floor $to:tt) => {
        $crate::lease::forward!(# $to raise_floor(floor: $crate::lease::Floor,
            now_unix_ms: u64) -> u64);
    };
    (@ repair $to:tt) => {
        $crate::lease::forward!(# $to repair(block: $crate::lease::Block, now_unix_ms: u64)
            -> $crate::lease::BlockState);
    };
    (@ check $to:tt) => {
        $crate::lease::forward!(# $to check(now_unix_ms: u64) -> $crate::lease::StoreReport);
    };
    (@ write_test $to:tt) => {
        $crate::lease::forward!(# $to write_test(now_unix_ms: u64) -> ());
    };
    (@ key [$this:ident $store:expr]) => {
        fn key(&$this) -> Option<$crate::lease::StoreKey> {
            $store.key()
        }
    };
    (@ rest [$this:ident $store:expr]) => {
        fn rest(&mut $this, at_least: std::time::Duration) {
            $store.rest(at_least);
        }
    };
    (# [$this:ident $store:expr] $operation:ident($($name:ident: $kind:ty),*) -> $answer:ty) => {
        fn $operation(
            &mut $this,
            namespace: &$crate::lease::Namespace,
            $($name: $kind),*
        ) -> Result<$answer, $crate::lease::StoreError> {
            $store.$operation(namespace, $($name),*)
        }
    };
}
pub(crate) use forward;

/// A box of a store is a store.
impl<S: LeaseStore + ?Sized> LeaseStore for Box<S> {
    forward! { |self| (**self) =>
        init init_if_new acquire renew renew_all release list raise_floor repair check
        write_test key rest
    }
}
