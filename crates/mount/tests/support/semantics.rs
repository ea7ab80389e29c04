//! Calls and the errors that POSIX.1-2024 and Linux have for them, as a table.

#![allow(unsafe_code)]

use std::ffi::{CString, c_int};
use std::io;
use std::path::Path;

use super::Kind;
use libc::{
    EACCES, EBADF, EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENODATA, ENOENT, ENOTDIR, ENOTEMPTY, EPERM,
    ERANGE, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY,
};

/// A call with paths, of which those that begin with `@` are given as they are behind it; its value, and else its errno.
type Call = fn(&[CString]) -> c_int;
/// The call, its paths, and its errno (0: it does what it is asked).
type Case = (Call, &'static [&'static str], c_int);

macro_rules! call {
    ($name:ident($($place:tt),*)) => {
        // SAFETY: paths are strings of C that outlive the call.
        |paths: &[CString]| unsafe { libc::$name($(call!(@ paths $place)),*) }
    };
    (@ $paths:ident { $value:expr }) => { $value };
    (@ $paths:ident $place:literal) => { $paths[$place].as_ptr() };
}

/// Opens with flags and closes again.
fn opened(path: &CString, flags: c_int) -> c_int {
    // SAFETY: the path is a string of C.
    unsafe {
        let descriptor = libc::open(path.as_ptr(), flags, 0o644);
        if descriptor >= 0 { libc::close(descriptor) } else { -1 }
    }
}

/// Writes on a descriptor that is for reading alone.
fn write_on_read_only(paths: &[CString]) -> c_int {
    // SAFETY: the path is a string of C, the byte is there.
    unsafe {
        let descriptor = libc::open(paths[0].as_ptr(), O_RDONLY);
        let written = libc::write(descriptor, b"x".as_ptr().cast(), 1);
        let error = *libc::__errno_location();
        libc::close(descriptor);
        *libc::__errno_location() = error;
        written as c_int
    }
}

fn read_xattr(paths: &[CString], room: usize) -> c_int {
    let mut value = vec![0_u8; room];
    // SAFETY: names are strings of C, the room is as large as said.
    unsafe { libc::getxattr(paths[0].as_ptr(), c"user.a".as_ptr(), value.as_mut_ptr().cast(), room) as c_int }
}

fn write_xattr(paths: &[CString], flags: c_int) -> c_int {
    // SAFETY: names are strings of C, the value is there.
    unsafe { libc::setxattr(paths[0].as_ptr(), c"user.a".as_ptr(), b"value".as_ptr().cast(), 5, flags) }
}

fn seek_negative(paths: &[CString]) -> c_int {
    // SAFETY: the path is a string of C.
    unsafe {
        let descriptor = libc::open(paths[0].as_ptr(), O_RDONLY);
        let place = libc::lseek(descriptor, -1, libc::SEEK_END);
        let error = *libc::__errno_location();
        libc::close(descriptor);
        *libc::__errno_location() = error;
        place as c_int
    }
}

fn rename_flags(paths: &[CString], flags: u32) -> c_int {
    let here = libc::AT_FDCWD;
    // SAFETY: paths are strings of C.
    unsafe { libc::renameat2(here, paths[0].as_ptr(), here, paths[1].as_ptr(), flags) }
}

const LONG: &str = "LONG";

