//! File systems that are mounted: real programs, random work and errors of calls.

mod support;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use mount::Unmounted;
use support::random_file::Pair;
use support::{KINDS, Kind, PROGRAMS, PROGRAMS_SAY, Scene, semantics, shell};

#[test]
fn programs_work() {
    for kind in KINDS {
        for options in [&[][..], &[("data-caching", "off")], &[("enable-wb-cache", "true")]] {
            let Some(scene) = Scene::begin(kind, options) else { return };
            assert_eq!(shell(&scene.mnt(), PROGRAMS, &[]).0, PROGRAMS_SAY, "{kind:?} {options:?}");
        }
    }
}

#[test]
fn fio_verifies_what_it_writes() {
    if Command::new("fio").arg("--version").output().is_err() {
        return eprintln!("skipped: fio is not installed");
    }
    let Some(scene) = Scene::begin(Kind::Dfs, &[]) else { return };
    let script = "fio --name=a --size=16m --bs=64k --rw=randwrite --verify=crc32c --ioengine=psync --numjobs=3 --end_fsync=1 --output=out; \
                  fio --name=b --size=8m --bs=4k --direct=1 --rw=randrw --verify=crc32c --ioengine=psync --output=out";
    shell(&scene.mnt(), script, &[]);
}

/// Mount point, directory of the plain file and seed, for the client of random work.
const CLIENT: &str = "STRATA_MOUNT_RANDOM_WORK";

/// A client that maps files has to be a process of its own: the kernel takes the lock of its address space while it waits for an answer of
/// the file system, which needs that lock itself where it is served by the same process.
#[test]
fn random_work_leaves_what_it_leaves_in_a_plain_file() {
    if let Ok(words) = std::env::var(CLIENT) {
        let [mount, plain, seed] = words.lines().collect::<Vec<_>>()[..] else { panic!("{words}") };
        return Pair::new(Path::new(mount), Path::new(plain), seed.parse().expect("a seed")).run(400);
    }
    for kind in KINDS {
        for options in [&[][..], &[("data-caching", "metadata")], &[("enable-wb-cache", "true")]] {
            let Some(scene) = Scene::begin(kind, options) else { return };
            for seed in 1..4 {
                let words = format!("{}\n{}\n{seed}", scene.mnt().display(), scene.scratch.path().display());
                let client = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "random_work_leaves_what_it_leaves_in_a_plain_file", "--nocapture"])
                    .env(CLIENT, words)
                    .output()
                    .unwrap();
                let said = String::from_utf8_lossy(&client.stdout);
                let errors = String::from_utf8_lossy(&client.stderr);
                assert!(client.status.success(), "{kind:?} {options:?} seed {seed}: {said}{errors}");
                assert!(said.contains("1 passed"), "{said}");
            }
        }
    }
}

#[test]
fn calls_fail_as_they_should() {
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind, &[]) else { return };
        assert_eq!(semantics::complaints(&scene.mnt()), semantics::exceptions(kind));
    }
}

#[test]
fn large_directories_are_listed_whole_while_they_change() {
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind, &[]) else { return };
        let directory = scene.mnt().join("d");
        fs::create_dir(&directory).unwrap();
        let names: Vec<String> = (0..3000).map(|number| format!("name-{number}")).collect();
        names.iter().for_each(|name| fs::write(directory.join(name), name).unwrap());
        let mut listed: Vec<_> = fs::read_dir(&directory)
            .unwrap()
            .enumerate()
            .map(|(number, entry)| {
                let entry = entry.unwrap();
                if number % 3 == 0 {
                    fs::remove_file(entry.path()).unwrap();
                }
                entry.file_name().into_string().unwrap()
            })
            .collect();
        listed.sort();
        let mut expected = names;
        expected.sort();
        assert_eq!(listed, expected, "{kind:?}: each once");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2000);
    }
}

#[test]
fn other_users_have_their_own_rights() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: root alone can be another user");
    }
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind, &[("allow-other", "true")]) else { return };
        // The way to the mount is open to all.
        shell(scene.scratch.path(), "chmod 755 .", &[]);
        let mnt = scene.mnt();
        shell(
            &mnt,
            "echo a >secret; chmod 600 secret; mkdir open sticky; chmod 777 open; chmod 1777 sticky; echo b >sticky/b",
            &[],
        );
        let other = |script: &str| {
            let output = Command::new("sh")
                .args(["-c", script])
                .current_dir(&mnt)
                .uid(65534)
                .gid(65534)
                .output()
                .unwrap();
            (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        for refused in
            ["cat secret", "echo x >new", "mv secret open", "rm -f sticky/b", "chmod 666 open", "mkdir d"]
        {
            let (good, told) = other(refused);
            assert!(!good, "{kind:?}: {refused}");
            assert!(
                told.contains("ermission denied") || told.contains("not permitted"),
                "{kind:?}: {refused}: {told}"
            );
        }
        let (good, told) =
            other("echo c >open/c && mv open/c open/d && mkdir open/e sticky/e && rmdir sticky/e");
        assert!(good, "{kind:?}: {told}");
        assert_eq!(
            shell(&mnt, "stat -c '%u %g' open/d open/e", &[]).0,
            "65534 65534\n65534 65534\n",
            "{kind:?}"
        );
    }
    let Some(scene) = Scene::begin(Kind::Directory, &[]) else { return };
    shell(scene.scratch.path(), "chmod 755 .", &[]);
    let refused = Command::new("ls").arg(scene.mnt()).uid(65534).gid(65534).output().unwrap();
    assert!(!refused.status.success(), "without --allow-other the mount is its owner's");
}

