//! Functions of the C library behind those of this library.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Address of a function of the libraries behind this one; none where they have none of this name.
pub(crate) fn address(name: &CStr, known: &AtomicPtr<c_void>) -> Option<*mut c_void> {
    let mut found = known.load(Ordering::Acquire);
    if found.is_null() {
        // SAFETY: the name is a string of C, and the pseudo-handle asks for the next library in the order of look-up.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        known.store(found, Ordering::Release);
    }
    (!found.is_null()).then_some(found)
}

/// Calls the C library's function of a name: `real!(close(fd: c_int) -> c_int)`.
macro_rules! real {
    ($name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty) => {{
        static KNOWN: std::sync::atomic::AtomicPtr<std::ffi::c_void> =
            std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
        const NAME: &std::ffi::CStr =
            match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            };
        match $crate::real::address(NAME, &KNOWN) {
            Some(address) => {
                type Function = unsafe extern "C" fn($($type),*) -> $result;
                // SAFETY: the C library has a function of this name with this signature; an argument that its declaration leaves open is passed as
                // a named one is, on both architectures.
                let function: Function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(address) };
                // SAFETY: the arguments are those of the caller.
                unsafe { function($($argument),*) }
            }
            None => $crate::enter::missing::<$result>(),
        }
    }};
}

pub(crate) use real;
