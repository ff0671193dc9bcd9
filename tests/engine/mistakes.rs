//! Mistakes that other generators made, and what fails here if they are made again.
//!
//! | whose | the mistake | what fails |
//! |---|---|---|
//! | Baidu | two takes that overlap get the last ID | `r1_stress_*`, and the models of takes |
//! | Baidu | a handler for a full ring that throws ends all fills | `r3_a_hook_on_a_full_ring_that_panics_stops_no_fill` |
//! | Baidu | a take that waited gets the slot that it had chosen before | `u1_a_consumer_that_waits_gets_each_id_once` |
//! | Baidu | what the ring has no room for is thrown away | `u1_a_lease_gives_each_of_its_cells_once_and_then_ends` |
//! | Baidu | after a rest, fills never catch up with the clock | `fills_after_a_rest_catch_up_with_the_clock` |
//! | Baidu | nothing bounds how far it borrows | `u2_a_frozen_clock_lets_through_what_may_be_borrowed` |
//! | Baidu | the time field runs out, and IDs turn negative | `baidus_28_bits_ended_on_2024_11_20`, `a_layout_that_has_run_out`, `u3_the_last_tick_*` |
//! | Baidu | a threshold is computed in 32 bits | `a_threshold_is_exact_for_every_ring_that_can_be_made` |
//! | Baidu | takes log | `p1_takes_log_nothing` |
//! | Randflake | the sequence starts again in the same second | `u1_the_sequence_of_the_randflake_layout_rolls_over` |
//! | Randflake | a step back of the clock goes unnoticed | `u1_u2_any_policy_under_any_clock` |
//! | Randflake | raws are signed, and unreadable from 2041 on | `the_vectors_pack_and_unpack` |
//! | Randflake | texts that are empty or too long are read | `each_fault_is_named_with_its_place` |
//! | Randflake | two leases share the second where one ends | `ids_carry_the_time_of_their_take` |
//! | Sonyflake | a take sleeps with the mutex held | `wait_keeps_nobody_who_need_not_wait` |
//! | snowflaked | a step back of the clock panics | `u1_the_clock_steps_back_and_forth_under_load`, `u1_u2_any_policy_under_any_clock` |
//! | Leaf | without its store it starts behind its last run | `no_cipher_and_no_lease`, `u1_a_restart_goes_on_where_the_first_lease_ends` |
//! | CosId, yitter | it goes on when the guard of its machine ID has failed | `u2_a_clock_far_ahead_ends_the_lease_and_back_it_goes_on`, `ids_carry_the_time_of_their_take` |
//! | several | an option that is documented does nothing | `tests/engine/{config,direct,fills}.rs` |
//! | several | a benchmark gives the same ID each time | `benches/common/unique.rs` |

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use ringflake::{Id, ThresholdFill};
use ringflake_kit::events::OnEvent;
use ringflake_kit::small::{cached, clock_at, layout};

#[test]
fn fills_after_a_rest_catch_up_with_the_clock() {
    let layout = layout(40, 8, 3);
    let clock = clock_at(layout, 0);
    let ids = cached(layout, 0..1, 0..100_000)
        .clock(clock.clone())
        .capacity(64)
        .build()
        .unwrap();
    let tick = || ids.inspect(ids.take().unwrap()).unwrap().tick;
    tick();
    clock.advance(Duration::from_secs(10_000));
    // What the ring held may be as old as the rest was long.
    (0..64).for_each(|_| _ = tick());
    assert!(tick() >= 9_999);
}

/// Neither before a fill is asked for, nor when it is.
#[test]
fn p1_takes_log_nothing() {
    let layout = layout(40, 8, 3);
    let ids = cached(layout, 0..1, 0..100_000)
        .borrow_limit(Duration::MAX)
        .capacity(1 << 12)
        .threshold_fill(ThresholdFill::percent(99))
        .build()
        .unwrap();
    let mut handle = ids.handle().unwrap();
    let events = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&events);
    let counting = OnEvent(move |_: &tracing::Event<'_>| _ = count.fetch_add(1, Relaxed));
    tracing::subscriber::with_default(counting, || {
        for _ in 0..1_000 {
            handle.take().unwrap();
            ids.take().unwrap();
            ids.take_batch(&mut [Id::default(); 1]).unwrap();
        }
        assert_eq!(events.load(Relaxed), 0);
        tracing::info!("what it would hear");
        assert_eq!(events.load(Relaxed), 1);
    });
}
