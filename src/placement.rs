//! Which parts of a type share a cache line: for the tests named `placement`, one beside each
//! type that threads share.
//!
//! They state what `benches/README.md` counts on: that no core loses a line to the writes of
//! another one but where the two have something to say to each other.

use std::any::type_name;
use std::mem::align_of;
use std::ops::Range;

use crossbeam_utils::CachePadded;

/// The bytes that two cores pass to and fro as one: on x86-64 two lines of 64, which the
/// processor fetches together.
pub(crate) const LINE: usize = align_of::<CachePadded<()>>();

/// The bytes of a field.
pub(crate) struct Part {
    name: &'static str,
    bytes: Range<usize>,
}

impl Part {
    /// The field at `offset` that `get` gives.
    pub(crate) fn of<T, F>(name: &'static str, offset: usize, _get: fn(&T) -> &F) -> Self {
        let bytes = offset..offset + size_of::<F>();
        Self { name, bytes }
    }

    fn shares_a_line_with(&self, other: &Self) -> bool {
        let lines = |part: &Self| part.bytes.start / LINE..part.bytes.end.div_ceil(LINE);
        let (here, there) = (lines(self), lines(other));
        here.start < there.end && there.start < here.end
    }
}

/// Asserts that no line has fields of two groups, wherever a value lies. All fields are
/// named, so that one that is added has to be put somewhere.
macro_rules! assert_apart {
    ($type:ident { $([$($field:ident),+])+ }) => {{
        let _all_are_named = |it: &$type| {
            let $type { $($($field: _),+),+ } = it;
        };
        $crate::placement::check_apart::<$type>(&[$(vec![$(
            $crate::placement::Part::of(
                stringify!($field),
                std::mem::offset_of!($type, $field),
                |it: &$type| &it.$field,
            )
        ),+]),+])
    }};
}
pub(crate) use assert_apart;

#[track_caller]
pub(crate) fn check_apart<T>(groups: &[Vec<Part>]) {
    let name = type_name::<T>();
    assert_eq!(
        align_of::<T>() % LINE,
        0,
        "{name} may begin in the middle of a line"
    );
    for (at, group) in groups.iter().enumerate() {
        for (here, there) in group
            .iter()
            .flat_map(|here| groups[at + 1..].iter().flatten().map(move |it| (here, it)))
        {
            assert!(
                !here.shares_a_line_with(there),
                "{name}: `{}` ({:?}) shares a line with `{}` ({:?})",
                here.name,
                here.bytes,
                there.name,
                there.bytes
            );
        }
    }
}

/// Asserts that memory begins with a line.
#[track_caller]
pub(crate) fn assert_begins_a_line<T: ?Sized>(what: &str, value: &T) {
    let address = std::ptr::from_ref(value).addr();
    assert_eq!(address % LINE, 0, "not at the beginning of a line: {what}");
}

// What the assertions below must not let through.

#[repr(C)]
struct Crowded {
    padded: CachePadded<u64>,
    alone: u64,
    beside: u64,
}

#[test]
#[should_panic = "`alone` (128..136) shares a line with `beside` (136..144)"]
#[cfg(target_arch = "x86_64")]
fn two_groups_on_a_line_are_named() {
    assert_apart!(Crowded { [padded] [alone] [beside] });
}

#[test]
fn one_group_may_have_a_line() {
    assert_apart!(Crowded { [padded] [alone, beside] });
}

#[test]
#[should_panic = "may begin in the middle of a line"]
fn a_type_that_begins_anywhere_is_named() {
    struct Anywhere {
        one: u64,
    }
    assert_apart!(Anywhere { [one] });
}
