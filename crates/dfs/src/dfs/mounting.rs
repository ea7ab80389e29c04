//! Making and opening a file system in a container.

use std::time::Duration;

use driver::{Error, ErrorKind};
use parking_lot::Mutex;
use rustix::io::Errno;
use vos::{Action, Condition, Step};

use super::listing::GROUPS_MAX;
use super::names::live;
use super::{APPENDING, Dfs, now, of_entry};
use crate::layout::{
    INODE_AKEY, LAYOUT_VERSION, RESERVED_IDS, ROOT_DKEY, SUPERBLOCK, SUPERBLOCK_DKEY, Superblock, Unreadable,
    id_bytes, is_chunk, is_flat,
};
use crate::record::Record;
use crate::store::Store;
use crate::table::Table;
use crate::{FileKind, Format, Owner};

/// How often a container that holds objects and no superblock is looked at again, and the pause before each.
const LOOKS: u32 = 25;
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The failure of a store.
fn failed(message: &'static str, errno: Errno) -> Error {
    Error::system("dfs", message, errno)
}

/// Content of a container.
enum Holding {
    Nothing,
    Others,
    FileSystem(Superblock),
}

/// Refuses what no file system can be made with.
///
/// # Errors
/// Bad usage.
pub(crate) fn check_format(format: &Format) -> Result<(), Error> {
    for class in [format.directory_class, format.file_class] {
        if !is_flat(&class) {
            let what = format!(
                "files and directories do not support object class {class}, which has replicas or parity"
            );
            return Err(Error::usage("dfs", what).remedy("use S1 to S65534 or SX"));
        }
    }
    if !is_chunk(format.chunk_bytes) {
        return Err(Error::usage("dfs", format!("files cannot have chunks of {} bytes", format.chunk_bytes))
            .remedy("use a power of two from 4 KiB to 1 GiB"));
    }
    Ok(())
}

fn look(store: &dyn Store) -> Result<Holding, Error> {
    let mut value = [0; 64];
    match store.fetch(SUPERBLOCK, SUPERBLOCK_DKEY, INODE_AKEY, &mut value) {
        Ok((length, _)) => match Superblock::decode(&value[..length]) {
            Ok(superblock) => Ok(Holding::FileSystem(superblock)),
            Err(Unreadable::Version(version)) => {
                let what = "the container holds a file system of a different version";
                Err(Error::new(ErrorKind::Unsupported, "dfs", what)
                    .with("version", version)
                    .with("supported", LAYOUT_VERSION)
                    .remedy("use the strata version that created it, or another container"))
            }
            Err(Unreadable::Malformed) => Ok(Holding::Others),
        },
        Err(Errno::NOENT) => match store.has_objects() {
            Ok(has_any) => Ok(if has_any { Holding::Others } else { Holding::Nothing }),
            Err(errno) => Err(failed("cannot list the container", errno)),
        },
        Err(errno) => Err(failed("cannot read the superblock", errno)),
    }
}

/// Content of a container in which another client may be making a file system just now: what looks like objects of others is looked at again.
fn look_again(store: &dyn Store) -> Result<Holding, Error> {
    for _ in 0..LOOKS {
        match look(store)? {
            Holding::Others => std::thread::sleep(LOOK_PAUSE),
            holding => return Ok(holding),
        }
    }
    look(store)
}

/// Makes a file system in an empty container. `EEXIST`: another client has just made one.
fn make(store: &dyn Store, format: &Format) -> Result<(), Errno> {
    let Format { directory_class, file_class, chunk_bytes, owner, permissions } = *format;
    let superblock = Superblock { directory_class, file_class, chunk_bytes };
    // The first ids are those of the layout.
    store.allocate_ids(RESERVED_IDS)?;
    let (now, root) = (now(), superblock.root());
    let record = Record {
        object: root,
        kind: FileKind::Directory,
        permissions: permissions & 0o7777,
        owner,
        device: 0,
        accessed: now,
        modified: now,
        changed: now,
        target_bytes: 0,
    };
    let (value, inode, parent) = (superblock.encode(), record.encode(), id_bytes(root));
    let (object, akey, action) = (SUPERBLOCK, INODE_AKEY, Action::Update(&value));
    store.apply(&[
        live(root, Condition::Any, &parent),
        of_entry(SUPERBLOCK, ROOT_DKEY, Condition::Absent, Action::Update(&inode)),
        Step { object, dkey: SUPERBLOCK_DKEY, akey, condition: Condition::Absent, action },
    ])
}

impl Dfs {
    /// Opens the file system of a container, or makes it where `create` says how. `is_alone`: no other client can have it open.
    ///
    /// # Errors
    /// There is none, or others' data; what the store says.
    pub(crate) fn open(
        store: Box<dyn Store>,
        create: Option<&Format>,
        is_alone: bool,
    ) -> Result<Self, Error> {
        let others = || {
            Error::new(ErrorKind::Unsafe, "dfs", "the container holds no file system, but other objects")
                .remedy("name another container")
        };
        let superblock = match (look_again(&*store)?, create) {
            (Holding::FileSystem(superblock), _) => superblock,
            (Holding::Others, _) => return Err(others()),
            (Holding::Nothing, None) => {
                return Err(Error::usage("dfs", "the container is empty and holds no file system")
                    .remedy("create one there, or name a container that holds one"));
            }
            (Holding::Nothing, Some(format)) => {
                check_format(format)?;
                match make(&*store, format) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(failed("cannot create the file system", errno)),
                }
                match look_again(&*store)? {
                    Holding::FileSystem(superblock) => superblock,
                    _ => return Err(others()),
                }
            }
        };
        Self::mount(store, superblock, is_alone)
    }

    fn mount(store: Box<dyn Store>, superblock: Superblock, is_alone: bool) -> Result<Self, Error> {
        let groups = store.groups(superblock.root()).map_err(|_| {
            let class = superblock.directory_class;
            Error::usage(
                "dfs",
                format!("directories of class {class} require more targets than the pool has"),
            )
        })?;
        if groups > GROUPS_MAX {
            return Err(Error::usage(
                "dfs",
                format!("directories over {groups} targets do not support listing"),
            )
            .remedy(format!("create it with a directory class of at most {GROUPS_MAX} groups")));
        }
        let unreadable = |errno| failed("cannot read the root directory", errno);
        let client = store.allocate_ids(1).map_err(|errno| failed("cannot allocate object ids", errno))?;
        let placeholder = Record {
            object: superblock.root(),
            kind: FileKind::Directory,
            permissions: 0,
            owner: Owner::default(),
            device: 0,
            accessed: now(),
            modified: now(),
            changed: now(),
            target_bytes: 0,
        };
        let dfs = Self {
            store,
            superblock,
            table: Table::new(&placeholder),
            ids: Mutex::new(0..0),
            moving: Mutex::default(),
            appending: (0..APPENDING).map(|_| Mutex::default()).collect(),
            client,
            intents: Mutex::default(),
            damaged: Mutex::new(driver::Findings::new()),
        };
        let root = dfs.entry(SUPERBLOCK, ROOT_DKEY).map_err(unreadable)?;
        dfs.table.refer(SUPERBLOCK, ROOT_DKEY, &root.record);
        let unfinished = |errno| failed("cannot finish renames that a failure interrupted", errno);
        dfs.finish_intents(is_alone).map_err(unfinished)?;
        Ok(dfs)
    }
}
