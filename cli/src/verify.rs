//! `ringflake verify`: a live ring at full speed or under a load, and every ID checked.

use std::process::ExitCode;

use anyhow::Result;

pub(crate) use self::args::VerifyArgs;
use crate::data_dir::DataDir;

mod answer;
mod args;
mod backlog;
mod flat_out;
mod loaded;
mod oracle;
mod tally;

pub(crate) fn run(args: &VerifyArgs, data_dir: &DataDir) -> Result<ExitCode> {
    match args.load.load()? {
        Some(load) => loaded::run(args, &load, data_dir),
        None => flat_out::run(args, data_dir),
    }
}
