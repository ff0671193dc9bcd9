//! Why no layout is good for what is asked.

use std::error::Error;
use std::fmt;

use crate::layout::LayoutError;

/// Why [`Layout::advise`](crate::Layout::advise) knows no layout.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub enum AdviceError {
    /// A need lies outside of what can be asked.
    OutOfRange {
        /// Which.
        need: &'static str,
        /// What was given.
        given: f64,
        /// The least that may be.
        least: f64,
        /// The most that may be.
        most: f64,
    },
    /// The tick or the epoch is that of no layout.
    Layout(LayoutError),
    /// 64 bits are not enough.
    TooNarrow(Box<LayoutShortage>),
}

/// What a width lacks, and what would have to be relaxed.
///
/// Each of the numbers that fit is for that need alone, with the others as they were asked;
/// `None` where no value of it would do.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayoutShortage {
    /// The width, in bits.
    pub bits: u32,
    /// Length of the tick with which the least is lacking, in milliseconds.
    pub tick_ms: u64,
    /// Bits that are needed for time, node and sequence.
    pub needed: [u32; 3],
    /// The life that was asked for.
    pub years: u32,
    /// Node numbers that are needed for it.
    pub node_numbers: u128,
    /// Whether each start uses one up.
    pub disposable: bool,
    /// Sequences that a node needs in a tick; `u128::MAX` where no burst above the capacity
    /// is possible, since the borrow limit is shorter than a tick.
    pub sequences: u128,
    /// The longest life that fits, in whole years.
    pub years_that_fit: Option<u64>,
    /// The most node numbers that fit.
    pub node_numbers_that_fit: Option<u64>,
    /// The most restarts a day of each node that fit.
    pub restarts_that_fit: Option<f64>,
    /// The most sequences a node and tick that fit.
    pub sequences_that_fit: Option<u64>,
    /// The highest rate of all nodes that fits, with a burst that does.
    pub rate_that_fits: Option<u64>,
    /// The largest burst of all nodes that fits, with a rate that does.
    pub burst_that_fits: Option<u64>,
}

/// A whole number in groups of three.
struct Grouped(u128);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.char_indices() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

impl fmt::Display for LayoutShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [time, node, sequence] = self.needed;
        let total = time + node + sequence;
        let years = self.years;
        let numbers = Grouped(self.node_numbers);
        let tick_ms = self.tick_ms;
        write!(f, "{} bits are not enough", self.bits)?;
        if self.sequences == u128::MAX {
            return write!(
                f,
                ": nothing can be borrowed for a burst, since the borrow limit is shorter than \
                 the tick of {tick_ms} ms; ask for a smaller burst, a larger ring, a higher \
                 borrow limit or a shorter tick"
            );
        }
        write!(
            f,
            ": with ticks of {tick_ms} ms {years} years need {time}, {numbers} node numbers need \
             {node}, and {} IDs a node and tick need {sequence}, in all {total}",
            Grouped(self.sequences)
        )?;
        let mut separator = "; one of these would do: ";
        let mut say = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            let written = write!(f, "{separator}{text}");
            separator = ", or ";
            written
        };
        if let Some(years) = self.years_that_fit {
            say(f, format_args!("at most {years} years"))?;
        }
        if let (Some(numbers), Some(restarts)) =
            (self.node_numbers_that_fit, self.restarts_that_fit)
        {
            let numbers = Grouped(numbers.into());
            say(
                f,
                format_args!("{numbers} node numbers, which are {restarts:.2} restarts a day"),
            )?;
        }
        if let (Some(rate), Some(burst)) = (self.rate_that_fits, self.burst_that_fits) {
            let [rate, burst] = [rate, burst].map(|it| Grouped(it.into()));
            say(
                f,
                format_args!("{rate} IDs/s and bursts of {burst} on all nodes"),
            )?;
        }
        if self.disposable {
            say(f, format_args!("leases, by which node numbers are reused"))?;
        }
        if separator.starts_with(';') {
            f.write_str("; no need alone can be relaxed far enough: relax several")?;
        }
        Ok(())
    }
}

impl fmt::Display for AdviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange {
                need,
                given,
                least,
                most,
            } => write!(
                f,
                "{given} {need} can't be asked for: give {least} to {most}"
            ),
            Self::Layout(error) => error.fmt(f),
            Self::TooNarrow(shortage) => shortage.fmt(f),
        }
    }
}

// A `LayoutError` is shown as it is, and has no source that could be this one's.
impl Error for AdviceError {}
