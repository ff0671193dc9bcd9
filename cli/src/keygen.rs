//! `ringflake keygen`: makes a secret.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use ringflake::Secret;

use crate::data_dir::DataDir;
use crate::report::say;
use crate::secret;

const EXAMPLES: &str = "Examples:
  ringflake keygen                           # in the data directory
  ringflake keygen --out orders.key          # in this file, which must not exist";

/// Create a secret: 32 hexadecimal digits in a file that only you may read
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KeygenArgs {
    /// Where to write it; - for stdout [default: the data directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &KeygenArgs, data_dir: &DataDir) -> Result<()> {
    let path = match &args.out {
        Some(path) if path.as_os_str() == "-" => {
            let secret = Secret::generate()?;
            secret::note(&secret, data_dir);
            let mut out = io::stdout().lock();
            let written = secret.write_hex(&mut out).and_then(|()| out.flush());
            return written.context("the secret can't be written to stdout, and is lost");
        }
        Some(path) => {
            secret::make(path, data_dir)?;
            path.clone()
        }
        None => {
            let (path, made) = data_dir.find()?.keep_secret()?;
            if !made {
                bail!(
                    "{} exists already\n\
                     note: a secret is never overwritten\n\
                     help: name another file with --out, or another directory with --data-dir",
                    path.display()
                );
            }
            path
        }
    };
    say(format_args!("wrote a secret to {}", path.display()));
    Ok(())
}
