//! Calls that a directory of this machine cannot be asked about, or answers in its own way.

use dfs::{
    Errno, FILE_BYTES_MAX, FileKind, Inode, OpenFlags, RenameFlags, SetAttributes, SetTime, Timestamp,
};
use testkit::content;

use super::support::{Ground, InProcess, OWNER, Paths, READ, READ_WRITE, options};

fn store() -> InProcess {
    InProcess::new(2, 4096)
}

#[test]
fn calls_do_what_those_of_the_system_do() {
    for seed in 0..40 {
        super::model::run(&InProcess::new(1 + seed as u32 % 3, 4096), seed, true);
    }
}

#[test]
fn names_and_values_have_limits() {
    let files = store().client();
    let paths = Paths(&*files);
    let long = "x".repeat(255);
    paths.put(&long, b"content").expect("as long as a name may be");
    assert_eq!(paths.get(&long), Ok(b"content".to_vec()));
    assert_eq!(paths.put(&"x".repeat(256), b""), Err(Errno::NAMETOOLONG));
    assert_eq!(paths.stat(&"x".repeat(256)), Err(Errno::NAMETOOLONG));
    let link = |target: &[u8]| files.make_symlink(Inode::ROOT, b"link", target, OWNER);
    assert_eq!(link(&[b'x'; 4097]), Err(Errno::NAMETOOLONG));
    let made = link(&[b'x'; 4096]).expect("as long as a target may be");
    assert_eq!((made.kind, made.size_bytes, made.permissions), (FileKind::Symlink, 4096, 0o777));
    assert_eq!(files.read_link(made.inode), Ok(vec![b'x'; 4096]));
    let inode = made.inode;
    assert_eq!(files.set_xattr(inode, b"user.a", &vec![7; 65537], false, false), Err(Errno::TOOBIG));
    files.set_xattr(inode, b"user.a", &vec![7; 65536], false, false).expect("as large as a value may be");
    assert_eq!(files.xattr(inode, b"user.a"), Ok(vec![7; 65536]));
    let handle = paths.create("large", READ_WRITE).expect("created");
    assert_eq!(files.write(handle, FILE_BYTES_MAX - 1, b"ab"), Err(Errno::FBIG));
    assert_eq!(files.read(handle, u64::MAX, &mut [0]), Err(Errno::INVAL));
    files.release(handle).expect("closed");
    assert_eq!(files.link(inode, Inode::ROOT, b"other"), Err(Errno::PERM), "there are no hard links");
}

#[test]
fn xattrs_are_set_listed_and_removed_and_go_with_the_file() {
    let files = store().client();
    let paths = Paths(&*files);
    paths.put("file", b"").expect("written");
    paths.mkdir("directory").expect("made");
    for path in ["file", "directory"] {
        paths
            .with(path, |found| {
                let inode = found.inode;
                assert_eq!(files.xattr(inode, b"user.a"), Err(Errno::NODATA));
                assert_eq!(files.set_xattr(inode, b"user.a", b"1", false, true), Err(Errno::NODATA));
                files.set_xattr(inode, b"user.a", b"1", true, false)?;
                assert_eq!(files.set_xattr(inode, b"user.a", b"2", true, false), Err(Errno::EXIST));
                files.set_xattr(inode, b"user.a", b"22", false, true)?;
                files.set_xattr(inode, b"user.b", b"", false, false)?;
                assert_eq!(files.xattr(inode, b"user.a"), Ok(b"22".to_vec()));
                assert_eq!(files.list_xattrs(inode), Ok(vec![b"user.a".to_vec(), b"user.b".to_vec()]));
                files.remove_xattr(inode, b"user.b")?;
                assert_eq!(files.remove_xattr(inode, b"user.b"), Err(Errno::NODATA));
                Ok(())
            })
            .expect(path);
    }
    assert_eq!(paths.names("directory"), Ok(vec![]), "attributes are no entries");
    files.remove_directory(Inode::ROOT, b"directory").expect("empty but for its attributes");
    let to = |name: &[u8]| files.rename(Inode::ROOT, b"file", Inode::ROOT, name, RenameFlags::default());
    to(b"other").expect("renamed");
    paths.with("other", |found| files.xattr(found.inode, b"user.a")).expect("goes with it");
}

