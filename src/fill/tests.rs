//! How producers are woken to stop.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::ScheduledFill;
use crate::clock::ManualClock;
use crate::generator::CachedGenerator;
use crate::layout::Layout;
use crate::lease::StaticLease;

const HOUR: Duration = Duration::from_secs(3600);

/// Long enough for anything that needs no time.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_drop_wakes_all_producers_that_sleep() {
    let now = Layout::RANDFLAKE.tick_start_unix_ms(1_000);
    // Each on a node of its own: a process makes each ID once.
    for (nodes, producers, schedule) in [
        (500..501, 1, None),
        (501..502, 4, None),
        (502..503, 4, Some(ScheduledFill::every(HOUR))),
    ] {
        let ids = CachedGenerator::builder(Layout::RANDFLAKE)
            .plain()
            .lease(StaticLease::assume_unique(Layout::RANDFLAKE, nodes))
            .clock(ManualClock::new(now))
            .capacity(64)
            .scheduled_fill(schedule)
            .producers(producers)
            .build()
            .unwrap();
        // The time that they need to fall asleep. An awake one sees the stop by itself, so
        // too short a sleep can only hide a missing wake-up.
        thread::sleep(Duration::from_millis(30));
        let (returned, over) = mpsc::channel();
        // Not joined: where one sleeps on, the drop never returns.
        thread::spawn(move || {
            drop(ids);
            returned.send(())
        });
        assert_eq!(over.recv_timeout(PATIENCE), Ok(()), "{producers} producers");
    }
}
