//! Packages: what is in them runs from where they put it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Scratch, skipped};

/// The sources, and the directory with the binary that is tested.
fn places() -> (PathBuf, PathBuf) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    (sources, Path::new(env!("CARGO_BIN_EXE_strata")).parent().unwrap().to_owned())
}

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Makes packages of these kinds; the directory that they are in.
fn packages(scratch: &Scratch, kinds: &[&str]) -> PathBuf {
    let (sources, built) = places();
    let out = scratch.path().join("packages");
    let mut command = Command::new(sources.join("scripts/package.sh"));
    // Packing takes minutes else.
    ran(command.env("DPKG_DEB_COMPRESSOR_TYPE", "none").arg(built).arg(&out).args(kinds));
    out
}

/// The file below a directory whose name ends so.
fn file(directory: &Path, end: &str) -> PathBuf {
    let mut files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().ends_with(end)).expect(end)
}

#[test]
fn a_debian_package_holds_program_manual_and_completions() {
    let scratch = Scratch::new();
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return skipped("a_debian_package_holds_program_manual_and_completions", "there is no dpkg-deb");
    }
    let packages = packages(&scratch, &["deb"]);
    let package = file(&packages, ".deb");
    let facts = ran(Command::new("dpkg-deb").arg("--field").arg(&package));
    assert!(facts.contains("Package: strata\n") && facts.contains("Depends: libc6 (>= 2."), "{facts}");
    let root = scratch.path().join("root");
    ran(Command::new("dpkg-deb").arg("-x").arg(&package).arg(&root));
    let program = root.join("usr/bin/strata");
    assert!(ran(Command::new(&program).arg("version")).starts_with("strata "));
    let measured =
        ran(Command::new(&program)
            .args(["media", "null:", "--op", "nop", "--count", "1000", "--live", "none"]));
    assert!(measured.contains("nop"), "{measured}");
    for part in [
        "share/man/man1/strata.1.gz",
        "share/man/man1/strata-media.1.gz",
        "share/man/man1/strata-pool-create.1.gz",
        "share/bash-completion/completions/strata",
        "share/zsh/site-functions/_strata",
        "share/fish/vendor_completions.d/strata.fish",
        "share/doc/strata/docs/cookbook.md",
    ] {
        let path = root.join("usr").join(part);
        assert!(path.metadata().is_ok_and(|facts| facts.len() > 100), "{}", path.display());
    }
    // Without symbols the program is a fraction of what the build left; they lie in a file beside the package.
    let stripped = program.metadata().unwrap().len();
    let built = Path::new(env!("CARGO_BIN_EXE_strata")).metadata().unwrap().len();
    assert!(stripped < built * 3 / 4, "{stripped} of {built} bytes");
    assert!(file(&packages, ".debug").metadata().unwrap().len() > 0);
}

#[test]
fn an_image_runs_with_nothing_around_it() {
    let scratch = Scratch::new();
    let image = file(&packages(&scratch, &["image"]), ".oci.tar");
    let layers = scratch.path().join("image");
    std::fs::create_dir(&layers).unwrap();
    ran(Command::new("tar").arg("-xf").arg(&image).arg("-C").arg(&layers));
    let read = |path: PathBuf| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let blob = |digest: &serde_json::Value| {
        layers.join("blobs/sha256").join(digest.as_str().unwrap().trim_start_matches("sha256:"))
    };
    let index = read(layers.join("index.json"));
    let manifest = read(blob(&index["manifests"][0]["digest"]));
    let root = scratch.path().join("image-root");
    std::fs::create_dir(&root).unwrap();
    ran(Command::new("tar").arg("-xzf").arg(blob(&manifest["layers"][0]["digest"])).arg("-C").arg(&root));
    assert_eq!(read(blob(&manifest["config"]["digest"]))["config"]["Entrypoint"][0], "/usr/bin/strata");
    if !rustix::process::geteuid().is_root() {
        return skipped("an_image_runs_with_nothing_around_it", "only root may change its root directory");
    }
    let said = ran(Command::new("chroot").arg(&root).args(["/usr/bin/strata", "version"]));
    assert!(said.starts_with("strata "), "{said}");
}

