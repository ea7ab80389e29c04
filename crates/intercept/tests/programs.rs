//! Programs with the interception library on a mount, and beside it without: both see the same.

#[path = "../../mount/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::random_file::Pair;
use support::{KINDS, Kind, PROGRAMS, PROGRAMS_SAY, semantics, shell};

/// The library, as this build has made it.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let found = [&folder.join("deps"), folder].map(|folder| folder.join("libstrata_intercept.so"));
    found.into_iter().find(|path| path.is_file()).expect("cargo builds the library before its tests")
}

/// A mount that serves programs.
struct Scene(support::Scene);

impl Scene {
    fn begin(kind: Kind) -> Option<Self> {
        support::Scene::begin(kind, &[("intercept", "true")]).map(Self)
    }

    fn mnt(&self) -> PathBuf {
        self.0.mnt()
    }

    /// Runs a shell script under interception, which must end well: its output, and the report.
    fn intercepted(&self, script: &str) -> (String, String) {
        shell(&self.mnt(), script, &[("LD_PRELOAD", &library()), ("STRATA_INTERCEPT_REPORT", Path::new("1"))])
    }

    /// Runs one without it.
    fn plain(&self, script: &str) -> String {
        shell(&self.mnt(), script, &[]).0
    }

    /// Runs a test of this file, which does nothing else by itself, under interception.
    fn test(&self, name: &str, argument: &str) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture"]).current_dir(self.mnt());
        command.env("LD_PRELOAD", library()).env("STRATA_INTERCEPT_REPORT", "1").env(ARGUMENT, argument);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{name} {argument}: {}\n{told}",
            String::from_utf8_lossy(&output.stdout)
        );
        output
    }
}

/// Variable with the argument of a test that runs under interception.
const ARGUMENT: &str = "STRATA_TEST_ARGUMENT";

/// Calls of a name in all lines of a report.
fn count(report: &str, name: &str) -> u64 {
    let lines = report.lines().filter(|line| line.starts_with("strata intercept: process"));
    let words = lines.flat_map(|line| line.split([':', ',']).map(str::trim));
    words.filter_map(|word| word.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok()).sum()
}

/// Work of the core programs on entries and attributes, and what can be seen of it.
const ENTRIES: &str = "mkdir -p d/e; mv b d/e/f; ln -s e/f d/l; ln a d/hard || cp a d/hard; ls -l d >list; chmod 640 a; rm c; \
                       truncate -s 5 a; touch -d @77 a";
const SEEN: &str = "readlink d/l; cat d/l | wc -c; stat -c '%s %a %Y' a; ls -1 d; find . -type f | sort";
const SAID: &str = "e/f\n2621440\n5 640 77\ne\nhard\nl\n./a\n./d/e/f\n./d/hard\n./list\n";

#[test]
fn core_programs_are_intercepted() {
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind) else { return };
        let copies =
            "dd if=/dev/urandom of=a bs=64k count=40 status=none; cp a b; cat a >c; cmp a b; cmp a c";
        let (_, report) = scene.intercepted(copies);
        for name in ["open", "read", "write", "fstat"] {
            assert!(count(&report, name) > 0, "{name}: {report}");
        }
        scene.plain("cmp a b; cmp a c; test $(stat -c %s c) = 2621440");
        let (said, report) = scene.intercepted(&format!("{ENTRIES}; {SEEN}"));
        assert_eq!(said, SAID, "{kind:?}");
        for name in [
            "mkdir", "rename", "symlink", "link", "stat", "readdir", "unlink", "chmod", "truncate", "utimens",
        ] {
            let also = if name == "truncate" { count(&report, "ftruncate") } else { 0 };
            assert!(count(&report, name) + also > 0, "{name}: {report}");
        }
        assert_eq!(scene.plain(SEEN), SAID, "{kind:?}: the kernel sees the same");
        let (_, report) = scene.intercepted("rm -r d; ls -A");
        assert!(count(&report, "unlink") > 0, "{report}");
        assert_eq!(scene.plain("ls"), "a\nlist\n");
    }
}

