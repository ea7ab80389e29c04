//! The error of the hot path: small, copied, never formatted.

use std::fmt;

/// Why an operation on a target was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such key, object or container, or it was punched.
    NotFound,
    /// The log (mapped memory) is full. What was acknowledged stays readable; punch and aggregate still work.
    ScmFull,
    /// The data file is full. As above.
    NvmeFull,
    /// A checksum does not match: the data is not returned. [`super::Target::take_findings`] names object, dkey and akey.
    Damaged,
    /// The buffer is smaller than the single value: nothing was copied. [`super::Target::size_of`] tells how much is needed.
    BufferTooSmall,
    /// The value is larger than [`super::Target::value_bytes_max`].
    TooLarge,
    /// A key is longer than 65535 bytes, or an extent ends beyond 2^64 bytes.
    InvalidKey,
    /// The akey holds a single value where an extent was meant, or an extent where a single value was.
    WrongKind,
    /// There is a value where none may be.
    Exists,
    /// The value was replaced since it was read.
    Changed,
    /// The operating system failed a read, write or sync; the number is its errno.
    System(i32),
    /// An earlier write of the log failed: what comes after it cannot be made durable, so nothing more is taken.
    Broken,
}

impl StoreError {
    /// Its errno (positive).
    #[must_use]
    pub fn errno(self) -> i32 {
        match self {
            Self::NotFound => libc::ENOENT,
            Self::ScmFull | Self::NvmeFull => libc::ENOSPC,
            Self::Damaged => libc::EBADMSG,
            Self::BufferTooSmall => libc::EOVERFLOW,
            Self::TooLarge => libc::EFBIG,
            Self::InvalidKey | Self::WrongKind => libc::EINVAL,
            Self::Exists => libc::EEXIST,
            Self::Changed => libc::EAGAIN,
            Self::System(errno) => errno,
            Self::Broken => libc::EROFS,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotFound => "no such key, object or container",
            Self::ScmFull => "the log (--scm) is full",
            Self::NvmeFull => "the data file (--nvme) is full",
            Self::Damaged => "the checksum does not match",
            Self::BufferTooSmall => "the buffer is smaller than the value",
            Self::TooLarge => "the value is larger than a segment of the log",
            Self::InvalidKey => "the key is too long, or the end of the extent is too large",
            Self::WrongKind => "the akey holds the other kind of value",
            Self::Exists => "a value already exists",
            Self::Changed => "the value was replaced in the meantime",
            Self::System(errno) => return std::io::Error::from_raw_os_error(*errno).fmt(f),
            Self::Broken => "an earlier write to the log failed",
        })
    }
}

impl std::error::Error for StoreError {}

/// The error of the operating system that its errno stands for.
impl From<StoreError> for std::io::Error {
    fn from(error: StoreError) -> Self {
        Self::from_raw_os_error(error.errno())
    }
}
