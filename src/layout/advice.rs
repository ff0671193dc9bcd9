//! A layout that is good for what is asked, or the numbers by which there is none.
//!
//! The three fields share one width, so each bit of life, of node numbers or of rate is
//! taken from the two others. [`Layout::advise`] first gives each field the fewest bits
//! that do, and then hands out what is left one bit at a time, to the field with the least
//! headroom. Time gets none beyond twice the life that was asked for: a layout that lives
//! for a thousand years is no better than one for sixty.

mod error;
mod needs;

use std::time::Duration;

pub use self::error::{AdviceError, LayoutShortage};
pub use self::needs::LayoutNeeds;
use super::{Layout, LayoutField};

/// The widths that IDs are wanted in: all bits, positive as signed numbers, and exact as
/// doubles.
const WIDTHS: [u32; 3] = [64, 63, 53];

/// The ticks that are tried, from the one that is preferred: a long tick holds long runs.
/// Between them lie lives and rates that the powers of two of one alone do not meet.
const TICKS_MS: [u64; 4] = [1_000, 100, 10, 1];

/// How much of the life that was asked for is enough.
const ENOUGH_LIFE: f64 = 2.0;

impl Layout {
    /// A layout that is good for `needs`, in 64 bits, and where there are such layouts also
    /// in 63, which stay positive as signed numbers, and in 53, which a double holds.
    ///
    /// Ticks are as long as possible of 1 s, 100 ms, 10 ms and 1 ms, unless
    /// [`tick`](LayoutNeeds::tick) says how long. A microsecond or two.
    ///
    /// # Errors
    ///
    /// [`AdviceError::TooNarrow`] if 64 bits are not enough: what each field needs, and how
    /// far each need would have to be relaxed. [`AdviceError::OutOfRange`] for a number that
    /// makes no sense, and [`AdviceError::Layout`] for a tick or an epoch that no layout has.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringflake::{Layout, LayoutField, LayoutNeeds};
    ///
    /// // 30 years from 2026-01-01 on, 500 nodes.
    /// let needs = LayoutNeeds::new(1_767_225_600_000)
    ///     .years(30)
    ///     .nodes(500)
    ///     .restarts_per_day(20.0)
    ///     .rate(200_000)
    ///     .burst(5_000_000);
    /// let advice = Layout::advise(&needs)?;
    /// let best = advice.best();
    /// assert_eq!(best.layout().to_string(), "31/17/16@2026-01-01T00:00:00Z/1s");
    /// // Nodes are reused, and those of the killed are waited for.
    /// assert_eq!(best.nodes_needed(), 1_000);
    /// assert_eq!(best.sustained_per_node(), 65_536.0);
    /// assert_eq!(best.binds(), LayoutField::Time);
    ///
    /// // Where each start has a number of its own, 64 bits are not enough.
    /// let refused = Layout::advise(&needs.disposable_nodes()).unwrap_err();
    /// assert!(refused.to_string().contains("109,575,500 node numbers need 27"));
    /// # Ok::<(), ringflake::AdviceError>(())
    /// ```
    pub fn advise(needs: &LayoutNeeds) -> Result<LayoutAdvice, AdviceError> {
        needs.check()?;
        let [widest, narrower @ ..] = WIDTHS;
        let best = match within(needs, widest)? {
            Ok(best) => best,
            Err(shortage) => return Err(AdviceError::TooNarrow(Box::new(shortage))),
        };
        let mut alternatives = Vec::with_capacity(narrower.len());
        for width in narrower {
            alternatives.push(within(needs, width)?);
        }
        Ok(LayoutAdvice { best, alternatives })
    }
}

/// What [`Layout::advise`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutAdvice {
    best: AdvisedLayout,
    alternatives: Vec<Result<AdvisedLayout, LayoutShortage>>,
}

impl LayoutAdvice {
    /// The layout of 64 bits.
    pub const fn best(&self) -> &AdvisedLayout {
        &self.best
    }

    /// The layouts of 63 and of 53 bits, or what they lack.
    pub fn alternatives(&self) -> &[Result<AdvisedLayout, LayoutShortage>] {
        &self.alternatives
    }
}

/// A layout that is good for some needs, and how good it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdvisedLayout {
    layout: Layout,
    needs: LayoutNeeds,
    demand: Demand,
}

impl AdvisedLayout {
    /// The layout. It ends at [`Layout::end_unix_ms`].
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Node numbers that are needed until the end of the life asked for; the layout has
    /// [`Layout::nodes`].
    pub fn nodes_needed(&self) -> u64 {
        // A layout has at least as many, and so a `u64` holds them.
        u64::try_from(self.demand.nodes).unwrap_or(u64::MAX)
    }

    /// IDs a second that a node has without borrowing.
    pub fn sustained_per_node(&self) -> f64 {
        self.layout.sequences() as f64 * 1_000.0 / self.layout.tick_ms() as f64
    }

    /// IDs a second that all nodes alive have without borrowing.
    pub fn sustained(&self) -> f64 {
        self.sustained_per_node() * self.needs.nodes as f64
    }

