//! The side of the process that has the file system open.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use driver::Error;

use super::left::{self, FOLDER};
use super::wire::{Entries, Names, Wire};
use super::{Call, DATA_BYTES_MAX, LIST_ENTRIES, MESSAGE_BYTES_MAX, VERSION};
use crate::{
    Attributes, Errno, FileSystem, Handle, Inode, NewNode, OpenFlags, Owner, RenameFlags, SetAttributes,
};

/// Name of the socket in its folder.
pub(super) const SOCKET: &str = "socket";

/// Change that a client has made, and of which the kernel may have kept what was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// An entry of a directory came, went or leads elsewhere.
    Entry(Inode, &'a [u8]),
    /// Data or attributes of a file.
    Inode(Inode),
}

type Observer = Box<dyn Fn(Change<'_>) + Send + Sync>;

/// Things that a client holds: they are given back when its last connection is closed.
#[derive(Default)]
struct Held {
    connections: usize,
    references: HashMap<u64, u64>,
    /// Open files: their inode, and whether they were written to since the last flush.
    files: HashMap<u64, (Inode, bool)>,
}

struct Service {
    file_system: Arc<dyn FileSystem>,
    read_only: bool,
    observer: Observer,
    clients: Mutex<HashMap<u64, Held>>,
    is_ending: AtomicBool,
}

/// Serves a file system to processes of the same user; ends, and removes its socket, when dropped.
pub struct LocalServer {
    service: Arc<Service>,
    folder: PathBuf,
    socket: PathBuf,
    listener: Option<JoinHandle<()>>,
}

impl LocalServer {
    /// Serves from now on, at a socket in a new folder below `directory` that its owner alone may enter. `observer` is told of changes after they were
    /// made and before the client knows of them.
    ///
    /// # Errors
    /// When there can be no socket.
    pub fn begin(
        file_system: Arc<dyn FileSystem>,
        directory: &Path,
        read_only: bool,
        observer: impl Fn(Change<'_>) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let failed = |error| {
            Error::system("serve", "cannot serve programs on this machine", error)
                .with("directory", directory.display())
        };
        left::remove(directory);
        let folder = new_folder(directory).map_err(failed)?;
        let socket = folder.join(SOCKET);
        let listener = UnixListener::bind(&socket).map_err(failed)?;
        let service = Arc::new(Service {
            file_system,
            read_only,
            observer: Box::new(observer),
            clients: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let listener = std::thread::Builder::new().name("local".to_owned()).spawn({
            let service = Arc::clone(&service);
            move || accept(&service, &listener)
        });
        Ok(Self { service, folder, socket, listener: Some(listener.map_err(failed)?) })
    }

    /// Path of the socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.service.is_ending.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let woken = UnixStream::connect(&self.socket).is_ok();
        if let Some(listener) = self.listener.take().filter(|_| woken) {
            let _ = listener.join();
        }
        // Both are this process's own; where they are gone already there is nothing to do.
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// A folder of a name that is free, for the owner alone.
fn new_folder(directory: &Path) -> io::Result<PathBuf> {
    let process = std::process::id();
    for number in 0..u32::MAX {
        let folder = directory.join(format!("{FOLDER}{process}-{number}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn accept(service: &Arc<Service>, listener: &UnixListener) {
    for stream in listener.incoming() {
        if service.is_ending.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let own = rustix::process::geteuid();
        let peer = rustix::net::sockopt::socket_peercred(&stream);
        if !peer.is_ok_and(|peer| peer.uid == own || peer.uid.is_root()) {
            continue;
        }
        let service = Arc::clone(service);
        // Without a thread the connection is closed, and the client sees it.
        let _ = std::thread::Builder::new().name("local-client".to_owned()).spawn(move || {
            let _ = Connection { service, stream, client: 0, request: Vec::new() }.serve();
        });
    }
}

/// One connection of a client.
struct Connection {
    service: Arc<Service>,
    stream: UnixStream,
    client: u64,
    request: Vec<u8>,
}

/// Answer to a call: an errno, or what stands behind it.
type Answer = Result<Vec<u8>, Errno>;

fn answer<T: Wire>(value: T) -> Answer {
    let mut bytes = Vec::new();
    value.put(&mut bytes);
    Ok(bytes)
}

/// Arguments of a call.
fn arguments<T: Wire>(from: &mut &[u8]) -> Result<T, Errno> {
    T::take(from).ok_or(Errno::PROTO)
}

impl Connection {
    /// Answers requests until the client closes the connection.
    fn serve(mut self) -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            self.stream.read_exact(&mut length)?;
            let length = u32::from_le_bytes(length) as usize;
            if length == 0 || length > MESSAGE_BYTES_MAX {
                return Ok(());
            }
            let mut request = std::mem::take(&mut self.request);
            request.resize(length, 0);
            self.stream.read_exact(&mut request)?;
            let result = self.handle(&request);
            self.request = request;
            let (errno, value) = match result {
                Ok(value) => (0, value),
                Err(error) => (error.raw_os_error(), Vec::new()),
            };
            let mut message = Vec::with_capacity(8 + value.len());
            (4 + value.len() as u32, errno).put(&mut message);
            message.extend_from_slice(&value);
            self.stream.write_all(&message)?;
        }
    }

    fn handle(&mut self, request: &[u8]) -> Answer {
        let (number, mut rest) = request.split_first().ok_or(Errno::PROTO)?;
        let call = Call::of(*number).ok_or(Errno::PROTO)?;
        if call == Call::Hello {
            let (version, client): (u32, u64) = arguments(&mut rest)?;
            if version != VERSION || client == 0 || self.client != 0 {
                return Err(Errno::PROTO);
            }
            self.client = client;
            self.held().entry(client).or_default().connections += 1;
            return answer(());
        }
        if self.client == 0 {
            return Err(Errno::PROTO);
        }
        match call {
            Call::Create
            | Call::Open
            | Call::Read
            | Call::Write
            | Call::Flush
            | Call::Sync
            | Call::Allocate => self.data(call, rest),
            Call::Seek | Call::Release => self.data(call, rest),
            Call::StatFs | Call::LookUp | Call::Forget | Call::Attributes | Call::Stat | Call::ReadLink => {
                self.question(call, rest)
            }
            Call::List | Call::Xattr | Call::ListXattrs | Call::Changed => self.question(call, rest),
            _ if self.service.read_only => Err(Errno::ROFS),
            _ => self.change(call, rest),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<u64, Held>> {
        self.service.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_held<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        change(self.held().entry(self.client).or_default())
    }

    /// Notes the reference that a call gave.
    fn referenced(&self, attributes: Attributes) -> Attributes {
        self.with_held(|held| *held.references.entry(attributes.inode.0).or_default() += 1);
        attributes
    }

    fn tell(&self, change: Change<'_>) {
        (self.service.observer)(change);
    }

    /// Calls that change nothing.
    fn question(&self, call: Call, mut rest: &[u8]) -> Answer {
        let (file_system, rest) = (&self.service.file_system, &mut rest);
        match call {
            Call::StatFs => answer(file_system.stat_fs()?),
            Call::LookUp => {
                let (parent, name): (Inode, Vec<u8>) = arguments(rest)?;
                answer(self.referenced(file_system.look_up(parent, &name)?))
            }
            Call::Forget => {
                let (inode, references): (Inode, u64) = arguments(rest)?;
                let given = self.with_held(|held| {
                    let own = held.references.entry(inode.0).or_default();
                    let given = references.min(*own);
                    *own -= given;
                    if *own == 0 {
                        held.references.remove(&inode.0);
                    }
                    given
                });
                file_system.forget(inode, given);
                answer(())
            }
            Call::Attributes => answer(file_system.attributes(arguments(rest)?)?),
            Call::Stat => {
                let (parent, name): (Inode, Vec<u8>) = arguments(rest)?;
                answer(file_system.stat(parent, &name)?)
            }
            Call::ReadLink => answer(file_system.read_link(arguments(rest)?)?),
            Call::List => {
                let (inode, after): (Inode, u64) = arguments(rest)?;
                let mut entries = Vec::new();
                file_system.list(inode, after, &mut |entry| {
                    entries.push((entry.inode, entry.kind, entry.name.to_vec(), entry.next));
                    entries.len() < LIST_ENTRIES
                })?;
                answer(Entries(entries))
            }
            Call::Xattr => {
                let (inode, name): (Inode, Vec<u8>) = arguments(rest)?;
                answer(file_system.xattr(inode, &name)?)
            }
            Call::ListXattrs => answer(Names(file_system.list_xattrs(arguments(rest)?)?)),
            Call::Changed => {
                self.tell(Change::Inode(arguments(rest)?));
                answer(())
            }
            _ => Err(Errno::PROTO),
        }
    }

    /// Calls about open files.
    fn data(&self, call: Call, mut rest: &[u8]) -> Answer {
        let (file_system, rest) = (&self.service.file_system, &mut rest);
        match call {
            Call::Create => {
                type Made = (Inode, Vec<u8>, u16, Owner, OpenFlags);
                let (parent, name, permissions, owner, flags): Made = arguments(rest)?;
                if self.service.read_only {
                    return Err(Errno::ROFS);
                }
                let (found, handle) = file_system.create(parent, &name, permissions, owner, flags)?;
                self.opened(handle, found.inode);
                self.tell(Change::Entry(parent, &name));
                answer((self.referenced(found), handle))
            }
            Call::Open => {
                let (inode, flags): (Inode, OpenFlags) = arguments(rest)?;
                if self.service.read_only && (flags.write || flags.truncate) {
                    return Err(Errno::ROFS);
                }
                let handle = file_system.open(inode, flags)?;
                self.opened(handle, inode);
                if flags.truncate {
                    self.tell(Change::Inode(inode));
                }
                answer(handle)
            }
            _ => {
                let handle: Handle = arguments(rest)?;
                let inode = self.with_held(|held| held.files.get(&handle.0).map(|file| file.0));
                self.on_file(call, handle, inode.ok_or(Errno::BADF)?, rest)
            }
        }
    }

    fn opened(&self, handle: Handle, inode: Inode) {
        self.with_held(|held| held.files.insert(handle.0, (inode, false)));
    }

    /// Calls on an open file of the client.
    fn on_file(&self, call: Call, handle: Handle, inode: Inode, rest: &mut &[u8]) -> Answer {
        let file_system = &self.service.file_system;
        match call {
            Call::Read => {
                let (offset_bytes, wanted): (u64, u32) = arguments(rest)?;
                let mut data = vec![0; (wanted as usize).min(DATA_BYTES_MAX)];
                let count = file_system.read(handle, offset_bytes, &mut data)?;
                data.truncate(count);
                Ok(data)
            }
            Call::Write => {
                let offset_bytes: u64 = arguments(rest)?;
                let count = file_system.write(handle, offset_bytes, rest)?;
                self.with_held(|held| held.files.insert(handle.0, (inode, true)));
                answer(count as u32)
            }
            Call::Flush => {
                file_system.flush(handle)?;
                let written = self.with_held(|held| held.files.insert(handle.0, (inode, false)));
                if written.is_some_and(|(_, is_written)| is_written) {
                    self.tell(Change::Inode(inode));
                }
                answer(())
            }
            Call::Sync => answer(file_system.sync(handle, arguments(rest)?)?),
            Call::Allocate => {
                let (offset_bytes, bytes, hole, keep_size) = arguments(rest)?;
                file_system.allocate(handle, offset_bytes, bytes, hole, keep_size)?;
                self.tell(Change::Inode(inode));
                answer(())
            }
            Call::Seek => {
                let (offset_bytes, hole) = arguments(rest)?;
                answer(file_system.seek(handle, offset_bytes, hole)?)
            }
            Call::Release => {
                self.with_held(|held| held.files.remove(&handle.0));
                answer(file_system.release(handle)?)
            }
            _ => Err(Errno::PROTO),
        }
    }

    /// Calls that change entries and attributes.
    fn change(&self, call: Call, mut rest: &[u8]) -> Answer {
        let (file_system, rest) = (&self.service.file_system, &mut rest);
        let made = |parent: Inode, name: &[u8], made: Attributes| {
            self.tell(Change::Entry(parent, name));
            answer(self.referenced(made))
        };
        match call {
            Call::SetAttributes => {
                let (inode, to): (Inode, SetAttributes) = arguments(rest)?;
                let found = file_system.set_attributes(inode, &to)?;
                self.tell(Change::Inode(inode));
                answer(found)
            }
            Call::MakeDirectory => {
                let (parent, name, permissions, owner): (Inode, Vec<u8>, u16, Owner) = arguments(rest)?;
                made(parent, &name, file_system.make_directory(parent, &name, permissions, owner)?)
            }
            Call::MakeNode => {
                let (parent, name, node): (Inode, Vec<u8>, NewNode) = arguments(rest)?;
                made(parent, &name, file_system.make_node(parent, &name, &node)?)
            }
            Call::MakeSymlink => {
                let (parent, name, target, owner): (Inode, Vec<u8>, Vec<u8>, Owner) = arguments(rest)?;
                made(parent, &name, file_system.make_symlink(parent, &name, &target, owner)?)
            }
            Call::Link => {
                let (inode, parent, name): (Inode, Inode, Vec<u8>) = arguments(rest)?;
                let found = file_system.link(inode, parent, &name)?;
                self.tell(Change::Inode(inode));
                made(parent, &name, found)
            }
            Call::Unlink | Call::RemoveDirectory => {
                let (parent, name): (Inode, Vec<u8>) = arguments(rest)?;
                if call == Call::Unlink {
                    file_system.unlink(parent, &name)?;
                } else {
                    file_system.remove_directory(parent, &name)?;
                }
                self.tell(Change::Entry(parent, &name));
                answer(())
            }
            Call::Rename => {
                type Names = (Inode, Vec<u8>, Inode, Vec<u8>, RenameFlags);
                let (parent, name, new_parent, new_name, flags): Names = arguments(rest)?;
                file_system.rename(parent, &name, new_parent, &new_name, flags)?;
                self.tell(Change::Entry(parent, &name));
                self.tell(Change::Entry(new_parent, &new_name));
                answer(())
            }
            Call::SetXattr => {
                let (inode, name, value, create, replace): (Inode, Vec<u8>, Vec<u8>, bool, bool) =
                    arguments(rest)?;
                file_system.set_xattr(inode, &name, &value, create, replace)?;
                answer(())
            }
            Call::RemoveXattr => {
                let (inode, name): (Inode, Vec<u8>) = arguments(rest)?;
                answer(file_system.remove_xattr(inode, &name)?)
            }
            _ => Err(Errno::PROTO),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.client == 0 {
            return;
        }
        let mut clients = self.held();
        let Some(held) = clients.get_mut(&self.client) else { return };
        held.connections -= 1;
        if held.connections > 0 {
            return;
        }
        let Some(held) = clients.remove(&self.client) else { return };
        drop(clients);
        for (handle, (inode, is_written)) in held.files {
            // The program has ended without closing them; nobody is left to tell an error to.
            let _ = self.service.file_system.flush(Handle(handle));
            let _ = self.service.file_system.release(Handle(handle));
            if is_written {
                self.tell(Change::Inode(inode));
            }
        }
        held.references
            .iter()
            .for_each(|(inode, count)| self.service.file_system.forget(Inode(*inode), *count));
    }
}
