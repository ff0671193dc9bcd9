//! Randflake 1.x: its sequence, its clock, its text form and its leases.

use std::cell::Cell;
use std::time::Duration;

use ringflake::{Cipher, ClockPolicy, DirectGenerator, Id, Inspector, Layout, Parts, StaticLease};

use super::{Finding, assert_caught};
use ringflake_kit::oracle::Oracle;
use ringflake_kit::small::{clock_at, direct, layout, secret};

/// Its generator: the sequence runs through all seconds, and restarts when it
/// overflows in a second in which it has not yet.
struct Randflake1 {
    max_sequence: u64,
    sequence: Cell<u64>,
    rollover: Cell<u64>,
}

impl Randflake1 {
    fn new(layout: Layout, lease_start: u64) -> Self {
        Self {
            max_sequence: layout.sequences() - 1,
            sequence: Cell::new(0),
            rollover: Cell::new(lease_start),
        }
    }

    /// A second and a sequence.
    fn take(&self, now: u64) -> Option<(u64, u64)> {
        self.sequence.set(self.sequence.get() + 1);
        if self.sequence.get() > self.max_sequence {
            if now <= self.rollover.get() {
                return None;
            }
            self.rollover.set(now);
            self.sequence.set(1);
        }
        Some((now, self.sequence.get()))
    }
}

/// Marks what it is given, and counts what comes again.
struct Duplicates {
    oracle: Oracle,
    layout: Layout,
    count: u64,
}

impl Duplicates {
    fn new(layout: Layout, ticks: std::ops::Range<u64>) -> Self {
        Self {
            oracle: Oracle::new(layout, 0..1, ticks),
            layout,
            count: 0,
        }
    }

    fn mark(&mut self, (tick, sequence): (u64, u64)) {
        let raw = self.layout.pack(tick, 0, sequence).unwrap();
        let parts = self.layout.unpack(raw).unwrap();
        self.count += u64::from(self.oracle.mark(parts).is_err());
    }

    fn finding(&self) -> Finding {
        match self.count {
            0 if self.oracle.marked() > 0 => Ok(()),
            0 => Err("no ID was made".to_owned()),
            count => Err(format!("{count} duplicates")),
        }
    }
}

fn fields(parts: Parts) -> (u64, u64) {
    (parts.tick, parts.sequence)
}

fn direct_by(layout: Layout, clock: ringflake::ManualClock) -> DirectGenerator {
    direct(layout, 0..1, 0..10_000)
        .clock(clock)
        .clock_policy(ClockPolicy::Refuse)
        .build()
        .unwrap()
}

// The sequence restarts within a second that has used those numbers.

/// The lease began an hour ago, and all calls come in one second.
fn a_busy_second(layout: Layout, take: &mut dyn FnMut() -> Option<(u64, u64)>) -> Finding {
    let mut duplicates = Duplicates::new(layout, 3_600..3_601);
    for _ in 0..300_000 {
        if let Some(id) = take() {
            duplicates.mark(id);
        }
    }
    duplicates.finding()
}

#[test]
fn u1_the_sequence_restarts_within_a_second() {
    let layout = Layout::RANDFLAKE;
    let mini = Randflake1::new(layout, 0);
    let mistaken = a_busy_second(layout, &mut || mini.take(3_600));
    let ids = direct_by(layout, clock_at(layout, 3_600));
    let here = a_busy_second(layout, &mut || {
        ids.take().ok().map(|id| fields(ids.inspect(id).unwrap()))
    });
    assert_caught(mistaken, here, "131071 duplicates");
}

// A step back of the clock goes unnoticed.

fn a_clock_that_steps_back(
    layout: Layout,
    take_at: &mut dyn FnMut(u64) -> Option<(u64, u64)>,
) -> Finding {
    let mut duplicates = Duplicates::new(layout, 0..200);
    for now in [100, 101, 102, 100, 101, 99, 100, 150, 101] {
        for _ in 0..5 {
            if let Some(id) = take_at(now) {
                duplicates.mark(id);
            }
        }
    }
    duplicates.finding()
}

#[test]
fn u1_a_clock_step_back_goes_unnoticed() {
    let layout = layout(40, 8, 3);
    let mini = Randflake1::new(layout, 0);
    let mistaken = a_clock_that_steps_back(layout, &mut |now| mini.take(now));
    let clock = clock_at(layout, 0);
    let ids = direct_by(layout, clock.clone());
    let here = a_clock_that_steps_back(layout, &mut |now| {
        clock.set(layout.tick_start_unix_ms(now));
        ids.take().ok().map(|id| fields(ids.inspect(id).unwrap()))
    });
    assert_caught(mistaken, here, "duplicates");
}

