//! What `INFO` and `RINGFLAKE.STATS` say.

use super::*;

/// The lines of `INFO` with these words.
fn info(bench: &mut Bench, words: &str) -> Vec<String> {
    let OwnedFrame::BulkString(text) = bench.line(&format!("INFO {words}")) else {
        panic!()
    };
    let text = String::from_utf8(text).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_counts_of_all_workers_are_added_up() {
    let mut bench = Bench::new(Everything);
    let counters = &bench.context.shared.counters;
    assert_eq!(counters.len(), 2);
    for (worker, counters) in counters.iter().enumerate() {
        let more = worker as u64;
        counters.accepted.store(30 + more, Relaxed);
        counters.closed.store(4 + more, Relaxed);
        counters.turned_away.store(5 + more, Relaxed);
    }
    bench.lines("LPOP ns 10\nINCR\nPING");
    let lines = info(&mut bench, "");
    let most = bench.context.shared.limits.connections;
    for line in [
        "# Clients".to_owned(),
        "connected_clients:52".to_owned(),
        format!("maxclients:{most}"),
        "total_connections_received:61".to_owned(),
        "rejected_connections:11".to_owned(),
        "total_error_replies:1".to_owned(),
        "ids_sent:10".to_owned(),
        "role:master".to_owned(),
    ] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    // And those since.
    let requests = |lines: &[String]| -> u64 {
        let found = lines
            .iter()
            .find_map(|line| line.strip_prefix("total_commands_processed:"));
        found.unwrap().parse().unwrap()
    };
    let before = requests(&lines);
    bench.lines("PING\nPING\nPING");
    assert_eq!(requests(&info(&mut bench, "stats")), before + 4);
}

#[test]
fn a_section_is_said_alone() {
    let mut bench = Bench::new(Everything);
    let heads = |bench: &mut Bench, words: &str| -> Vec<String> {
        let lines = info(bench, words).into_iter();
        lines.filter(|line| line.starts_with("# ")).collect()
    };
    let all = ["# Server", "# Clients", "# Stats", "# Replication"];
    for words in ["", "ALL", "everything", "default"] {
        assert_eq!(heads(&mut bench, words), all, "{words}");
    }
    for head in all {
        assert_eq!(heads(&mut bench, &head[2..].to_lowercase()), [head]);
    }
    assert_eq!(heads(&mut bench, "stats server"), [all[0], all[2]]);
    assert_eq!(heads(&mut bench, "nothing"), [""; 0]);
}

#[test]
fn the_figures_of_each_namespace_are_its_own() {
    let mut bench = Bench::of(Everything, slow);
    bench.lines("LPOP b 3\nLPOP a 2");
    let OwnedFrame::Array(all) = bench.line("RINGFLAKE.STATS") else {
        panic!()
    };
    let names: Vec<_> = all.iter().step_by(2).cloned().collect();
    assert_eq!(names, [string("a"), string("b")]);
    for (name, issued, figures) in [("a", "2", &all[1]), ("b", "3", &all[3])] {
        let figures = texts(figures);
        let (figures, rest) = figures.as_chunks::<2>();
        assert!(rest.is_empty());
        let value = |name: &str| figures.iter().find(|it| it[0] == name).unwrap()[1].as_str();
        assert_eq!(value("issued"), issued, "{name}");
        assert_eq!(value("capacity"), "64");
        assert_eq!(value("borrow_limit_ms"), "10000");
        assert_eq!(value("ready"), "1");
        // Of one alone they have the same names.
        let alone = texts(&bench.line(&format!("RINGFLAKE.STATS {name}")));
        let alone: Vec<_> = alone.iter().step_by(2).collect();
        assert_eq!(alone, figures.iter().map(|it| &it[0]).collect::<Vec<_>>());
    }
}

#[test]
fn fewer_ids_are_a_list_and_none_an_error() {
    let mut bench = Bench::of(Everything, slow);
    bench.line("INCR ns");
    let mut taken = Vec::new();
    // All that there are for now; in a later second there are more.
    let error = loop {
        match bench.line("LPOP ns 1000") {
            OwnedFrame::Error(error) => break error,
            list => taken.push(texts(&list).len()),
        }
    };
    assert!(error.starts_with("TRYAGAIN "), "{error}");
    // Ten seconds of sixteen, and the one that is running.
    assert!((1..=16 * 11).contains(&taken[0]), "{taken:?}");
    assert!(taken.iter().all(|&count| count > 0), "{taken:?}");
}

#[test]
fn ids_that_were_not_issued_are_not_counted() {
    let ledger = Arc::new(Ledger::default());
    let mut bench = Bench::of(Arc::clone(&ledger), slow);
    while !matches!(bench.line("LPOP ns 1000"), OwnedFrame::Error(_)) {}
    bench.lines("INCR ns\nINCR ns");
    let issued = bench.context.shared.counters[1].ids.load(Relaxed);
    assert!(issued > 0);
    assert_eq!(ledger.counted(), issued);
}
