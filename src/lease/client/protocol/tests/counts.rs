//! How often requests went how.

use super::*;
use crate::lease::Confirmed;

#[test]
fn each_answer_is_counted_by_its_outcome_and_each_fence_by_its_comparison() {
    let block = Block::new(1);
    let grant = Grant::new(block, Epoch::FIRST, 1..2);
    let renew = Request::Renew(Renew::new(&grant, 3, 0));
    let mut counts = LeaseCounts::default();
    let mut note = |times: usize, answer: &dyn Fn() -> Answer| {
        (0..times).for_each(|_| counts.note(&renew, &answer()));
    };
    note(1, &|| Answer::Renewed(Ok(3)));
    note(2, &|| renew.failed(unavailable()));
    note(3, &|| renew.failed(ambiguous()));
    // Of another kind.
    note(4, &|| Answer::Checked(Ok(())));
    let fences = [
        Fence::NeverGranted,
        Fence::Epoch {
            held: Epoch::FIRST,
            recorded: Epoch::FIRST,
        },
        Fence::End {
            known: 1,
            recorded: 2,
        },
        Fence::Floor { known: 1, floor: 2 },
        Fence::Incarnation,
        Fence::Upstream,
        Fence::Quarantined {
            reason: "it is torn".to_owned(),
        },
    ];
    for (nth, fence) in fences.iter().enumerate() {
        let fence = || fence.clone();
        note(nth + 1, &|| {
            let fence = fence();
            renew.failed(StoreError::Fenced { block, fence })
        });
    }
    for refusal in refusals() {
        counts.note(&renew, &renew.failed(refusal));
    }
    let check = Request::Check { now_unix_ms: 0 };
    let lost = StoreError::HistoryLost {
        confirmed: Confirmed::new(block, Epoch::FIRST, 2),
        recorded: None,
    };
    counts.note(&check, &check.failed(lost));
    let expected = LeaseCounts {
        renewals: RenewalCounts {
            renewed: 1,
            unavailable: 2,
            ambiguous: 3 + 4,
            fenced: 1 + 2 + 3 + 4 + 5 + 6 + 7,
            denied: 1,
            other: refusals().len() as u64 - 1,
        },
        fenced: FenceCounts {
            never_granted: 1,
            epoch: 2,
            end: 3,
            floor: 4,
            incarnation: 5,
            upstream: 6,
            quarantined: 7,
        },
        history_lost: 1,
    };
    assert_eq!(counts, expected);
}
