//! Methods of a store that another store carries out.

use crate::lease::store::lease_store::LeaseStore;

/// Implements these methods of [`LeaseStore`] by those of another store.
///
/// * `|self| self.store => init list` calls the store that the expression names.
/// * `self.ask => init list` calls `self.ask("init", |store| store.init(..))`, a method of the
///   type that decides what becomes of the call.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_store {
    (|$this:ident| $store:expr => $($operation:ident)+) => {
        $($crate::forward_store!(@ $operation [$this $store]);)+
    };
    (self.$ask:ident => $($operation:ident)+) => {
        $($crate::forward_store!(@ $operation [by $ask]);)+
    };
    (@ init $to:tt) => {
        $crate::forward_store!(# $to init(init: &$crate::lease::Init)
            -> $crate::lease::StoreRecord);
    };
    (@ init_if_new $to:tt) => {
        $crate::forward_store!(# $to init_if_new(init: &$crate::lease::Init)
            -> $crate::lease::StoreRecord);
    };
    (@ acquire $to:tt) => {
        $crate::forward_store!(# $to acquire(acquire: &$crate::lease::Acquire)
            -> Vec<$crate::lease::Grant>);
    };
    (@ renew $to:tt) => {
        $crate::forward_store!(# $to renew(renew: &$crate::lease::Renew) -> u64);
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
        $crate::forward_store!(# $to release(block: $crate::lease::Block,
            epoch: $crate::lease::Epoch) -> ());
    };
    (@ list $to:tt) => {
        $crate::forward_store!(# $to list() -> $crate::lease::Listing);
    };
    (@ raise_floor $to:tt) => {
        $crate::forward_store!(# $to raise_floor(floor: $crate::lease::Floor,
            now_unix_ms: u64) -> u64);
    };
    (@ repair $to:tt) => {
        $crate::forward_store!(# $to repair(block: $crate::lease::Block, now_unix_ms: u64)
            -> $crate::lease::BlockState);
    };
    (@ check $to:tt) => {
        $crate::forward_store!(# $to check(now_unix_ms: u64) -> $crate::lease::StoreReport);
    };
    (@ write_test $to:tt) => {
        $crate::forward_store!(# $to write_test(now_unix_ms: u64) -> ());
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
    (# [by $ask:ident] $operation:ident($($name:ident: $kind:ty),*) -> $answer:ty) => {
        fn $operation(
            &mut self,
            namespace: &$crate::lease::Namespace,
            $($name: $kind),*
        ) -> Result<$answer, $crate::lease::StoreError> {
            self.$ask(stringify!($operation), |store| store.$operation(namespace, $($name),*))
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

/// A box of a store is a store.
impl<S: LeaseStore + ?Sized> LeaseStore for Box<S> {
    forward_store! { |self| (**self) =>
        init init_if_new acquire renew renew_all release list raise_floor repair check
        write_test key rest
    }
}