/// Cases; `f` is a file, `d` a directory, `empty` an empty one, `e` one that is not empty (`e/f`), `l` a link to `f`, `dl` one to `d`, `x` one that leads nowhere, `o` one to itself.
const CASES: &[Case] = &[
    (call!(mkdir(0, { 0o755 })), &["new"], 0),
    (call!(mkdir(0, { 0o755 })), &["f"], EEXIST),
    (call!(mkdir(0, { 0o755 })), &["d"], EEXIST),
    (call!(mkdir(0, { 0o755 })), &["l"], EEXIST),
    (call!(mkdir(0, { 0o755 })), &["x"], EEXIST),
    (call!(mkdir(0, { 0o755 })), &["none/new"], ENOENT),
    (call!(mkdir(0, { 0o755 })), &["f/new"], ENOTDIR),
    (call!(mkdir(0, { 0o755 })), &["new/"], 0),
    (call!(mkdir(0, { 0o755 })), &["o/new"], ELOOP),
    (call!(mkdir(0, { 0o755 })), &[LONG], ENAMETOOLONG),
    (call!(mkdir(0, { 0o755 })), &["."], EEXIST),
    (call!(rmdir(0)), &["d"], 0),
    (call!(rmdir(0)), &["e"], ENOTEMPTY),
    (call!(rmdir(0)), &["f"], ENOTDIR),
    (call!(rmdir(0)), &["none"], ENOENT),
    (call!(rmdir(0)), &["dl"], ENOTDIR),
    (call!(rmdir(0)), &["d/."], EINVAL),
    (call!(rmdir(0)), &["e/f/none"], ENOTDIR),
    (call!(unlink(0)), &["f"], 0),
    (call!(unlink(0)), &["x"], 0),
    (call!(unlink(0)), &["none"], ENOENT),
    (call!(unlink(0)), &["d"], EISDIR),
    (call!(unlink(0)), &["f/none"], ENOTDIR),
    (call!(unlink(0)), &[LONG], ENAMETOOLONG),
    (call!(unlink(0)), &["f/"], ENOTDIR),
    (call!(rename(0, 1)), &["f", "new"], 0),
    (call!(rename(0, 1)), &["f", "l"], 0),
    (call!(rename(0, 1)), &["f", "e/f"], 0),
    (call!(rename(0, 1)), &["none", "new"], ENOENT),
    (call!(rename(0, 1)), &["f", "none/new"], ENOENT),
    (call!(rename(0, 1)), &["f", "d"], EISDIR),
    (call!(rename(0, 1)), &["d", "f"], ENOTDIR),
    (call!(rename(0, 1)), &["d", "e"], ENOTEMPTY),
    (call!(rename(0, 1)), &["e", "d"], 0),
    (call!(rename(0, 1)), &["e", "e/new"], EINVAL),
    (call!(rename(0, 1)), &["f", "f"], 0),
    (call!(rename(0, 1)), &["f", LONG], ENAMETOOLONG),
    (call!(rename(0, 1)), &["f", "new/"], ENOTDIR),
    (|paths| rename_flags(paths, libc::RENAME_NOREPLACE), &["f", "l"], EEXIST),
    (|paths| rename_flags(paths, libc::RENAME_NOREPLACE), &["f", "new"], 0),
    (|paths| rename_flags(paths, libc::RENAME_EXCHANGE), &["f", "e/f"], 0),
    (|paths| rename_flags(paths, libc::RENAME_EXCHANGE), &["f", "d"], 0),
    (|paths| rename_flags(paths, libc::RENAME_EXCHANGE), &["f", "none"], ENOENT),
    (call!(symlink(0, 1)), &["@anything", "new"], 0),
    (call!(symlink(0, 1)), &["@anything", "f"], EEXIST),
    (call!(symlink(0, 1)), &["@", "new"], ENOENT),
    (call!(symlink(0, 1)), &["@anything", "none/new"], ENOENT),
    (call!(link(0, 1)), &["f", "new"], 0),
    (call!(link(0, 1)), &["none", "new"], ENOENT),
    (call!(link(0, 1)), &["d", "new"], EPERM),
    (call!(link(0, 1)), &["f", "l"], EEXIST),
    (|paths| opened(&paths[0], O_RDONLY), &["f"], 0),
    (|paths| opened(&paths[0], O_RDONLY), &["l"], 0),
    (|paths| opened(&paths[0], O_RDONLY), &["d"], 0),
    (|paths| opened(&paths[0], O_RDONLY), &["none"], ENOENT),
    (|paths| opened(&paths[0], O_RDONLY), &["x"], ENOENT),
    (|paths| opened(&paths[0], O_RDONLY), &["o"], ELOOP),
    (|paths| opened(&paths[0], O_RDONLY), &["f/none"], ENOTDIR),
    (|paths| opened(&paths[0], O_RDONLY), &["f/"], ENOTDIR),
    (|paths| opened(&paths[0], O_RDONLY | libc::O_NOFOLLOW), &["l"], ELOOP),
    (|paths| opened(&paths[0], O_RDONLY | libc::O_DIRECTORY), &["f"], ENOTDIR),
    (|paths| opened(&paths[0], O_WRONLY), &["d"], EISDIR),
    (|paths| opened(&paths[0], O_RDWR | O_CREAT), &["d"], EISDIR),
    (|paths| opened(&paths[0], O_WRONLY | O_CREAT), &["new"], 0),
    (|paths| opened(&paths[0], O_WRONLY | O_CREAT), &["none/new"], ENOENT),
    (|paths| opened(&paths[0], O_WRONLY | O_CREAT | O_EXCL), &["f"], EEXIST),
    (|paths| opened(&paths[0], O_WRONLY | O_CREAT | O_EXCL), &["x"], EEXIST),
    (|paths| opened(&paths[0], O_WRONLY | O_CREAT | O_TRUNC), &["f"], 0),
    (|paths| opened(&paths[0], O_WRONLY | O_CREAT), &[LONG], ENAMETOOLONG),
    (write_on_read_only, &["f"], EBADF),
    (seek_negative, &["empty"], EINVAL),
    (call!(truncate(0, { 3 })), &["f"], 0),
    (call!(truncate(0, { 1 << 20 })), &["f"], 0),
    (call!(truncate(0, { 3 })), &["none"], ENOENT),
    (call!(truncate(0, { 3 })), &["d"], EISDIR),
    (call!(truncate(0, { -1 })), &["f"], EINVAL),
    (call!(chmod(0, { 0o600 })), &["f"], 0),
    (call!(chmod(0, { 0o600 })), &["none"], ENOENT),
    (call!(chmod(0, { 0o600 })), &["f/none"], ENOTDIR),
    (call!(chown(0, { 77 }, { 78 })), &["f"], 0),
    (call!(lchown(0, { 77 }, { 78 })), &["l"], 0),
    (call!(chown(0, { 77 }, { 78 })), &["none"], ENOENT),
    (call!(access(0, { libc::R_OK | libc::W_OK })), &["f"], 0),
    (call!(access(0, { libc::X_OK })), &["f"], EACCES),
    (call!(access(0, { libc::F_OK })), &["none"], ENOENT),
    (|paths| read_xattr(paths, 10), &["f"], ENODATA),
    (|paths| write_xattr(paths, libc::XATTR_REPLACE), &["f"], ENODATA),
    (|paths| write_xattr(paths, libc::XATTR_CREATE), &["f"], 0),
    (|paths| write_xattr(paths, 0).min(read_xattr(paths, 2)), &["f"], ERANGE),
    (|paths| write_xattr(paths, 0).min(write_xattr(paths, libc::XATTR_CREATE)), &["f"], EEXIST),
];

