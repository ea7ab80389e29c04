//! Error codes of libdaos, as `daos_errno.h` has them.

use driver::Error;

/// Code, errno, name, words.
const CODES: &[(i32, i32, &str, &str)] = &[
    (1001, libc::EPERM, "DER_NO_PERM", "no permission"),
    (1002, libc::EBADF, "DER_NO_HDL", "the handle is not valid any more"),
    (1003, libc::EINVAL, "DER_INVAL", "bad parameters"),
    (1004, libc::EEXIST, "DER_EXIST", "it exists already"),
    (1005, libc::ENOENT, "DER_NONEXIST", "it does not exist"),
    (1006, libc::EHOSTUNREACH, "DER_UNREACH", "the node cannot be reached"),
    (1007, libc::ENOSPC, "DER_NOSPACE", "no space on the storage target"),
    (1008, libc::EALREADY, "DER_ALREADY", "it was done already"),
    (1009, libc::ENOMEM, "DER_NOMEM", "out of memory"),
    (1010, libc::ENOSYS, "DER_NOSYS", "not implemented"),
    (1011, libc::ETIMEDOUT, "DER_TIMEDOUT", "time-out"),
    (1012, libc::EBUSY, "DER_BUSY", "busy"),
    (1013, libc::EAGAIN, "DER_AGAIN", "to be tried again"),
    (1014, libc::EPROTO, "DER_PROTO", "client and servers speak different versions"),
    (1015, libc::ENXIO, "DER_UNINIT", "the library is not initialized"),
    (1016, libc::EOVERFLOW, "DER_TRUNC", "the buffer is too short"),
    (1017, libc::EOVERFLOW, "DER_OVERFLOW", "the data is too long for the buffer"),
    (1018, libc::ECANCELED, "DER_CANCELED", "cancelled"),
    (1019, libc::EHOSTUNREACH, "DER_OOG", "not a member of the group"),
    (1020, libc::ECOMM, "DER_HG", "the transport failed"),
    (1025, libc::EIO, "DER_MISC", "another error"),
    (2001, libc::EIO, "DER_IO", "I/O error"),
    (2003, libc::ENOENT, "DER_ENOENT", "no such entry"),
    (2004, libc::EINVAL, "DER_NOTYPE", "unknown object type"),
    (2007, libc::ESTALE, "DER_STALE", "the pool map is of an older version"),
    (2010, libc::EROFS, "DER_EP_RO", "the epoch is read-only"),
    (2012, libc::EMSGSIZE, "DER_KEY2BIG", "the key is too large"),
    (2013, libc::EOVERFLOW, "DER_REC2BIG", "the value is larger than the buffer"),
    (2014, libc::EINVAL, "DER_IO_INVAL", "buffers and extents do not match"),
    (2015, libc::EBUSY, "DER_EQ_BUSY", "the event queue is busy"),
    (2021, libc::EBADMSG, "DER_CSUM", "the checksum does not match"),
];

fn entry(code: i32) -> Option<&'static (i32, i32, &'static str, &'static str)> {
    CODES.iter().find(|entry| entry.0 == code.wrapping_neg())
}

/// The errno of a result (negative); EIO where the code is not known.
pub(crate) fn errno(code: i32) -> i32 {
    entry(code).map_or(libc::EIO, |entry| entry.1)
}

/// Name, number and words of a result (negative).
pub(crate) fn words(code: i32) -> String {
    match entry(code) {
        Some((_, _, name, words)) => format!("-{name} ({code}): {words}"),
        None => format!("DAOS error {code}"),
    }
}

/// The error of a call.
pub(crate) fn failed(message: impl Into<String>, code: i32) -> Error {
    Error::system("daos", message, std::io::Error::from_raw_os_error(errno(code))).with("daos", words(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_ordered_and_known() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!((errno(-1005), errno(-1007), errno(-2021)), (libc::ENOENT, libc::ENOSPC, libc::EBADMSG));
        assert_eq!(words(-1007), "-DER_NOSPACE (-1007): no space on the storage target");
        assert_eq!((errno(-4711), words(-4711).as_str()), (libc::EIO, "DAOS error -4711"));
        assert_eq!(errno(i32::MIN), libc::EIO);
    }
}
