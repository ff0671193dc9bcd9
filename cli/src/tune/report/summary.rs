//! What a reader looks for first: the verdict, and the four numbers that decide.

use std::fmt::{self, Write as _};

use super::escape::Escaped;
use crate::threshold::Threshold;
use crate::tune::outcome::Outcome;
use crate::tune::setting::Setting;
use crate::tune::trial::Trial;
use crate::tune::verdict::{Grade, Reservation, Verdict};
use crate::tune::warnings::warnings;
use crate::units::{bytes, grouped, time};

/// A number with its name, and what it has to be compared with.
struct Number {
    name: &'static str,
    value: String,
    /// Of the value, smaller.
    unit: &'static str,
    note: String,
}

/// Writes both; `shown` is the trial that the pictures are about.
pub(super) fn write(html: &mut String, outcome: &Outcome, shown: Option<&Trial>) -> fmt::Result {
    let verdict = Verdict::of(outcome);
    // A sign and a word beside the colour.
    let (class, sign) = match verdict.grade() {
        Grade::Good => ("good", "\u{2713}"),
        Grade::Caution => ("caution", "!"),
        Grade::Bad => ("bad", "\u{d7}"),
    };
    writeln!(
        html,
        "<section class=\"verdict {class}\" aria-label=\"The verdict\">\n\
         <span class=\"sign\" aria-hidden=\"true\">{sign}</span>\n<div>\n\
         <h2>{}</h2>\n<p>{}</p>\n</div>\n</section>",
        headline(&verdict, outcome),
        Escaped(&verdict.in_words(outcome)),
    )?;
    writeln!(html, "<dl class=\"numbers\">")?;
    for number in numbers(outcome, &verdict, shown) {
        let Number {
            name,
            value,
            unit,
            note,
        } = number;
        writeln!(
            html,
            "<div><dt>{name}</dt><dd>{} <small>{unit}</small></dd><dd class=\"note\">{}</dd></div>",
            Escaped(&value),
            Escaped(&note),
        )?;
    }
    writeln!(html, "</dl>")?;
    for warning in warnings(outcome) {
        let text = Escaped(&warning);
        writeln!(
            html,
            "<p class=\"warning\"><strong>Warning:</strong> {text}</p>"
        )?;
    }
    Ok(())
}

/// The verdict in a few words.
fn headline(verdict: &Verdict, outcome: &Outcome) -> &'static str {
    let has = |reservation| Reservation::all_of(outcome).contains(&reservation);
    match verdict {
        Verdict::Recommended => "Served",
        Verdict::WithReservations | Verdict::MissesGoal if has(Reservation::DidNotRun) => {
            "Not proven: the recommended ring did not run"
        }
        Verdict::WithReservations
            if has(Reservation::LowLevel) || has(Reservation::SmallMargin) =>
        {
            "Served, with less margin than asked for"
        }
        Verdict::WithReservations => "Served, with reservations",
        Verdict::MissesGoal => "Not served as asked: the goal for latency is missed",
        Verdict::NoRing => "Not served: no ring went without empties",
        Verdict::NotServed(_) => "Not served: IDs were late",
        Verdict::NotMeasured => "Nothing was measured",
    }
}

/// The four, or none where nothing was measured.
fn numbers(outcome: &Outcome, verdict: &Verdict, shown: Option<&Trial>) -> Vec<Number> {
    if *verdict == Verdict::NotMeasured {
        return Vec::new();
    }
    let trial = match outcome.findings.recommended {
        Some(_) => outcome.findings.trial_of_recommended(),
        None => shown,
    };
    let setting = outcome.findings.recommended.or(shown.map(|it| it.setting));
    let Some(setting) = setting else {
        return Vec::new();
    };
    let [first, second] = match (verdict, shown) {
        (Verdict::NotServed(shortfall), _) => {
            let progress = &shortfall.progress;
            let note = format!("of {} that were due", grouped(progress.due));
            [
                percent("IDs taken when due", progress.share(), note),
                ring(setting),
            ]
        }
        (Verdict::NoRing, Some(trial)) => {
            let empties = Number {
                name: "takes that found it empty",
                value: grouped(trial.not_served()),
                unit: "",
                note: format!("of {}", grouped(trial.takes())),
            };
            [ring(setting), empties]
        }
        _ => [recommended(setting), threshold(setting, trial)],
    };
    vec![first, second, lowest_level(trial), latency(outcome, trial)]
}

fn recommended(setting: Setting) -> Number {
    Number {
        name: "recommended ring",
        value: grouped(setting.capacity as u64),
        unit: "slots",
        note: bytes(setting.bytes()),
    }
}

