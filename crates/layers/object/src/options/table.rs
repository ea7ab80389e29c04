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
        "none: it, --mix or --sequence must be given",
        Workload,
        "put, get, remove, list, stat (keys); write, read, size, create, open, open-with-attr, destroy (arrays); update, fetch, punch, query, iterate (dkeys and akeys); open-container, allocate-ids, aggregate, discard, collect; a list runs one phase after another",
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
        "One phase that does these one after the other for each record: open,read",
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
        "none: names follow from ids",
        Workload,
        "rados: each object is one of the pool's under this name, in no namespace where the target names none; update, fetch and punch of extents; \\ before a comma or a blank makes it one of the name",
        |spec, text| {
            ObjectSpec::of_mut(spec).object_names = names("object-names", text)?;
            Ok(())
        }
    ),
    own!(
        "dkeys",
        None,
        "N",
        "10000; arrays have those of their chunks",
        Workload,
        "Dkeys of an object: the keys of a key-value object",
        dkeys,
        |text| positive("dkeys", text)
    ),
    own!("akeys", None, "N", "1", Workload, "Akeys of a dkey", akeys, |text| positive("akeys", text)),
    own!(
        "records",
        None,
        "N",
        "1; 256 of an array",
        Workload,
        "Records of an akey, or of an array: each is what one operation moves; of a single value they are versions",
        records,
        |text| positive("records", text)
    ),
    own!(
        "value",
        None,
        "single|array",
        "single for dkeys and akeys",
        Workload,
        "What lies under an akey: one value that is written as a whole, or records in extents",
        value,
        |text| choice("value", text, &[("single", ValueKind::Single), ("array", ValueKind::Array)])
    ),
    own!(
        "value-size",
        Some('s'),
        "SIZE",
        "4k; 1m for arrays",
        Workload,
        "Bytes of a record: 4k, a range 1k-64k, or shares 4k:70,64k:30; which size a record has follows from its number",
        value_size,
        |text: &str| text.parse::<workload::block_size::BlockSizes>().map(|_| text.to_owned())
    ),
    own!(
        "stride",
        None,
        "SIZE",
        "the largest value",
        Workload,
        "Distance of the records of an array",
        stride,
        |text| nonzero_size("stride", text)
    ),
    own!(
        "record-offset",
        None,
        "SIZE",
        "0",
        Workload,
        "Where in its stride a record begins",
        record_offset,
        str::parse
    ),
    own!(
        "first",
        None,
        "O,D,A,R",
        "0,0,0,0",
        Workload,
        "First object, dkey, akey and record: the phase works on a part of what was stored",
        first,
        |text| quadruple("first", text, 0)
    ),
    own!(
        "whole",
        None,
        "O,D,A,R",
        "what --first and the counts reach to",
        Workload,
        "Objects, dkeys, akeys and records that were stored in all, where the phase works on a part of them",
        whole,
        |text| quadruple("whole", text, 1)
    ),
    own_switch!("integer-dkeys", "off", Workload, "Dkeys are 64-bit numbers, not names", integer_dkeys),
    own_switch!(
        "constant-akey",
        "off",
        Workload,
        "The akeys of all dkeys have the same names; else each name is used once in an object",
        constant_akey
    ),
    own!(
        "dkey-prefix",
        None,
        "TEXT",
        "blade-",
        Workload,
        "What names of dkeys and keys begin with; their number follows",
        dkey_prefix,
        |text| prefix("dkey-prefix", text)
    ),
    own!(
        "akey-prefix",
        None,
        "TEXT",
        "akey--",
        Workload,
        "What names of akeys begin with; their number follows",
        akey_prefix,
        |text| prefix("akey-prefix", text)
    ),
    own!("first-id", None, "N", "1", Workload, "Number of the first object's id", first_id, |text| {
        parse_u64_in("first-id", text, 0..=u64::MAX)
    }),
    own!(
        "rank-shift",
        None,
        "N",
        "0",
        Workload,
        "Phases that only read: each worker reads what the worker N further on has stored, on another host where there are several",
        rank_shift,
        |text| count("rank-shift", text, 0, u64::from(u32::MAX))
    ),
    own!(
        "object-scope",
        None,
        "shared|private",
        "shared",
        Workload,
        "Whether workers use the same objects, or each its own, with all of --objects to --records for each",
        object_scope,
        |text| scope("object-scope", text)
    ),
    own!(
        "container",
        None,
        "LABEL",
        "the one that the target names, else strata",
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
        "Whether workers use one container, or each its own (LABEL.WORKER)",
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
    own!("cell-size", None, "SIZE", "1", Workload, "Bytes of an array's cell", cell_size, |text| {
        nonzero_size("cell-size", text)
    }),
    own!(
        "chunk-size",
        None,
        "SIZE",
        "1m",
        Workload,
        "Bytes of an array's chunk: what lies under one dkey; a multiple of the cell size",
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
    own!("list-max", None, "N", "1000", Workload, "Keys that one list asks for at most", list_max, |text| {
        count("list-max", text, 1, 1 << 20)
    }),
    own!(
        "ids-per-call",
        None,
        "N",
        "1",
        Workload,
        "Object ids that one allocation takes",
        ids_per_call,
        |text| count("ids-per-call", text, 1, 1 << 30)
    ),
    own!(
        "read-size",
        None,
        "SIZE",
        "the size of the record",
        Workload,
        "Bytes that a read, get or fetch asks for; more than was written makes it a short read, less (s3: read) a range of the value",
        read_size,
        |text| nonzero_size("read-size", text)
    ),
    own_switch!("reopen", "off", Workload, "Open the object for each operation, not once a worker", reopen),
    own_switch!(
        "no-fill",
        "off",
        Workload,
        "Store nothing before a phase that reads: it is there already",
        no_fill
    ),
    own!(
        "snapshot",
        None,
        "EPOCH",
        "none: the latest versions",
        Workload,
        "Read what this snapshot of the container shows; nothing is stored before (--no-fill), and nothing can be changed",
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
        "partition; whole where each worker has objects of its own, on containers, and for list, size, query, open and iterate",
        Workload,
        "Whether each worker has its own part of the records or goes over all of them"
    ),
    as_shared!(
        "time",
        None,
        "DURATION",
        "one pass over the records where they are stored, created or removed; 10s elsewhere",
        Load,
        "End after this long"
    ),
    own_switch!(
        "one-pass",
        "off: operations that only read go on for --time",
        Load,
        "Where no limit is given, end after one pass over the records, also one that only reads",
        one_pass
    ),
    option!(
        "ladder",
        None,
        "WHAT=N,N,...",
        "none",
        Load,
        "One phase a value of depth, threads, value-size or rate: depth=1,2,4,8",
        |spec, text| {
            spec.ladder = Some(ladder(text, Some("value-size"))?);
            Ok(())
        }
    ),
    as_shared!("batch", None, "N", "all free slots", Load, "Most operations handed to the driver at once"),
    own!(
        "scm",
        None,
        "SIZE",
        "twice the data of the load, at least 256m",
        Engine,
        "vos: mapped memory of a store that is made, of all its targets together",
        scm,
        |text| nonzero_size("scm", text)
    ),
    own!(
        "nvme",
        None,
        "SIZE",
        "0: no data file",
        Engine,
        "vos: data file of a store that is made, of all its targets together",
        nvme,
        str::parse
    ),
    own!(
        "threshold",
        None,
        "SIZE",
        "4k",
        Engine,
        "vos: values from this size on go to the data file, where there is one",
        threshold,
        |text| nonzero_size("threshold", text)
    ),
    own!("store-targets", None, "N", "1", Engine, "vos: targets of a store that is made", targets, |text| {
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
        "vos, engine: what the store keeps in memory of its data on a drive, before a phase: left, or made durable and read from the drive",
        cache,
        |text| choice("cache", text, CacheBefore::CHOICES)
    ),
    own!(
        "flush",
        None,
        "auto|cpu|msync",
        "auto: by the CPU on tmpfs and DAX, by system calls elsewhere",
        Engine,
        "vos: how mapped memory is made durable; with PMEM_NO_FLUSH=1 cpu fences alone",
        flush,
        |text| choice("flush", text, Flush::CHOICES)
    ),
    own!(
        "allocate",
        None,
        "ahead|whole|needed",
        "ahead: what a phase is known to write before it, the rest by a thread beside it",
        Engine,
        "vos: when the store takes its space; whole: all of it when it is made or opened; needed: by the update that needs it",
        allocation,
        |text| choice("allocate", text, Allocation::CHOICES)
    ),
    own!(
        "checksum",
        None,
        "off|crc16|crc32|crc64|sha1|sha256|sha512|adler32",
        "crc32",
        Engine,
        "Checksum of the data of a container that is made, verified at every read",
        checksum,
        |text| choice("checksum", text, Checksum::CHOICES)
    ),
    own!(
        "zero-copy",
        None,
        "on|off",
        "on",
        Engine,
        "No staging buffer between the worker's buffers and the store, or the network",
        zero_copy,
        |text| choice("zero-copy", text, &[("on", true), ("off", false)])
    ),
    own!(
        "retries",
        None,
        "N",
        "3",
        Engine,
        "s3: how often a request is sent again after an answer that asks for it (500, 503); retries are counted",
        retries,
        |text| count("retries", text, 0, 1000)
    ),
    own!(
        "timeout",
        None,
        "DURATION",
        "30s",
        Engine,
        "Longest wait for a connection and for one operation; then it has failed",
        timeout,
        |text| above_zero("timeout", text, "5s")
    ),
    option!(
        "s3-endpoint",
        None,
        "URL[,URL...]",
        "none: it must be given",
        Engine,
        "s3: http://HOST[:PORT] of a server; may be given several times, and workers are dealt out to them",
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
        "s3: region that requests are signed for",
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
        "s3: what a signature covers: headers and payload, headers alone, or nothing (anonymous)",
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
        "s3: larger objects are uploaded in parts of this size (multipart)",
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
        "$CEPH_CONF, else /etc/ceph/ceph.conf",
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
        "stamp where content is random, full with --compress or --dedupe, else once",
        Data,
        "Before a value is stored: fill the buffer anew, stamp 16 bytes of each 4 KiB, or nothing"
    ),
    as_shared!(
        "verify",
        None,
        "",
        "off",
        Data,
        "Store values that say which record they are, and check every value that is read"
    ),
    own!(
        "acknowledged",
        None,
        "FILE",
        "none",
        Data,
        "Write a line for each update that is acknowledged, for `strata object audit`; with --keep; implies --verify",
        acknowledged,
        |text| path("acknowledged", text)
    ),
    token_file("engine: file with the secret that engines beyond loopback demand"),
    tls("engine: TLS for control on loopback too"),
    as_shared!(
        "keep",
        None,
        "",
        "off",
        Run,
        "Leave what the run made: objects of a bucket, containers, the pool"
    ),
    as_shared!(
        "destroy-data",
        None,
        "",
        "off",
        Run,
        "Allow operations to write over and to remove what others have put under the same names"
    ),
];

/// Secrets of a load on an object store.
pub static SECRETS: &[OptionDef] = &[option!(
    "s3-key",
    None,
    "KEYS",
    "that of --s3-key-file, else of the environment",
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
