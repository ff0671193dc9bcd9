//! The number of stripes that a generator's slots are divided into.

use anyhow::{Result, bail};
use clap::Args;
use ringflake::CachedGeneratorBuilder;

use crate::count::whole;

#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct StripeArgs {
    /// Rings that the slots are divided into, a power of two: a take goes to the one of
    /// its core. With 1 all share one [default: one a core, and no more than one for
    /// each 1,024 slots]
    #[arg(long, value_name = "N", value_parser = number)]
    stripes: Option<usize>,
}

impl StripeArgs {
    /// Divides the slots as it was asked for.
    pub(crate) fn shape(self, builder: CachedGeneratorBuilder) -> CachedGeneratorBuilder {
        match self.stripes {
            Some(count) => builder.stripes(count),
            None => builder,
        }
    }
}

/// A number of stripes that some capacity has.
fn number(text: &str) -> Result<usize> {
    const MOST: usize = CachedGeneratorBuilder::MAX_STRIPES;
    match whole(text).and_then(|count| usize::try_from(count).ok()) {
        Some(count @ 1..=MOST) if count.is_power_of_two() => Ok(count),
        _ => bail!("give a power of two from 1 to {MOST}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_stripes_is_a_power_of_two() {
        for (text, count) in [("1", 1), ("2", 2), ("64", 64)] {
            assert_eq!(number(text).unwrap(), count);
        }
        for wrong in [
            "",
            "0",
            "3",
            "-1",
            "65",
            "128",
            "1.5",
            "18446744073709551615",
        ] {
            let error = number(wrong).unwrap_err().to_string();
            assert!(
                error.contains("power of two from 1 to 64"),
                "{wrong}: {error}"
            );
        }
    }
}