#[test]
fn shells_share_positions_with_their_children() {
    let Some(scene) = Scene::begin(Kind::Dfs) else { return };
    let script = "printf 'one\\ntwo\\nthree\\n' >in; { read line; cat; echo $line; } <in >out; (echo x; /bin/echo y; echo z) >>out; cat out";
    let (said, _) = scene.intercepted(script);
    assert_eq!(said, "two\nthree\none\nx\ny\nz\n");
    assert_eq!(scene.plain("cat out"), said);
    // One side of a pipe of processes has the library, the other has not.
    scene.plain(&format!("(echo a; LD_PRELOAD={} /bin/echo b; echo c) >mixed", library().display()));
    assert_eq!(scene.plain("cat mixed"), "a\nb\nc\n");
}

#[test]
fn large_programs_work() {
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind) else { return };
        let (said, report) = scene.intercepted(PROGRAMS);
        assert_eq!(said, PROGRAMS_SAY, "{kind:?}");
        for name in ["open", "read", "write", "mmap", "rename", "fsync"] {
            assert!(count(&report, name) > 0, "{name}: {report}");
        }
    }
}

#[test]
fn a_disabled_library_leaves_calls_alone() {
    let Some(scene) = Scene::begin(Kind::Directory) else { return };
    let (_, report) = scene.intercepted("export STRATA_INTERCEPT_DISABLE=1; /bin/echo a >f; cat f; ls");
    assert!(!report.lines().any(|line| line.contains("cat") || line.contains("readdir")), "{report}");
    let (_, report) = scene.intercepted("cd /; ls >/dev/null");
    assert_eq!(count(&report, "readdir") + count(&report, "open"), 0, "{report}");
}

#[test]
fn under_interception_random_work() {
    let Some(argument) = std::env::var_os(ARGUMENT) else { return };
    let argument = argument.into_string().unwrap();
    let (plain, seed) = argument.split_once(' ').unwrap();
    Pair::new(&std::env::current_dir().unwrap(), Path::new(plain), seed.parse().unwrap()).run(400);
}

#[test]
fn random_work_leaves_what_it_leaves_in_a_plain_file() {
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind) else { return };
        for seed in 1..4 {
            let plain = scene.0.scratch.path();
            let output = scene.test("under_interception_random_work", &format!("{} {seed}", plain.display()));
            let report = String::from_utf8_lossy(&output.stderr).into_owned();
            for name in ["read", "write", "lseek", "ftruncate", "fallocate"] {
                assert!(count(&report, name) > 0, "{kind:?}: {name}: {report}");
            }
            let file = format!("random-{seed}");
            scene.plain(&format!("cmp {file} {}/{file}", plain.display()));
        }
    }
}

#[test]
fn under_interception_errors() {
    let Some(directory) = std::env::var_os(ARGUMENT) else { return };
    let (directory, kind) = directory.to_str().unwrap().split_once(' ').unwrap();
    let kind = KINDS.into_iter().find(|known| format!("{known:?}") == kind).unwrap();
    assert_eq!(semantics::complaints(Path::new(directory)), semantics::exceptions(kind));
}

#[test]
fn calls_fail_as_they_should() {
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind) else { return };
        scene.test("under_interception_errors", &format!("{} {kind:?}", scene.mnt().display()));
        // By the working directory alone.
        scene.test("under_interception_errors", &format!(". {kind:?}"));
    }
}

#[test]
fn a_program_in_c_sees_what_it_should() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calls.c");
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("calls");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source);
    match compiler.output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return eprintln!("skipped: there is no compiler: {error}"),
    }
    let run = program.display().to_string();
    // What the program says of the C library alone holds on a plain directory.
    let plain = tempfile::tempdir().unwrap();
    assert_eq!(shell(plain.path(), &run, &[]).0, "all good\n");
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind) else { return };
        let (said, report) = scene.intercepted(&run);
        assert_eq!(said, "all good\n", "{kind:?}");
        assert!(count(&report, "write") > 100, "{report}");
        let Some(scene) = Scene::begin(kind) else { return };
        assert_eq!(scene.plain(&run), "all good\n", "{kind:?}: through the mount alone");
    }
}