// Raws are signed, so that from 2041 on the second is negative.

fn every_second_can_be_inspected(inspect: &dyn Fn(u64) -> Option<u64>) -> Finding {
    let layout = Layout::RANDFLAKE;
    for tick in [0, 1, 1 << 28, (1 << 29) - 1, 1 << 29, (1 << 30) - 1] {
        let raw = layout.pack(tick, 5, 6).unwrap();
        if inspect(raw) != Some(tick) {
            return Err(format!("tick {tick} was read as {:?}", inspect(raw)));
        }
    }
    Ok(())
}

#[test]
fn c1_inspect_fails_in_the_second_half_of_the_layouts_life() {
    let mistaken = every_second_can_be_inspected(&|raw| {
        let tick = raw as i64 >> 34;
        u64::try_from(tick).ok()
    });
    let cipher = Cipher::sparx64(&secret());
    let inspector = Inspector::new(Layout::RANDFLAKE, cipher.clone());
    let here = every_second_can_be_inspected(&|raw| {
        let id = Id::from_u64(cipher.encrypt(raw));
        // Through a signed column, as well.
        let id = Id::from_i64(id.to_i64());
        inspector.inspect(id).ok().map(|parts| parts.tick)
    });
    assert_caught(mistaken, here, "tick 536870912 was read as None");
}

#[test]
fn c1_ids_of_the_year_2050_are_made_and_read() {
    let layout = Layout::RANDFLAKE;
    let clock = ringflake::ManualClock::new(2_540_000_000_000);
    let ids = DirectGenerator::builder(layout)
        .secret(secret())
        .lease(StaticLease::assume_unique(layout, 0..1))
        .clock(clock)
        .build()
        .unwrap();
    let parts = ids.inspect(ids.take().unwrap()).unwrap();
    assert_eq!(parts.unix_ms, 2_540_000_000_000);
}

// The decoder takes the empty text, and text that is too long.

fn one_text_for_one_id(decode: &dyn Fn(&str) -> Option<u64>) -> Finding {
    for (text, number) in [
        ("0", Some(0)),
        ("v", Some(31)),
        ("fvvvvvvvvvvvv", Some(u64::MAX)),
        ("", None),
        ("gvvvvvvvvvvvv", None),
        ("vvvvvvvvvvvvv", None),
        ("0fvvvvvvvvvvvv", None),
        ("10000000000000", None),
        ("00", None),
        ("01", None),
    ] {
        if decode(text) != number {
            return Err(format!("{text:?} was read as {:?}", decode(text)));
        }
    }
    Ok(())
}

#[test]
fn the_decoder_takes_texts_of_any_length() {
    let mistaken = one_text_for_one_id(&|text| {
        text.chars().try_fold(0_u64, |number, digit| {
            Some(number << 5 | u64::from(digit.to_digit(32)?))
        })
    });
    let here = one_text_for_one_id(&|text| text.parse::<Id>().ok().map(Id::to_u64));
    assert_caught(mistaken, here, r#""" was read as Some(0)"#);
}

// Lease ends are inclusive, so that two leases share a second.

fn one_lease_after_the_other(
    layout: Layout,
    first: &mut dyn FnMut(u64) -> Option<(u64, u64)>,
    second: &mut dyn FnMut(u64) -> Option<(u64, u64)>,
) -> Finding {
    let mut duplicates = Duplicates::new(layout, 0..40);
    for now in 5..35 {
        for _ in 0..3 {
            let ids = [first(now), second(now)];
            ids.into_iter().flatten().for_each(|id| duplicates.mark(id));
        }
    }
    duplicates.finding()
}

#[test]
fn u2_inclusive_lease_ends_share_a_second() {
    let layout = layout(40, 8, 3);
    let mini = |start, end| {
        let (mut last, mut sequence) = (0, 0);
        move |now| {
            sequence = if now > last { 0 } else { sequence + 1 };
            last = now;
            // Correct in all but one sign.
            (start..=end).contains(&now).then_some((now, sequence))
        }
    };
    let mistaken = one_lease_after_the_other(layout, &mut mini(10, 20), &mut mini(20, 30));

    let start = |ticks| {
        let clock = clock_at(layout, 0);
        let ids = direct(layout, 0..1, ticks)
            .clock(clock.clone())
            .clock_policy(ClockPolicy::Wait {
                at_most: Duration::ZERO,
            })
            .build()
            .unwrap();
        move |now| {
            clock.set(layout.tick_start_unix_ms(now));
            ids.take().ok().map(|id| fields(ids.inspect(id).unwrap()))
        }
    };
    let here = one_lease_after_the_other(layout, &mut start(10..20), &mut start(20..30));
    assert_caught(mistaken, here, "3 duplicates");
}
