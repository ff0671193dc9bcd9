//! The recommendation as code.

use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use ringflake::Layout;

use super::setting::Setting;
use crate::threshold::Threshold;

/// The configuration of the builder.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Recipe {
    pub(super) layout: Layout,
    pub(super) nodes: Range<u64>,
    pub(super) setting: Setting,
    pub(super) schedule: Option<Schedule>,
    pub(super) producers: usize,
}

/// A scheduled fill that retires old IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) period: Duration,
    pub(super) max_age: Duration,
}

impl Recipe {
    /// Code that can be pasted where a `secret` is at hand.
    pub(super) fn code(&self) -> String {
        let layout = match preset(&self.layout) {
            Some(name) => format!("Layout::{name}"),
            None => format!("\"{}\".parse::<Layout>()?", self.layout),
        };
        let mut code = String::new();
        let (scheduled, duration_too) = match self.schedule {
            Some(_) => ("ScheduledFill, ", "use std::time::Duration;\n"),
            None => ("", ""),
        };
        let Range { start, end } = self.nodes;
        // Writing to a string does not fail.
        let _ = write!(
            code,
            "use ringflake::{{CachedGenerator, Layout, {scheduled}StaticLease, ThresholdFill}};\n\
             {duration_too}\n\
             let layout = {layout};\n\
             let ids = CachedGenerator::builder(layout)\n    \
             .secret(&secret)\n    \
             .lease(StaticLease::assume_unique(layout, {start}..{end}))\n    \
             .capacity({})\n    \
             .threshold_fill({})\n",
            slots(self.setting.capacity),
            threshold(self.setting.threshold),
        );
        if let Some(Schedule { period, max_age }) = self.schedule {
            let _ = write!(
                code,
                "    .scheduled_fill(\n        \
                 ScheduledFill::every({}).max_age({}),\n    )\n",
                duration(period),
                duration(max_age)
            );
        }
        let _ = write!(code, "    .producers({})\n    .build()?;\n", self.producers);
        code
    }
}

/// The name of the constant.
fn preset(layout: &Layout) -> Option<&'static str> {
    [
        ("RANDFLAKE", Layout::RANDFLAKE),
        ("REGION_TYPE_MACHINE", Layout::REGION_TYPE_MACHINE),
        ("BAIDU_2026", Layout::BAIDU_2026),
        ("BAIDU", Layout::BAIDU),
        ("BAIDU_31_23_9", Layout::BAIDU_31_23_9),
        ("TWITTER", Layout::TWITTER),
        ("SONYFLAKE_SIZED", Layout::SONYFLAKE_SIZED),
        ("JS_SAFE", Layout::JS_SAFE),
    ]
    .into_iter()
    .find_map(|(name, preset)| (preset == *layout).then_some(name))
}

fn slots(capacity: usize) -> String {
    match capacity.trailing_zeros() {
        shift @ 10.. => format!("1 << {shift}"),
        _ => capacity.to_string(),
    }
}

fn threshold(threshold: Threshold) -> String {
    match threshold {
        Threshold::Percent(percent) => format!("ThresholdFill::percent({percent})"),
        Threshold::Adaptive => "ThresholdFill::adaptive()".to_owned(),
    }
}

fn duration(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("Duration::from_secs({})", duration.as_secs()),
        _ => format!("Duration::from_millis({})", duration.as_millis()),
    }
}

#[cfg(test)]
mod examples;

#[cfg(test)]
mod tests {
    use ringflake::Secret;

    use super::*;

    /// The file that is compiled has this code in it.
    #[track_caller]
    fn is_compiled(recipe: &Recipe) {
        let mut code = String::new();
        for line in recipe.code().lines() {
            let indent = if line.is_empty() { "" } else { "    " };
            let _ = writeln!(code, "{indent}{line}");
        }
        let file = include_str!("snippet/examples.rs");
        assert!(file.contains(&code), "{code}");
    }

    #[test]
    fn the_code_compiles_and_builds_what_is_recommended() {
        let mut recipe = Recipe {
            layout: Layout::RANDFLAKE,
            nodes: 0..28,
            setting: Setting {
                capacity: 1 << 17,
                threshold: Threshold::Percent(75),
            },
            schedule: Some(Schedule {
                period: Duration::from_secs(10),
                max_age: Duration::from_secs(60),
            }),
            producers: 2,
        };
        is_compiled(&recipe);
        let ids = examples::with_all(Secret::from_bytes([1; 16])).unwrap();
        assert_eq!(ids.stats().capacity, 1 << 17);
        assert_eq!(ids.stats().threshold, (1 << 17) * 3 / 4);

        recipe.layout = "28/20/15@2020-01-01T00:00:00Z/1s".parse().unwrap();
        recipe.nodes = 4..5;
        recipe.setting = Setting {
            capacity: 512,
            threshold: Threshold::Adaptive,
        };
        recipe.schedule = None;
        recipe.producers = 1;
        is_compiled(&recipe);
        let ids = examples::with_minimum(Secret::from_bytes([1; 16])).unwrap();
        assert_eq!(ids.inspect(ids.take().unwrap()).unwrap().node, 4);
    }
}
