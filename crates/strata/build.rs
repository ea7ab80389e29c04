//! Tells the program how far the compiler optimizes it: the profile `first` optimizes less than `release`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo:rustc-env=STRATA_OPT_LEVEL={level}");
}
