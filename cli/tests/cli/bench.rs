//! What `bench` prints, and the backend that it measures.

use ringflake::Backend;
use serde_json::Value;

use crate::home::{Home, fail, objects, stderr, stdout, succeed};
use ringflake_kit::{assert_says, words};

#[test]
fn bench_has_one_line_for_each_name_and_number_of_threads() {
    // Pinned where that can be: more threads than cores share them.
    let pin = if cfg!(target_os = "linux") {
        "--pin"
    } else {
        ""
    };
    let text = Home::new().print(format!(
        "bench --format json --rounds 2 --threads 3,1 {pin}"
    ));
    let names = words(
        "fetch_add array_queue_pop ring_take ring_take_batch_64 take take_batch_64 handle_take live_take \
         live_batch_64 sustained_take sustained_handle in_place encrypt_scalar encrypt_batch",
    );
    // A live one has a producer among its threads.
    let fewest = |name: &str| if name.starts_with("live_") { 2 } else { 1 };
    let cases = |name: &&str| [fewest(name), 3].map(|threads| ((*name).to_owned(), threads));
    let expected: Vec<_> = names.iter().flat_map(cases).collect();
    let backend = Backend::available().next().unwrap().to_string();
    let mut found = Vec::new();
    for object in objects(&text) {
        let name = object["name"].as_str().unwrap().to_owned();
        // What encrypts makes no IDs.
        let unique = (!name.starts_with("encrypt_")).then_some(true);
        assert_eq!(object["unique"], Value::from(unique), "{object}");
        assert_eq!(object["rounds"], 2);
        assert_eq!(object["backend"], backend);
        let [min, median, max] = ["min", "median", "max"]
            .map(|key| object[format!("{key}_ids_per_s")].as_u64().unwrap());
        assert!(0 < min && min <= median && median <= max, "{object}");
        found.push((name, object["threads"].as_u64().unwrap()));
    }
    assert_eq!(found, expected);
}

#[test]
fn an_interrupt_prints_the_rounds_until_then() {
    let output = Home::new().interrupt("bench --rounds 1000 --only fetch_add");
    assert_eq!(output.status.code(), Some(130));
    assert_says(&stderr(&output), &["interrupted"]);
    assert!(stdout(&output).starts_with("million IDs/s"));
}

#[test]
fn an_unavailable_backend_is_refused_before_anything_is_done() {
    let home = Home::new();
    let is_x86 = cfg!(target_arch = "x86_64");
    let foreign = if is_x86 { "neon" } else { "avx2" };
    for value in ["avx1024", "PORTABLE", foreign] {
        let message = fail(home.run_with("generate", "RINGFLAKE_BACKEND", value));
        assert_says(&message, &[&format!("{value:?}")]);
        for backend in Backend::available() {
            assert_says(&message, &[&backend.to_string()]);
        }
    }
    assert!(!home.data_dir().exists());
}

#[test]
fn bench_names_the_backend_on_stderr() {
    let home = Home::new();
    let line = "bench --rounds 1 --only encrypt_scalar";
    let backend_under =
        |value: &str| stderr(&succeed(home.run_with(line, "RINGFLAKE_BACKEND", value)));
    for backend in Backend::available() {
        let expected = format!("backend: {backend}\n");
        assert_eq!(backend_under(&backend.to_string()), expected);
    }
    let fastest = Backend::available().next().unwrap();
    assert_eq!(backend_under(""), format!("backend: {fastest}\n"));
}
