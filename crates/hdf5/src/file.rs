//! Files of one-dimensional datasets in one group, contiguous, as kernels of particle codes write them.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_uint};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::ptr;

use driver::Error;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::element::ElementType;
use crate::failure::Failure;
use crate::library::{DEFAULT, Hdf5, Hid, Locked, Way};

/// `H5F_ACC_TRUNC`.
const TRUNCATE: c_uint = 2;
/// `H5F_SCOPE_GLOBAL`.
const WHOLE_FILE: i32 = 1;
/// `H5S_SELECT_SET`.
const SELECT_SET: i32 = 0;

/// Extent of the use of a file that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Access {
    /// `H5F_ACC_RDONLY`: other processes may read it too.
    Read = 0,
    /// `H5F_ACC_RDWR`.
    Write = 1,
}

/// A dataset of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Name in the group.
    pub name: CString,
    /// Type of its elements.
    pub element: ElementType,
    /// How many elements it has.
    pub elements: u64,
}

/// A dataset of an open file.
#[derive(Debug)]
struct OpenDataset {
    id: Hid,
    /// Its extent, in which elements are selected.
    space: Hid,
    kind: Hid,
    element_bytes: u64,
}

/// An open file. Threads share it; each of its calls waits for the library's lock.
#[derive(Debug)]
pub struct File {
    way: Way,
    id: Hid,
    group: Hid,
    datasets: Vec<OpenDataset>,
    /// The same file, to make it durable.
    descriptor: Option<OwnedFd>,
}

/// Extent of the memory that a call moves, of one thread.
#[derive(Debug)]
pub struct MemorySpace {
    library: &'static Hdf5,
    id: Hid,
    elements: u64,
}

impl MemorySpace {
    /// One for one element so far.
    ///
    /// # Errors
    /// When the library is missing.
    pub fn new() -> Result<Self, Error> {
        let library = Hdf5::get()?;
        let locked = library.lock();
        // SAFETY: one dimension, whose length is given; no longest one means the same.
        let id = unsafe { (locked.api.H5Screate_simple)(1, &1, ptr::null()) };
        drop(locked);
        if id < 0 {
            return Err(Error::new(driver::ErrorKind::Run, "hdf5", "cannot create a dataspace"));
        }
        Ok(Self { library, id, elements: 1 })
    }

    /// That for so many elements.
    #[inline]
    fn of(&mut self, locked: &Locked, elements: u64) -> Result<Hid, Failure> {
        if self.elements != elements {
            // SAFETY: the space is this one's own, and has one dimension.
            let result =
                unsafe { (locked.api.H5Sset_extent_simple)(self.id, 1, &raw const elements, ptr::null()) };
            locked.checked("H5Sset_extent_simple", result)?;
            self.elements = elements;
        }
        Ok(self.id)
    }
}

impl Drop for MemorySpace {
    fn drop(&mut self) {
        let locked = self.library.lock();
        // SAFETY: the space is this one's own, and nobody uses it again.
        unsafe { (locked.api.H5Sclose)(self.id) };
    }
}

impl File {
    /// Makes a file, in place of one of this path, with a group of these datasets.
    ///
    /// # Errors
    /// A refusal of the library, with its cause. The file may be there.
    pub fn create(way: Way, path: &Path, group: &CStr, datasets: &[Dataset]) -> Result<Self, Failure> {
        let name = name_of(path)?;
        let mut file = Self::empty(way);
        let locked = way.library.lock();
        // SAFETY: the path ends with a NUL, and the list is the library's.
        let id = unsafe { (locked.api.H5Fcreate)(name.as_ptr(), TRUNCATE, DEFAULT, way.access) };
        file.id = locked.checked("H5Fcreate", id)?;
        file.descriptor = Some(descriptor_of(path).map_err(|failure| file.undo(&locked, failure))?);
        let made = file.make(&locked, group, datasets);
        made.map_err(|failure| file.undo(&locked, failure))?;
        drop(locked);
        Ok(file)
    }

