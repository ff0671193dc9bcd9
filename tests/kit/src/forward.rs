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
        $crate::forward!(# init(init: &ringflake::lease::Init) -> ringflake::lease::StoreRecord);
    };
    (@ renew) => {
        $crate::forward!(# renew(renew: &ringflake::lease::Renew) -> u64);
    };
    (@ release) => {
        $crate::forward!(# release(block: ringflake::lease::Block,
            epoch: ringflake::lease::Epoch) -> ());
    };
    (@ list) => {
        $crate::forward!(# list() -> ringflake::lease::Listing);
    };
    (@ raise_floor) => {
        $crate::forward!(# raise_floor(floor: ringflake::lease::Floor, now_unix_ms: u64) -> u64);
    };
    (@ repair) => {
        $crate::forward!(# repair(block: ringflake::lease::Block, now_unix_ms: u64)
            -> ringflake::lease::BlockState);
    };
    (@ check) => {
        $crate::forward!(# check(now_unix_ms: u64) -> ringflake::lease::StoreReport);
    };
    (@ write_test) => {
        $crate::forward!(# write_test(now_unix_ms: u64) -> ());
    };
    (# $operation:ident($($name:ident: $kind:ty),*) -> $answer:ty) => {
        fn $operation(
            &mut self,
            namespace: &ringflake::lease::Namespace,
            $($name: $kind),*
        ) -> Result<$answer, ringflake::lease::StoreError> {
            self.forward(stringify!($operation), |store| {
                store.$operation(namespace, $($name),*)
            })
        }
    };
}
