//! A mounted file system of DAOS, and calls of its library on open objects.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

use driver::Error;
use rustix::io::Errno;

use super::library::{Anchor, Api, Iov, Mount, Object, Oid, Sgl};

/// Entries that are listed at once.
const ENTRIES: usize = 128;

/// A mounted file system: given back when the last object is released.
pub(super) struct Session {
    pub(super) api: &'static Api,
    mount: *mut Mount,
}

// SAFETY: the library locks its mounts itself; the pointer stays until the last user is gone.
unsafe impl Send for Session {}
// SAFETY: as for Send.
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: a mount of ours, of which no object is open, and the library as often as it was started.
        unsafe {
            (self.api.dfs_disconnect)(self.mount);
            (self.api.dfs_fini)();
        }
    }
}

/// An open object.
pub(super) struct Open {
    session: Arc<Session>,
    object: *mut Object,
    pub(super) id: Oid,
}

// SAFETY: the library lets threads use an object at once; the pointer stays until it is dropped.
unsafe impl Send for Open {}
// SAFETY: as for Send.
unsafe impl Sync for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: an object of ours that nobody uses any more.
        unsafe { (self.session.api.dfs_release)(self.object) };
    }
}

/// The result of a call: 0, or an errno.
pub(super) fn done(code: c_int) -> Result<(), Errno> {
    match code {
        0 => Ok(()),
        libc::EBADMSG => Err(Errno::IO),
        // Results of libdaos are negative.
        code if code < 0 => Err(Errno::IO),
        code => Err(Errno::from_raw_os_error(code)),
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

impl Session {
    /// Connects to a container, which is made where `creates`.
    pub(super) fn connect(pool: &str, container: &str, creates: bool) -> Result<Arc<Self>, Error> {
        let api = Api::get()?;
        let nul = |label: &str| Error::usage("dfs", format!("{label:?} contains a NUL byte"));
        let [pool_text, container_text] = [
            CString::new(pool).map_err(|_| nul(pool))?,
            CString::new(container).map_err(|_| nul(container))?,
        ];
        let failed = |message: &'static str, code: c_int| {
            let errno = done(code).err().unwrap_or(Errno::IO);
            let error = Error::system("dfs", message, errno).with("pool", pool).with("container", container);
            error.remedy(
                "check that daos_agent runs here, and that dmg pool list and daos container list show both",
            )
        };
        // SAFETY: no arguments; counted by the library.
        let code = unsafe { (api.dfs_init)() };
        if code != 0 {
            return Err(failed("cannot start libdfs", code));
        }
        let flags = if creates { libc::O_RDWR | libc::O_CREAT } else { libc::O_RDWR };
        let mut mount = null_mut();
        // SAFETY: strings and a place for the mount; the default system and attributes.
        let code = unsafe {
            let (pool, container) = (pool_text.as_ptr(), container_text.as_ptr());
            (api.dfs_connect)(pool, std::ptr::null(), container, flags, null_mut(), &raw mut mount)
        };
        if code != 0 {
            // SAFETY: as often as it was started.
            unsafe { (api.dfs_fini)() };
            return Err(failed("cannot connect to the container, or its type is not POSIX", code));
        }
        Ok(Arc::new(Self { api, mount }))
    }

    fn opened(self: &Arc<Self>, object: *mut Object) -> Result<Open, Errno> {
        let mut open = Open { session: Arc::clone(self), object, id: Oid::default() };
        // SAFETY: an open object and a place for its id.
        done(unsafe { (self.api.dfs_obj2id)(object, &raw mut open.id) })?;
        Ok(open)
    }

    /// The root directory.
    pub(super) fn root(self: &Arc<Self>) -> Result<Open, Errno> {
        let mut object = null_mut();
        let (place, path) = (&raw mut object, c"/".as_ptr());
        // SAFETY: a string and a place for the object; nothing else is asked for.
        done(unsafe {
            (self.api.dfs_lookup)(self.mount, path, libc::O_RDWR, place, null_mut(), null_mut())
        })?;
        self.opened(object)
    }
}

impl Open {
    /// Opens an entry, a symbolic link as it is; its mode.
    pub(super) fn look_up(&self, name: &CStr) -> Result<(Self, u32), Errno> {
        let (mut object, mut mode) = (null_mut(), 0);
        let (session, flags) = (&self.session, libc::O_RDWR | libc::O_NOFOLLOW);
        // SAFETY: an open directory, a string, places for object and mode.
        done(unsafe {
            let (place, name) = (&raw mut object, name.as_ptr());
            let look_up = session.api.dfs_lookup_rel;
            look_up(session.mount, self.object, name, flags, place, &raw mut mode, null_mut())
        })?;
        Ok((session.opened(object)?, mode))
    }

    /// Makes or opens a file or a symbolic link.
    pub(super) fn open_entry(
        &self,
        name: &CStr,
        mode: u32,
        flags: c_int,
        target: Option<&CStr>,
    ) -> Result<Self, Errno> {
        let mut object = null_mut();
        let target = target.map_or(std::ptr::null(), CStr::as_ptr);
        let session = &self.session;
        // SAFETY: an open directory, strings, a place for the object; class and chunk size are the container's.
        done(unsafe {
            let place = &raw mut object;
            (session.api.dfs_open)(
                session.mount,
                self.object,
                name.as_ptr(),
                mode,
                flags,
                0,
                0,
                target,
                place,
            )
        })?;
        session.opened(object)
    }

    pub(super) fn make_directory(&self, name: &CStr, mode: u32) -> Result<(), Errno> {
        let session = &self.session;
        // SAFETY: an open directory and a string; the class is the container's.
        done(unsafe { (session.api.dfs_mkdir)(session.mount, self.object, name.as_ptr(), mode, 0) })
    }

    pub(super) fn remove(&self, name: &CStr) -> Result<(), Errno> {
        let session = &self.session;
        let remove = session.api.dfs_remove;
        // SAFETY: an open directory and a string; the id is not asked for.
        done(unsafe { remove(session.mount, self.object, name.as_ptr(), false, null_mut()) })
    }

    pub(super) fn rename(
        &self,
        name: &CStr,
        to: &Self,
        new_name: &CStr,
        exchange: bool,
    ) -> Result<(), Errno> {
        let session = &self.session;
        let (from, to, name, new_name) = (self.object, to.object, name.as_ptr(), new_name.as_ptr());
        // SAFETY: open directories and strings; the id of what is replaced is not asked for.
        done(unsafe {
            match exchange {
                true => (session.api.dfs_exchange)(session.mount, from, name, to, new_name),
                false => (session.api.dfs_move)(session.mount, from, name, to, new_name, null_mut()),
            }
        })
    }

    pub(super) fn stat(&self) -> Result<libc::stat, Errno> {
        // SAFETY: plain numbers, for which zeros are values.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        let session = &self.session;
        // SAFETY: an open object and a place for its attributes.
        done(unsafe { (session.api.dfs_ostat)(session.mount, self.object, &raw mut stat) })?;
        Ok(stat)
    }

    pub(super) fn set(&self, stat: &mut libc::stat, flags: c_int) -> Result<(), Errno> {
        let session = &self.session;
        // SAFETY: an open object and attributes, which are read and filled.
        done(unsafe { (session.api.dfs_osetattr)(session.mount, self.object, stat, flags) })
    }

    pub(super) fn chunk_bytes(&self) -> Result<u64, Errno> {
        let mut bytes = 0;
        // SAFETY: an open file and a place for a number.
        done(unsafe { (self.session.api.dfs_get_chunk_size)(self.object, &raw mut bytes) })?;
        Ok(bytes)
    }

    pub(super) fn size(&self) -> Result<u64, Errno> {
        let (session, mut bytes) = (&self.session, 0);
        // SAFETY: an open file and a place for a number.
        done(unsafe { (session.api.dfs_get_size)(session.mount, self.object, &raw mut bytes) })?;
        Ok(bytes)
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let mut iov = Iov { buffer: into.as_mut_ptr().cast(), buffer_bytes: into.len(), length: into.len() };
        let mut sgl = Sgl { count: 1, count_out: 0, iovs: &raw mut iov };
        let (session, mut bytes) = (&self.session, 0);
        // SAFETY: an open file, memory that stays until the call has ended, a place for a number.
        done(unsafe {
            let (sgl, bytes) = (&raw mut sgl, &raw mut bytes);
            (session.api.dfs_read)(session.mount, self.object, sgl, offset, bytes, null_mut())
        })?;
        Ok((bytes as usize).min(into.len()))
    }

    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let buffer = data.as_ptr().cast_mut().cast();
        let mut iov = Iov { buffer, buffer_bytes: data.len(), length: data.len() };
        let mut sgl = Sgl { count: 1, count_out: 0, iovs: &raw mut iov };
        let session = &self.session;
        // SAFETY: an open file, memory that is read and stays until the call has ended.
        done(unsafe { (session.api.dfs_write)(session.mount, self.object, &raw mut sgl, offset, null_mut()) })
    }

    pub(super) fn punch(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        let session = &self.session;
        // SAFETY: an open file.
        done(unsafe { (session.api.dfs_punch)(session.mount, self.object, offset, bytes) })
    }

    pub(super) fn sync(&self) -> Result<(), Errno> {
        // SAFETY: a mount of ours.
        done(unsafe { (self.session.api.dfs_sync)(self.session.mount) })
    }

    /// Target of a symbolic link.
    pub(super) fn target(&self) -> Result<Vec<u8>, Errno> {
        let mut target = vec![0_u8; crate::layout::SYMLINK_BYTES_MAX + 1];
        let mut length = target.len() as u64;
        // SAFETY: an open link, memory of so many bytes.
        done(unsafe {
            (self.session.api.dfs_get_symlink_value)(self.object, target.as_mut_ptr().cast(), &raw mut length)
        })?;
        let end = target.iter().position(|byte| *byte == 0).unwrap_or(target.len());
        target.truncate(end.min(length as usize));
        Ok(target)
    }

    /// Names of a directory.
    pub(super) fn names(&self) -> Result<Vec<CString>, Errno> {
        let (mut anchor, mut all) = (Anchor::START, Vec::new());
        // SAFETY: plain numbers, for which zeros are values.
        let mut entries: Vec<libc::dirent> = vec![unsafe { std::mem::zeroed() }; ENTRIES];
        let session = &self.session;
        while !anchor.is_end() {
            let mut count = ENTRIES as u32;
            // SAFETY: an open directory, places for an anchor and so many entries.
            done(unsafe {
                let (anchor, count) = (&raw mut anchor, &raw mut count);
                (session.api.dfs_readdir)(session.mount, self.object, anchor, count, entries.as_mut_ptr())
            })?;
            for entry in entries.iter().take(count as usize) {
                // SAFETY: the library has put a string there.
                all.push(unsafe { CStr::from_ptr(entry.d_name.as_ptr()) }.to_owned());
            }
        }
        Ok(all)
    }

    pub(super) fn xattr(&self, name: &CStr) -> Result<Vec<u8>, Errno> {
        let mut value = vec![0_u8; crate::layout::XATTR_BYTES_MAX];
        let mut length = value.len() as u64;
        let session = &self.session;
        // SAFETY: an open object, a string, memory of so many bytes.
        done(unsafe {
            let (place, length) = (value.as_mut_ptr().cast(), &raw mut length);
            (session.api.dfs_getxattr)(session.mount, self.object, name.as_ptr(), place, length)
        })?;
        value.truncate(length as usize);
        Ok(value)
    }

    pub(super) fn set_xattr(&self, name: &CStr, value: &[u8], flags: c_int) -> Result<(), Errno> {
        let session = &self.session;
        // SAFETY: an open object, a string, bytes that are read.
        done(unsafe {
            let (bytes, length) = (value.as_ptr().cast(), value.len() as u64);
            (session.api.dfs_setxattr)(session.mount, self.object, name.as_ptr(), bytes, length, flags)
        })
    }

    pub(super) fn remove_xattr(&self, name: &CStr) -> Result<(), Errno> {
        let session = &self.session;
        // SAFETY: an open object and a string.
        done(unsafe { (session.api.dfs_removexattr)(session.mount, self.object, name.as_ptr()) })
    }

    /// Names of the extended attributes.
    pub(super) fn xattrs(&self) -> Result<Vec<Vec<u8>>, Errno> {
        let mut names = vec![0_u8; crate::layout::XATTR_BYTES_MAX];
        let mut length = names.len() as u64;
        let session = &self.session;
        // SAFETY: an open object, memory of so many bytes.
        done(unsafe {
            let (place, length) = (names.as_mut_ptr().cast(), &raw mut length);
            (session.api.dfs_listxattr)(session.mount, self.object, place, length)
        })?;
        names.truncate(length as usize);
        Ok(names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }
}