    /// Opens one with its group and datasets.
    ///
    /// # Errors
    /// A refusal of the library, with its cause; a dataset that is missing or has another size.
    pub fn open(
        way: Way,
        path: &Path,
        access: Access,
        (group, datasets): (&CStr, &[Dataset]),
    ) -> Result<Self, Failure> {
        let name = name_of(path)?;
        let mut file = Self::empty(way);
        let locked = way.library.lock();
        // SAFETY: as in `create`.
        let id = unsafe { (locked.api.H5Fopen)(name.as_ptr(), access as c_uint, way.access) };
        file.id = locked.checked("H5Fopen", id)?;
        file.descriptor = Some(descriptor_of(path).map_err(|failure| file.undo(&locked, failure))?);
        let found = file.find(&locked, group, datasets);
        found.map_err(|failure| file.undo(&locked, failure))?;
        drop(locked);
        Ok(file)
    }

    fn empty(way: Way) -> Self {
        Self { way, id: -1, group: -1, datasets: Vec::new(), descriptor: None }
    }

    fn make(&mut self, locked: &Locked, group: &CStr, datasets: &[Dataset]) -> Result<(), Failure> {
        let api = locked.api;
        // SAFETY: the file is open, and the name ends with a NUL.
        let id = unsafe { (api.H5Gcreate2)(self.id, group.as_ptr(), DEFAULT, DEFAULT, DEFAULT) };
        self.group = locked.checked("H5Gcreate2", id)?;
        for dataset in datasets {
            // SAFETY: one dimension, whose length is given.
            let space = unsafe { (api.H5Screate_simple)(1, &raw const dataset.elements, ptr::null()) };
            locked.checked("H5Screate_simple", space)?;
            let kind = self.way.library.types[dataset.element as usize];
            let name = dataset.name.as_ptr();
            // SAFETY: group, type and space are there, and the name ends with a NUL.
            let id = unsafe { (api.H5Dcreate2)(self.group, name, kind, space, DEFAULT, DEFAULT, DEFAULT) };
            // Kept before it is looked at, so that it is closed.
            self.datasets.push(OpenDataset { id, space, kind, element_bytes: dataset.element.bytes() });
            locked.checked("H5Dcreate2", id)?;
        }
        Ok(())
    }

    fn find(&mut self, locked: &Locked, group: &CStr, datasets: &[Dataset]) -> Result<(), Failure> {
        let api = locked.api;
        // SAFETY: the file is open, and the name ends with a NUL.
        let id = unsafe { (api.H5Gopen2)(self.id, group.as_ptr(), DEFAULT) };
        self.group = locked.checked("H5Gopen2", id)?;
        for dataset in datasets {
            // SAFETY: the group is open, and the name ends with a NUL.
            let id = unsafe { (api.H5Dopen2)(self.group, dataset.name.as_ptr(), DEFAULT) };
            locked.checked("H5Dopen2", id)?;
            // SAFETY: the dataset was opened just now.
            let space = unsafe { (api.H5Dget_space)(id) };
            let kind = self.way.library.types[dataset.element as usize];
            self.datasets.push(OpenDataset { id, space, kind, element_bytes: dataset.element.bytes() });
            locked.checked("H5Dget_space", space)?;
            // SAFETY: the space was given just now.
            let found = unsafe { (api.H5Sget_simple_extent_npoints)(space) };
            if u64::try_from(found) != Ok(dataset.elements) {
                let name = dataset.name.to_string_lossy();
                let text = format!(
                    "the HDF5 dataset {name} has {found} elements, but {} were created",
                    dataset.elements
                );
                return Err(Failure::new(Errno::IO.raw_os_error(), text));
            }
        }
        Ok(())
    }

    /// Closes what is open after a failure, which is given back.
    fn undo(&mut self, locked: &Locked, failure: Failure) -> Failure {
        if self.way.is_together {
            // Without the other ranks it cannot be closed.
            self.forget();
        } else {
            let _ = self.release(locked);
        }
        failure
    }

    /// Closes everything; the first failure.
    fn release(&mut self, locked: &Locked) -> Result<(), Failure> {
        let api = locked.api;
        let mut result = Ok(());
        let mut close = |call, function: unsafe extern "C" fn(Hid) -> i32, id: Hid| {
            if id >= 0 {
                // SAFETY: the object is this file's own, and is not used again.
                let closed = locked.checked(call, unsafe { function(id) }).map(|_| ());
                let before = std::mem::replace(&mut result, Ok(()));
                result = before.and(closed);
            }
        };
        for dataset in self.datasets.drain(..) {
            close("H5Sclose", api.H5Sclose, dataset.space);
            close("H5Dclose", api.H5Dclose, dataset.id);
        }
        close("H5Gclose", api.H5Gclose, std::mem::replace(&mut self.group, -1));
        close("H5Fclose", api.H5Fclose, std::mem::replace(&mut self.id, -1));
        result
    }

