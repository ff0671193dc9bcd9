//! The options of `verify`.

use clap::Args;
use ringflake::CachedGeneratorBuilder;

use crate::args::SupplyArgs;
use crate::count::count;
use crate::format::FormatArgs;
use crate::load::BORROW_LIMIT;
use crate::threads::ThreadCount;

const EXAMPLES: &str = "Examples:
  ringflake verify -n 100M                   # so many IDs
  ringflake verify --seconds 60              # for so long

The exit status is 1 if an ID was issued twice or outside the leases, and 130 after
Ctrl-C.";

/// Run a live ring and check that no ID is issued twice
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// How many IDs [default: 10,000,000, or no limit with --seconds]
    #[arg(short = 'n', value_name = "N", value_parser = count::<u64>(0..=u64::MAX))]
    pub(super) count: Option<u64>,
    /// For how many seconds at the most
    #[arg(long, value_name = "S", value_parser = count::<u64>(0..=u64::MAX))]
    pub(super) seconds: Option<u64>,
    /// Threads that take IDs [default: one a core]
    #[arg(long, value_name = "T")]
    pub(super) threads: Option<ThreadCount>,
    /// Slots of all stripes, a power of two
    #[arg(long, value_name = "C", value_parser = count::<usize>(0..=u64::MAX), default_value = "65536")]
    pub(super) capacity: usize,
    #[command(flatten)]
    pub(super) format: FormatArgs,
    #[command(flatten)]
    pub(super) supply: SupplyArgs,
}

impl VerifyArgs {
    /// Gives the cache its shape.
    pub(super) fn shape(&self, builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
        builder.capacity(self.capacity).borrow_limit(BORROW_LIMIT)
    }
}
