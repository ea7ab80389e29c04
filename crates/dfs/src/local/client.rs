//! The side of the program that uses the file system of another process.

use std::io::{self, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use driver::Error;

use super::wire::{Entries, Names, Wire};
use super::{Call, DATA_BYTES_MAX, MESSAGE_BYTES_MAX, VERSION};
use crate::{
    Attributes, DirectoryEntry, Errno, FileSystem, Handle, Inode, NewNode, OpenFlags, Owner, RenameFlags,
    SetAttributes, StatFs,
};

/// A file system that another process of this machine serves.
///
/// Open files and references that it holds there are given back when all its connections are closed.
pub struct LocalFileSystem {
    socket: PathBuf,
    /// Number by which the server knows that connections are of one client.
    client: u64,
    idle: Mutex<Vec<UnixStream>>,
}

fn errno_of(error: &io::Error) -> Errno {
    // Else the process that served it has ended.
    if error.kind() == io::ErrorKind::Interrupted { Errno::INTR } else { Errno::IO }
}

impl LocalFileSystem {
    /// Connects to the process that serves at this socket; `client` is a number that no other client has.
    ///
    /// # Errors
    /// When nobody serves there, or a process of another version.
    pub fn connect(socket: &Path, client: u64) -> Result<Self, Error> {
        let new = Self { socket: socket.to_owned(), client, idle: Mutex::default() };
        let stream = new.connection().map_err(|error| {
            Error::system("connect", "the mount process does not answer", error)
                .with("socket", socket.display())
        })?;
        new.put_back(stream);
        Ok(new)
    }

    /// Tells that data of a file were changed by another way: the kernel forgets what it keeps of them.
    ///
    /// # Errors
    /// When the process that serves has ended.
    pub fn note_changed(&self, inode: Inode) -> Result<(), Errno> {
        self.call(Call::Changed, &inode)
    }

    fn connection(&self) -> io::Result<UnixStream> {
        let mut stream = UnixStream::connect(&self.socket)?;
        let mut request = vec![Call::Hello as u8];
        (VERSION, self.client).put(&mut request);
        send(&mut stream, &request, &[])?;
        let (errno, length) = head(&mut stream)?;
        match errno {
            0 if length == 0 => Ok(stream),
            _ => Err(io::Error::other("the mount has a different version")),
        }
    }

    fn taken(&self) -> Result<UnixStream, Errno> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.connection().map_err(|error| errno_of(&error)), Ok)
    }

    fn put_back(&self, stream: UnixStream) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// Carries one call out; `answer` reads what stands behind the head.
    fn exchange<T>(
        &self,
        request: &[u8],
        data: &[u8],
        answer: impl FnOnce(&mut UnixStream, usize) -> io::Result<Option<T>>,
    ) -> Result<T, Errno> {
        let mut stream = self.taken()?;
        let failed = |error: io::Error| errno_of(&error);
        send(&mut stream, request, data).map_err(failed)?;
        let (errno, length) = head(&mut stream).map_err(failed)?;
        if errno != 0 {
            self.put_back(stream);
            return Err(Errno::from_raw_os_error(errno));
        }
        let value = answer(&mut stream, length).map_err(failed)?;
        self.put_back(stream);
        value.ok_or(Errno::PROTO)
    }

    fn call<T: Wire>(&self, call: Call, arguments: &impl Wire) -> Result<T, Errno> {
        let mut request = vec![call as u8];
        arguments.put(&mut request);
        self.exchange(&request, &[], |stream, length| {
            let mut bytes = vec![0; length];
            stream.read_exact(&mut bytes)?;
            Ok(T::take(&mut bytes.as_slice()))
        })
    }
}

