//! The recommendation as code.

use std::time::Duration;

use super::outcome::{Outcome, Schedule};
use crate::threshold::Threshold;

/// What is recommended, if anything is, to be pasted where a `secret` is at hand.
pub(super) fn code(outcome: &Outcome) -> Option<String> {
    let setting = outcome.findings.recommended?;
    let layout = match outcome.layout.name() {
        Some(name) => format!("Layout::{}", name.to_uppercase().replace('-', "_")),
        None => format!("\"{}\".parse::<Layout>()?", outcome.layout),
    };
    let capacity = match setting.capacity.trailing_zeros() {
        shift @ 10.. => format!("1 << {shift}"),
        _ => setting.capacity.to_string(),
    };
    let threshold = match setting.threshold {
        Threshold::Percent(percent) => format!("percent({percent})"),
        Threshold::Adaptive => "adaptive()".to_owned(),
    };
    let (scheduled, duration_too, schedule) = match outcome.schedule() {
        Some(Schedule { period, max_age }) => (
            "ScheduledFill, ",
            "use std::time::Duration;\n",
            format!(
                ".scheduled_fill(\n        \
                 ScheduledFill::every({}).max_age({}),\n    )\n    ",
                duration(period),
                duration(max_age)
            ),
        ),
        None => ("", "", String::new()),
    };
    Some(format!(
        "use ringflake::{{CachedGenerator, Layout, {scheduled}StaticLease, ThresholdFill}};\n\
         {duration_too}\n\
         let layout = {layout};\n\
         let ids = CachedGenerator::builder(layout)\n    \
         .secret(&secret)\n    \
         .lease(StaticLease::assume_unique(layout, {:?}))\n    \
         .capacity({capacity})\n    \
         .threshold_fill(ThresholdFill::{threshold})\n    \
         {schedule}.producers({})\n    \
         .build()?;\n",
        outcome.budget.nodes, outcome.producers
    ))
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
    use ringflake::plan::Load;
    use ringflake::{Layout, Secret};

    use super::*;
    use crate::tune::outcome::tests::outcome;
    use crate::tune::setting::Setting;

    /// The file that is compiled has this code in it.
    #[track_caller]
    fn is_compiled(outcome: &Outcome) {
        let code = code(outcome).unwrap().replace('\n', "\n    ");
        let code = code.replace("\n    \n", "\n\n");
        let file = include_str!("snippet/examples.rs");
        assert!(file.contains(code.trim_end()), "{code}");
    }

    #[test]
    fn the_code_compiles_and_builds_what_is_recommended() {
        let mut outcome = outcome();
        // A ring lasts for longer than the minute that IDs may lie in it.
        outcome.load = Load::steady("1k".parse().unwrap());
        is_compiled(&outcome);
        let ids = examples::with_all(Secret::from_bytes([1; 16])).unwrap();
        assert_eq!(ids.stats().capacity, 1 << 17);
        assert_eq!(ids.stats().threshold, 1 << 16);

        outcome.layout = Layout::BAIDU_31_23_9;
        let of_preset = code(&outcome).unwrap();
        assert!(of_preset.contains("layout = Layout::BAIDU_31_23_9;"));

        outcome.layout = "28/20/15@2020-01-01T00:00:00Z/1s".parse().unwrap();
        outcome.budget.nodes = 4..5;
        outcome.findings.recommended = Some(Setting::new(512, Threshold::Adaptive));
        outcome.producers = 1;
        is_compiled(&outcome);
        let ids = examples::with_minimum(Secret::from_bytes([1; 16])).unwrap();
        assert_eq!(ids.inspect(ids.take().unwrap()).unwrap().node, 4);
    }
}
