//! What stands on the screen, on a terminal of the test's own.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::exposition::samples;
use super::*;

fn look(at: Instant, issued: u32, remaining: u32) -> Snapshot {
    let text = format!(
        "ringflake_ids_issued_total{{namespace=\"orders\"}} {issued}\n\
         ringflake_level{{namespace=\"orders\"}} 512\n\
         ringflake_capacity{{namespace=\"orders\"}} 1024\n\
         ringflake_lease_remaining_seconds{{namespace=\"orders\"}} {remaining}\n\
         ringflake_lease_remaining_seconds{{namespace=\"users\"}} 60\n\
         ringflake_build_info{{version=\"1.2.3\"}} 1\n"
    );
    Snapshot::new(at, samples(&text))
}

/// The lines of the screen.
fn lines(screen: &Screen, width: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, 12)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
    (0..12).map(line).collect()
}

fn after_two_looks(remaining: u32) -> Screen {
    let start = Instant::now();
    let mut screen = Screen::new("host:1".to_owned());
    screen.take(Ok(look(start, 1_000, 90)));
    screen.take(Ok(look(start + Duration::from_secs(2), 4_000, remaining)));
    screen
}

#[test]
fn a_namespace_has_its_rate_and_its_fill() {
    let lines = lines(&after_two_looks(90), 100);
    assert!(
        lines[0].contains("ringflake 1.2.3 host:1  ready"),
        "{lines:#?}"
    );
    for part in ["orders", "1.5 k", "50 %", "512", "90 s"] {
        assert!(lines[2].contains(part), "{part}: {lines:#?}");
    }
    assert!(lines[3].contains("users"), "{lines:#?}");
    assert!(
        lines[4].contains("orders: IDs/s, at most 1.5 k"),
        "{lines:#?}"
    );
}

#[test]
fn what_can_issue_nothing_is_not_ready() {
    assert!(lines(&after_two_looks(0), 100)[0].contains("not ready"));
}

#[test]
fn a_look_that_failed_leaves_the_figures() {
    let mut screen = after_two_looks(90);
    screen.take(Err("it answers 500".to_owned()));
    let lines = lines(&screen, 100);
    assert!(lines[0].contains("old: it answers 500"), "{lines:#?}");
    assert!(lines[2].contains("1.5 k"), "{lines:#?}");
}

#[test]
fn keys_choose_a_namespace_and_end() {
    let mut screen = after_two_looks(90);
    let mut press = |key| screen.press(key, KeyModifiers::NONE);
    assert!(!press(KeyCode::Down) && !press(KeyCode::Down) && !press(KeyCode::Char('x')));
    assert!(press(KeyCode::Char('q')) && press(KeyCode::Esc));
    assert!(lines(&screen, 100)[4].contains("users: IDs/s"));
    assert!(!screen.press(KeyCode::Char('c'), KeyModifiers::NONE));
    assert!(screen.press(KeyCode::Char('c'), KeyModifiers::CONTROL));
    screen.press(KeyCode::Up, KeyModifiers::NONE);
    assert!(lines(&screen, 100)[4].contains("orders: IDs/s"));
}

#[test]
fn a_small_terminal_is_no_failure() {
    for width in [1, 20, 40] {
        assert_eq!(lines(&after_two_looks(90), width).len(), 12);
    }
}

#[test]
fn a_choice_stays_when_a_namespace_comes_before_it() {
    let start = Instant::now();
    let look = |seconds: u64, names: &[&str]| {
        let text = |name: &&str| {
            let issued = 100 * seconds;
            format!("ringflake_ids_issued_total{{namespace=\"{name}\"}} {issued}\n")
        };
        let text: String = names.iter().map(text).collect();
        Snapshot::new(start + Duration::from_secs(seconds), samples(&text))
    };
    let mut screen = Screen::new("host:1".to_owned());
    screen.take(Ok(look(0, &["m", "x"])));
    assert!(!screen.press(KeyCode::Down, KeyModifiers::NONE));
    screen.take(Ok(look(1, &["m", "x"])));
    screen.take(Ok(look(2, &["a", "m", "x"])));
    assert_eq!(screen.chosen_name().as_deref(), Some("x"));
    assert_eq!(screen.rates, [100, 100]);
    // It stays the last one.
    screen.press(KeyCode::Down, KeyModifiers::NONE);
    assert_eq!(screen.chosen_name().as_deref(), Some("x"));
    // One that has gone takes its curve along.
    screen.take(Ok(look(3, &["a", "m"])));
    assert_eq!(screen.chosen_name().as_deref(), Some("a"));
    assert_eq!(screen.rates, [100]);
}
