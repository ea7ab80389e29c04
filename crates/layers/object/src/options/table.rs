//! The table of options of a load on an object store.

use layer::CacheBefore;
use units::{ParseError, parse_u64_in};
use vos::{Allocation, Checksum, Durability, Flush};
use workload::options::OptionDef;
use workload::options::masters::{tls, token_file};
use workload::options::value::{above_zero, count, label, ladder, nonzero_size, path, some_text, word};
use workload::spec::choice;
use workload::{as_shared, option, own_of, switch_of};

use super::value::{epoch, names, positive, prefix, quadruple, s3_endpoints};
use crate::plan::{
    Addressing, ObjectSpec, PunchScope, S3Key, Scope, Signing, ValueKind, parse_mix, parse_operations,
};

macro_rules! own {
    ($($option:tt)*) => {
        own_of!(ObjectSpec, $($option)*)
    };
}

macro_rules! own_switch {
    ($($option:tt)*) => {
        switch_of!(ObjectSpec, $($option)*)
    };
}

/// Options of a load on an object store, besides [`super::COMMON`].
pub static OBJECT: &[OptionDef] = &[
    option!(
        "op",
        None,
        "OP[,OP...]",
        "none: one of --op, --mix and --sequence is required",
        Workload,
        "put, get, remove, list, stat (keys); write, read, size, create, open, open-with-attr, destroy (arrays); update, fetch, punch, query, iterate (dkeys and akeys); open-container, allocate-ids, aggregate, discard, collect; a list runs one phase per operation",
        |spec, text| {
            ObjectSpec::of_mut(spec).operations = parse_operations("op", text)?;
            Ok(())
        }
    ),
    own!(
        "mix",
        None,
        "OP=PERCENT,...",
        "none",
        Workload,
        "One phase of several operations, interleaved in an exact ratio: get=70,put=30 (or get:70,put:30)",
        mix,
        |text| parse_mix(text).map(|_| text.to_owned())
    ),
    option!(
        "sequence",
        None,
        "OP,OP,...",
        "none",
        Workload,
        "One phase that runs these operations in order for each record: open,read",
        |spec, text| {
            ObjectSpec::of_mut(spec).sequence = parse_operations("sequence", text)?;
            Ok(())
        }
    ),
    own!("objects", None, "N", "1", Workload, "Objects", objects, |text| positive("objects", text)),
    option!(
        "object-names",
        None,
        "NAME[,NAME...]",
        "none: names are derived from ids",
        Workload,
        "rados: each object is a pool object with this name (outside any namespace if the target names none); for update, fetch and punch of extents; \\ before a comma or a blank makes it part of the name",
        |spec, text| {
            ObjectSpec::of_mut(spec).object_names = names("object-names", text)?;
            Ok(())
        }
    ),
    own!(
        "dkeys",
        None,
        "N",
        "10000; for arrays, given by their chunks",
        Workload,
        "Dkeys per object: the keys of a key-value object",
        dkeys,
        |text| positive("dkeys", text)
    ),
    own!("akeys", None, "N", "1", Workload, "Akeys per dkey", akeys, |text| positive("akeys", text)),
    own!(
        "records",
        None,
        "N",
        "1; 256 for an array",
        Workload,
        "Records per akey or array: each operation moves one record; for a single value, records are versions",
        records,
        |text| positive("records", text)
    ),
    own!(
        "value",
        None,
        "single|array",
        "single for dkeys and akeys",
        Workload,
        "Kind of value under an akey: one value that is always written whole, or records in extents",
        value,
        |text| choice("value", text, &[("single", ValueKind::Single), ("array", ValueKind::Array)])
    ),
    own!(
        "value-size",
        Some('s'),
        "SIZE",
        "4k; 1m for arrays",
        Workload,
        "Bytes per record: 4k, a range 1k-64k, or shares 4k:70,64k:30; the number of a record determines its size",
        value_size,
        |text: &str| text.parse::<workload::block_size::BlockSizes>().map(|_| text.to_owned())
    ),
    own!(
        "stride",
        None,
        "SIZE",
        "the largest value",
        Workload,
        "Distance between the records of an array",
        stride,
        |text| nonzero_size("stride", text)
    ),
    own!(
        "record-offset",
        None,
        "SIZE",
        "0",
        Workload,
        "Offset of a record within its stride",
        record_offset,
        str::parse
    ),
    own!(
        "first",
        None,
        "O,D,A,R",
        "0,0,0,0",
        Workload,
        "First object, dkey, akey and record: the phase works on a part of the stored data",
        first,
        |text| quadruple("first", text, 0)
    ),
    own!(
        "whole",
        None,
        "O,D,A,R",
        "the end of --first plus the counts",
        Workload,
        "Total objects, dkeys, akeys and records stored, if the phase works on a part of them",
        whole,
        |text| quadruple("whole", text, 1)
    ),
    own_switch!(
        "integer-dkeys",
        "off",
        Workload,
        "Use 64-bit numbers as dkeys instead of names",
        integer_dkeys
    ),
    own_switch!(
        "constant-akey",
        "off",
        Workload,
        "Use the same akey names under all dkeys; default: each name occurs once per object",
        constant_akey
    ),
    own!(
        "dkey-prefix",
        None,
        "TEXT",
        "blade-",
        Workload,
        "Prefix of the names of dkeys and keys; their number follows",
        dkey_prefix,
        |text| prefix("dkey-prefix", text)
    ),
    own!(
        "akey-prefix",
        None,
        "TEXT",
        "akey--",
        Workload,
        "Prefix of the names of akeys; their number follows",
        akey_prefix,
        |text| prefix("akey-prefix", text)
    ),
    own!("first-id", None, "N", "1", Workload, "Id of the first object", first_id, |text| {
        parse_u64_in("first-id", text, 0..=u64::MAX)
    }),
    own!(
        "rank-shift",
        None,
        "N",
        "0",
        Workload,
        "For phases that only read: each worker reads the data of the worker N positions later, on another host if there are several",
        rank_shift,
        |text| count("rank-shift", text, 0, u64::from(u32::MAX))
    ),
    own!(
        "object-scope",
        None,
        "shared|private",
        "shared",
        Workload,
        "Whether workers share the objects, or each worker has its own set of --objects to --records",
        object_scope,
        |text| scope("object-scope", text)
    ),
    own!(
        "container",
        None,
        "LABEL",
        "the one named by the target, or strata",
        Workload,
        "Container",
        container,
        |text| label("container", text)
    ),
    own!(
        "containers",
        None,
        "shared|private",
        "shared",
        Workload,
        "Whether workers share one container, or each has its own (LABEL.WORKER)",
        containers,
        |text| scope("containers", text)
    ),
    own!(
        "class",
        None,
        "CLASS",
        "SX; S1 on a store with one target",
        Workload,
        "Object class: S1 to SX, RP_2G1, RP_3GX, EC_2P1G1, EC_4P2GX, ...",
        class,
        str::parse
    ),
    own!("cell-size", None, "SIZE", "1", Workload, "Bytes per array cell", cell_size, |text| {
        nonzero_size("cell-size", text)
    }),
    own!(
        "chunk-size",
        None,
        "SIZE",
        "1m",
        Workload,
        "Bytes per array chunk: the data under one dkey; a multiple of the cell size",
        chunk_size,
        |text| nonzero_size("chunk-size", text)
    ),
    own!(
        "punch",
        None,
        "record|akey|dkey|object",
        "record",
        Workload,
        "What one punch removes",
        punch,
        |text| {
            let choices = [
                ("record", PunchScope::Record),
                ("akey", PunchScope::Akey),
                ("dkey", PunchScope::Dkey),
                ("object", PunchScope::Object),
            ];
            choice("punch", text, &choices)
        }
    ),
    own!("list-max", None, "N", "1000", Workload, "Maximum number of keys per list", list_max, |text| {
        count("list-max", text, 1, 1 << 20)
    }),
    own!("ids-per-call", None, "N", "1", Workload, "Object ids per allocation", ids_per_call, |text| count(
        "ids-per-call",
        text,
        1,
        1 << 30
    )),
    own!(
        "read-size",
        None,
        "SIZE",
        "the size of the record",
        Workload,
        "Bytes requested by a read, get or fetch; more than the stored size makes it a short read, less (s3: read) a range of the value",
        read_size,
        |text| nonzero_size("read-size", text)
    ),
    own_switch!(
        "reopen",
        "off",
        Workload,
        "Open the object for each operation instead of once per worker",
        reopen
    ),
    own_switch!(
        "no-fill",
        "off",
        Workload,
        "Do not store data before a phase that reads: the data already exists",
        no_fill
    ),
    own!(
        "snapshot",
        None,
        "EPOCH",
        "none: the latest versions",
        Workload,
        "Read what this snapshot of the container shows; no data is stored first (--no-fill), and operations that change data are rejected",
        snapshot,
        |text| epoch("snapshot", text)
    ),
    as_shared!(
        "pattern",
        None,
        "PATTERN",
        "sequential; permutation for a mix",
        Workload,
        "Order of records: sequential, backward, strided:RECORDS; permutation (each record once a pass), uniform, zipf:THETA, pareto:H, normal:PERCENT, zoned:ACCESS/SIZE,..."
    ),
    as_shared!(
        "share",
        None,
        "partition|whole",
        "partition; whole if each worker has its own objects, on containers, and for list, size, query, open and iterate",
        Workload,
        "Whether each worker has its own part of the records or works on all of them"
    ),
    as_shared!(
        "time",
        None,
        "DURATION",
        "one pass over the records if they are stored, created or removed; otherwise 10s",
        Load,
        "End after this long"
    ),
    own_switch!(
        "one-pass",
        "off: read-only operations run for --time",
        Load,
        "If no limit is set, end after one pass over the records, also for read-only operations",
        one_pass
    ),
    option!(
        "ladder",
        None,
        "WHAT=N,N,...",
        "none",
        Load,
        "One phase per value of depth, threads, value-size or rate: depth=1,2,4,8",
        |spec, text| {
            spec.ladder = Some(ladder(text, Some("value-size"))?);
            Ok(())
        }
    ),
    as_shared!(
        "batch",
        None,
        "N",
        "all free slots",
        Load,
        "Maximum number of operations submitted to the driver at once"
    ),
    own!(
        "scm",
        None,
        "SIZE",
        "twice the data of the load, at least 256m",
        Engine,
        "vos: mapped memory of a new store, in total for all targets",
        scm,
        |text| nonzero_size("scm", text)
    ),
    own!(
        "nvme",
        None,
        "SIZE",
        "0: no data file",
        Engine,
        "vos: data file of a new store, in total for all targets",
        nvme,
        str::parse
    ),
    own!(
        "threshold",
        None,
        "SIZE",
        "4k",
        Engine,
        "vos: values from this size on go to the data file, if the store has one",
        threshold,
        |text| nonzero_size("threshold", text)
    ),
    own!("store-targets", None, "N", "1", Engine, "vos: targets of a new store", targets, |text| {
        count("store-targets", text, 1, 4096)
    }),
    own!(
        "durability",
        None,
        "none|batch|sync",
        "sync",
        Engine,
        "When an update counts as done: in memory; in memory, and durable within 10 ms or 1 MiB; when it is durable",
        durability,
        |text| choice("durability", text, Durability::CHOICES)
    ),
    own!(
        "cache",
        None,
        "keep|drop",
        "keep",
        Engine,
        "vos, engine: what happens before a phase to data of a drive that the store holds in memory: kept, or made durable and read from the drive",
        cache,
        |text| choice("cache", text, CacheBefore::CHOICES)
    ),
    own!(
        "flush",
        None,
        "auto|cpu|msync",
        "auto: cpu on tmpfs and DAX, system calls elsewhere",
        Engine,
        "vos: how mapped memory is made durable; with PMEM_NO_FLUSH=1, cpu uses fences only",
        flush,
        |text| choice("flush", text, Flush::CHOICES)
    ),
    own!(
        "allocate",
        None,
        "ahead|whole|needed",
        "ahead: before a phase, the space it is known to write; the rest by a background thread",
        Engine,
        "vos: when the store allocates its space; whole: all of it when it is created or opened; needed: in the update that needs it",
        allocation,
        |text| choice("allocate", text, Allocation::CHOICES)
    ),
    own!(
        "checksum",
        None,
        "off|crc16|crc32|crc64|sha1|sha256|sha512|adler32",
        "crc32",
        Engine,
        "Checksum for the data of a new container, verified on every read",
        checksum,
        |text| choice("checksum", text, Checksum::CHOICES)
    ),
    own!(
        "zero-copy",
        None,
        "on|off",
        "on",
        Engine,
        "No staging buffer between the worker's buffers and the store or network",
        zero_copy,
        |text| choice("zero-copy", text, &[("on", true), ("off", false)])
    ),
    own!(
        "retries",
        None,
        "N",
        "3",
        Engine,
        "s3: how often a request is retried after an answer that asks for a retry (500, 503); retries are counted",
        retries,
        |text| count("retries", text, 0, 1000)
    ),
    own!(
        "timeout",
        None,
        "DURATION",
        "30s",
        Engine,
        "Timeout for a connection and for one operation; the operation then fails",
        timeout,
        |text| above_zero("timeout", text, "5s")
    ),
    option!(
        "s3-endpoint",
        None,
        "URL[,URL...]",
        "none: required",
        Engine,
        "s3: http://HOST[:PORT] of a server; may be repeated: workers are distributed over the servers",
        |spec, text| {
            let urls = s3_endpoints(text)?;
            ObjectSpec::of_mut(spec).s3_endpoints.extend(urls);
            Ok(())
        }
    ),
    own!(
        "s3-region",
        None,
        "NAME",
        "us-east-1",
        Engine,
        "s3: region used to sign requests",
        s3_region,
        |text| { word("s3-region", text) }
    ),
    own!(
        "s3-addressing",
        None,
        "path|virtual-host",
        "path",
        Engine,
        "s3: the bucket is the first part of the path, or of the host name",
        s3_addressing,
        |text| {
            let choices = [("path", Addressing::Path), ("virtual-host", Addressing::VirtualHost)];
            choice("s3-addressing", text, &choices)
        }
    ),
    own!(
        "s3-signing",
        None,
        "payload|headers|none",
        "payload",
        Engine,
        "s3: what a signature covers: headers and payload, only headers, or nothing (anonymous)",
        s3_signing,
        |text| {
            let choices =
                [("payload", Signing::Payload), ("headers", Signing::Headers), ("none", Signing::None)];
            choice("s3-signing", text, &choices)
        }
    ),
    own!(
        "s3-part-size",
        None,
        "SIZE",
        "0: never",
        Engine,
        "s3: upload larger objects in parts of this size (multipart)",
        s3_part_size,
        str::parse
    ),
    own!(
        "s3-key-file",
        None,
        "FILE",
        "$AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY",
        Engine,
        "s3: file with the access key and the secret key",
        s3_key_file,
        |text| path("s3-key-file", text)
    ),
    own!(
        "rados-conf",
        None,
        "FILE",
        "$CEPH_CONF, otherwise /etc/ceph/ceph.conf",
        Engine,
        "rados: configuration file of the cluster",
        rados_conf,
        |text| some_text("rados-conf", text)
    ),
    own!("rados-user", None, "NAME", "client.admin", Engine, "rados: user", rados_user, |text| word(
        "rados-user",
        text
    )),
    own!(
        "daos-system",
        None,
        "NAME",
        "daos_server",
        Engine,
        "daos: name of the system",
        daos_system,
        |text| word("daos-system", text)
    ),
    as_shared!(
        "refill",
        None,
        "full|stamp|once",
        "stamp for random content, full with --compress or --dedupe, otherwise once",
        Data,
        "Before a value is stored: fill the whole buffer again, stamp 16 bytes of each 4 KiB, or do nothing"
    ),
    as_shared!(
        "verify",
        None,
        "",
        "off",
        Data,
        "Store values that identify their record, and check every value that is read"
    ),
    own!(
        "acknowledged",
        None,
        "FILE",
        "none",
        Data,
        "Write a line for each acknowledged update, for `strata object audit`; with --keep; implies --verify",
        acknowledged,
        |text| path("acknowledged", text)
    ),
    token_file("engine: file with the secret; required by engines that are not on loopback"),
    tls("engine: use TLS for the control channel on loopback too"),
    as_shared!(
        "keep",
        None,
        "",
        "off",
        Run,
        "Keep what the run created: objects of a bucket, containers, the pool"
    ),
    as_shared!(
        "destroy-data",
        None,
        "",
        "off",
        Run,
        "Allow operations to overwrite and remove objects that other processes created under the same names"
    ),
];

/// Secrets of a load on an object store.
pub static SECRETS: &[OptionDef] = &[option!(
    "s3-key",
    None,
    "KEYS",
    "from --s3-key-file, otherwise from the environment",
    Engine,
    "s3: the access key and the secret key, on two lines",
    |spec, text| {
        let (access, secret) = text.split_once('\n').ok_or_else(|| {
            ParseError::new("a key of S3", "***", "the access key and the secret key on two lines")
        })?;
        ObjectSpec::of_mut(spec).s3_key =
            Some(S3Key { access: access.to_owned(), secret: secret.to_owned() });
        Ok(())
    }
)];

fn scope(name: &str, text: &str) -> Result<Scope, ParseError> {
    choice(name, text, &[("shared", Scope::Shared), ("private", Scope::Private)])
}