/// Makes what the cases need anew.
fn prepare(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
    std::fs::create_dir(directory).unwrap();
    let here = |name: &str| directory.join(name);
    std::fs::write(here("f"), b"data").unwrap();
    std::fs::write(here("empty"), b"").unwrap();
    std::fs::create_dir(here("d")).unwrap();
    std::fs::create_dir(here("e")).unwrap();
    std::fs::write(here("e/f"), b"other").unwrap();
    for (target, name) in [("f", "l"), ("d", "dl"), ("nowhere", "x"), ("o", "o")] {
        std::os::unix::fs::symlink(target, here(name)).unwrap();
    }
}

fn path(directory: &Path, name: &str) -> CString {
    let path = match name.strip_prefix('@') {
        Some(plain) => plain.to_owned(),
        None if name == LONG => format!("{}/{}", directory.display(), "n".repeat(256)),
        None => format!("{}/{name}", directory.display()),
    };
    CString::new(path).unwrap()
}

/// Tries every case in a new directory; complaints.
pub(crate) fn complaints(directory: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    for (call, names, expected) in CASES {
        let here = directory.join("case");
        prepare(&here);
        let paths: Vec<_> = names.iter().map(|name| path(&here, name)).collect();
        let done = call(&paths);
        let seen = if done < 0 { io::Error::last_os_error().raw_os_error().unwrap_or(0) } else { 0 };
        if seen != *expected {
            complaints.push(format!("{names:?}: {} instead of {}", word(seen), word(*expected)));
        }
    }
    complaints
}

/// Complaints that are as they should be: files over objects have no hard links, because an inode lies in its entry.
pub(crate) fn exceptions(kind: Kind) -> Vec<String> {
    let of_dfs = r#"["f", "new"]: Operation not permitted (os error 1) instead of no error"#;
    if kind == Kind::Dfs { vec![of_dfs.to_owned()] } else { Vec::new() }
}

fn word(errno: c_int) -> String {
    if errno == 0 { "no error".to_owned() } else { io::Error::from_raw_os_error(errno).to_string() }
}
