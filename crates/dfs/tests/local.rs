//! A file system over a socket does what the one behind it does, and gives back what a client held.

use std::sync::{Arc, Mutex};

use dfs::local::{Change, LocalFileSystem, LocalServer};
use dfs::{Errno, FileSystem, Inode, OpenFlags, Owner, RenameFlags, SetAttributes};
use testkit::DirectoryFileSystem;

const BOTH: OpenFlags =
    OpenFlags { read: true, write: true, append: false, truncate: false, exclusive: false };

fn owner() -> Owner {
    Owner { user: rustix::process::getuid().as_raw(), group: rustix::process::getgid().as_raw() }
}

#[test]
fn calls_go_over_the_socket() {
    let scratch = tempfile::tempdir().unwrap();
    let store = scratch.path().join("store");
    std::fs::create_dir(&store).unwrap();
    let behind: Arc<dyn FileSystem> = Arc::new(DirectoryFileSystem::open(&store).unwrap());
    let changes: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&changes);
    let server = LocalServer::begin(Arc::clone(&behind), scratch.path(), false, move |change| {
        let text = match change {
            Change::Entry(_, name) => format!("entry {}", String::from_utf8_lossy(name)),
            Change::Inode(_) => "inode".to_owned(),
        };
        seen.lock().unwrap().push(text);
    })
    .unwrap();
    let client = LocalFileSystem::connect(server.socket(), 7).unwrap();
    let directory = client.make_directory(Inode::ROOT, b"d", 0o750, owner()).unwrap();
    assert_eq!(directory.permissions, 0o750);
    let (file, handle) = client.create(directory.inode, b"f", 0o640, owner(), BOTH).unwrap();
    let data: Vec<u8> = (0..9_000_000_u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(client.write(handle, 5, &data), Ok(data.len()));
    let mut back = vec![0; data.len() + 100];
    assert_eq!(client.read(handle, 5, &mut back), Ok(data.len()));
    assert_eq!(&back[..data.len()], &data[..]);
    client.flush(handle).unwrap();
    assert_eq!(std::fs::metadata(store.join("d/f")).unwrap().len(), data.len() as u64 + 5);
    let cut = SetAttributes { size_bytes: Some(3), ..SetAttributes::default() };
    assert_eq!(client.set_attributes(file.inode, &cut).unwrap().size_bytes, 3);
    client.rename(directory.inode, b"f", Inode::ROOT, b"g", RenameFlags::default()).unwrap();
    assert_eq!(client.stat(directory.inode, b"f"), Err(Errno::NOENT));
    client.make_symlink(Inode::ROOT, b"l", b"g", owner()).unwrap();
    let link = client.look_up(Inode::ROOT, b"l").unwrap();
    assert_eq!(client.read_link(link.inode), Ok(b"g".to_vec()));
    let mut names = Vec::new();
    client
        .list(Inode::ROOT, 0, &mut |entry| {
            names.push(String::from_utf8_lossy(entry.name).into_owned());
            true
        })
        .unwrap();
    names.sort();
    assert_eq!(names, ["d", "g", "l"]);
    assert_eq!(
        *changes.lock().unwrap(),
        ["entry d", "entry f", "inode", "inode", "entry f", "entry g", "entry l"]
    );
    assert_eq!(behind.read(handle, 0, &mut [0; 3]), Ok(3), "the handle is that of the file system behind");
    drop(client);
    let given_back = || behind.read(handle, 0, &mut [0; 3]) == Err(Errno::BADF);
    while !given_back() {
        std::thread::yield_now();
    }
    let folder = server.socket().parent().unwrap().to_owned();
    drop(server);
    assert!(!folder.exists());
}

#[test]
fn one_that_is_read_only_refuses_changes() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("f"), b"data").unwrap();
    let behind = Arc::new(DirectoryFileSystem::open(scratch.path()).unwrap());
    let server = LocalServer::begin(behind, &std::env::temp_dir(), true, |_| ()).unwrap();
    let client = LocalFileSystem::connect(server.socket(), 7).unwrap();
    let file = client.look_up(Inode::ROOT, b"f").unwrap().inode;
    assert_eq!(client.unlink(Inode::ROOT, b"f"), Err(Errno::ROFS));
    assert_eq!(client.open(file, BOTH), Err(Errno::ROFS));
    let handle = client.open(file, OpenFlags { write: false, ..BOTH }).unwrap();
    let mut data = [0; 9];
    assert_eq!(client.read(handle, 0, &mut data), Ok(4));
}
