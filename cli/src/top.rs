//! `ringflake top`: how a server or another process stands, live in the terminal.
//!
//! ```text
//! watcher thread: Target --GET--> text --exposition--> samples --figures--> Snapshot
//!                                                                              |
//! terminal:        keys --> Screen <--------------------------- Reading -------+
//! ```
//!
//! It reads what Prometheus reads, so any process that publishes its metrics can be watched.
//! The thread asks again after each interval whether or not anything was drawn; the screen
//! keeps the last two answers, and makes rates out of them.

mod exposition;
mod figures;
mod once;
mod scrape;
mod screen;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use self::figures::Reading;
use self::scrape::{Scraper, Target};
use self::screen::Screen;
use crate::args;

/// Watch a server, or another process that publishes its metrics
///
/// Shows the level, rates, what is borrowed and the leases of each namespace. Keys: up and
/// down choose a namespace, q ends it.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// http://HOST:PORT, https://HOST:PORT or unix:PATH, with another path than /metrics
    /// behind it where that is meant
    #[arg(default_value = "http://127.0.0.1:7464")]
    target: Target,
    /// How long to wait between two looks, 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// A file with the token of the role admin
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificates to trust for https instead of the system's, as PEM
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Print how it stands now, and exit with 0 if every namespace can issue IDs, or else
    /// with 1
    #[arg(long)]
    once: bool,
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

fn interval(text: &str) -> Result<Duration> {
    let time = args::time(text)?;
    match (SHORTEST..=LONGEST).contains(&time) {
        true => Ok(time),
        false => bail!("give 100ms to 1h"),
    }
}

/// How often the keyboard is looked at while nothing else happens.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &TopArgs) -> Result<ExitCode> {
    let token = args.token_file.as_deref().map(scrape::read_token);
    let scraper = Scraper::new(args.target.clone(), token.transpose()?, args.ca.as_deref())?;
    if args.once {
        return once::print(&scraper.scrape()?);
    }
    watch(scraper, args.interval)?;
    Ok(ExitCode::SUCCESS)
}

/// Until a key or a signal ends it.
fn watch(scraper: Scraper, interval: Duration) -> Result<()> {
    let mut screen = Screen::new(scraper.target().to_string());
    let (sender, readings) = mpsc::channel();
    // Dropped at the end, which wakes the watcher.
    let (_until, ends) = mpsc::channel();
    let watcher = thread::Builder::new().name("ringflake-top".to_owned());
    watcher.spawn(move || read_on(&scraper, interval, &sender, &ends))?;
    // Before the terminal is another one than it was.
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&interrupt))?;
    }
    let mut terminal = ratatui::try_init().context("this is no terminal: give --once")?;
    let shown = show(&mut terminal, &mut screen, &readings, &interrupt);
    ratatui::restore();
    shown
}

/// The watcher's part, until nobody waits for it.
fn read_on(scraper: &Scraper, interval: Duration, readings: &Sender<Reading>, ends: &Receiver<()>) {
    loop {
        let reading = scraper.scrape().map_err(|error| format!("{error:#}"));
        let is_over = readings.send(reading).is_err();
        if is_over || ends.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    screen: &mut Screen,
    readings: &Receiver<Reading>,
    interrupt: &AtomicBool,
) -> Result<()> {
    // Relaxed: nothing is read that was written before the signal.
    while !interrupt.load(Relaxed) {
        for reading in readings.try_iter() {
            screen.take(reading);
        }
        terminal.draw(|frame| screen.draw(frame))?;
        if poll()?
            && let Event::Key(KeyEvent {
                code,
                modifiers,
                kind: KeyEventKind::Press,
                ..
            }) = event::read()?
            && screen.press(code, modifiers)
        {
            return Ok(());
        }
    }
    Ok(())
}

/// Waits for a key, a little while; a signal ends that too.
fn poll() -> Result<bool> {
    match event::poll(LOOK) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        polled => Ok(polled?),
    }
}
