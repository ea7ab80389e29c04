//! DAOS: libdaos at run time, its structures, its error codes.

pub(crate) mod abi;
pub(crate) mod calls;
pub(crate) mod errors;
pub(crate) mod library;
pub(crate) mod session;
