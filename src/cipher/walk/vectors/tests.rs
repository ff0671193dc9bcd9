//! Every backend, with memory of several sizes, against walks one by one.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::super::backend::{Backend, Engine};
use super::super::super::shared_words::SharedWords;
use super::super::super::{Secret, scalar};
use super::super::lists::Memory;
use super::super::{is_inside, walk};
use super::*;

fn schedule(secret: [u8; 16]) -> Schedule {
    let mut schedule = Schedule::zeroed();
    schedule.expand(&Secret::from_bytes(secret));
    schedule
}

/// What `task` makes of each number of a batch.
fn single(schedule: &Schedule, task: Task, numbers: &[u64]) -> Vec<u64> {
    let next = |number| match task {
        Task::Decrypt => scalar::decrypt(schedule, number),
        _ => scalar::encrypt(schedule, number),
    };
    let one = |&number| walk(number, next, is_inside);
    numbers.iter().map(one).collect()
}

/// Does `task` on all backends with all sizes of memory, the least possible among them.
fn check(schedule: &Schedule, task: Task, numbers: &[u64], expected: &[u64]) {
    for backend in Backend::available() {
        let engine = Engine::new(backend).unwrap();
        let with = |lists: Lists<'_>| {
            let room = lists.words[0].len();
            let mut numbers = numbers.to_vec();
            engine.walk_in(schedule, task, &mut numbers, lists);
            assert!(numbers == expected, "{backend}, room for {room}");
        };
        with(Memory::<64, 1>::new().lists());
        with(Memory::<200, 4>::new().lists());
        with(Memory::<400, 16>::new().lists());
        with(Memory::<1216, 128>::new().lists());
        with(Memory::<4672, 512>::new().lists());
    }
}

/// Numbers of the domain from which walks of `least` steps and more begin.
fn long_walks(schedule: &Schedule, least: usize) -> impl Iterator<Item = u64> {
    let ends = (0_u64..).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1);
    ends.filter_map(move |end| {
        let mut steps = 1;
        let mut start = scalar::decrypt(schedule, end);
        while !is_inside(start) {
            steps += 1;
            start = scalar::decrypt(schedule, start);
        }
        (steps >= least).then_some(start)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn vectors_of_walks_end_where_single_ones_do(
        secret in any::<[u8; 16]>(),
        numbers in prop_oneof![
            vec(any::<u64>(), 0..300),
            vec(0_u64..1 << 63, 900..1100),
            vec(1_u64 << 63.., 0..100),
        ],
    ) {
        let schedule = schedule(secret);
        for task in [Task::Encrypt, Task::Decrypt] {
            check(&schedule, task, &numbers, &single(&schedule, task, &numbers));
        }
    }

    #[test]
    fn walks_of_a_section_end_where_single_ones_do(
        secret in any::<[u8; 16]>(),
        section in 0_u64..1 << 48,
        skipped in 0_u64..30_000,
        len in prop_oneof![0_usize..300, 2000_usize..2700],
    ) {
        let schedule = schedule(secret);
        let first = (section << 15) + skipped;
        let raws: Vec<_> = (first..).take(len).collect();
        let expected = single(&schedule, Task::Encrypt, &raws);
        let task = Task::EncryptRun(SharedWords::new(&schedule, first));
        // What is in a run before counts for nothing, wherever it lies.
        let garbage: Vec<_> = (0..len as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        check(&schedule, task, &garbage, &expected);
    }
}

/// No list is shorter than the one before it, so there is no room for all.
#[test]
fn all_walks_of_a_piece_may_go_on_together() {
    let schedule = schedule(*b"walks are long..");
    let mut numbers: Vec<_> = long_walks(&schedule, 5).take(2500).collect();
    let expected = single(&schedule, Task::Encrypt, &numbers);
    check(&schedule, Task::Encrypt, &numbers, &expected);

    // Those that end at once side by side with those that do not.
    let once = scalar::decrypt;
    let short = (0..u64::MAX / 2).filter(|&end| is_inside(once(&schedule, end)));
    let short: Vec<_> = short.map(|end| once(&schedule, end)).take(1300).collect();
    for (index, start) in short.into_iter().enumerate() {
        numbers.insert((2 * index).min(numbers.len()), start);
    }
    let expected = single(&schedule, Task::Encrypt, &numbers);
    check(&schedule, Task::Encrypt, &numbers, &expected);
}

/// Whole vectors of walks that end at once, and of numbers that lie outside.
#[test]
fn no_walk_of_a_piece_may_go_on() {
    let schedule = schedule(*b"walks are short.");
    let once = |end| scalar::decrypt(&schedule, end);
    let short = (0..u64::MAX / 2).filter(|&end| is_inside(once(end)));
    let mut numbers: Vec<_> = short.map(once).take(333).collect();
    let expected = single(&schedule, Task::Encrypt, &numbers);
    check(&schedule, Task::Encrypt, &numbers, &expected);
    numbers.extend((0..100).map(|number| OUTSIDE | number));
    let expected = single(&schedule, Task::Encrypt, &numbers);
    assert_eq!(expected[333..], numbers[333..]);
    check(&schedule, Task::Encrypt, &numbers, &expected);
}

/// Vectors of walks that have ended would be encrypted for nothing otherwise.
#[test]
fn the_walks_of_a_piece_go_on_in_shorter_and_shorter_lists() {
    let schedule = schedule(*b"walks go on here");
    for backend in Backend::available() {
        if backend == Backend::Portable {
            continue;
        }
        let engine = Engine::new(backend).unwrap();
        let used = |len| {
            let mut memory = Memory::<4672, 512>::new();
            let mut numbers: Vec<_> = (0..len).collect();
            engine.walk_in(&schedule, Task::Encrypt, &mut numbers, memory.lists());
            let used = memory.lists().words.map(|words| {
                let last = words.iter().rposition(|&word| word != 0);
                last.map_or(0, |last| last + 1)
            });
            used.into_iter().max().unwrap()
        };
        // A half, a quarter and so on, the last of which are walked in registers.
        let long = used(4096);
        assert!((3_800..4_200).contains(&long), "{backend}: {long}");
        // Fewer than make four vectors.
        let short = used(45);
        assert!(short < 90, "{backend}: {short}");
    }
}

/// As many as there is room for in a second list, and one more, whatever vectors are long.
#[test]
fn a_list_that_has_no_room_is_walked_in_registers() {
    let schedule = schedule(*b"room is short...");
    let numbers: Vec<_> = long_walks(&schedule, 5).take(128).collect();
    let expected = single(&schedule, Task::Encrypt, &numbers);
    for backend in Backend::available() {
        let engine = Engine::new(backend).unwrap();
        for len in 0..=numbers.len() {
            let mut memory = Memory::<200, 16>::new();
            let mut ends = numbers[..len].to_vec();
            engine.walk_in(&schedule, Task::Encrypt, &mut ends, memory.lists());
            assert!(ends == expected[..len], "{backend}, {len}");
        }
    }
}
