//! `ringflake serve`: a server's life as a process.
//!
//! ```text
//! file < environment < options --> Config --> Server
//! SIGHUP:          the same again; tokens, certificates and the level of the log count;
//!                  so does a replaced file of tokens or certificates
//! SIGTERM, SIGINT: drain, release, exit with 0; another one a second later, or after that,
//!                  ends at once
//! ```

mod args;
mod descriptors;
mod log;
mod manager;
mod memory;
mod show;
mod signals;
mod sockets;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ringflake_server::{Config, ConfigError, Obstacle, Plan, Server, Settings};

pub(crate) use self::args::ServeArgs;
use self::log::Log;
use self::manager::ServiceManager;
use self::signals::{Signal, Signals};
use crate::args::path_variable;
use crate::data_dir::DataDir;
use crate::interrupt::Interrupt;
use crate::units::millis;

pub(crate) fn run(args: &ServeArgs, data_dir: &DataDir) -> Result<()> {
    if args.check {
        let config = read(args, data_dir, Settings::from_file)?;
        return show::show(&Plan::of(&config)?, args.format.format);
    }
    // By their numbers, before anything else here can have those.
    let inherited = sockets::inherited()?;
    let no_handler = "signals can't be handled";
    // Before anything that takes time: until then SIGHUP ends the process. Signals are queued
    // from here on.
    let signals = Signals::listen().context(no_handler)?;
    // Ends the process at a signal that insists.
    let _interrupt = Interrupt::listen().context(no_handler)?;
    let config = read(args, data_dir, Settings::from_file)?;
    let log = Log::install(&config)?;
    descriptors::raise();
    let manager = ServiceManager::default();

    let started = Instant::now();
    let mut wants_reload = false;
    let mut is_ended = || match signals.wait(Duration::ZERO) {
        Some(Signal::End(name)) => {
            tracing::info!(signal = name, "stopping");
            true
        }
        Some(Signal::Reload) => {
            wants_reload = true;
            false
        }
        None => false,
    };
    let Some(server) = Server::start_unless(config.clone(), inherited, &mut is_ended)? else {
        manager.stopping();
        tracing::info!(
            took_ms = millis(started.elapsed()),
            "stopped during the start"
        );
        return Ok(());
    };
    tracing::info!(
        took_ms = millis(started.elapsed()),
        version = env!("CARGO_PKG_VERSION"),
        "serving"
    );
    let mut life = Life {
        args,
        data_dir,
        log,
        manager,
        server,
        config,
        heap: memory::HeapTrimmer::new(Instant::now()),
        was_ready: None,
        was_unready: Vec::new(),
    };
    life.run(&signals, wants_reload);
    life.end();
    Ok(())
}

/// The settings of the file, the environment and the command line.
fn read(
    args: &ServeArgs,
    data_dir: &DataDir,
    from_file: fn(PathBuf) -> Result<Settings, ConfigError>,
) -> Result<Config> {
    let file = args.config.clone();
    let file = file.or_else(|| path_variable("RINGFLAKE_SERVE_CONFIG"));
    let file = file.map(from_file).transpose()?;
    let environment = Settings::from_environment(|name| std::env::var_os(name))?;
    let settings = args.settings(data_dir).over(environment);
    Ok(Config::new(settings.over(file.unwrap_or_default()))?)
}

/// A server that runs, and all that it answers to.
#[derive(Debug)]
struct Life<'a> {
    args: &'a ServeArgs,
    data_dir: &'a DataDir,
    log: Log,
    manager: ServiceManager,
    server: Server,
    config: Config,
    heap: memory::HeapTrimmer,
    /// None before the first look.
    was_ready: Option<bool>,
    /// The namespaces that were not ready at the last look, and why.
    was_unready: Vec<(String, Obstacle)>,
}

impl Life<'_> {
    /// Until it is asked to end. A reload may have been asked for already.
    fn run(&mut self, signals: &Signals, mut wants_reload: bool) {
        loop {
            self.look();
            if self.server.have_files_changed() {
                // Whatever the settings say by now: they may be half-written.
                let reloaded = self.server.reload();
                self.report(reloaded.map(|()| Vec::new()).map_err(Into::into));
            }
            self.heap.look(Instant::now());
            let signal = match std::mem::take(&mut wants_reload) {
                true => Some(Signal::Reload),
                false => signals.wait(self.pause()),
            };
            match signal {
                Some(Signal::End(name)) => {
                    tracing::info!(signal = name, "stopping");
                    return;
                }
                Some(Signal::Reload) => self.reload(),
                None => {}
            }
        }
    }

    /// How long until the next look.
    fn pause(&self) -> Duration {
        const WHILE_UNREADY: Duration = Duration::from_millis(50);
        const WHILE_READY: Duration = Duration::from_secs(1);
        let pause = match self.was_ready {
            Some(true) => WHILE_READY,
            _ => WHILE_UNREADY,
        };
        // Twice in the time that the manager waits.
        let watchdog = self.manager.watchdog();
        watchdog.map_or(pause, |patience| pause.min(patience / 2))
    }

    /// Says what has changed, and that somebody looks.
    fn look(&mut self) {
        let unready = self.server.unready();
        let kind = |(name, obstacle): &(String, Obstacle)| {
            (name.clone(), std::mem::discriminant(obstacle))
        };
        // Once for each, and not at every look: how long it takes changes all the time.
        let known: Vec<_> = self.was_unready.iter().map(kind).collect();
        for (namespace, obstacle) in unready.iter().filter(|it| !known.contains(&kind(it))) {
            tracing::warn!(namespace, "not ready: {obstacle}");
            self.manager.not_ready(&format!("{namespace}: {obstacle}"));
        }
        let is_ready = unready.is_empty();
        self.was_unready = unready;
        if self.was_ready.replace(is_ready) != Some(true) && is_ready {
            tracing::info!("ready");
            self.manager.ready();
        }
        self.manager.is_alive();
    }

    /// Reads tokens, certificates and the level of the log again; what can't be read changes
    /// nothing.
    fn reload(&mut self) {
        self.manager.reloading();
        let read = read(self.args, self.data_dir, Settings::from_file_again);
        let reloaded = read.and_then(|config| {
            self.server.reload()?;
            self.log.set_level(config.log_level())?;
            Ok(self.config.needs_restart(&config))
        });
        self.report(reloaded);
        self.manager.ready_again(self.was_ready == Some(true));
    }

    /// Logs how a reload ended, and which keys need a restart.
    fn report(&self, reloaded: Result<Vec<&'static str>>) {
        match reloaded {
            Ok(keys) => {
                // Left out of the line where there are none.
                let needs_restart = (!keys.is_empty()).then(|| keys.join(", "));
                tracing::info!(needs_restart, "reloaded");
            }
            Err(error) => {
                let error = crate::report::one_line(&error);
                tracing::error!(
                    error,
                    "not reloaded: the previous configuration stays in use"
                );
            }
        }
    }

    fn end(self) {
        self.manager.stopping();
        let started = Instant::now();
        let stopped = self.server.stop(self.config.drain());
        for (namespace, end) in &stopped.leases {
            if *end != ringflake::Shutdown::Released {
                tracing::warn!(
                    namespace,
                    "leases not released: they become free when they end"
                );
            }
        }
        tracing::info!(
            took_ms = millis(started.elapsed()),
            answered_all = stopped.has_answered_all,
            clean = stopped.is_clean(),
            "stopped"
        );
    }
}