    /// Selects elements of a dataset.
    #[inline]
    fn select(
        &self,
        locked: &Locked,
        dataset: usize,
        first: u64,
        bytes: usize,
    ) -> Result<(&OpenDataset, u64), Failure> {
        let open = self
            .datasets
            .get(dataset)
            .ok_or_else(|| Failure::new(Errno::INVAL.raw_os_error(), "no such dataset exists"))?;
        let count = bytes as u64 / open.element_bytes;
        // SAFETY: the space is the dataset's and has one dimension; a range beyond its end is refused by the call that moves the elements.
        let result = unsafe {
            let (first, count) = (&raw const first, &raw const count);
            (locked.api.H5Sselect_hyperslab)(open.space, SELECT_SET, first, ptr::null(), count, ptr::null())
        };
        locked.checked("H5Sselect_hyperslab", result)?;
        Ok((open, count))
    }

    /// Writes elements of dataset number `dataset` from element `first` on.
    ///
    /// # Errors
    /// Why the library could not.
    #[inline]
    pub fn write(
        &self,
        memory: &mut MemorySpace,
        dataset: usize,
        first: u64,
        from: &[u8],
    ) -> Result<(), Failure> {
        let locked = self.way.library.lock();
        let (dataset, count) = self.select(&locked, dataset, first, from.len())?;
        let memory = memory.of(&locked, count)?;
        // SAFETY: the memory has `count` elements, of the type of the dataset's.
        let result = unsafe {
            let from = from.as_ptr().cast();
            (locked.api.H5Dwrite)(dataset.id, dataset.kind, memory, dataset.space, self.way.transfer, from)
        };
        locked.checked("H5Dwrite", result).map(|_| ())
    }

    /// Reads elements.
    ///
    /// # Errors
    /// Why the library could not.
    #[inline]
    pub fn read(
        &self,
        memory: &mut MemorySpace,
        dataset: usize,
        first: u64,
        into: &mut [u8],
    ) -> Result<(), Failure> {
        let locked = self.way.library.lock();
        let (dataset, count) = self.select(&locked, dataset, first, into.len())?;
        let memory = memory.of(&locked, count)?;
        // SAFETY: the memory has room for `count` elements, of the type of the dataset's, and is borrowed for this call alone.
        let result = unsafe {
            let into = into.as_mut_ptr().cast();
            (locked.api.H5Dread)(dataset.id, dataset.kind, memory, dataset.space, self.way.transfer, into)
        };
        locked.checked("H5Dread", result).map(|_| ())
    }

    /// Makes it durable: the library gives what it keeps to the system, and the system to the medium. Others work in the library meanwhile.
    ///
    /// # Errors
    /// Why it is not.
    pub fn sync(&self, data_only: bool) -> Result<(), Failure> {
        let locked = self.way.library.lock();
        // SAFETY: the file is open.
        let result = unsafe { (locked.api.H5Fflush)(self.id, WHOLE_FILE) };
        locked.checked("H5Fflush", result)?;
        drop(locked);
        let Some(descriptor) = &self.descriptor else { return Ok(()) };
        let synced =
            if data_only { rustix::fs::fdatasync(descriptor) } else { rustix::fs::fsync(descriptor) };
        synced.map_err(|errno| Failure::new(errno.raw_os_error(), std::io::Error::from(errno).to_string()))
    }

    /// Closes it, which writes what the library keeps.
    ///
    /// # Errors
    /// Data that could not be written.
    pub fn close(mut self) -> Result<(), Failure> {
        let locked = self.way.library.lock();
        self.release(&locked)
    }
}

impl File {
    /// Leaves it open for good: other ranks, without which it cannot be closed, are gone.
    pub fn abandon(mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        (self.id, self.group) = (-1, -1);
        self.datasets.clear();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.id >= 0 && !self.way.is_together {
            let locked = self.way.library.lock();
            // Who wants to know closes it.
            let _ = self.release(&locked);
        }
    }
}

