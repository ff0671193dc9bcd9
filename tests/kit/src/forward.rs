//! The operations of a store that only stands before another one.

/// Those operations of [`LeaseStore`](ringflake::lease::LeaseStore) that are named, each
/// by the type's own `self.forward(name, ask)`, where `ask` is given the other store. What
/// a type does otherwise it writes out beside this.
#[macro_export]
macro_rules! forward {
    ($($operation:ident),+) => {
        $($crate::forward!(@ $operation);)+
    };
    (@ init) => {
        $crate::forward!(# init(namespace: &ringflake::lease::Namespace,
            init: &ringflake::lease::Init) -> ringflake::lease::StoreRecord);
    };
    (@ acquire) => {
        $crate::forward!(# acquire(namespace: &ringflake::lease::Namespace,
            acquire: &ringflake::lease::Acquire) -> Vec<ringflake::lease::Grant>);
    };
    (@ renew) => {
        $crate::forward!(# renew(namespace: &ringflake::lease::Namespace,
            renew: &ringflake::lease::Renew) -> u64);
    };
    (@ release) => {
        $crate::forward!(# release(namespace: &ringflake::lease::Namespace,
            block: ringflake::lease::Block, epoch: ringflake::lease::Epoch) -> ());
    };
    (@ list) => {
        $crate::forward!(# list(namespace: &ringflake::lease::Namespace)
            -> ringflake::lease::Listing);
    };
    (@ raise_floor) => {
        $crate::forward!(# raise_floor(namespace: &ringflake::lease::Namespace,
            floor: ringflake::lease::Floor, now_unix_ms: u64) -> u64);
    };
    (@ repair) => {
        $crate::forward!(# repair(namespace: &ringflake::lease::Namespace,
            block: ringflake::lease::Block, now_unix_ms: u64) -> ringflake::lease::BlockState);
    };
    (@ check) => {
        $crate::forward!(# check(namespace: &ringflake::lease::Namespace, now_unix_ms: u64)
            -> ringflake::lease::StoreReport);
    };
    (@ write_test) => {
        $crate::forward!(# write_test(namespace: &ringflake::lease::Namespace, now_unix_ms: u64)
            -> ());
    };
    (# $operation:ident($($name:ident: $kind:ty),*) -> $answer:ty) => {
        fn $operation(
            &mut self,
            $($name: $kind),*
        ) -> Result<$answer, ringflake::lease::StoreError> {
            self.forward(stringify!($operation), |store| store.$operation($($name),*))
        }
    };
}
