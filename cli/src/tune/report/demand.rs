//! The load itself: how many IDs are due when.

use anyhow::Result;
use plotters::prelude::*;
use ringflake::plan::Load;

use super::canvas::{Area, Format, Hint, line, picture};
use super::figure::Figure;
use super::palette::{GRID, LINES, QUIET};
use super::time_chart::{LineName, TimeAxes, hints, name_lines, round_below, ticks};
use crate::tune::outcome::Outcome;
use crate::units::{short, time};

/// Into how many intervals the time is divided, before their length is rounded down, which
/// makes them up to 2.5 times as many: as a rule, and for a short burst.
const USUAL: f64 = 80.0;
const MOST: f64 = 160.0;

/// IDs that are due in intervals of the same length.
struct Demand {
    /// In seconds.
    interval: f64,
    /// For each interval.
    due: Vec<f64>,
    /// In an interval, on average over all of the load.
    mean: f64,
}

pub(super) fn figure(outcome: &Outcome) -> Result<Figure> {
    let title = "The load";
    let load = &outcome.load;
    let demand = Demand::of(load);
    let what = format!("IDs due in each {}", time(demand.interval));
    let (shown, part) = match (load.duration(), outcome.part_at) {
        (Some(_), Some((from, length))) => (
            "all of the trace",
            format!(
                " The grey part, {} from second {from:.1} on, ran.",
                time(length)
            ),
        ),
        (Some(_), None) => ("all of the trace", String::new()),
        (None, _) => ("it goes on like this", String::new()),
    };
    let text = format!(
        "{what}, over {} ({shown}): at the most {}, on average {}. That is {} IDs/s at the peak, \
         and {} IDs/s on average.{part}",
        time(demand.end()),
        short(demand.most()),
        short(demand.mean),
        short(load.peak()),
        short(load.mean()),
    );
    let rows = (demand.due.iter().enumerate())
        .map(|(index, &due)| vec![format!("{:.6}", demand.at(index)), short(due)])
        .collect();
    let ran = outcome.part_at.map(|(from, length)| (from, from + length));
    let draw = |area: &Area<'_>, format| demand.draw(area, format, &what, ran);
    let picture = match demand.most() > 0.0 {
        true => Some(picture(["load", title, &text], |_| 250, draw)?),
        false => None,
    };
    Ok(Figure {
        title,
        text,
        picture,
        head: vec!["seconds", "IDs due until the next"],
        rows,
    })
}

impl Demand {
    fn of(load: &Load) -> Self {
        let burst = load.pieces().next().map_or(f64::INFINITY, |it| it.until);
        // As long as some IDs take, where there are few.
        let least = 20.0 / load.mean();
        let (end, shortest) = match (load.duration(), load.period()) {
            (Some(whole), _) => (whole.as_secs_f64(), f64::INFINITY),
            (None, Some(period)) => (least.max(2.0 * period.as_secs_f64() + burst), burst),
            (None, None) => (least.max(1.0), f64::INFINITY),
        };
        // As short as what is to be seen, and so long that an ID is due at the peak.
        let wanted = (end / USUAL).min(shortest).max(end / MOST);
        let interval = round_below(wanted).max(1.0 / load.peak());
        let count = (end / interval - 1e-9).ceil().max(1.0) as usize;
        let by = |index: usize| load.demanded_by(index as f64 * interval);
        Self {
            interval,
            due: (0..count).map(|index| by(index + 1) - by(index)).collect(),
            mean: load.mean() * interval,
        }
    }

    /// When an interval begins, in seconds.
    fn at(&self, index: usize) -> f64 {
        index as f64 * self.interval
    }

    fn end(&self) -> f64 {
        self.at(self.due.len())
    }

    fn most(&self) -> f64 {
        self.due.iter().copied().fold(0.0, f64::max)
    }

    fn draw(
        &self,
        area: &Area<'_>,
        format: Format,
        what: &str,
        ran: Option<(f64, f64)>,
    ) -> Result<Vec<Hint>> {
        let (most, end) = (self.most(), self.end());
        let has_mean = most > self.mean * 1.05;
        let axes = TimeAxes {
            what,
            across: (0.0, end),
            top: most * 1.1,
            ticks: ticks(most * 1.1),
            value: short,
            names_lines: has_mean,
        };
        let mut chart = axes.draw(area, format)?;
        if let Some((from, until)) = ran {
            let corners = [(from, 0.0), (until.min(end), most * 1.1)];
            chart.draw_series([Rectangle::new(corners, GRID.drawn().filled())])?;
        }
        let mut outline = vec![(0.0, 0.0)];
        for (index, &due) in self.due.iter().enumerate() {
            outline.extend([(self.at(index), due), (self.at(index + 1), due)]);
        }
        // Only corners, of a load that is the same for long.
        outline.dedup_by(|next, before| next == before);
        let mut area_below = outline.clone();
        area_below.push((end, 0.0));
        let below = LINES[0].drawn().mix(0.18).filled();
        chart.draw_series([Polygon::new(area_below, below)])?;
        chart.draw_series(LineSeries::new(outline.into_iter().skip(1), line(0)))?;
        if has_mean {
            let mean = [(0.0, self.mean), (end, self.mean)];
            let style = QUIET.drawn().stroke_width(2);
            chart.draw_series(DashedLineSeries::new(mean, 3, 5, style))?;
            let name = LineName {
                value: self.mean,
                wide: format!("mean {}", short(self.mean)),
                narrow: "mean",
                colour: QUIET,
            };
            name_lines(area, &chart, format, vec![name])?;
        }
        let hints = hints(&chart, format, (0.0, end), |from, until| {
            // Those that begin in the part, or the one that it lies in.
            let first = (from / self.interval + 1e-9).floor() as usize;
            let behind = (until / self.interval - 1e-9).ceil() as usize;
            let due = self.due.get(first..behind.min(self.due.len()))?;
            let most = due.iter().copied().reduce(f64::max)?;
            let at = self.at(first);
            Some(format!("{at:.4} s: {} {what}", short(most)))
        });
        Ok(hints)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tune::report::tests::any_load;

    #[test]
    fn a_burst_is_seen_and_so_are_two_periods() {
        let load =
            Load::steady("1M".parse().unwrap()).with_burst("20M:10ms/100ms".parse().unwrap());
        let demand = Demand::of(&load);
        assert_eq!((demand.interval, demand.due.len()), (0.002, 105));
        assert!((demand.most() - 40_000.0).abs() < 1e-3);
        let bursts = demand.due.iter().filter(|&&due| due > 30_000.0).count();
        assert_eq!(bursts, 15, "three of five intervals");
    }

    #[test]
    fn of_a_rate_below_one_a_second_whole_ids_are_due() {
        let demand = Demand::of(&Load::steady("1/s".parse().unwrap()));
        assert_eq!((demand.interval, demand.due.len()), (1.0, 20));
        assert!(demand.due.iter().all(|&due| due == 1.0));
    }

    proptest! {
        #[test]
        fn all_that_is_due_lies_in_some_interval(load in any_load()) {
            let demand = Demand::of(&load);
            prop_assert!((1..=402).contains(&demand.due.len()), "{}", demand.due.len());
            prop_assert!(demand.due.iter().all(|&due| due >= -1e-6));
            let due = load.demanded_by(demand.end());
            let sum = demand.due.iter().sum::<f64>();
            prop_assert!((sum - due).abs() <= 1e-6 * due.max(1.0), "{sum} {due}");
        }
    }
}