fn name_of(path: &Path) -> Result<CString, Failure> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Failure::new(Errno::INVAL.raw_os_error(), "the path contains a NUL byte"))
}

fn descriptor_of(path: &Path) -> Result<OwnedFd, Failure> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| Failure::new(errno.raw_os_error(), std::io::Error::from(errno).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &CStr = c"particles";

    /// The library; none, and a line that says so, where it is not installed.
    fn library(test: &str) -> Option<&'static Hdf5> {
        Hdf5::get().map_err(|missing| eprintln!("skipped: {test}: {missing}")).ok()
    }

    fn datasets(elements: u64) -> Vec<Dataset> {
        let named =
            [(c"x", ElementType::Float32), (c"id", ElementType::Int64), (c"flag", ElementType::Uint8)];
        named.map(|(name, element)| Dataset { name: name.to_owned(), element, elements }).to_vec()
    }

    #[test]
    fn threads_share_a_file_and_each_finds_what_it_wrote() {
        let Some(library) = library("threads_share_a_file") else { return };
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("0");
        let all = datasets(4000);
        let file = File::create(library.alone(), &path, GROUP, &all).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let (file, all) = (&file, &all);
                scope.spawn(move || {
                    let mut memory = MemorySpace::new().unwrap();
                    for (at, dataset) in all.iter().enumerate() {
                        for part in 0..10 {
                            let bytes = vec![thread * 16 + at as u8; 100 * dataset.element.bytes() as usize];
                            file.write(&mut memory, at, u64::from(thread) * 1000 + part * 100, &bytes)
                                .unwrap();
                        }
                    }
                    file.sync(false).unwrap();
                });
            }
        });
        file.close().unwrap();
        let file = File::open(library.alone(), &path, Access::Read, (GROUP, &all)).unwrap();
        let mut memory = MemorySpace::new().unwrap();
        for (at, dataset) in all.iter().enumerate() {
            let mut found = vec![0; 4000 * dataset.element.bytes() as usize];
            file.read(&mut memory, at, 0, &mut found).unwrap();
            let each = found.len() / 4;
            let is_own = |(place, byte): (usize, &u8)| *byte == (place / each) as u8 * 16 + at as u8;
            assert!(found.iter().enumerate().all(is_own), "{:?}", dataset.name);
        }
        let failed = file.write(&mut memory, 0, 0, &[0; 4]).unwrap_err();
        assert!(failed.text.contains("no write intent"), "{failed}");
        let mut beyond = [0; 8];
        assert!(file.read(&mut memory, 0, 3999, &mut beyond).unwrap_err().text.contains("H5D"));
        assert!(file.read(&mut memory, 9, 0, &mut beyond).is_err());
        drop(file);
    }

    #[test]
    fn what_is_not_there_is_told_with_its_cause() {
        let Some(library) = library("what_is_not_there") else { return };
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("0");
        let open = |datasets: &[Dataset]| File::open(library.alone(), &path, Access::Read, (GROUP, datasets));
        let failed = open(&datasets(8)).unwrap_err();
        assert_eq!(failed.errno, Errno::NOENT.raw_os_error(), "{failed}");
        File::create(library.alone(), &path, GROUP, &datasets(8)[..2]).unwrap().close().unwrap();
        let failed = open(&datasets(8)).unwrap_err();
        assert!(failed.text.contains("object 'flag' doesn't exist"), "{failed}");
        let failed = open(&datasets(9)[..2]).unwrap_err();
        assert!(failed.text.contains("has 8 elements, but 9 were created"), "{failed}");
        assert!(File::open(library.alone(), &path, Access::Read, (c"fields", &[])).is_err());
        std::fs::write(&path, "no HDF5").unwrap();
        let failed = open(&datasets(8)).unwrap_err();
        assert!(failed.text.contains("signature"), "{failed}");
        let failed = File::create(library.alone(), scratch.path(), GROUP, &datasets(8)).unwrap_err();
        assert_eq!(failed.errno, Errno::ISDIR.raw_os_error(), "{failed}");
        // What failed was closed: the file can be made anew.
        File::create(library.alone(), &path, GROUP, &datasets(8)).unwrap().close().unwrap();
    }
}
