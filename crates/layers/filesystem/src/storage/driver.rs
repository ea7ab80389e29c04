//! Driver of the sets of one worker over files: one call at a time, whoever makes the calls.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::sync::Arc;

use driver::{Arena, Completions, Driver, Error, Submitted};
use layer::storage::{StorageCall, StorageOperation, StorageSet};
use rustix::io::Errno;

use crate::calls::{Calls, OpenMode, write_or_tell};

/// Name of an object that has not got its own yet ends so.
pub(super) const ASIDE: &[u8] = b".tmp";
/// Digits of a number, the ending, and a NUL.
const NAME_BYTES: usize = 20 + ASIDE.len() + 1;

/// A number as the name of a file.
struct Name([u8; NAME_BYTES]);

impl Name {
    #[inline]
    fn new(number: u64, ending: &[u8]) -> Self {
        let mut digits = [0; 20];
        let (mut at, mut rest) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let mut name = [0; NAME_BYTES];
        let count = digits.len() - at;
        name[..count].copy_from_slice(&digits[at..]);
        name[count..count + ending.len()].copy_from_slice(ending);
        Self(name)
    }

    #[inline]
    fn as_c_str(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.0).map_err(|_| Errno::NAMETOOLONG)
    }
}

/// A set: its directory, those of its indexes as far as they were opened, and the object that is open.
struct Set<C: Calls> {
    directory: C::Directory,
    indexes: Vec<Option<C::Directory>>,
    open: Option<C::File>,
    is_renamed: bool,
    data_sync: bool,
}

/// The driver.
pub(super) struct FilesDriver<C: Calls> {
    calls: C,
    sets: Vec<Set<C>>,
    arena: Arc<Arena>,
    direct: bool,
}

impl<C: Calls> FilesDriver<C> {
    /// A driver of the sets below `top`.
    ///
    /// # Errors
    /// A directory of a set that cannot be opened.
    pub(super) fn new(
        calls: C,
        top: &C::Directory,
        sets: &[StorageSet],
        arena: &Arc<Arena>,
        direct: bool,
    ) -> Result<Self, Error> {
        let open = |set: &StorageSet| {
            let name = std::ffi::CString::new(set.name.as_str())
                .map_err(|_| Error::usage("files", "the name of a set contains a NUL byte"))?;
            let directory = calls.open_directory(top, &name).map_err(|errno| {
                Error::system("files", "cannot open the directory of a set", errno).with("set", &set.name)
            })?;
            let indexes = if set.is_index { (0..set.objects).map(|_| None).collect() } else { Vec::new() };
            Ok(Set { directory, indexes, open: None, is_renamed: set.is_renamed, data_sync: set.data_sync })
        };
        let sets = sets.iter().map(open).collect::<Result<_, Error>>()?;
        Ok(Self { calls, sets, arena: Arc::clone(arena), direct })
    }

    #[inline]
    fn carry_out(&mut self, call: &StorageOperation) -> Result<u64, Errno> {
        use StorageCall as Call;
        let calls = &self.calls;
        let set = &mut self.sets[usize::from(call.set)];
        match call.call {
            Call::Create | Call::Open => {
                let creates = call.call == Call::Create;
                let ending = if creates && set.is_renamed { ASIDE } else { b"" };
                let name = Name::new(call.object, ending);
                let mode = OpenMode {
                    write: true,
                    create: creates,
                    exclusive: false,
                    truncate: false,
                    direct: self.direct,
                };
                let file = calls.open(&set.directory, name.as_c_str()?, mode)?;
                set.open.replace(file).map_or(Ok(()), |before| calls.close(before)).map(|()| 0)
            }
            Call::Write | Call::Read => {
                let file = set.open.as_ref().ok_or(Errno::BADF)?;
                // SAFETY: the slot is the driver's from submit to completion, which is this call.
                let buffer = unsafe { self.arena.slot_mut(call.slot, call.length_bytes as usize) };
                let moved = match call.call {
                    Call::Write => write_or_tell(calls, file, buffer, call.offset_bytes)?,
                    _ => calls.read(file, buffer, call.offset_bytes)?,
                };
                Ok(moved as u64)
            }
            Call::Sync if set.data_sync => calls.sync_data(set.open.as_ref().ok_or(Errno::BADF)?).map(|()| 0),
            Call::Sync => calls.sync(set.open.as_ref().ok_or(Errno::BADF)?).map(|()| 0),
            Call::Close => calls.close(set.open.take().ok_or(Errno::BADF)?).map(|()| 0),
            Call::Stat => calls.stat(&set.directory, Name::new(call.object, b"").as_c_str()?).map(|()| 0),
            Call::Rename => {
                let (aside, own) = (Name::new(call.object, ASIDE), Name::new(call.object, b""));
                calls.rename(&set.directory, aside.as_c_str()?, own.as_c_str()?).map(|()| 0)
            }
            Call::Remove => calls.unlink(&set.directory, Name::new(call.object, b"").as_c_str()?).map(|()| 0),
            Call::List => calls.list(&set.directory, Name::new(call.object, b"").as_c_str()?),
            Call::Put | Call::Get => self.value(call),
            Call::OpenContainer | Call::AllocateIds => Err(Errno::OPNOTSUPP),
        }
    }

    /// Puts or gets the value of a key: a small file in the directory of its index, which is opened once.
    fn value(&mut self, call: &StorageOperation) -> Result<u64, Errno> {
        let calls = &self.calls;
        let set = &mut self.sets[usize::from(call.set)];
        let kept = set.indexes.get_mut(call.object as usize).ok_or(Errno::INVAL)?;
        if kept.is_none() {
            *kept = Some(calls.open_directory(&set.directory, Name::new(call.object, b"").as_c_str()?)?);
        }
        let index = kept.as_ref().ok_or(Errno::BADF)?;
        let puts = call.call == StorageCall::Put;
        let mode = OpenMode { write: puts, create: puts, ..OpenMode::default() };
        let file = calls.open(index, Name::new(call.key, b"").as_c_str()?, mode)?;
        // SAFETY: the slot is the driver's from submit to completion, which is this call.
        let buffer = unsafe { self.arena.slot_mut(call.slot, call.length_bytes as usize) };
        let moved = if puts { write_or_tell(calls, &file, buffer, 0) } else { calls.read(&file, buffer, 0) };
        let closed = calls.close(file);
        moved.and_then(|moved| closed.map(|()| moved as u64))
    }
}

impl<C: Calls> Driver<StorageOperation> for FilesDriver<C> {
    #[inline]
    fn submit(&mut self, batch: &[StorageOperation], done: &mut Completions) -> Result<Submitted, Error> {
        let Some(call) = batch.first() else { return Ok(Submitted { accepted: 0 }) };
        let result = match self.carry_out(call) {
            Ok(count) => count as i64,
            Err(errno) => -i64::from(errno.raw_os_error()),
        };
        done.push(call.slot, result);
        Ok(Submitted { accepted: 1 })
    }
}
