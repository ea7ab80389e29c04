//! Ceph RADOS: librados at run time, the connection to a cluster, completions, and how objects, keys and arrays lie in a pool.
//!
//! A container is a RADOS namespace of the pool, marked by one object. Below it:
//!
//! | what | RADOS object | in it |
//! |---|---|---|
//! | value of a key (key-value objects; any single value without an akey) | `OID/DKEY` | its data |
//! | single value under an akey | `OID/DKEY` | an omap entry of the akey's name |
//! | extents under an akey | `OID/DKEY/AKEY` (`OID/DKEY` without an akey) | its data |
//! | chunk `n` of an array | `OID/#n+1` | its data |
//! | attributes of an array | `OID/#0` | cell and chunk size; largest chunk as an extended attribute |
//!
//! A load that gives its objects names of their own has them under these names, in the namespace that it names or in none, without a
//! container: each is one RADOS object of extents, which carries the mark of the run that made it.

pub(crate) mod cluster;
pub(crate) mod layout;
pub(crate) mod library;
pub(crate) mod marks;
pub(crate) mod parts;