#[test]
fn times_and_owners_are_kept() {
    let ground = store();
    let files = ground.client();
    let paths = Paths(&*files);
    paths.put("file", b"content").expect("written");
    let time = |seconds, nanoseconds| Timestamp { seconds, nanoseconds };
    let to = SetAttributes {
        permissions: Some(0o4711),
        user: Some(11),
        group: Some(12),
        accessed: Some(SetTime::To(time(-5, 999_999_999))),
        modified: Some(SetTime::To(time(1 << 40, 1))),
        size_bytes: None,
    };
    let set = paths.with("file", |found| files.set_attributes(found.inode, &to)).expect("set");
    drop(files);
    let other = ground.client();
    let found = Paths(&*other).stat("file").expect("there");
    assert_eq!(found, set);
    assert_eq!((found.permissions, found.owner.user, found.owner.group), (0o4711, 11, 12));
    assert_eq!((found.accessed, found.modified), (time(-5, 999_999_999), time(1 << 40, 1)));
    assert!(found.changed.seconds > 1 << 30 && found.size_bytes == 7);
    // A write makes it younger again, for others when it is closed.
    let touched = SetAttributes { modified: Some(SetTime::To(time(1, 0))), ..SetAttributes::default() };
    let paths = Paths(&*other);
    paths.with("file", |found| other.set_attributes(found.inode, &touched)).expect("set");
    let handle = paths.create("file", READ_WRITE).expect("opened");
    other.write(handle, 0, b"C").expect("written");
    other.release(handle).expect("closed");
    let seen = Paths(&*ground.client()).stat("file").expect("there");
    assert!(seen.modified.seconds > 1 << 30, "{seen:?}");
}

#[test]
fn removed_files_are_readable_until_they_are_closed() {
    let ground = store();
    let files = ground.client();
    let paths = Paths(&*files);
    let bytes = content(1, 20_000);
    paths.put("file", &bytes).expect("written");
    let before = ground.pool.targets().iter().map(|target| target.space().keys).sum::<u64>();
    let handle = paths.create("file", READ_WRITE).expect("opened");
    files.unlink(Inode::ROOT, b"file").expect("removed");
    assert_eq!(paths.stat("file"), Err(Errno::NOENT));
    let mut read = vec![0; bytes.len()];
    assert_eq!(files.read(handle, 0, &mut read), Ok(bytes.len()));
    assert!(read == bytes);
    files.write(handle, 0, b"more").expect("written");
    paths.put("file", b"another").expect("another of the same name");
    files.release(handle).expect("closed");
    assert_eq!(files.release(handle), Err(Errno::BADF));
    assert_eq!(paths.get("file"), Ok(b"another".to_vec()));
    ground.pool.targets().iter().for_each(|target| {
        target
            .aggregate(ground.pool.find_container("dfs").expect("there").id, None, true)
            .expect("aggregated");
    });
    let after = ground.pool.targets().iter().map(|target| target.space().keys).sum::<u64>();
    assert!(after < before, "what it held is gone: {after} keys of {before}");
}

#[test]
fn files_are_opened_as_they_were_asked_for() {
    let files = store().client();
    let paths = Paths(&*files);
    paths.put("file", b"content").expect("written");
    let open = |flags| paths.with("file", |found| files.open(found.inode, flags)).expect("opened");
    let reader = open(READ);
    assert_eq!(files.write(reader, 0, b"x"), Err(Errno::BADF));
    let writer = open(OpenFlags { read: false, write: true, append: true, ..READ });
    assert_eq!(files.read(writer, 0, &mut [0]), Err(Errno::BADF));
    assert_eq!(files.write(writer, 0, b" and more"), Ok(9), "to the end");
    assert_eq!(paths.get("file"), Ok(b"content and more".to_vec()));
    let mut bytes = [0; 32];
    assert_eq!(files.read(reader, 8, &mut bytes), Ok(8));
    assert_eq!(files.read(reader, 16, &mut bytes), Ok(0), "the end");
    open(OpenFlags { truncate: true, ..READ_WRITE });
    assert_eq!(paths.get("file"), Ok(vec![]));
    paths.mkdir("directory").expect("made");
    let opened = |flags| paths.with("directory", |found| files.open(found.inode, flags));
    assert_eq!(opened(READ_WRITE), Err(Errno::ISDIR));
    let handle = opened(READ).expect("to be listed");
    assert_eq!(files.read(handle, 0, &mut [0]), Err(Errno::ISDIR));
    assert_eq!(paths.create("directory", READ_WRITE), Err(Errno::ISDIR));
}

