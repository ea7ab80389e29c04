//! Clients of one file system at the same time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use dfs::{Errno, FileSystem, Inode, OpenFlags, RenameFlags};

use super::support::{Ground, InProcess, OWNER, Paths, READ_WRITE};

const CLIENTS: usize = 3;
const NAMES: u32 = 100;

fn store() -> InProcess {
    InProcess::new(2, 4096)
}

/// Does something with clients of their own, each in a thread.
fn together(ground: &(dyn Ground + Sync), work: impl Fn(usize, &dyn FileSystem, &Barrier) + Sync) {
    let barrier = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (work, barrier) = (&work, &barrier);
            scope.spawn(move || work(number, &*ground.client(), barrier));
        }
    });
}

pub(crate) fn one_makes_a_name(ground: &(dyn Ground + Sync)) {
    drop(ground.client());
    let made = AtomicU32::new(0);
    together(ground, |_, files, barrier| {
        for name in 0..NAMES {
            barrier.wait();
            let flags = OpenFlags { exclusive: true, ..READ_WRITE };
            match Paths(files).create(&name.to_string(), flags) {
                Ok(handle) => {
                    files.release(handle).expect("closed");
                    made.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => assert_eq!(error, Errno::EXIST),
            }
        }
    });
    assert_eq!(made.into_inner(), NAMES);
}

pub(crate) fn a_rename_leaves_one_name(ground: &(dyn Ground + Sync)) {
    drop(ground.client());
    let moved = AtomicU32::new(0);
    together(ground, |number, files, barrier| {
        let paths = Paths(files);
        for name in 0..NAMES {
            let from = format!("from{name}");
            if number == 0 {
                paths.put(&from, from.as_bytes()).expect("written");
            }
            barrier.wait();
            let to = format!("to{name}.{number}");
            let renamed = files.rename(
                Inode::ROOT,
                from.as_bytes(),
                Inode::ROOT,
                to.as_bytes(),
                RenameFlags { no_replace: number == 1, exchange: false },
            );
            match renamed {
                Ok(()) => {
                    moved.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(paths.get(&to), Ok(from.into_bytes()));
                }
                Err(error) => assert_eq!(error, Errno::NOENT),
            }
            barrier.wait();
        }
    });
    assert_eq!(moved.into_inner(), NAMES);
    assert_eq!(Paths(&*ground.client()).names("").expect("listed").len(), NAMES as usize);
}

pub(crate) fn nothing_is_made_in_a_directory_that_goes(ground: &(dyn Ground + Sync)) {
    let first = ground.client();
    together(ground, |number, files, barrier| {
        let paths = Paths(files);
        for round in 0..NAMES {
            if number == 0 {
                paths.mkdir(&format!("d{round}")).expect("made");
            }
            barrier.wait();
            let directory = format!("d{round}");
            let made = match number {
                0 => files.remove_directory(Inode::ROOT, directory.as_bytes()),
                _ => paths.put(&format!("{directory}/file{number}"), b"content"),
            };
            barrier.wait();
            match (number, made) {
                (0, Ok(())) => assert_eq!(paths.stat(&directory).map(drop), Err(Errno::NOENT)),
                (0, Err(error)) => assert_eq!(error, Errno::NOTEMPTY),
                (_, Ok(())) => {
                    assert_eq!(paths.get(&format!("{directory}/file{number}")), Ok(b"content".to_vec()));
                }
                (_, Err(error)) => assert!(matches!(error, Errno::NOENT | Errno::STALE), "{error}"),
            }
            barrier.wait();
        }
    });
    // A directory that stayed takes entries.
    let paths = Paths(&*first);
    for (name, _) in paths.names("").expect("listed") {
        let name = String::from_utf8(name).expect("ASCII");
        paths.put(&format!("{name}/later"), b"").expect("it is alive");
    }
}

pub(crate) fn attributes_are_changed_one_after_the_other(ground: &(dyn Ground + Sync)) {
    let first = ground.client();
    Paths(&*first).put("file", b"").expect("written");
    together(ground, |number, files, _| {
        for round in 0..NAMES {
            let value = round.to_le_bytes();
            let set = |name: String| {
                Paths(files)
                    .with("file", |found| files.set_xattr(found.inode, name.as_bytes(), &value, false, false))
            };
            set(format!("user.{number}")).expect("set");
        }
    });
    let names = Paths(&*first).with("file", |found| first.list_xattrs(found.inode)).expect("listed");
    assert_eq!(names.len(), CLIENTS);
}

pub(crate) fn what_one_has_closed_others_see(ground: &(dyn Ground + Sync)) {
    let [one, other] = [ground.client(), ground.client()];
    let (here, there) = (Paths(&*one), Paths(&*other));
    here.put("file", b"first").expect("written");
    assert_eq!(there.get("file"), Ok(b"first".to_vec()));
    let held = there.with("file", |found| other.open(found.inode, READ_WRITE)).expect("opened");
    here.put("file", b"second and longer").expect("written");
    assert_eq!(there.get("file"), Ok(b"second and longer".to_vec()));
    assert_eq!(there.stat("file"), here.stat("file"));
    one.rename(Inode::ROOT, b"file", Inode::ROOT, b"renamed", RenameFlags::default()).expect("renamed");
    assert_eq!(there.get("file"), Err(Errno::NOENT));
    assert_eq!(there.get("renamed"), Ok(b"second and longer".to_vec()));
    let mut bytes = [0; 6];
    assert_eq!(other.read(held, 0, &mut bytes), Ok(6), "a handle stays good");
    other.release(held).expect("closed");
    let (made, handle) = one.create(Inode::ROOT, b"mine", 0o600, OWNER, READ_WRITE).expect("made");
    other.unlink(Inode::ROOT, b"mine").expect("removed by another client");
    one.release(handle).expect("closed");
    assert_eq!(one.attributes(made.inode), Err(Errno::STALE));
    one.forget(made.inode, 1);
}

#[test]
fn of_those_that_make_a_name_exclusively_one_does() {
    one_makes_a_name(&store());
}

#[test]
fn of_those_that_rename_a_file_one_does() {
    a_rename_leaves_one_name(&store());
}

#[test]
fn directories_are_removed_while_others_make_entries() {
    nothing_is_made_in_a_directory_that_goes(&store());
}

#[test]
fn changes_of_attributes_do_not_lose_each_other() {
    attributes_are_changed_one_after_the_other(&store());
}

#[test]
fn files_are_seen_by_others_when_they_are_closed() {
    what_one_has_closed_others_see(&store());
}