    /// IDs that a node has for a burst: its full ring, and all that may be borrowed.
    ///
    /// `capacity + 2^sequence_bits x ticks of the borrow limit`. That is after a quiet time
    /// in which the ring's own IDs were paid back, `capacity / sustained_per_node` seconds.
    pub fn burst_per_node(&self) -> u64 {
        let borrowed = u128::from(self.layout.sequences())
            * u128::from(self.needs.borrowed_ticks(self.layout.tick_ms()));
        let all = borrowed + u128::from(self.needs.capacity);
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// IDs that all nodes alive have for a burst.
    pub fn burst(&self) -> u64 {
        self.burst_per_node().saturating_mul(self.needs.nodes)
    }

    /// How many times what is needed of this field the layout has; at least 1.
    pub fn headroom(&self, field: LayoutField) -> f64 {
        let widths = [
            self.layout.time_bits(),
            self.layout.node_bits(),
            self.layout.sequence_bits(),
        ];
        self.demand.headroom(widths)[field as usize]
    }

    /// The field with the least headroom: what gives way first when more is asked.
    pub fn binds(&self) -> LayoutField {
        let fields = [LayoutField::Time, LayoutField::Node, LayoutField::Sequence];
        let least =
            |a: &LayoutField, b: &LayoutField| self.headroom(*a).total_cmp(&self.headroom(*b));
        fields
            .into_iter()
            .min_by(least)
            .unwrap_or(LayoutField::Time)
    }
}

/// How many values each field has to have, with ticks of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Demand {
    tick_ms: u64,
    ticks: u128,
    nodes: u128,
    sequences: u128,
}

impl Demand {
    fn of(needs: &LayoutNeeds, tick_ms: u64) -> Self {
        Self {
            tick_ms,
            ticks: needs.life_ms().div_ceil(u128::from(tick_ms)),
            nodes: needs.node_numbers(),
            sequences: needs.sequences(tick_ms),
        }
    }

    /// The fewest bits of time, node and sequence. Each field has at least one.
    fn bits(&self) -> [u32; 3] {
        [self.ticks, self.nodes, self.sequences].map(|count| {
            let bits = u128::BITS - count.saturating_sub(1).leading_zeros();
            bits.max(1)
        })
    }

    fn total_bits(&self) -> u32 {
        self.bits().iter().sum()
    }

    fn headroom(&self, bits: [u32; 3]) -> [f64; 3] {
        let needed = [self.ticks, self.nodes, self.sequences];
        std::array::from_fn(|field| (1_u128 << bits[field]) as f64 / needed[field] as f64)
    }

    /// All of `width`, which is enough, divided among the fields.
    fn divide(&self, width: u32) -> [u32; 3] {
        let mut bits = self.bits();
        for _ in self.total_bits()..width {
            let [time, node, sequence] = self.headroom(bits);
            let least = if time < ENOUGH_LIFE && time <= node.min(sequence) {
                0
            } else if node < sequence {
                1
            } else {
                2
            };
            bits[least] += 1;
        }
        bits
    }
}

/// The layout of this width for `needs`, or what it lacks.
fn within(
    needs: &LayoutNeeds,
    width: u32,
) -> Result<Result<AdvisedLayout, LayoutShortage>, AdviceError> {
    let ticks_ms: &[u64] = match &needs.tick_ms {
        Some(tick_ms) => std::slice::from_ref(tick_ms),
        None => &TICKS_MS,
    };
    let demands = ticks_ms.iter().map(|&tick_ms| Demand::of(needs, tick_ms));
    let Some(demand) = demands.clone().find(|demand| demand.total_bits() <= width) else {
        let nearest = demands.min_by_key(Demand::total_bits);
        let nearest = nearest.unwrap_or_else(|| Demand::of(needs, TICKS_MS[0]));
        return Ok(Err(shortage(needs, &nearest, width)));
    };
    let [time, node, sequence] = demand.divide(width);
    let layout = Layout::builder()
        .bits(time, node, sequence)
        .tick(Duration::from_millis(demand.tick_ms))
        .epoch_unix_ms(needs.epoch_unix_ms)
        .build()
        .map_err(AdviceError::Layout)?;
    Ok(Ok(AdvisedLayout {
        layout,
        needs: *needs,
        demand,
    }))
}

/// What `width` lacks, and what of it would have to be relaxed.
fn shortage(needs: &LayoutNeeds, demand: &Demand, width: u32) -> LayoutShortage {
    let needed = demand.bits();
    let [time, node, sequence] = needed;
    // What two fields leave to the third; each has at least one bit.
    let left = |others: u32| width.checked_sub(others).filter(|&bits| bits > 0);
    let count = |bits: u32| 1_u128 << bits;
    let short = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);

    let years = left(node + sequence).map(|bits| needs.years_of(count(bits), demand.tick_ms));
    let numbers = left(time + sequence).map(count);
    let numbers = numbers.filter(|&numbers| numbers >= u128::from(needs.nodes));
    let sequences = left(time + node).map(count);
    let nodes = u128::from(needs.nodes);
    let ticks = u128::from(needs.borrowed_ticks(demand.tick_ms));
    let rate = sequences.map(|it| it * nodes * 1_000 / u128::from(demand.tick_ms));
    let burst = sequences.map(|it| (it * ticks + u128::from(needs.capacity)) * nodes);
    LayoutShortage {
        bits: width,
        tick_ms: demand.tick_ms,
        needed,
        years: needs.years,
        node_numbers: demand.nodes,
        disposable: needs.disposable,
        sequences: demand.sequences,
        years_that_fit: years.filter(|&years| years > 0).map(short),
        node_numbers_that_fit: numbers.map(short),
        restarts_that_fit: numbers.map(|numbers| needs.restarts_of(numbers)),
        sequences_that_fit: sequences.map(short),
        rate_that_fits: rate.map(short),
        burst_that_fits: burst.map(short),
    }
}
