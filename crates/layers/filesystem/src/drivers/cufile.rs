//! `cufile`: blocks of files go to and from memory of a GPU by GPUDirect Storage; each file is registered while it is open.

use std::cell::RefCell;
use std::ffi::CStr;
use std::os::fd::{AsFd as _, OwnedFd};

use driver::{Completions, Driver, Error, Opened, Registration, Submitted};
use gpu::{CuFile, RegisteredFile};
use layer::memory::DirectMemory;
use rustix::io::Errno;

use super::OpenRequest;
use super::posix::{self, Directory, Posix, open_roots};
use crate::calls::{Calls, Files, OpenMode};
use crate::operation::{FsClass, FsOperation};

/// The table line.
pub(super) const REGISTRATION: Registration<FsOperation, OpenRequest> = Registration {
    name: "cufile",
    summary: "GPUDirect Storage (libcufile), one request at a time: --memory gpu",
    capabilities: posix::CAPABILITIES,
    open,
};

fn open(request: &OpenRequest) -> Result<Opened<FsOperation>, Error> {
    // Names are not on a device.
    if !request.plan.operation.moves_data() {
        return (posix::REGISTRATION.open)(request);
    }
    let (memory, note) = DirectMemory::open(request.device.as_ref(), REGISTRATION.name)?;
    let calls = Registering { posix: Posix::default(), library: memory.library, cause: RefCell::default() };
    let files = Files::new(calls, &request.plan, &request.arena, open_roots(&request.plan)?);
    Ok(Opened { driver: Box::new(Direct { files, memory }), notes: vec![note] })
}

/// A file that libcufile knows. It is deregistered before it is closed.
struct File {
    registered: RegisteredFile,
    descriptor: OwnedFd,
}

/// System calls, with the registration of each file that is opened.
struct Registering {
    posix: Posix,
    library: &'static CuFile,
    /// Why the last file was not taken.
    cause: RefCell<Option<String>>,
}

/// Calls that are those of `posix`.
macro_rules! as_posix {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(
            fn $name(&self, $($argument: $kind),*) -> Result<$result, Errno> {
                self.posix.$name($($argument),*)
            }
        )*
    };
}

/// Calls on open files that are those of `posix`.
macro_rules! on_descriptor {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            fn $name(&self, file: &File, $($argument: $kind),*) -> Result<(), Errno> {
                self.posix.$name(&file.descriptor, $($argument),*)
            }
        )*
    };
}

impl Calls for Registering {
    type Directory = Directory;
    type File = File;

    fn open(&self, at: &Directory, name: &CStr, mode: OpenMode) -> Result<File, Errno> {
        let descriptor = self.posix.open(at, name, mode)?;
        match self.library.register_file(descriptor.as_fd()) {
            Ok(registered) => Ok(File { registered, descriptor }),
            Err(error) => {
                *self.cause.borrow_mut() = Some(error.to_string());
                Err(Errno::OPNOTSUPP)
            }
        }
    }

    fn close(&self, file: File) -> Result<(), Errno> {
        drop(file.registered);
        self.posix.close(file.descriptor)
    }

    /// Blocks go by [`Direct`]: memory of the host has no part in them.
    fn read(&self, _file: &File, _into: &mut [u8], _offset: u64) -> Result<usize, Errno> {
        Err(Errno::NOSYS)
    }

    fn write(&self, _file: &File, _data: &[u8], _offset: u64) -> Result<usize, Errno> {
        Err(Errno::NOSYS)
    }

    on_descriptor! {
        sync();
        allocate(bytes: u64);
        truncate(bytes: u64);
        lock(locks: bool);
        advise();
    }

    as_posix! {
        open_directory(at: &Directory, path: &CStr) -> Directory;
        sync_all(at: &Directory) -> ();
        make_node(at: &Directory, name: &CStr) -> ();
        stat(at: &Directory, name: &CStr) -> ();
        list(at: &Directory, path: &CStr) -> u64;
        make_directory(at: &Directory, name: &CStr) -> ();
        remove_directory(at: &Directory, name: &CStr) -> ();
        unlink(at: &Directory, name: &CStr) -> ();
        rename(at: &Directory, from: &CStr, to: &CStr) -> ();
        link(at: &Directory, from: &CStr, to: &CStr) -> ();
        symlink(at: &Directory, to_name: &CStr, name: &CStr) -> ();
        read_link(at: &Directory, name: &CStr) -> ();
        set_xattr(at: &Directory, path: &CStr) -> ();
        xattr(at: &Directory, path: &CStr) -> ();
        remove_xattr(at: &Directory, path: &CStr) -> ();
    }
}

/// The driver: files go before the buffers that they were read to.
struct Direct {
    files: Files<Registering>,
    memory: DirectMemory,
}

impl Direct {
    #[inline]
    fn transfer(&self, operation: &FsOperation) -> Result<i64, Errno> {
        let file = &self.files.file(operation)?.registered;
        let (slot, length, offset) =
            (operation.slot, operation.length_bytes as usize, operation.offset_bytes);
        let buffers = &self.memory.buffers;
        if slot >= buffers.slots() || length > buffers.slot_bytes() {
            return Err(Errno::INVAL);
        }
        self.memory.count(offset, length as u64);
        Ok(match operation.class {
            FsClass::Read => file.read(buffers, slot, length, offset),
            _ => file.write(buffers, slot, length, offset),
        })
    }
}

impl Driver<FsOperation> for Direct {
    #[inline]
    fn submit(&mut self, batch: &[FsOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(operation) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        if !matches!(operation.class, FsClass::Read | FsClass::Write) {
            return self.files.submit(batch, done);
        }
        let result = self.transfer(operation).unwrap_or_else(|errno| -i64::from(errno.raw_os_error()));
        done.push(operation.slot, result);
        Ok(Submitted { accepted: 1 })
    }

    fn cause(&self, slot: u32, result: i64) -> Option<String> {
        self.files.cause(slot, result).or_else(|| self.files.calls().cause.borrow_mut().take())
    }
}
