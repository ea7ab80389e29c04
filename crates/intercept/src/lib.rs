//! `libstrata_intercept.so`, for `LD_PRELOAD`: calls of a program on files of a mount of strata go to the file system itself, without the kernel
//! between.
//!
//! Each function of the C library that stands in `hooks` has one of the same name here. It passes a call on to the C library (`real`) unless the
//! call names a file of a mount. An intercepted file has a descriptor of the kernel all the same, opened on the mount with direct I/O, so that
//! what is not intercepted works on it; the position of a file and its flags are those of that descriptor, and so are shared with copies of it in
//! other processes.
//!
//! In a signal handler that interrupts a call of this library, calls go to the kernel. Outside of that, calls on files of a mount allocate and lock, which a
//! handler must not rely on; calls on all other paths and descriptors do neither, but for paths with `..` and those below a directory's descriptor.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod calls;
mod directories;
mod enter;
mod files;
mod hooks;
mod paths;
mod permission;
mod real;
mod report;
mod state;
mod views;

/// Has cargo link the library again for another glibc (`scripts/portable.sh`).
const _: Option<&str> = option_env!("STRATA_GLIBC");
