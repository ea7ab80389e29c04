//! Errors of the library, from its stack of them.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::io;

use crate::library::{Api, DEFAULT, Hid};

/// `H5E_WALK_UPWARD`: from the deepest error to the function that was called.
const FROM_THE_DEEPEST: c_int = 0;
/// `EIO`: errors of which the library tells no errno.
const EIO: i32 = 5;
/// Longest text that is told of an error.
const TEXT_CHARS: usize = 160;
/// Longest text of the library that is looked at: it may have a path before the errno.
const STACK_CHARS: usize = 8192;

/// `H5E_error2_t`.
#[repr(C)]
pub(crate) struct StackedError {
    class: Hid,
    major: Hid,
    minor: Hid,
    line: c_uint,
    function: *const c_char,
    file: *const c_char,
    text: *const c_char,
}

/// `H5E_walk2_t`.
pub(crate) type Walker = unsafe extern "C" fn(c_uint, *const StackedError, *mut c_void) -> c_int;

/// A call of the library that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Error number of the system, or `EIO` where the library tells none.
    pub errno: i32,
    /// The call that failed, and the cause.
    pub text: String,
}

impl Failure {
    /// A failure that is none of the library's.
    #[must_use]
    pub fn new(errno: i32, text: impl Into<String>) -> Self {
        Self { errno, text: text.into() }
    }

    /// That of the call that failed last.
    #[cold]
    pub(crate) fn of(api: &Api, call: &'static str) -> Self {
        let mut texts: Vec<String> = Vec::new();
        // SAFETY: the walker gets the vector back, which lives through the call, and nobody else has it meanwhile.
        unsafe { (api.H5Ewalk2)(DEFAULT, FROM_THE_DEEPEST, keep, (&raw mut texts).cast()) };
        Self::told(call, &texts)
    }

    /// From the texts of the stack, the deepest first.
    fn told(call: &str, texts: &[String]) -> Self {
        if let Some(errno) = texts.iter().find_map(|text| errno_in(text)) {
            let cause = io::Error::from_raw_os_error(errno);
            return Self { errno, text: format!("{call} of HDF5: {cause}") };
        }
        let text: String =
            texts.first().map_or("no cause reported", String::as_str).chars().take(TEXT_CHARS).collect();
        Self { errno: EIO, text: format!("{call} of HDF5: {text}") }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The number behind `errno = ` in a text of the driver of files.
fn errno_in(text: &str) -> Option<i32> {
    let (_, rest) = text.split_once("errno = ")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok().filter(|errno| *errno > 0)
}

/// A text of the library in one line.
fn one_line(text: &str) -> String {
    text.chars().take(STACK_CHARS).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Keeps the text of an error.
unsafe extern "C" fn keep(_number: c_uint, error: *const StackedError, texts: *mut c_void) -> c_int {
    // SAFETY: the library gives an error of its stack, and the pointer that `Failure::of` gave.
    let (error, texts) = unsafe { (&*error, &mut *texts.cast::<Vec<String>>()) };
    if !error.text.is_null() {
        // SAFETY: it is a text of the library, which ends with a NUL.
        let text = unsafe { CStr::from_ptr(error.text) }.to_string_lossy();
        texts.push(one_line(&text));
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(texts: &[&str]) -> Failure {
        Failure::told("H5Dwrite", &texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_errno_of_the_driver_is_the_cause() {
        let full = "file write failed: time = Fri Nov 27 06:29:21 2026 , filename = 'x', file descriptor = 5, errno = 28, error message = 'No space left on device'";
        let failure = told(&[full, "driver write request failed", "can't write data"]);
        assert_eq!(failure.errno, 28);
        assert_eq!(failure.text, "H5Dwrite of HDF5: No space left on device (os error 28)");
    }

    #[test]
    fn without_one_it_is_the_deepest_text() {
        let failure = told(&["object 'y' doesn't exist", "unable to open dataset"]);
        assert_eq!((failure.errno, failure.text.as_str()), (5, "H5Dwrite of HDF5: object 'y' doesn't exist"));
        assert_eq!(told(&[]).errno, 5);
        assert_eq!(told(&["errno = x"]).errno, 5);
        assert_eq!(errno_in("errno = 99999999999999"), None);
        assert_eq!(one_line("a\nb"), "a b");
    }
}
