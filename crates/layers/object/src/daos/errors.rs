//! Error codes of libdaos, as `daos_errno.h` has them.

use driver::Error;

/// Code, errno, name, words.
const CODES: &[(i32, i32, &str, &str)] = &[
    (
        1001,
        libc::EPERM,
        "DER_NO_PERM",
        "not permitted: by the access list, or because the object does not support the operation",
    ),
    (1002, libc::EBADF, "DER_NO_HDL", "the handle is no longer valid"),
    (1003, libc::EINVAL, "DER_INVAL", "bad parameters"),
    (1004, libc::EEXIST, "DER_EXIST", "already exists"),
    (1005, libc::ENOENT, "DER_NONEXIST", "does not exist"),
    (1006, libc::EHOSTUNREACH, "DER_UNREACH", "the node is unreachable"),
    (1007, libc::ENOSPC, "DER_NOSPACE", "no space on the storage target"),
    (1008, libc::EALREADY, "DER_ALREADY", "the operation was already done"),
    (1009, libc::ENOMEM, "DER_NOMEM", "out of memory"),
    (1010, libc::ENOSYS, "DER_NOSYS", "not implemented"),
    (1011, libc::ETIMEDOUT, "DER_TIMEDOUT", "time-out"),
    (1012, libc::EBUSY, "DER_BUSY", "busy"),
    (1013, libc::EAGAIN, "DER_AGAIN", "try the operation again"),
    (1014, libc::EPROTO, "DER_PROTO", "client and servers use different versions"),
    (1015, libc::ENXIO, "DER_UNINIT", "the library is not initialized"),
    (1016, libc::EOVERFLOW, "DER_TRUNC", "the buffer is too short"),
    (1017, libc::EOVERFLOW, "DER_OVERFLOW", "the data is too long for its type or buffer"),
    (1018, libc::ECANCELED, "DER_CANCELED", "canceled"),
    (1019, libc::EHOSTUNREACH, "DER_OOG", "not a member of the group"),
    (1020, libc::ECOMM, "DER_HG", "the transport failed"),
    (1021, libc::EPROTO, "DER_UNREG", "the servers do not know this RPC or its version"),
    (1022, libc::EADDRNOTAVAIL, "DER_ADDRSTR_GEN", "an address could not be created"),
    (1023, libc::EIO, "DER_PMIX", "PMIx failed"),
    (1024, libc::EIO, "DER_IVCB_FORWARD", "an incast variable is missing and must be forwarded"),
    (1025, libc::EIO, "DER_MISC", "an error without a specific code"),
    (1026, libc::ENOTDIR, "DER_BADPATH", "bad path"),
    (1027, libc::ENOTDIR, "DER_NOTDIR", "not a directory"),
    (1028, libc::EIO, "DER_CORPC_INCOMPLETE", "a collective RPC failed on some of its ranks"),
    (1029, libc::EIO, "DER_NO_RAS_RANK", "no rank accepts RAS events"),
    (1030, libc::ENOTCONN, "DER_NOTATTACH", "not attached to the service group"),
    (1031, libc::EPROTO, "DER_MISMATCH", "versions do not match"),
    (1032, libc::EHOSTUNREACH, "DER_EXCLUDED", "the rank was excluded from the system"),
    (1033, libc::EIO, "DER_NOREPLY", "the server did not answer"),
    (1034, libc::ENOMEM, "DER_DOS", "rejected because of too many requests"),
    (1035, libc::EINVAL, "DER_BAD_TARGET", "the RPC reached the wrong target"),
    (1036, libc::ESTALE, "DER_GRPVER", "the group has another version"),
    (1037, libc::EIO, "DER_HLC_SYNC", "the clocks of client and servers are too far apart"),
    (1038, libc::ENOMEM, "DER_NO_SHMEM", "not enough shared memory"),
    (1039, libc::EIO, "DER_ADD_METRIC_FAILED", "a metric could not be added"),
    (1040, libc::EINVAL, "DER_DURATION_MISMATCH", "the end of a duration has no start"),
    (1041, libc::EPERM, "DER_OP_NOT_PERMITTED", "not supported for metrics of this type"),
    (1042, libc::ENAMETOOLONG, "DER_EXCEEDS_PATH_LEN", "the path of a metric is too long"),
    (1043, libc::ENOENT, "DER_METRIC_NOT_FOUND", "the metric does not exist"),
    (1044, libc::EACCES, "DER_SHMEM_PERMS", "no permission for the shared memory"),
    (1045, libc::ECOMM, "DER_HG_FATAL", "the transport failed permanently"),
    (1046, libc::EDQUOT, "DER_QUOTA_LIMIT", "a quota is exhausted"),
    (2001, libc::EIO, "DER_IO", "I/O error"),
    (2002, libc::EIO, "DER_FREE_MEM", "memory could not be freed"),
    (2003, libc::ENOENT, "DER_ENOENT", "no such entry"),
    (2004, libc::EINVAL, "DER_NOTYPE", "unknown object type"),
    (2005, libc::EINVAL, "DER_NOSCHEMA", "unknown object schema"),
    (2006, libc::EINVAL, "DER_NOLOCAL", "the object is not on this target"),
    (2007, libc::ESTALE, "DER_STALE", "the pool map has an older version"),
    (2008, libc::EAGAIN, "DER_NOTLEADER", "not the leader of the service"),
    (2009, libc::EIO, "DER_TGT_CREATE", "a target could not be created"),
    (2010, libc::EROFS, "DER_EP_RO", "the epoch is read-only"),
    (2011, libc::EPERM, "DER_EP_OLD", "the epoch is too old: its data no longer exist"),
    (2012, libc::EMSGSIZE, "DER_KEY2BIG", "the key is too large"),
    (2013, libc::EOVERFLOW, "DER_REC2BIG", "the value is larger than the buffer"),
    (2014, libc::EINVAL, "DER_IO_INVAL", "buffers and extents do not match"),
    (2015, libc::EBUSY, "DER_EQ_BUSY", "the event queue is busy"),
    (2016, libc::EINVAL, "DER_DOMAIN", "the fault domains do not match"),
    (2017, libc::ESHUTDOWN, "DER_SHUTDOWN", "the service must shut down"),
    (2018, libc::EINPROGRESS, "DER_INPROGRESS", "the operation is already in progress"),
    (2019, libc::EINVAL, "DER_NOTAPPLICABLE", "not applicable"),
    (2020, libc::EAGAIN, "DER_NOTREPLICA", "not a replica of the service"),
    (2021, libc::EBADMSG, "DER_CSUM", "the checksum does not match"),
    (2022, libc::EINVAL, "DER_DF_INVAL", "the on-media format is unknown"),
    (2023, libc::EPROTO, "DER_DF_INCOMPT", "the on-media format has another version"),
    (2024, libc::EINVAL, "DER_REC_SIZE", "the record has another size"),
    (2025, libc::ERESTART, "DER_TX_RESTART", "the transaction must be restarted"),
    (2026, libc::EIO, "DER_DATA_LOSS", "data were lost"),
    (2027, libc::ECANCELED, "DER_OP_CANCELED", "the operation was canceled"),
    (2028, libc::EBUSY, "DER_TX_BUSY", "a transaction is not committed yet"),
    (2029, libc::EPROTO, "DER_AGENT_INCOMPAT", "daos_agent and libdaos have different versions"),
    (2030, libc::EAGAIN, "DER_NEED_TX", "the operation requires a distributed transaction"),
    (2031, libc::EIO, "DER_RF", "more failures than the redundancy factor covers: data may be lost"),
    (2032, libc::EAGAIN, "DER_FETCH_AGAIN", "fetch again"),
    (2033, libc::EAGAIN, "DER_TX_UNCERTAIN", "it is unknown whether the transaction is committed"),
    (2034, libc::ECOMM, "DER_AGENT_COMM", "daos_agent does not answer"),
    (2035, libc::EINVAL, "DER_ID_MISMATCH", "ids do not match"),
    (2036, libc::EAGAIN, "DER_TGT_RETRY", "try another target"),
    (2037, libc::ENOTSUP, "DER_NOTSUPPORTED", "not supported"),
    (2038, libc::EPROTO, "DER_CONTROL_INCOMPAT", "components of the control plane have different versions"),
    (2039, libc::EHOSTUNREACH, "DER_NO_SERVICE", "the service is not available"),
    (2040, libc::EAGAIN, "DER_TX_ID_REUSED", "the transaction id may have been reused"),
    (2041, libc::EAGAIN, "DER_UPDATE_AGAIN", "update again"),
    (2042, libc::EIO, "DER_NVME_IO", "I/O error of an NVMe drive"),
    (2043, libc::EACCES, "DER_NO_CERT", "a certificate cannot be read"),
    (2044, libc::EACCES, "DER_BAD_CERT", "a certificate is not valid"),
    (2045, libc::EINVAL, "DER_VOS_PARTIAL_UPDATE", "part of an array value was written twice in one epoch"),
    (2046, libc::EBUSY, "DER_CHKPT_BUSY", "read-only during a checkpoint"),
    (2047, libc::EDOM, "DER_DIV_BY_ZERO", "division by zero"),
    (2048, libc::EAGAIN, "DER_OVERLOAD_RETRY", "the service is overloaded"),
    (2049, libc::EIO, "DER_NOT_RESUME", "an interrupted check of the system cannot be resumed"),
    (2050, libc::ENOENT, "DER_CONT_NONEXIST", "the container does not exist"),
    (2051, libc::EPERM, "DER_CONT_DESTROYING", "the container is being destroyed"),
    (2052, libc::EIO, "DER_IGNORE", "to be ignored"),
];