#[test]
fn holes_are_told_from_data() {
    let files = store().client();
    let paths = Paths(&*files);
    let handle = paths.create("sparse", READ_WRITE).expect("created");
    for offset in [10_000, 30_000] {
        files.write(handle, offset, &[1; 5000]).expect("written");
    }
    let seek = |offset, hole| files.seek(handle, offset, hole);
    assert_eq!(
        [seek(0, false), seek(12_000, false), seek(15_000, false)],
        [Ok(10_000), Ok(12_000), Ok(30_000)]
    );
    assert_eq!([seek(0, true), seek(10_000, true), seek(31_000, true)], [Ok(0), Ok(15_000), Ok(35_000)]);
    assert_eq!([seek(35_000, false), seek(35_000, true)], [Err(Errno::NXIO); 2]);
    files.allocate(handle, 11_000, 2000, true, true).expect("a hole");
    assert_eq!([seek(10_500, true), seek(11_500, false)], [Ok(11_000), Ok(13_000)]);
    assert_eq!(files.allocate(handle, 0, 1, true, false), Err(Errno::OPNOTSUPP));
    files.release(handle).expect("closed");
}

#[test]
fn directories_over_many_targets_are_listed_whole_while_they_change() {
    let files = InProcess::new(3, 4096).client();
    let paths = Paths(&*files);
    paths.mkdir("many").expect("made");
    for number in 0..1000 {
        paths.put(&format!("many/keep{number}"), b"").expect("written");
    }
    let directory = files.look_up(Inode::ROOT, b"many").expect("there").inode;
    let (mut seen, mut after, mut round) = (Vec::new(), 0, 0);
    loop {
        let before = seen.len();
        files
            .list(directory, after, &mut |entry| {
                seen.push(String::from_utf8(entry.name.to_vec()).expect("ASCII"));
                after = entry.next;
                seen.len() < before + 7
            })
            .expect("listed");
        if seen.len() == before {
            break;
        }
        paths.put(&format!("many/new{round}"), b"").expect("written");
        if round % 2 == 0 {
            files.unlink(directory, format!("new{round}").as_bytes()).expect("removed");
        }
        round += 1;
    }
    let mut kept: Vec<_> = seen.iter().filter(|name| name.starts_with("keep")).collect();
    kept.sort_unstable();
    let count = kept.len();
    kept.dedup();
    assert_eq!((kept.len(), count), (1000, 1000), "each once");
}

#[test]
fn a_container_of_others_is_refused_and_left_as_it_is() {
    use vos::model::ObjectId;
    use vos::{Ack, ContainerProperties, KeyPath, Write};
    let ground = store();
    let id = ground.pool.create_container("theirs", &ContainerProperties::default()).expect("made");
    let place = KeyPath { container: id, object: ObjectId { lo: 5, hi: 0 }, dkey: b"d", akey: b"a" };
    ground.pool.target(0).update(&place, Write::Single, b"theirs", Ack::AsConfigured).expect("stored");
    let of =
        |label: &str, create| dfs::Options { container: Some(label.to_owned()), create, ..options(4096) };
    let refused = |options| dfs::open_on_pool(&ground.pool, &options).map(drop).expect_err("refused");
    let error = refused(of("theirs", true));
    assert!(
        error.exit_code() == 2 && error.to_string().contains("no file system, but other objects"),
        "{error}"
    );
    let error = refused(of("missing", false));
    assert!(error.to_string().contains("existing containers: theirs"), "{error}");
    ground.pool.create_container("empty", &ContainerProperties::default()).expect("made");
    let error = refused(of("empty", false));
    assert!(error.to_string().contains("is empty and holds no file system"), "{error}");
    let mut coded = of("empty", true);
    coded.format.file_class = "EC_2P1G1".parse().expect("a class");
    assert!(refused(coded).to_string().contains("replicas or parity"));
    let mut odd = of("empty", true);
    odd.format.chunk_bytes = 5000;
    assert!(refused(odd).to_string().contains("a power of two"));
}

#[test]
fn a_full_pool_says_so_and_goes_on() {
    let pool = vos::PoolOptions { scm_bytes: 32 << 20, ..vos::PoolOptions::default() };
    let files = InProcess::of(&pool, options(1 << 20)).client();
    let paths = Paths(&*files);
    paths.put("first", b"content").expect("written");
    let handle = paths.create("large", READ_WRITE).expect("created");
    let block = vec![1; 1 << 20];
    let full = (0..64).find_map(|number| files.write(handle, number << 20, &block).err());
    assert_eq!(full, Some(Errno::NOSPC));
    files.release(handle).expect("closed");
    assert_eq!(paths.get("first"), Ok(b"content".to_vec()));
    let space = files.stat_fs().expect("told");
    assert!(space.free_bytes < space.bytes / 2, "{space:?}");
    files.unlink(Inode::ROOT, b"large").expect("removed");
    paths.put("second", &block).expect("there is room again");
}
