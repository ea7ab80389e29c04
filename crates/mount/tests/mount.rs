//! A file system over a directory, mounted: programs see through the mount what they see in the directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use mount::{MountSpec, Mounted, Unmounted};
use testkit::DirectoryFileSystem;

/// A scratch directory with a mount on `mnt` of what is in `store`.
struct Scene {
    mounted: Option<Mounted>,
    scratch: tempfile::TempDir,
}

impl Scene {
    fn begin(options: &[(&str, &str)]) -> Option<Self> {
        let scratch = tempfile::tempdir().unwrap();
        let (store, directory) = (scratch.path().join("store"), scratch.path().join("mnt"));
        fs::create_dir(&store).unwrap();
        fs::create_dir(&directory).unwrap();
        let mut spec = MountSpec::default();
        for (name, text) in options {
            let option = mount::MOUNT.iter().find(|option| option.name == *name).unwrap();
            (option.apply)(&mut spec, text).unwrap();
        }
        let file_system = Arc::new(DirectoryFileSystem::open(&store).unwrap());
        let directory = mount::check(&directory).unwrap();
        match Mounted::begin(file_system, "test:store", directory, &spec, || ()) {
            Ok(mounted) => Some(Self { mounted: Some(mounted), scratch }),
            Err(error) => {
                eprintln!("skipped: FUSE cannot be mounted here: {error}");
                None
            }
        }
    }

    fn mnt(&self) -> PathBuf {
        self.scratch.path().join("mnt")
    }
}

/// Runs a shell script that must end well, in a directory.
fn shell(directory: &Path, script: &str) -> String {
    let output = Command::new("bash").args(["-euc", script]).current_dir(directory).output().unwrap();
    assert!(
        output.status.success(),
        "{script}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const PROGRAMS: &str = "
    git init -q source; cd source; git config user.email a@b.c; git config user.name a
    for i in $(seq 50); do mkdir -p d$((i % 7)); head -c $((i * 1000)) /dev/urandom >d$((i % 7))/f$i; done
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
fn programs_work() {
    for options in [&[][..], &[("data-caching", "off")], &[("enable-wb-cache", "true")]] {
        let Some(scene) = Scene::begin(options) else { return };
        let said = shell(&scene.mnt(), PROGRAMS);
        assert_eq!(said, "0\nok 133\nhello\nall.tar\nbase.db\nhello\nhello.c\n", "{options:?}");
    }
}

#[test]
fn a_mount_in_use_is_detached_and_others_end_whole() {
    let Some(mut scene) = Scene::begin(&[]) else { return };
    fs::write(scene.mnt().join("f"), b"data").unwrap();
    let open = fs::File::open(scene.mnt().join("f")).unwrap();
    let mut mounted = scene.mounted.take().unwrap();
    assert_eq!(mounted.unmount().unwrap(), Unmounted::Detached);
    assert!(!scene.mnt().join("f").exists());
    assert_eq!(std::io::read_to_string(&open).unwrap(), "data", "what is open goes on");
    drop(open);
    mounted.join().unwrap();
    let Some(mut scene) = Scene::begin(&[]) else { return };
    let mut mounted = scene.mounted.take().unwrap();
    assert_eq!(mounted.unmount().unwrap(), Unmounted::Whole);
    mounted.join().unwrap();
}

#[test]
fn directories_that_cannot_be_mounted_on_are_refused() {
    let Some(scene) = Scene::begin(&[]) else { return };
    let refused = |path: &Path| {
        let error = mount::check(path).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert!(refused(&scene.mnt()).contains("mounted there already"));
    assert!(refused(&scene.scratch.path().join("none")).contains("mkdir -p"));
    assert!(refused(scene.scratch.path()).contains("not empty"));
    let file = scene.scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(refused(&file).contains("this is none"));
}
