//! Calls that are taken over, as the report counts them.

macro_rules! calls {
    ($($call:ident $name:literal)*) => {
        /// A call, by the plainest name of its family.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Call {
            $($call),*
        }

        /// Names of the calls, in their order.
        pub(crate) const NAMES: &[&str] = &[$($name),*];
    };
}

calls! {
    Open "open"
    Read "read"
    Write "write"
    Lseek "lseek"
    Stat "stat"
    Fstat "fstat"
    Truncate "truncate"
    Ftruncate "ftruncate"
    Fsync "fsync"
    Fallocate "fallocate"
    Dup "dup"
    Fcntl "fcntl"
    Close "close"
    Mmap "mmap"
    Sendfile "sendfile"
    CopyFileRange "copy_file_range"
    Fopen "fopen"
    Fclose "fclose"
    Access "access"
    Opendir "opendir"
    Readdir "readdir"
    Closedir "closedir"
    Seekdir "seekdir"
    Unlink "unlink"
    Rmdir "rmdir"
    Mkdir "mkdir"
    Rename "rename"
    Symlink "symlink"
    Readlink "readlink"
    Link "link"
    Chmod "chmod"
    Chown "chown"
    Utimens "utimens"
    Getxattr "getxattr"
    Setxattr "setxattr"
    Listxattr "listxattr"
    Removexattr "removexattr"
    Umask "umask"
}
