//! A box of a store is a store.

use std::time::Duration;

use crate::lease::block::{Block, BlockState, Epoch};
use crate::lease::error::StoreError;
use crate::lease::grant::Grant;
use crate::lease::namespace::Namespace;
use crate::lease::store::key::StoreKey;
use crate::lease::store::lease_store::LeaseStore;
use crate::lease::store::record::StoreRecord;
use crate::lease::store::report::{Listing, StoreReport};
use crate::lease::store::request::{Acquire, Floor, Init, Renew};

impl<S: LeaseStore + ?Sized> LeaseStore for Box<S> {
    fn init(&mut self, namespace: &Namespace, init: &Init) -> Result<StoreRecord, StoreError> {
        (**self).init(namespace, init)
    }

    fn init_if_new(
        &mut self,
        namespace: &Namespace,
        init: &Init,
    ) -> Result<StoreRecord, StoreError> {
        (**self).init_if_new(namespace, init)
    }

    fn acquire(
        &mut self,
        namespace: &Namespace,
        acquire: &Acquire,
    ) -> Result<Vec<Grant>, StoreError> {
        (**self).acquire(namespace, acquire)
    }

    fn renew(&mut self, namespace: &Namespace, renew: &Renew) -> Result<u64, StoreError> {
        (**self).renew(namespace, renew)
    }

    fn renew_all(&mut self, renewals: &[(&Namespace, &Renew)]) -> Vec<Result<u64, StoreError>> {
        (**self).renew_all(renewals)
    }

    fn release(
        &mut self,
        namespace: &Namespace,
        block: Block,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        (**self).release(namespace, block, epoch)
    }

    fn list(&mut self, namespace: &Namespace) -> Result<Listing, StoreError> {
        (**self).list(namespace)
    }

    fn raise_floor(
        &mut self,
        namespace: &Namespace,
        floor: Floor,
        now_unix_ms: u64,
    ) -> Result<u64, StoreError> {
        (**self).raise_floor(namespace, floor, now_unix_ms)
    }

    fn check(
        &mut self,
        namespace: &Namespace,
        now_unix_ms: u64,
    ) -> Result<StoreReport, StoreError> {
        (**self).check(namespace, now_unix_ms)
    }

    fn write_test(&mut self, namespace: &Namespace, now_unix_ms: u64) -> Result<(), StoreError> {
        (**self).write_test(namespace, now_unix_ms)
    }

    fn repair(
        &mut self,
        namespace: &Namespace,
        block: Block,
        now_unix_ms: u64,
    ) -> Result<BlockState, StoreError> {
        (**self).repair(namespace, block, now_unix_ms)
    }

    fn key(&self) -> Option<StoreKey> {
        (**self).key()
    }

    fn rest(&mut self, at_least: Duration) {
        (**self).rest(at_least);
    }
}
