//! Mounts for tests, and what is tried on them, through the mount and under interception alike.

pub(crate) mod random_file;
pub(crate) mod semantics;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use dfs::FileSystem;
use mount::{MountSpec, Mounted};
use testkit::DirectoryFileSystem;

/// File systems that are mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A directory of this machine.
    Directory,
    /// Files over the embedded store.
    Dfs,
}

/// Both.
pub(crate) const KINDS: [Kind; 2] = [Kind::Directory, Kind::Dfs];

/// A scratch directory with a mount on `mnt`.
pub(crate) struct Scene {
    pub(crate) mounted: Option<Mounted>,
    pub(crate) scratch: tempfile::TempDir,
}

/// Options as the command line has them.
pub(crate) fn spec(options: &[(&str, &str)]) -> MountSpec {
    let mut spec = MountSpec::default();
    for (name, text) in options {
        let option = mount::MOUNT.iter().find(|option| option.name == *name).unwrap();
        (option.apply)(&mut spec, text).unwrap();
    }
    spec
}

fn file_system(kind: Kind, store: &Path) -> Arc<dyn FileSystem> {
    match kind {
        Kind::Directory => Arc::new(DirectoryFileSystem::open(store).unwrap()),
        Kind::Dfs => {
            let options = dfs::Options { create: true, ..dfs::Options::default() };
            dfs::open(&format!("dfs+vos:{}", store.join("pool").display()), &options).unwrap()
        }
    }
}

impl Scene {
    /// Mounts; none, with the reason on standard error, where this machine cannot.
    pub(crate) fn begin(kind: Kind, options: &[(&str, &str)]) -> Option<Self> {
        let scratch = tempfile::tempdir().unwrap();
        let (store, directory) = (scratch.path().join("store"), scratch.path().join("mnt"));
        fs::create_dir(&store).unwrap();
        fs::create_dir(&directory).unwrap();
        let directory = mount::check(&directory).unwrap();
        match Mounted::begin(file_system(kind, &store), "test:store", directory, &spec(options), || ()) {
            Ok(mounted) => Some(Self { mounted: Some(mounted), scratch }),
            Err(error) => {
                eprintln!("skipped: FUSE cannot be mounted here: {error}");
                None
            }
        }
    }

    pub(crate) fn mnt(&self) -> PathBuf {
        let directory = self.mounted.as_ref().map(|mounted| mounted.directory().to_owned());
        directory.unwrap_or_else(|| self.scratch.path().join("mnt"))
    }
}

/// Runs a shell script in a directory, which must end well: its output and its standard error.
pub(crate) fn shell(directory: &Path, script: &str, variables: &[(&str, &Path)]) -> (String, String) {
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(directory).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{}\n{said}{told}", output.status);
    (said.into_owned(), told.into_owned())
}

/// Real programs at work on a file system; [`PROGRAMS_SAY`] is what they print.
pub(crate) const PROGRAMS: &str = "
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

/// Output of [`PROGRAMS`].
pub(crate) const PROGRAMS_SAY: &str = "0\nok 133\nhello\nall.tar\nbase.db\nhello\nhello.c\n";