/// A copy, by hard links, of what this build of the tests made, without the program and the library that are linked again there.
fn copy_of_build(built: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("portable");
    let copy = root.join(built.file_name().unwrap());
    let _ = std::fs::remove_dir_all(&root);
    for part in ["build", "deps", ".fingerprint"] {
        std::fs::create_dir_all(&copy).unwrap();
        ran(Command::new("cp").arg("-al").arg(built.join(part)).arg(&copy));
    }
    // Cargo writes into files of these names: they would be those of the build that is tested.
    let linked = [
        "strata-",
        "libstrata-",
        "intercept-",
        "libstrata_intercept",
        "strata_intercept-",
        "nop_layer-",
        "programs-",
    ];
    for part in ["deps", ".fingerprint"] {
        for entry in std::fs::read_dir(copy.join(part)).unwrap().map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if linked.iter().any(|start| name.starts_with(start)) {
                let path = entry.path();
                if path.is_dir() {
                    std::fs::remove_dir_all(path).unwrap();
                } else {
                    std::fs::remove_file(path).unwrap();
                }
            }
        }
    }
    copy
}

/// The C library of Ubuntu 18.04, as `scripts/setup-tests.sh` unpacks it.
fn old_glibc() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    let libraries = cache.join("strata-tests/glibc-2.27/lib/x86_64-linux-gnu");
    (libraries.exists() && cache.join("strata-build").exists()).then_some(libraries)
}

#[test]
fn a_tarball_runs_on_the_glibc_of_ubuntu_18() {
    let name = "a_tarball_runs_on_the_glibc_of_ubuntu_18";
    let Some(libraries) = old_glibc() else {
        return skipped(name, "there is no glibc 2.27, or no zig (scripts/setup-tests.sh)");
    };
    let (sources, built) = places();
    let copy = copy_of_build(&built);
    let mut build = Command::new(sources.join("scripts/portable.sh"));
    build.current_dir(&sources).env("CARGO_TARGET_DIR", copy.parent().unwrap());
    // Cargo describes this package to its tests; build scripts that look at that would run again, and all that stands on them.
    for (name, _) in std::env::vars_os() {
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"];
        if own.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            build.env_remove(name);
        }
    }
    // These two tests are linked to the program and to the library; no other target of the workspace is built again.
    build.args([
        env!("CARGO"),
        "test",
        "--workspace",
        "--locked",
        "--offline",
        "--no-run",
        "--test",
        "nop_layer",
        "--test",
        "programs",
    ]);
    ran(build.args(copy.ends_with("release").then_some("--release")));
    // As a build of the library for itself leaves it.
    std::fs::copy(copy.join("deps/libstrata_intercept.so"), copy.join("libstrata_intercept.so")).unwrap();
    let scratch = Scratch::new();
    let out = scratch.path().join("packages");
    ran(Command::new(sources.join("scripts/package.sh")).arg(&copy).arg(&out).arg("tar"));
    ran(Command::new("tar").arg("-xzf").arg(file(&out, ".tar.gz")).arg("-C").arg(scratch.path()));
    let unpacked = file(scratch.path(), "-linux-gnu");
    for part in ["bin/strata", "lib/libstrata_intercept.so"] {
        let symbols = ran(Command::new("objdump").arg("-T").arg(unpacked.join(part)));
        let wanted = symbols
            .split("GLIBC_2.")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok());
        assert!(wanted.max().is_some_and(|minor| minor <= 27), "{part}: {symbols}");
    }
    let old = |words: &[&str]| {
        let mut command = Command::new(libraries.join("ld-2.27.so"));
        command.current_dir(scratch.path()).arg("--library-path").arg(&libraries);
        ran(command.arg(unpacked.join("bin/strata")).args(words))
    };
    assert!(old(&["version"]).contains("glibc 2.27 or newer"), "{}", old(&["version"]));
    let written =
        old(&["media", "file", "--op", "write,read", "--size", "1MiB", "--verify", "--live", "none"]);
    assert!(written.contains("write") && written.contains("read"), "{written}");
    let _ = std::fs::remove_dir_all(copy.parent().unwrap());
}

#[test]
fn a_package_that_there_is_not_is_refused() {
    let (sources, built) = places();
    let scratch = Scratch::new();
    let out = scratch.path().join("packages");
    let output =
        Command::new(sources.join("scripts/package.sh")).arg(built).arg(out).arg("snap").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("give deb, rpm, tar or image"), "{said}");
}
