//! Marks of runs on objects that have names of their own: an attribute each, so that every run finds whose an object is.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};

use driver::Error;

use super::cluster::{MAKER, Pool, refused};
use super::library::{CMPXATTR_EQ, CREATE_EXCLUSIVE};

/// Longest mark: two numbers of 16 digits and a word.
const MARK_BYTES_MAX: usize = 64;
const KEPT: &str = "kept";

/// Mark of an object: who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Number of the run.
    pub(crate) run: u64,
    /// Number of whoever ran it.
    pub(crate) owner: u64,
    /// That run has ended, and its objects were to stay.
    pub(crate) is_kept: bool,
}

impl Mark {
    fn text(self) -> String {
        let kept = if self.is_kept { KEPT } else { "" };
        format!("{:016x} {:016x} {kept}", self.run, self.owner)
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let mut number = || u64::from_str_radix(words.next()?, 16).ok();
        let (run, owner) = (number()?, number()?);
        Some(Self { run, owner, is_kept: words.next() == Some(KEPT) })
    }
}

/// State of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// An object that a run made.
    Marked(Mark),
    /// An object of others.
    Unmarked,
}

impl Pool {
    /// State of a name.
    ///
    /// # Errors
    /// When the pool does not answer.
    pub(crate) fn found(&self, name: &CStr) -> Result<Found, Error> {
        let text = self.attribute(name, MAKER, MARK_BYTES_MAX)?;
        Ok(match text.as_deref().map(Mark::read) {
            None => Found::Nothing,
            Some(None) => Found::Unmarked,
            Some(Some(mark)) => Found::Marked(mark),
        })
    }

    /// Makes an object that is not there, with a mark. False where it is there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn make_marked(&self, name: &CStr, mark: Mark) -> Result<bool, Error> {
        let mark = mark.text();
        // SAFETY: a text that is there until the operation has been carried out.
        let code = self.change(name, |operation| unsafe {
            (self.api.rados_write_op_create)(operation, CREATE_EXCLUSIVE, std::ptr::null());
            let text = mark.as_ptr().cast::<c_char>();
            (self.api.rados_write_op_setxattr)(operation, MAKER.as_ptr(), text, mark.len());
        });
        match code {
            0 => Ok(true),
            code if code == -libc::EEXIST => Ok(false),
            code => Err(refused("cannot create an object", code).with("object", name.to_string_lossy())),
        }
    }

    /// Replaces the mark of an object; without a new one the object goes. False where it carries another mark, or is not there.
    ///
    /// # Errors
    /// When it cannot be changed.
    pub(crate) fn replace_mark(&self, name: &CStr, before: Mark, after: Option<Mark>) -> Result<bool, Error> {
        let (before, after) = (before.text(), after.map(Mark::text));
        // SAFETY: texts that are there until the operation has been carried out.
        let code = self.change(name, |operation| unsafe {
            (self.api.rados_write_op_assert_exists)(operation);
            let old = before.as_ptr().cast::<c_char>();
            (self.api.rados_write_op_cmpxattr)(operation, MAKER.as_ptr(), CMPXATTR_EQ, old, before.len());
            match &after {
                Some(after) => {
                    let new = after.as_ptr().cast::<c_char>();
                    (self.api.rados_write_op_setxattr)(operation, MAKER.as_ptr(), new, after.len());
                }
                None => (self.api.rados_write_op_remove)(operation),
            }
        });
        match code {
            0 => Ok(true),
            code if code == -libc::ECANCELED || code == -libc::ENOENT => Ok(false),
            code => Err(refused("cannot change an object", code).with("object", name.to_string_lossy())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_are_written() {
        for is_kept in [false, true] {
            let mark = Mark { run: 0x1f, owner: u64::MAX, is_kept };
            assert_eq!(Mark::read(&mark.text()), Some(mark));
            assert!(mark.text().len() <= MARK_BYTES_MAX);
        }
        for other in ["", "x", "000000000000001f", "by hand"] {
            assert_eq!(Mark::read(other), None, "{other}");
        }
    }
}