#[test]
fn set_id_bits_go_with_writes_of_others_and_with_new_owners() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: root alone can be another user");
    }
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind, &[("allow-other", "true")]) else { return };
        shell(scene.scratch.path(), "chmod 755 .", &[]);
        let mnt = scene.mnt();
        let files = "written cut opened kept owned plain";
        shell(
            &mnt,
            &format!("for f in {files}; do echo abc >$f; chmod 6777 $f; done; chmod 2666 plain"),
            &[],
        );
        let script = "echo x >>written; truncate -s 1 cut; : >opened; echo x >>plain";
        let other = Command::new("sh").args(["-c", script]).current_dir(&mnt).uid(65534).gid(65534).output();
        assert!(other.unwrap().status.success(), "{kind:?}");
        // Root may write and keep them, but not give the file away with them.
        shell(&mnt, "echo x >>kept; chown 65534 owned", &[]);
        let told = shell(&mnt, &format!("stat -c '%n %a' {files}"), &[]).0;
        let expected = "written 777\ncut 777\nopened 777\nkept 6777\nowned 777\nplain 2666\n";
        assert_eq!(told, expected, "{kind:?}");
    }
}

#[test]
fn groups_are_inherited_from_directories_that_say_so() {
    for kind in KINDS {
        let Some(scene) = Scene::begin(kind, &[]) else { return };
        let script = "mkdir g; chgrp 77 g; chmod 2775 g; echo a >g/a; mkdir g/d; ln -s a g/l; stat -c '%g %f' g/a g/d g/l";
        let said = shell(&scene.mnt(), script, &[]).0;
        assert_eq!(said, "77 81a4\n77 45ed\n77 a1ff\n", "{kind:?}");
    }
}

#[test]
fn one_that_is_read_only_refuses_changes() {
    let Some(scene) = Scene::begin(Kind::Directory, &[("read-only", "true")]) else { return };
    let error = fs::write(scene.mnt().join("f"), b"data").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EROFS));
}

#[test]
fn a_mount_in_use_is_detached_and_others_end_whole() {
    let Some(mut scene) = Scene::begin(Kind::Dfs, &[]) else { return };
    fs::write(scene.mnt().join("f"), b"data").unwrap();
    let open = fs::File::open(scene.mnt().join("f")).unwrap();
    let mut mounted = scene.mounted.take().unwrap();
    assert_eq!(mounted.unmount().unwrap(), Unmounted::Detached);
    assert!(!scene.mnt().join("f").exists());
    assert_eq!(std::io::read_to_string(&open).unwrap(), "data", "what is open goes on");
    drop(open);
    mounted.join().unwrap();
    let Some(mut scene) = Scene::begin(Kind::Dfs, &[]) else { return };
    let mut mounted = scene.mounted.take().unwrap();
    assert_eq!(mounted.unmount().unwrap(), Unmounted::Whole);
    mounted.join().unwrap();
}

#[test]
fn directories_that_cannot_be_mounted_on_are_refused() {
    let Some(scene) = Scene::begin(Kind::Directory, &[]) else { return };
    let refused = |path: &Path| {
        let error = mount::check(path).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert!(refused(&scene.mnt()).contains("already mounted there"));
    assert!(refused(&scene.scratch.path().join("none")).contains("mkdir -p"));
    assert!(refused(scene.scratch.path()).contains("not empty"));
    let file = scene.scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    assert!(refused(&file).contains("the mount point is not a directory"));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let refused = |options: &[(&str, &str)]| {
        let error = support::spec(options).caching().unwrap_err();
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    };
    assert!(refused(&[("data-caching", "off"), ("attr-timeout", "2")]).contains("metadata"));
    assert!(
        refused(&[("data-caching", "metadata"), ("enable-wb-cache", "true")]).contains("--data-caching on")
    );
    assert!(refused(&[("read-only", "true"), ("enable-wb-cache", "true")]).contains("use one of them"));
    assert!(refused(&[("intercept", "true"), ("enable-wb-cache", "true")]).contains("use one of them"));
}
