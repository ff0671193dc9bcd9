//! The answer as code: a program that runs as it stands.

use super::answer::{Answer, Setting};

/// Where the secret is kept, as `ringflake keygen` names it in the README.
const SECRET: &str = "ringflake.key";

/// The program, if the load is served; it names only what differs from the defaults.
pub(super) fn code(answer: &Answer) -> Option<String> {
    let Setting {
        capacity,
        threshold,
    } = answer.setting().filter(|_| answer.is_served())?;
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
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use ringflake::{Cipher, Id, Layout, Secret};

    use super::*;
    use crate::threshold::Threshold;
    use crate::tune::answer::tests::answer;
    use crate::tune::lease::LeasePlan;

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
    fn the_program_compiles_and_runs_on_its_layout_and_nodes() {
        let defaults = answer("50k", None);
        let mut with_all = answer("1k", None);
        with_all.capacity = Ok(1 << 17);
        with_all.layout = Layout::BAIDU_31_23_9;
        with_all.lease.nodes = 7..8;
        let mut small = answer("1k", None);
        small.capacity = Ok(512);
        small.threshold = Threshold(75);
        small.threads.producers = 2;
        small.layout = "28/20/15@2020-01-01T00:00:00Z/1s".parse().unwrap();
        small.lease.nodes = 4..5;
        let answers = [defaults, with_all, small];
        let programs = answers.each_ref().map(|answer| code(answer).unwrap());
        for (program, part) in programs.iter().zip([
            ".lease(StaticLease::assume_unique(layout, 0..1)) // nobody else's nodes\n        \
             .build()?;\n",
            ".capacity(1 << 17)\n        .build()?;\n",
            ".capacity(512)\n        .threshold_fill(ThresholdFill::percent(75))\n        \
             .producers(2)\n",
        ]) {
            assert!(program.contains(part), "{program}");
        }
        let secret = Secret::generate().unwrap();
        let cipher = Cipher::sparx64(&secret);
        for (answer, id) in answers.iter().zip(run(&programs, &secret)) {
            let raw = cipher.decrypt(id.to_u64());
            let node = answer.layout.unpack(raw).unwrap().node;
            assert!(answer.lease.nodes.contains(&node), "{node}");
        }
    }

    #[test]
    fn a_load_that_is_not_served_has_no_program() {
        assert_eq!(code(&answer("100G", None)), None);
        let mut few_nodes = answer("1M", None);
        few_nodes.lease = LeasePlan::new(&few_nodes.load, &few_nodes.layout, Some(0..1)).unwrap();
        assert_eq!(code(&few_nodes), None);
    }
}
