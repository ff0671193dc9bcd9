//! The recommendation as code.

use std::time::Duration;

use super::outcome::{Outcome, Schedule};
use crate::threshold::Threshold;

/// Where the secret is kept, as `ringflake keygen` names it in the README.
const SECRET: &str = "ringflake.key";

/// What is recommended, if anything is: a program that runs as it stands.
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
    let schedule = outcome.schedule();
    let mut names = vec![
        "CachedGenerator",
        "Layout",
        "Secret",
        "StaticLease",
        "ThresholdFill",
    ];
    names.extend(schedule.map(|_| "ScheduledFill"));
    names.sort_unstable();
    let mut code = String::new();
    if schedule.is_some() {
        code += "use std::time::Duration;\n\n";
    }
    code += &format!("use ringflake::{{{}}};\n", names.join(", "));
    code += &format!(
        "\nfn main() -> Result<(), Box<dyn std::error::Error>> {{\n    \
         let secret = Secret::from_file(\"{SECRET}\")?; // `ringflake keygen --out {SECRET}`\n    \
         let layout = {layout};\n    \
         let ids = CachedGenerator::builder(layout)\n        \
         .secret(&secret)\n        \
         .lease(StaticLease::assume_unique(layout, {:?})) // nobody else's nodes\n        \
         .capacity({capacity})\n        \
         .threshold_fill(ThresholdFill::{threshold})\n",
        outcome.budget.nodes
    );
    if let Some(Schedule { period, max_age }) = schedule {
        code += &format!(
            "        .scheduled_fill(\n            \
             ScheduledFill::every({}).max_age({}),\n        )\n",
            duration(period),
            duration(max_age)
        );
    }
    code += &format!(
        "        .producers({})\n        \
         .build()?;\n    \
         println!(\"{{}}\", ids.take()?);\n    \
         Ok(())\n}}\n",
        outcome.producers
    );
    Some(code)
}

fn duration(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("Duration::from_secs({})", duration.as_secs()),
        _ => format!("Duration::from_millis({})", duration.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use ringflake::plan::Load;
    use ringflake::{Cipher, Id, Layout, Secret};

    use super::*;
    use crate::tune::outcome::tests::outcome;
    use crate::tune::setting::Setting;

    /// The root of the repository.
    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

    /// Puts programs into a package that depends on the library, and runs them one after
    /// the other: the ID that each prints.
    fn run(programs: &[String], secret: &Secret) -> Vec<Id> {
        let package = tempfile::tempdir().unwrap();
        let path = |name: &str| package.path().join(name);
        let root = Path::new(ROOT).canonicalize().unwrap();
        let manifest = format!(
            "[package]\nname = \"pasted\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dependencies]\nringflake = {{ path = {root:?} }}\n\n\
             [lints.rust]\nwarnings = \"deny\"\n"
        );
        fs::write(path("Cargo.toml"), manifest).unwrap();
        // The versions that are at hand.
        fs::copy(root.join("Cargo.lock"), path("Cargo.lock")).unwrap();
        secret.to_new_file(path(SECRET)).unwrap();
        fs::create_dir_all(path("src/bin")).unwrap();
        for (index, program) in programs.iter().enumerate() {
            fs::write(path(&format!("src/bin/program_{index}.rs")), program).unwrap();
        }
        // Beside what cargo has built of this test, so that it is built once.
        let test = std::env::current_exe().unwrap();
        let target = test.ancestors().nth(3).unwrap().join("pasted");
        let id = |index| {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .args(["run", "--quiet", "--offline", "--bin"])
                .arg(format!("program_{index}"))
                .current_dir(package.path())
                .env("CARGO_TARGET_DIR", &target);
            let output = cargo.output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{error}\n{}", programs[index]);
            String::from_utf8(output.stdout)
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        };
        (0..programs.len()).map(id).collect()
    }

    #[test]
    fn the_code_compiles_as_pasted_and_runs_on_its_layout_and_its_nodes() {
        let mut with_all = outcome();
        // A ring lasts for longer than the minute that IDs may lie in it.
        with_all.load = Load::steady("1k".parse().unwrap());
        let mut of_preset = outcome();
        of_preset.layout = Layout::BAIDU_31_23_9;
        of_preset.budget.nodes = 7..8;
        let mut with_minimum = outcome();
        with_minimum.layout = "28/20/15@2020-01-01T00:00:00Z/1s".parse().unwrap();
        with_minimum.budget.nodes = 4..5;
        with_minimum.findings.recommended = Some(Setting::new(512, Threshold::Adaptive));
        let outcomes = [with_all, of_preset, with_minimum];
        let programs = outcomes.each_ref().map(|outcome| code(outcome).unwrap());
        for (program, part) in programs.iter().zip([
            ".capacity(1 << 17)\n        .threshold_fill(ThresholdFill::percent(50))\n        \
             .scheduled_fill(\n            ScheduledFill::every(Duration::from_secs(10))\
             .max_age(Duration::from_secs(60)),\n        )\n",
            "let layout = Layout::BAIDU_31_23_9;\n",
            ".capacity(512)\n        .threshold_fill(ThresholdFill::adaptive())\n        \
             .producers(1)\n",
        ]) {
            assert!(program.contains(part), "{program}");
        }
        let secret = Secret::generate().unwrap();
        let cipher = Cipher::sparx64(&secret);
        for (outcome, id) in outcomes.iter().zip(run(&programs, &secret)) {
            let raw = cipher.decrypt(id.to_u64());
            let node = outcome.layout.unpack(raw).unwrap().node;
            assert!(outcome.budget.nodes.contains(&node), "{node}");
        }
    }
}
