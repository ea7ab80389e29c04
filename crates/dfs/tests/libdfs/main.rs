//! `dfs+daos://` on a libdfs of the tests' own (`dfs.c`), which checks what it is given. No DAOS system is needed, and none is tested.
#![allow(unsafe_code)]

#[path = "../files/model.rs"]
mod model;
#[allow(dead_code, reason = "the other tests use all of it")]
#[path = "../files/support.rs"]
mod support;

use std::ffi::c_int;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use dfs::{Errno, FileSystem, Inode, Options, open};
use libloading::Library;
use tempfile::TempDir;

use support::{Ground, Paths, READ_WRITE};

struct Fake {
    library: Library,
    root: TempDir,
}

fn compile(file: &Path) {
    let mut compiler = Command::new("cc")
        .args(["-O1", "-pthread", "-shared", "-fPIC", "-x", "c", "-", "-o"])
        .arg(file)
        .stdin(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    compiler.stdin.take().expect("it is piped").write_all(include_bytes!("dfs.c")).expect("written");
    assert!(compiler.wait().expect("ended").success(), "dfs.c does not compile");
}

fn fake() -> &'static Fake {
    static FAKE: OnceLock<Fake> = OnceLock::new();
    FAKE.get_or_init(|| {
        let file =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libdfs-{}.so", std::process::id()));
        // On a disk, which has extended attributes.
        let root = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        // SAFETY: the first test to come here sets them, before any of them has used the library; the others wait.
        unsafe { std::env::set_var("STRATA_LIBDFS", "/nonexistent/libdfs.so") };
        let error = open("dfs+daos://tank/home", &Options::default()).map(drop).expect_err("no library");
        assert!(error.to_string().contains("install daos-client"), "{error}");
        compile(&file);
        // SAFETY: as above.
        unsafe {
            std::env::set_var("STRATA_LIBDFS", &file);
            std::env::set_var("FAKE_DFS_ROOT", root.path());
        }
        // SAFETY: it has no constructors.
        let library = unsafe { Library::new(&file) }.expect("it was just compiled");
        // Both have it open then.
        open("dfs+daos://absent/home", &Options::default()).map(drop).expect_err("there is no such pool");
        std::fs::remove_file(&file).expect("removed");
        Fake { library, root }
    })
}

impl Fake {
    fn count(&self, name: &[u8]) -> c_int {
        // SAFETY: functions without arguments, as the source has them.
        unsafe { self.library.get::<unsafe extern "C" fn() -> c_int>(name).expect("it is there")() }
    }
}

struct Daos(&'static str);

impl Ground for Daos {
    fn client(&self) -> Arc<dyn FileSystem> {
        fake();
        let options = Options { create: true, ..Options::default() };
        open(&format!("dfs+daos://tank/{}", self.0), &options).expect("a file system")
    }
}

#[test]
fn calls_do_what_those_of_the_system_do_and_all_is_given_back() {
    for seed in 200..210 {
        let name: &'static str = format!("model{seed}").leak();
        model::run(&Daos(name), seed, false);
    }
    what_is_not_there_is_refused();
    attributes_of_files_are_kept();
    assert_eq!(fake().count(b"fake_dfs_open_objects\0"), 0, "objects that were left open");
    assert_eq!(fake().count(b"fake_dfs_inits\0"), 0);
}

fn what_is_not_there_is_refused() {
    let refused = |url: &str| {
        let error = open(url, &Options::default()).map(drop).expect_err(url);
        assert_eq!((error.exit_code(), error.to_string().lines().count()), (1, 1), "{error}");
        error.to_string()
    };
    assert!(refused("dfs+daos://absent/home").contains("pool=absent"));
    assert!(refused("dfs+daos://tank/absent").contains("container=absent"));
    assert!(!fake().root.path().join("absent").exists(), "it is not made");
}

fn attributes_of_files_are_kept() {
    let files = Daos("xattrs").client();
    let paths = Paths(&*files);
    let handle = paths.create("file", READ_WRITE).expect("created");
    paths
        .with("file", |found| {
            let inode = found.inode;
            files.set_xattr(inode, b"user.a", b"1", true, false)?;
            assert_eq!(files.set_xattr(inode, b"user.a", b"1", true, false), Err(Errno::EXIST));
            files.set_xattr(inode, b"user.a", b"22", false, true)?;
            assert_eq!(files.xattr(inode, b"user.a"), Ok(b"22".to_vec()));
            assert_eq!(files.list_xattrs(inode), Ok(vec![b"user.a".to_vec()]));
            files.remove_xattr(inode, b"user.a")?;
            assert_eq!(files.xattr(inode, b"user.a"), Err(Errno::NODATA));
            assert_eq!(files.stat_fs(), Err(Errno::NOSYS), "the library does not tell");
            Ok(())
        })
        .expect("kept");
    files.release(handle).expect("closed");
    assert_eq!(files.link(Inode::ROOT, Inode::ROOT, b"x"), Err(Errno::PERM));
}