/// Results that are told apart.
pub(crate) const NO_PERMISSION: i32 = -1001;
pub(crate) const INVALID: i32 = -1003;
pub(crate) const EXISTS: i32 = -1004;
pub(crate) const NONEXISTENT: i32 = -1005;
pub(crate) const TIMED_OUT: i32 = -1011;
pub(crate) const BUSY: i32 = -1012;

/// Codes that tell of the agent, and of engines that do not answer.
const OF_AGENT: &[i32] = &[2029, 2034, 2038, 2043, 2044];
const OF_ENGINES: &[i32] = &[1006, 1011, 1018, 1019, 1020, 1032, 1033, 1045, 2017, 2039];

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

/// The error of a call; where the code tells whose fault it is, with what to look at.
pub(crate) fn failed(message: impl Into<String>, code: i32) -> Error {
    let error = Error::system("daos", message, std::io::Error::from_raw_os_error(errno(code)))
        .with("daos", words(code));
    let number = code.wrapping_neg();
    if OF_AGENT.contains(&number) {
        error.remedy(
            "check that daos_agent runs on this host, has the same version as libdaos, and uses the directory DAOS_AGENT_DRPC_DIR",
        )
    } else if OF_ENGINES.contains(&number) {
        error.remedy("the engines do not answer: run dmg system query and dmg pool query")
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_libdaos_has_words() {
        let numbers: Vec<i32> = CODES.iter().map(|code| code.0).collect();
        let known: Vec<i32> = (1001..=1046).chain(2001..=2052).collect();
        assert_eq!(numbers, known, "daos_errno.h of DAOS 2.8 has 1001 to 1046 and 2001 to 2052");
        for (code, errno, name, words) in CODES {
            assert!(*errno > 0 && name.starts_with("DER_") && !words.is_empty(), "{code}");
        }
        assert_eq!((errno(-1005), errno(-1007), errno(-2021)), (libc::ENOENT, libc::ENOSPC, libc::EBADMSG));
        assert_eq!(words(-1007), "-DER_NOSPACE (-1007): no space on the storage target");
        assert_eq!((errno(-4711), words(-4711).as_str()), (libc::EIO, "DAOS error -4711"));
        assert_eq!(errno(i32::MIN), libc::EIO);
    }

    #[test]
    fn whose_fault_it_is_follows_from_the_code() {
        let told = |code| failed("no", code).to_string();
        assert!(told(-2034).contains("daos_agent") && !told(-2034).contains("engines"), "{}", told(-2034));
        for code in [-1006, -1011, -1020, -2039] {
            assert!(told(code).contains("engines") && !told(code).contains("agent"), "{}", told(code));
        }
        assert!(!told(-1007).contains("agent") && !told(-1007).contains("engines"));
    }
}
