//! Processes for which the kernel has no Landlock.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Has the process that is started, and all that it starts, find a kernel without Landlock: its calls fail with `ENOSYS` (seccomp(2)).
pub fn without_landlock(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec it makes two system calls and allocates nothing.
    unsafe { command.pre_exec(block) }
}

fn block() -> io::Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = [
        // The number of the call is the first field of `seccomp_data`.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_landlock_create_ruleset as u32)
        },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the calls take numbers, and the address of a program that lives until the second has copied it.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}