/// Sends a request: its length, its head, and data.
fn send(stream: &mut UnixStream, request: &[u8], data: &[u8]) -> io::Result<()> {
    let length = ((request.len() + data.len()) as u32).to_le_bytes();
    let parts = &mut [IoSlice::new(&length), IoSlice::new(request), IoSlice::new(data)];
    let mut parts = &mut parts[..];
    while parts.iter().any(|part| !part.is_empty()) {
        match stream.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut parts, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the head of an answer: its errno, and the bytes behind it.
fn head(stream: &mut UnixStream) -> io::Result<(i32, usize)> {
    let mut head = [0; 8];
    stream.read_exact(&mut head)?;
    let (length, errno) = head.split_at(4);
    let length = u32::take(&mut &*length).unwrap_or(0) as usize;
    let errno = i32::take(&mut &*errno).unwrap_or(0);
    let rest = length.checked_sub(4).filter(|rest| *rest <= MESSAGE_BYTES_MAX);
    rest.map(|rest| (errno, rest)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

impl FileSystem for LocalFileSystem {
    fn stat_fs(&self) -> Result<StatFs, Errno> {
        self.call(Call::StatFs, &())
    }

    fn look_up(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        self.call(Call::LookUp, &(parent, name.to_vec()))
    }

    fn forget(&self, inode: Inode, references: u64) {
        // A server that has gone holds no references.
        let _ = self.call::<()>(Call::Forget, &(inode, references));
    }

    fn attributes(&self, inode: Inode) -> Result<Attributes, Errno> {
        self.call(Call::Attributes, &inode)
    }

    fn stat(&self, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        self.call(Call::Stat, &(parent, name.to_vec()))
    }

    fn set_attributes(&self, inode: Inode, to: &SetAttributes) -> Result<Attributes, Errno> {
        self.call(Call::SetAttributes, &(inode, *to))
    }

    fn make_directory(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        self.call(Call::MakeDirectory, &(parent, name.to_vec(), permissions, owner))
    }

    fn make_node(&self, parent: Inode, name: &[u8], node: &NewNode) -> Result<Attributes, Errno> {
        self.call(Call::MakeNode, &(parent, name.to_vec(), *node))
    }

    fn make_symlink(
        &self,
        parent: Inode,
        name: &[u8],
        target: &[u8],
        owner: Owner,
    ) -> Result<Attributes, Errno> {
        self.call(Call::MakeSymlink, &(parent, name.to_vec(), target.to_vec(), owner))
    }

    fn link(&self, inode: Inode, parent: Inode, name: &[u8]) -> Result<Attributes, Errno> {
        self.call(Call::Link, &(inode, parent, name.to_vec()))
    }

    fn read_link(&self, inode: Inode) -> Result<Vec<u8>, Errno> {
        self.call(Call::ReadLink, &inode)
    }

    fn create(
        &self,
        parent: Inode,
        name: &[u8],
        permissions: u16,
        owner: Owner,
        flags: OpenFlags,
    ) -> Result<(Attributes, Handle), Errno> {
        self.call(Call::Create, &(parent, name.to_vec(), permissions, owner, flags))
    }

    fn open(&self, inode: Inode, flags: OpenFlags) -> Result<Handle, Errno> {
        self.call(Call::Open, &(inode, flags))
    }

    fn read(&self, handle: Handle, offset_bytes: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < into.len() {
            let part = &mut into[done..];
            let wanted = part.len().min(DATA_BYTES_MAX);
            let mut request = vec![Call::Read as u8];
            (handle, offset_bytes + done as u64, wanted as u32).put(&mut request);
            let count = self.exchange(&request, &[], |stream, length| {
                let Some(part) = part.get_mut(..length) else { return Ok(None) };
                stream.read_exact(part)?;
                Ok(Some(length))
            })?;
            done += count;
            if count < wanted {
                break;
            }
        }
        Ok(done)
    }

    fn write(&self, handle: Handle, offset_bytes: u64, data: &[u8]) -> Result<usize, Errno> {
        let mut done = 0;
        for part in data.chunks(DATA_BYTES_MAX) {
            let mut request = vec![Call::Write as u8];
            (handle, offset_bytes + done as u64).put(&mut request);
            let count: u32 = self.exchange(&request, part, |stream, length| {
                let mut bytes = vec![0; length];
                stream.read_exact(&mut bytes)?;
                Ok(u32::take(&mut bytes.as_slice()))
            })?;
            done += count as usize;
            if (count as usize) < part.len() {
                break;
            }
        }
        Ok(done)
    }

    fn flush(&self, handle: Handle) -> Result<(), Errno> {
        self.call(Call::Flush, &handle)
    }

    fn sync(&self, handle: Handle, data_only: bool) -> Result<(), Errno> {
        self.call(Call::Sync, &(handle, data_only))
    }

    fn allocate(
        &self,
        handle: Handle,
        offset_bytes: u64,
        bytes: u64,
        hole: bool,
        keep_size: bool,
    ) -> Result<(), Errno> {
        self.call(Call::Allocate, &(handle, offset_bytes, bytes, hole, keep_size))
    }

    fn seek(&self, handle: Handle, offset_bytes: u64, hole: bool) -> Result<u64, Errno> {
        self.call(Call::Seek, &(handle, offset_bytes, hole))
    }

    fn release(&self, handle: Handle) -> Result<(), Errno> {
        self.call(Call::Release, &handle)
    }

    fn unlink(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        self.call(Call::Unlink, &(parent, name.to_vec()))
    }

    fn remove_directory(&self, parent: Inode, name: &[u8]) -> Result<(), Errno> {
        self.call(Call::RemoveDirectory, &(parent, name.to_vec()))
    }

    fn rename(
        &self,
        parent: Inode,
        name: &[u8],
        new_parent: Inode,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.call(Call::Rename, &(parent, name.to_vec(), new_parent, new_name.to_vec(), flags))
    }

    fn list(
        &self,
        inode: Inode,
        after: u64,
        entry: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        let mut after = after;
        loop {
            let Entries(entries) = self.call(Call::List, &(inode, after))?;
            let Some((.., last)) = entries.last() else { return Ok(()) };
            after = *last;
            for (inode, kind, name, next) in &entries {
                if !entry(DirectoryEntry { inode: *inode, kind: *kind, name, next: *next }) {
                    return Ok(());
                }
            }
        }
    }

    fn xattr(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, Errno> {
        self.call(Call::Xattr, &(inode, name.to_vec()))
    }

    fn set_xattr(
        &self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        create: bool,
        replace: bool,
    ) -> Result<(), Errno> {
        self.call(Call::SetXattr, &(inode, name.to_vec(), value.to_vec(), create, replace))
    }

    fn list_xattrs(&self, inode: Inode) -> Result<Vec<Vec<u8>>, Errno> {
        self.call::<Names>(Call::ListXattrs, &inode).map(|names| names.0)
    }

    fn remove_xattr(&self, inode: Inode, name: &[u8]) -> Result<(), Errno> {
        self.call(Call::RemoveXattr, &(inode, name.to_vec()))
    }
}