fn threshold(setting: Setting, trial: Option<&Trial>) -> Number {
    let below = grouped(trial.map_or_else(|| setting.carries(), Trial::carried) as u64);
    Number {
        name: "fill threshold",
        value: setting.threshold.to_string(),
        unit: "",
        note: match setting.threshold {
            Threshold::Percent(_) => format!("{below} IDs below it"),
            Threshold::Adaptive => format!("{below} IDs at its lowest"),
        },
    }
}

/// A ring that is shown and not recommended.
fn ring(setting: Setting) -> Number {
    Number {
        name: "ring that ran longest",
        value: grouped(setting.capacity as u64),
        unit: "slots",
        note: format!("threshold {}; none is recommended", setting.threshold),
    }
}

fn lowest_level(trial: Option<&Trial>) -> Number {
    let name = "lowest level seen";
    match trial {
        Some(trial) => {
            let ids = grouped(trial.lowest_level as u64);
            let note = format!("{ids} IDs, in {}", time(trial.seconds()));
            Number {
                unit: "% of the ring",
                ..percent(name, trial.headroom(), note)
            }
        }
        None => not_run(name),
    }
}

fn latency(outcome: &Outcome, trial: Option<&Trial>) -> Number {
    const SHARE: f64 = 0.999;
    let name = "p99.9 of a take";
    let Some(trial) = trial else {
        return not_run(name);
    };
    let value = time(trial.latency_at(SHARE));
    let note = match &outcome.baseline {
        Some(baseline) => format!("{} without a ring", time(baseline.latency_at(SHARE))),
        None => "not measured without a ring".to_owned(),
    };
    Number {
        name,
        value,
        unit: "",
        note,
    }
}

/// A share, never rounded up to one that is better.
fn percent(name: &'static str, share: f64, note: String) -> Number {
    let percent = 100.0 * share;
    let value = match percent {
        0.0 => "0".to_owned(),
        ..1.0 => format!("{:.1}", (10.0 * percent).floor() / 10.0),
        _ => format!("{:.0}", percent.floor()),
    };
    Number {
        name,
        value,
        unit: "%",
        note,
    }
}

fn not_run(name: &'static str) -> Number {
    Number {
        name,
        value: "-".to_owned(),
        unit: "",
        note: "it did not run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::outcome::tests::outcome;
    use crate::tune::search::Findings;

    /// What is written, without the elements.
    fn text(outcome: &Outcome) -> String {
        let mut html = String::new();
        let shown = outcome.findings.trials.values().next();
        write(&mut html, outcome, shown).unwrap();
        let pieces = html.split('<').filter_map(|it| it.split_once('>'));
        let pieces = pieces
            .map(|(_, text)| text.trim())
            .filter(|it| !it.is_empty());
        pieces.collect::<Vec<_>>().join("|")
    }

    fn class(outcome: &Outcome) -> String {
        let mut html = String::new();
        write(&mut html, outcome, None).unwrap();
        let (_, class) = html.split_once("class=\"verdict ").unwrap();
        class.split('"').next().unwrap().to_owned()
    }

    #[track_caller]
    fn assert_says(outcome: &Outcome, parts: &[&str]) {
        let text = text(outcome);
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn the_four_numbers_are_those_of_the_recommended_ring() {
        assert_says(
            &outcome(),
            &[
                "|recommended ring|131,072|slots|1 MiB|",
                "|fill threshold|50 %|65,536 IDs below it|",
                "|lowest level seen|59|% of the ring|78,429 IDs, in 2 s",
                "|p99.9 of a take|201 us|90.1 us without a ring",
            ],
        );
        let mut not_run = outcome();
        let recommended = not_run.findings.recommended.unwrap();
        not_run.findings.trials.remove(&recommended);
        assert_says(
            &not_run,
            &["|p99.9 of a take|-|it did not run", "|Not proven: the"],
        );
    }

    #[test]
    fn each_grade_has_its_colour_its_sign_and_its_words() {
        assert_says(&outcome(), &["\u{2713}|Served|"]);
        assert_eq!(class(&outcome()), "good");

        let mut short = outcome();
        let recommended = short.findings.recommended.unwrap();
        let trial = short.findings.trials.get_mut(&recommended).unwrap();
        trial.lowest_level = 1000;
        assert_says(
            &short,
            &["!|Served, with less margin", "|0.7|% of the ring|1,000 IDs"],
        );
        assert_eq!(class(&short), "caution");

        let mut missed = outcome();
        missed.goal = Some("max=1ns".parse().unwrap());
        assert_says(&missed, &["\u{d7}|Not served as asked"]);
        assert_eq!(class(&missed), "bad");

        let mut none = outcome();
        none.findings.recommended = None;
        let parts = [
            "\u{d7}|Not served: no ring",
            "|takes that found it empty|123,456|",
        ];
        assert_says(&none, &parts);

        none.findings = Findings::default();
        assert_says(&none, &["Nothing was measured"]);
        assert!(!text(&none).contains("lowest level"));
    }
}
