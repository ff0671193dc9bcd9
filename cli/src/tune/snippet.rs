//! The answer as code: a program that runs as it stands.

use super::answer::{Answer, Setting};

/// Where the secret is kept, as `ringflake keygen` names it in the README.
const SECRET: &str = "ringflake.key";

/// The program, if the load is served; it names only what differs from the defaults.
pub(super) fn code(answer: &Answer) -> Option<String> {
    let Setting {
        capacity,
        threshold,
    } = answer.setting().ok().filter(|_| answer.is_served())?;
    let layout = match answer.layout.name() {
        Some(name) => format!("Layout::{}", name.to_uppercase().replace('-', "_")),
        None => format!("\"{}\".parse::<Layout>()?", answer.layout),
    };
    let mut names = vec!["CachedGenerator", "Layout", "Secret", "StaticLease"];
    let mut options = String::new();
    if capacity != Setting::DEFAULT.capacity {
        options += &match capacity.trailing_zeros() {
            shift @ 10.. => format!("        .capacity(1 << {shift})\n"),
            _ => format!("        .capacity({capacity})\n"),
        };
    }
    if threshold != Setting::DEFAULT.threshold {
        names.push("ThresholdFill");
        options += &format!(
            "        .threshold_fill(ThresholdFill::percent({}))\n",
            threshold.0
        );
    }
    if answer.threads.producers > 1 {
        options += &format!("        .producers({})\n", answer.threads.producers);
    }
    names.sort_unstable();
    Some(format!(
        "use ringflake::{{{}}};\n\n\
         fn main() -> Result<(), Box<dyn std::error::Error>> {{\n    \
         let secret = Secret::from_file(\"{SECRET}\")?; // `ringflake keygen --out {SECRET}`\n    \
         let layout = {layout};\n    \
         let ids = CachedGenerator::builder(layout)\n        \
         .secret(&secret)\n        \
         .lease(StaticLease::assume_unique(layout, {:?})) // nobody else's nodes\n\
         {options}        \
         .build()?;\n    \
         println!(\"{{}}\", ids.take()?);\n    \
         Ok(())\n}}\n",
        names.join(", "),
        answer.lease.nodes
    ))
}

#[cfg(test)]
mod tests {
    use ringflake::Layout;

    use super::*;
    use crate::threshold::Threshold;
    use crate::tune::answer::tests::answer;
    use crate::tune::lease::LeasePlan;

    /// The tests of the library compile its examples.
    const GUIDE: &str = include_str!("../../../src/guide/tuning.md");

    #[test]
    fn the_program_of_the_guide_is_the_one_that_is_printed() {
        let mut all = answer("1k", None);
        all.capacity = Ok(1 << 17);
        all.threshold = Threshold(75);
        all.threads.producers = 2;
        all.lease.nodes = 4..5;
        let program = code(&all).unwrap();
        assert!(
            GUIDE.contains(&format!("```no_run\n{program}```\n")),
            "{program}"
        );
    }

    #[test]
    fn a_program_names_its_layout_and_what_differs_from_the_defaults() {
        let mut answer = answer("50k", None);
        for (layout, named) in [
            (Layout::RANDFLAKE, "Layout::RANDFLAKE"),
            (Layout::BAIDU_31_23_9, "Layout::BAIDU_31_23_9"),
            (Layout::SONYFLAKE_SIZED, "Layout::SONYFLAKE_SIZED"),
        ] {
            answer.layout = layout;
            let program = code(&answer).unwrap();
            assert!(
                program.contains(&format!("let layout = {named};\n")),
                "{program}"
            );
            let end = ".lease(StaticLease::assume_unique(layout, 0..1)) // nobody else's nodes\n        \
                       .build()?;\n";
            assert!(program.contains(end), "{program}");
        }
        answer.layout = "28/20/15@2020-01-01T00:00:00Z/1s".parse().unwrap();
        answer.capacity = Ok(512);
        let program = code(&answer).unwrap();
        let layout = format!("let layout = \"{}\".parse::<Layout>()?;\n", answer.layout);
        assert!(program.contains(&layout), "{program}");
        assert!(program.contains("        .capacity(512)\n"), "{program}");
    }

    #[test]
    fn a_load_that_is_not_served_has_no_program() {
        assert_eq!(code(&answer("100G", None)), None);
        let mut few_nodes = answer("1M", None);
        few_nodes.lease = LeasePlan::new(&few_nodes.load, &few_nodes.layout, Some(0..1)).unwrap();
        assert_eq!(code(&few_nodes), None);
    }
}
