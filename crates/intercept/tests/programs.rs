//! Programs with the interception library on a mount, and beside it without: both see the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use mount::{MountSpec, Mounted};
use testkit::DirectoryFileSystem;

/// A scratch directory with a mount on `mnt` of what is in `store`.
struct Scene {
    _mounted: Mounted,
    scratch: tempfile::TempDir,
}

/// The library, as this build has made it.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.ancestors().nth(2).unwrap();
    let found = [folder, &folder.join("deps")].map(|folder| folder.join("libstrata_intercept.so"));
    found.into_iter().find(|path| path.is_file()).expect("cargo builds the library before its tests")
}

impl Scene {
    fn begin() -> Option<Self> {
        let scratch = tempfile::tempdir().unwrap();
        let (store, directory) = (scratch.path().join("store"), scratch.path().join("mnt"));
        fs::create_dir(&store).unwrap();
        fs::create_dir(&directory).unwrap();
        let mut spec = MountSpec::default();
        spec.intercept = true;
        let file_system = Arc::new(DirectoryFileSystem::open(&store).unwrap());
        let directory = mount::check(&directory).unwrap();
        match Mounted::begin(file_system, "test:store", directory, &spec, || ()) {
            Ok(mounted) => Some(Self { _mounted: mounted, scratch }),
            Err(error) => {
                eprintln!("skipped: FUSE cannot be mounted here: {error}");
                None
            }
        }
    }

    fn mnt(&self) -> PathBuf {
        self.scratch.path().join("mnt")
    }

    /// Runs a shell script under interception, which must end well: its output, and the report.
    fn intercepted(&self, script: &str) -> (String, String) {
        run(&self.mnt(), script, true)
    }

    /// Runs one without it.
    fn plain(&self, script: &str) -> String {
        run(&self.mnt(), script, false).0
    }
}

fn run(directory: &Path, script: &str, intercepted: bool) -> (String, String) {
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(directory);
    if intercepted {
        command.env("LD_PRELOAD", library()).env("STRATA_INTERCEPT_REPORT", "1");
    }
    let output = command.output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{}\n{said}{told}", output.status);
    (said.into_owned(), told.into_owned())
}

/// Calls of a name in all lines of a report.
fn count(report: &str, name: &str) -> u64 {
    let lines = report.lines().filter(|line| line.starts_with("strata intercept: process"));
    let words = lines.flat_map(|line| line.split([':', ',']).map(str::trim));
    words.filter_map(|word| word.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok()).sum()
}

#[test]
fn core_programs_are_intercepted() {
    let Some(scene) = Scene::begin() else { return };
    let (_, report) = scene.intercepted(
        "dd if=/dev/urandom of=a bs=64k count=40 status=none; cp a b; cat a >c; cmp a b; cmp a c",
    );
    for name in ["open", "read", "write", "fstat"] {
        assert!(count(&report, name) > 0, "{name}: {report}");
    }
    scene.plain("cmp a b; cmp a c; test $(stat -c %s c) = 2621440");
    let (said, report) = scene.intercepted(
        "mkdir -p d/e; mv b d/e/f; ln -s e/f d/l; ln a d/hard; ls -l d >list; chmod 640 a; touch -d @77 a; rm c; truncate -s 5 a; \
         readlink d/l; cat d/l | wc -c; stat -c '%s %a %Y %h' a; ls -1 d; find . -type f | sort",
    );
    let expected = "e/f\n2621440\n5 640";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains(" 2\ne\nhard\nl\n"), "{said}");
    for name in ["mkdir", "rename", "symlink", "link", "stat", "readdir", "unlink", "chmod"] {
        assert!(count(&report, name) > 0, "{name}: {report}");
    }
    let plain =
        scene.plain("readlink d/l; cat d/l | wc -c; stat -c '%s %a %Y %h' a; ls -1 d; find . -type f | sort");
    assert_eq!(plain, said, "the kernel sees the same");
    let (_, report) = scene.intercepted("rm -r d; ls -A");
    assert!(count(&report, "unlink") > 0, "{report}");
    assert_eq!(scene.plain("ls"), "a\nlist\n");
}

#[test]
fn shells_share_positions_with_their_children() {
    let Some(scene) = Scene::begin() else { return };
    let script = "printf 'one\\ntwo\\nthree\\n' >in; { read line; cat; echo $line; } <in >out; (echo x; /bin/echo y; echo z) >>out; cat out";
    let (said, _) = scene.intercepted(script);
    assert_eq!(said, "two\nthree\none\nx\ny\nz\n");
    assert_eq!(scene.plain("cat out"), said);
    // One side of a pipe of processes has the library, the other has not.
    scene.plain(&format!("(echo a; LD_PRELOAD={} /bin/echo b; echo c) >mixed", library().display()));
    assert_eq!(scene.plain("cat mixed"), "a\nb\nc\n");
}

const PROGRAMS: &str = "
    git init -q source; cd source; git config user.email a@b.c; git config user.name a
    for i in $(seq 30); do mkdir -p d$((i % 7)); head -c $((i * 1000)) /dev/urandom >d$((i % 7))/f$i; done
    ln -s d1/f1 link; git add .; git commit -qm one; cd ..
    git clone -q source clone; cd clone; git fsck --full; git status --porcelain | wc -l; cd ..
    tar cf all.tar source; mkdir un; tar xf all.tar -C un; diff -r --no-dereference source un/source
    python3 -c \"
import sqlite3
base = sqlite3.connect('base.db')
base.execute('create table t(a integer primary key, b blob)')
for i in range(200): base.execute('insert into t values(?, ?)', (i, bytes(i * 13)))
base.commit(); base.execute('delete from t where a % 3 = 0'); base.commit(); base.execute('vacuum')
print(base.execute('pragma integrity_check').fetchone()[0], base.execute('select count(*) from t').fetchone()[0])
\"
    printf '#include <stdio.h>\\nint main(void) { puts(\"hello\"); return 0; }\\n' >hello.c; cc -o hello hello.c; ./hello
    rm -r source clone un; ls";

#[test]
fn large_programs_work() {
    let Some(scene) = Scene::begin() else { return };
    let (said, report) = scene.intercepted(PROGRAMS);
    assert_eq!(said, "0\nok 133\nhello\nall.tar\nbase.db\nhello\nhello.c\n");
    for name in ["open", "read", "write", "mmap", "rename", "fsync"] {
        assert!(count(&report, name) > 0, "{name}: {report}");
    }
}
