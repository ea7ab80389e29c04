//! Error codes of libcufile (cufile.h, `CUfileOpError`), and what helps.

use std::ffi::c_int;

/// Codes are counted from here.
const BASE: c_int = 5000;
/// The driver of GPUDirect Storage is open already.
pub(super) const ALREADY_OPEN: c_int = BASE + 26;
/// Errno of what has none of its own: an input/output error.
const EIO: i64 = 5;

const NAMES: &[(c_int, &str)] = &[
    (1, "CU_FILE_DRIVER_NOT_INITIALIZED"),
    (2, "CU_FILE_DRIVER_INVALID_PROPS"),
    (3, "CU_FILE_DRIVER_UNSUPPORTED_LIMIT"),
    (4, "CU_FILE_DRIVER_VERSION_MISMATCH"),
    (5, "CU_FILE_DRIVER_VERSION_READ_ERROR"),
    (6, "CU_FILE_DRIVER_CLOSING"),
    (7, "CU_FILE_PLATFORM_NOT_SUPPORTED"),
    (8, "CU_FILE_IO_NOT_SUPPORTED"),
    (9, "CU_FILE_DEVICE_NOT_SUPPORTED"),
    (10, "CU_FILE_NVFS_DRIVER_ERROR"),
    (11, "CU_FILE_CUDA_DRIVER_ERROR"),
    (12, "CU_FILE_CUDA_POINTER_INVALID"),
    (13, "CU_FILE_CUDA_MEMORY_TYPE_INVALID"),
    (14, "CU_FILE_CUDA_POINTER_RANGE_ERROR"),
    (15, "CU_FILE_CUDA_CONTEXT_MISMATCH"),
    (16, "CU_FILE_INVALID_MAPPING_SIZE"),
    (17, "CU_FILE_INVALID_MAPPING_RANGE"),
    (18, "CU_FILE_INVALID_FILE_TYPE"),
    (19, "CU_FILE_INVALID_FILE_OPEN_FLAG"),
    (20, "CU_FILE_DIO_NOT_SET"),
    (22, "CU_FILE_INVALID_VALUE"),
    (23, "CU_FILE_MEMORY_ALREADY_REGISTERED"),
    (24, "CU_FILE_MEMORY_NOT_REGISTERED"),
    (25, "CU_FILE_PERMISSION_DENIED"),
    (26, "CU_FILE_DRIVER_ALREADY_OPEN"),
    (27, "CU_FILE_HANDLE_NOT_REGISTERED"),
    (28, "CU_FILE_HANDLE_ALREADY_REGISTERED"),
    (29, "CU_FILE_DEVICE_NOT_FOUND"),
    (30, "CU_FILE_INTERNAL_ERROR"),
    (31, "CU_FILE_GETNEWFD_FAILED"),
    (33, "CU_FILE_NVFS_SETUP_ERROR"),
    (34, "CU_FILE_IO_DISABLED"),
    (35, "CU_FILE_BATCH_SUBMIT_FAILED"),
    (36, "CU_FILE_GPU_MEMORY_PINNING_FAILED"),
    (37, "CU_FILE_BATCH_FULL"),
    (38, "CU_FILE_ASYNC_NOT_SUPPORTED"),
    (39, "CU_FILE_INTERNAL_BATCH_SETUP_ERROR"),
    (40, "CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR"),
    (41, "CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR"),
    (42, "CU_FILE_INTERNAL_BATCH_CANCEL_ERROR"),
    (43, "CU_FILE_NOMEM_ERROR"),
    (44, "CU_FILE_IO_ERROR"),
    (45, "CU_FILE_INTERNAL_BUF_REGISTER_ERROR"),
    (46, "CU_FILE_HASH_OPR_ERROR"),
    (47, "CU_FILE_INVALID_CONTEXT_ERROR"),
    (48, "CU_FILE_NVFS_INTERNAL_DRIVER_ERROR"),
    (49, "CU_FILE_BATCH_NOCOMPAT_ERROR"),
    (50, "CU_FILE_IO_MAX_ERROR"),
];

/// Name of a code as its header has it.
pub(super) fn name_of(code: c_int) -> String {
    let known = NAMES.iter().find(|(number, _)| BASE + number == code.abs());
    known.map_or_else(|| format!("error {code}"), |(_, name)| (*name).to_owned())
}

/// Remedy of a code.
pub(super) fn remedy(code: c_int) -> Option<&'static str> {
    Some(match code - BASE {
        1 => {
            "load the kernel module nvidia-fs, or allow compatibility mode (allow_compat_mode in cufile.json)"
        }
        7 | 9 => "this device or machine has no GPUDirect Storage: use --gpu-path staged",
        8 | 19 | 20 => {
            "give --direct, or use --gpu-path staged: the file system or its open flags are not supported"
        }
        11 | 15 | 47 => "check that the device works (nvidia-smi)",
        16 | 17 | 36 | 45 => {
            "use smaller blocks or a lower queue depth: the memory that the device can map (BAR1) is limited"
        }
        27 => {
            "in a container, mount the device database of the host (/run/udev): the library reads the file system from it"
        }
        18 => "use a file or a block device",
        _ => return None,
    })
}

/// A negative result of a request as a negated errno, which it is already where it is no code of the library.
pub(super) fn as_errno(result: isize) -> i64 {
    if result > -BASE as isize {
        return result as i64;
    }
    let code = c_int::try_from(-result).unwrap_or(0) - BASE;
    -match code {
        8 | 34 | 38 | 49 => 95,
        12..=17 | 22 => 22,
        25 => 13,
        43 => 12,
        _ => EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_and_errnos() {
        assert_eq!(name_of(5001), "CU_FILE_DRIVER_NOT_INITIALIZED");
        assert_eq!(name_of(-5044), "CU_FILE_IO_ERROR");
        assert_eq!(name_of(7), "error 7");
        assert_eq!(as_errno(-28), -28);
        assert_eq!([as_errno(-5008), as_errno(-5022), as_errno(-5044), as_errno(-9999)], [-95, -22, -5, -5]);
        assert!(remedy(5027).is_some_and(|remedy| remedy.contains("/run/udev")));
    }
}
