//! Keeps the shared library loaded: its threads run on after `dlclose`.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let system = env::var("CARGO_CFG_TARGET_OS");
    if ["android", "freebsd", "linux"].contains(&system.as_deref().unwrap_or_default()) {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
