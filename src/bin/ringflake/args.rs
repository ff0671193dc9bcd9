//! The command line as a whole, and the options that commands share.

use std::cmp::Ordering;
use std::env;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use clap::{Args, Parser, Subcommand};
use ringflake::Layout;

use crate::bench::BenchArgs;
use crate::generate::GenerateArgs;
use crate::inspect::InspectArgs;
use crate::keygen::KeygenArgs;
use crate::verify::VerifyArgs;

/// Encrypted, unique 64-bit IDs from a lock-free ring buffer.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Cli {
    /// The directory with the secret and the high-water marks
    /// [env: RINGFLAKE_DATA_DIR] [default: the platform's, such as
    /// ~/.local/share/ringflake]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Keygen(KeygenArgs),
    Generate(GenerateArgs),
    Inspect(InspectArgs),
    Verify(VerifyArgs),
    Bench(BenchArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LayoutArgs {
    /// How the 64 bits are divided: a name (randflake, baidu, baidu-31-23-9,
    /// twitter, sonyflake-sized, js-safe) or time/node/sequence@epoch/tick,
    /// such as 28/22/13@2016-05-20T00:00:00Z/1s
    #[arg(long, value_name = "NAME|SPEC", default_value = "randflake")]
    pub(crate) layout: Layout,
}

#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// A file with the secret, 32 hexadecimal digits or 16 raw bytes
    /// [env: RINGFLAKE_SECRET_FILE] [default: the one in the data directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    /// No encryption: IDs that sort by time and that anybody can read
    #[arg(long, conflicts_with = "secret_file")]
    pub(crate) plain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The nodes to use, from A up to but not including B [default: every
    /// node of the layout]
    #[arg(long, value_name = "A..B")]
    nodes: Option<NodeRange>,
}

impl NodeArgs {
    /// The range given, which may lie outside `layout`, or all its nodes.
    pub(crate) fn range(&self, layout: &Layout) -> Range<u64> {
        match &self.nodes {
            Some(NodeRange(range)) => range.clone(),
            None => 0..layout.nodes(),
        }
    }
}

/// The path in an environment variable; an empty one counts as none.
pub(crate) fn path_variable(name: &str) -> Option<PathBuf> {
    let value = env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// A half-open range that is not empty, written `A..B`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NodeRange(Range<u64>);

impl FromStr for NodeRange {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some((start, end)) = text.split_once("..") else {
            bail!("give two numbers as in 0..32");
        };
        let (Ok(start), Ok(end)) = (start.parse::<u64>(), end.parse::<u64>()) else {
            bail!("give two whole numbers as in 0..32, the second of them not included");
        };
        match start.cmp(&end) {
            Ordering::Less => Ok(Self(start..end)),
            Ordering::Greater => bail!("the bounds are reversed: write {end}..{start}"),
            Ordering::Equal => match start.checked_add(1) {
                Some(next) => bail!(
                    "the range is empty: its end is not included, \
                     so write {start}..{next} for node {start}"
                ),
                None => bail!("the range is empty: its end is not included"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_node_range_is_two_numbers_the_second_one_larger() {
        assert_eq!("0..32".parse::<NodeRange>().unwrap(), NodeRange(0..32));
        for wrong in [
            "", "3", "..", "3..", "..3", "0...3", "0..=3", "a..b", "-1..3",
        ] {
            assert!(wrong.parse::<NodeRange>().is_err(), "{wrong}");
        }
        let empty = "3..3".parse::<NodeRange>().unwrap_err();
        assert!(empty.to_string().contains("3..4"), "{empty}");
        let reversed = "18446744073709551615..5".parse::<NodeRange>().unwrap_err();
        assert!(
            reversed.to_string().ends_with("5..18446744073709551615"),
            "{reversed}"
        );
        let last = "18446744073709551615..18446744073709551615";
        let last = last.parse::<NodeRange>().unwrap_err().to_string();
        assert!(
            last.contains("is empty") && !last.contains(char::is_numeric),
            "{last}"
        );
    }
}
