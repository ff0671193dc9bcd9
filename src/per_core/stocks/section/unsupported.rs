//! No restartable sections: there are no [`Areas`], so nothing here can be called.

use super::Areas;
use crate::id::Id;
use crate::per_core::stocks::Stock;

pub(in crate::per_core::stocks) const ON_BY_DEFAULT: bool = true;

pub(in crate::per_core::stocks) fn pop(areas: Areas, _: &[Stock], _mark: u64) -> Option<u64> {
    match areas {}
}

pub(in crate::per_core::stocks) fn fill(areas: Areas, _: &[Stock], _: &[Id], _word: u64) -> bool {
    match areas {}
}

pub(in crate::per_core::stocks) fn replace(areas: Areas, _: &[Stock], _: u64, _: u64) -> bool {
    match areas {}
}
