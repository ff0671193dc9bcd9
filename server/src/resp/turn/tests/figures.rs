//! What `INFO` and `RINGFLAKE.STATS` say.

use super::*;
use crate::access::Role;

fn info(bench: &mut Bench, words: &str) -> Vec<String> {
    let text = texts(&bench.line(&format!("INFO {words}"))).remove(0);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_counts_of_all_workers_are_added_up() {
    let mut bench = Bench::new(Access::open());
    for (more, counters) in (0..).zip(&bench.context.shared.setup.counters) {
        counters.accepted.store(30 + more, Relaxed);
        counters.closed.store(4 + more, Relaxed);
        counters.turned_away.store(5 + more, Relaxed);
    }
    bench.lines("LPOP ns 10\nINCR\nPING");
    let lines = info(&mut bench, "");
    for line in [
        "# Clients",
        "connected_clients:78",
        "maxclients:10000",
        "total_connections_received:93",
        "rejected_connections:18",
        "total_commands_processed:3",
        "total_error_replies:1",
        "ids_sent:10",
        "role:master",
    ] {
        assert!(lines.iter().any(|own| own == line), "{line}: {lines:?}");
    }
    // And those since.
    bench.lines("PING\nPING\nPING");
    let lines = info(&mut bench, "stats").join("\n");
    assert!(lines.contains("total_commands_processed:7"), "{lines}");
}

#[test]
fn a_section_is_said_alone() {
    let mut bench = Bench::new(Access::open());
    let all = [
        "# Server",
        "# Clients",
        "# Stats",
        "# Replication",
        "# Cluster",
    ];
    for (words, heads) in [
        ("", &all[..]),
        ("ALL", &all),
        ("everything", &all),
        ("default", &all),
        ("server", &all[..1]),
        ("clients", &all[1..2]),
        ("replication", &all[3..4]),
        ("cluster", &all[4..]),
        ("stats server", &[all[0], all[2]]),
        ("nothing", &[]),
    ] {
        let mut lines = info(&mut bench, words);
        lines.retain(|line| line.starts_with("# "));
        assert_eq!(lines, heads, "{words}");
    }
}

#[test]
fn figures_need_the_right_to_them() {
    let mut bench = Bench::new(Access::by_name());
    for (token, has_figures) in [("take", false), ("admin", true)] {
        bench.line(&format!("AUTH {token}"));
        let text = info(&mut bench, "").concat();
        assert!(text.contains("redis_version:"));
        for figure in ["total_commands_processed:", "connected_clients:"] {
            assert_eq!(text.contains(figure), has_figures, "{token}: {figure}");
        }
    }
}

#[test]
fn the_figures_of_each_namespace_are_its_own() {
    let mut bench = Bench::of(Access::open(), slow);
    bench.lines("LPOP b 3\nLPOP a 2");
    let OwnedFrame::Array(all) = bench.line("RINGFLAKE.STATS") else {
        panic!()
    };
    for (at, name, issued) in [(0, "a", "2"), (2, "b", "3")] {
        assert_eq!(shown(&all[at]), format!("{name:?}"));
        let figures = texts(&all[at + 1]);
        let (figures, rest) = figures.as_chunks::<2>();
        assert!(rest.is_empty());
        for (figure, value) in [
            ("issued", issued),
            ("capacity", "64"),
            ("borrow_limit_ms", "10000"),
            ("ready", "1"),
        ] {
            let found = figures.iter().find(|it| it[0] == figure).unwrap();
            assert_eq!(found[1], value, "{name}: {figure}");
        }
        // Of one alone they have the same names.
        let alone = texts(&bench.line(&format!("RINGFLAKE.STATS {name}")));
        let alone: Vec<_> = alone.iter().step_by(2).collect();
        assert_eq!(alone, figures.iter().map(|it| &it[0]).collect::<Vec<_>>());
    }
}

#[test]
fn a_rate_counts_what_is_asked_for() {
    let access = Arc::new(Access::new(Access::limited(None, 1_000_000)));
    let mut bench = Bench::of(Arc::clone(&access), slow);
    bench.line("AUTH t");
    let mut asked = 1000;
    while !matches!(bench.line("LPOP ns 1000"), OwnedFrame::Error(_)) {
        asked += 1000;
    }
    bench.lines("INCR ns\nINCR ns");
    asked += 2;
    let issued = bench.context.shared.setup.counters[1].ids.load(Relaxed);
    assert!(issued < asked, "{issued} of {asked}");
    assert_eq!(access.spent(Role::Take), asked);
}

#[test]
fn requests_of_a_pipeline_are_within_the_rate_one_by_one() {
    for (before, allowed) in [(0, 5), (2, 3), (5, 0)] {
        for (first, last) in [("ECHO x", "ECHO x"), ("MULTI", "EXEC")] {
            let takes = "INCR ns\n".repeat(7);
            // A stop of 200 ms refills the bucket by one.
            let (bench, replies) = (0..1_000)
                .find_map(|_| {
                    let mut bench = Bench::new(Arc::new(Access::new(Access::limited(None, 5))));
                    bench.lines("AUTH t\nLPOP ns 0");
                    let began = Instant::now();
                    bench.lines(&format!("LPOP ns {before}"));
                    let replies = bench.lines(&format!("{first}\n{takes}{last}"));
                    (began.elapsed() < Duration::from_millis(200)).then_some((bench, replies))
                })
                .unwrap();
            let takes = match replies.last() {
                Some(OwnedFrame::Array(takes)) => takes,
                _ => &replies[1..8],
            };
            let takes = all_shown(takes);
            let is_like = |(at, reply): (usize, &String)| match at < allowed {
                true => reply.starts_with(':'),
                false => is_like(reply, "-TRYAGAIN *used up its rate*(retry in * ms)"),
            };
            assert!(
                takes.len() == 7 && takes.iter().enumerate().all(is_like),
                "{takes:?}"
            );
            let counters = &bench.context.shared.setup.counters[1];
            let counted = [&counters.denied, &counters.unavailable].map(|it| it.load(Relaxed));
            assert_eq!(
                counted,
                [7 - allowed as u64, 0],
                "it is not for want of IDs"
            );
        }
    }
}

#[test]
fn a_token_learns_nothing_of_namespaces_that_it_may_not_use() {
    let mut bench = Bench::new(Arc::new(Access::new(Access::limited(
        Some("others"),
        1_000_000,
    ))));
    bench.context.shared.setup.namespaces.open("made").unwrap();
    bench.line("AUTH t");
    bench.check(
        "RINGFLAKE.INSPECT made 1 => -NOPERM this token may not use this namespace
         RINGFLAKE.INSPECT unknown 1 => -NOPERM this token may not use this namespace
         RINGFLAKE.TAKE unknown 1 => -NOPERM this token may not use this namespace
         INCR unknown => -NOPERM this token may not use this namespace",
    );
    assert_eq!((bench.opened.as_slice(), bench.ids()), (&[][..], 0));
    let mut refused = bench.context.shared.setup.rights.refused();
    refused.sort_unstable();
    assert_eq!(refused, ["a local user inspect", "a local user take"]);
}
