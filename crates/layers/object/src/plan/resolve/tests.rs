use proptest::prelude::*;
use units::{ByteSize, Span};
use vos::{Checksum, Durability};
use workload::options::apply;

use super::*;
use crate::LAYER;
use crate::options::DRIVER_OPTIONS;
use crate::plan::{DatasetPlan, OBJECT_OPERATIONS, PunchScope, Signing, ValueKind};

const VOS_OPTIONS: &[&str] = &[
    "container",
    "containers",
    "class",
    "reopen",
    "scm",
    "nvme",
    "threshold",
    "store-targets",
    "durability",
    "flush",
    "allocate",
    "checksum",
    "cache",
    "zero-copy",
];

fn vos() -> ObjectFacts {
    ObjectFacts {
        engine: "vos".to_owned(),
        operations: OBJECT_OPERATIONS,
        asynchronous: false,
        depth_max: 1,
        options: VOS_OPTIONS,
        targets: 0,
        memory_bytes: Some(8 << 30),
    }
}

fn s3() -> ObjectFacts {
    ObjectFacts {
        engine: "s3".to_owned(),
        operations: &["put", "get", "remove", "list", "stat", "read"],
        asynchronous: true,
        depth_max: 1024,
        options: &[
            "retries",
            "timeout",
            "s3-endpoint",
            "s3-region",
            "s3-addressing",
            "s3-signing",
            "s3-part-size",
            "s3-key-file",
        ],
        ..ObjectFacts::default()
    }
}

/// A spec from `key=value` words, read as a job file would.
fn spec_on(target: &str, words: &str) -> Spec {
    let mut spec = Spec { layer: LAYER, targets: vec![target.to_owned()], ..Spec::default() };
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, "true"));
        apply(&mut spec, key, value).unwrap_or_else(|error| panic!("{word}: {error}"));
    }
    spec
}

fn plans_on(target: &str, words: &str, facts: &ObjectFacts) -> Result<Vec<ObjectPlan>, PlanError> {
    let spec = spec_on(target, words);
    object_phases(&spec)?.iter().map(|phase| resolve_object(&spec, phase, facts, 7)).collect()
}

#[track_caller]
fn plans(words: &str) -> Vec<ObjectPlan> {
    plans_on("vos:pool", words, &vos()).unwrap_or_else(|error| panic!("{words}: {error}"))
}

#[track_caller]
fn plan(words: &str) -> ObjectPlan {
    plans(words).remove(0)
}

#[track_caller]
fn refusal_on(target: &str, words: &str, facts: &ObjectFacts) -> String {
    let message = plans_on(target, words, facts).expect_err(words).to_string();
    assert!(!message.is_empty() && !message.contains('\n') && message.len() < 400, "{message}");
    message
}

#[track_caller]
fn refused(words: &str, message: &str) {
    assert_eq!(refusal_on("vos:pool", words, &vos()), message);
}

fn shape(dataset: &DatasetPlan) -> [u64; 4] {
    [dataset.objects, dataset.dkeys, dataset.akeys, dataset.records]
}

#[test]
fn every_default_is_resolved() {
    let plan = plan("op=put");
    assert_eq!((plan.name.as_str(), plan.engine.as_str(), plan.target.as_str()), ("put", "vos", "vos:pool"));
    assert_eq!(
        (plan.container.as_str(), plan.containers, plan.object_scope),
        ("strata", Scope::Shared, Scope::Shared)
    );
    assert_eq!(
        (plan.mix.as_slice(), plan.sequence.len()),
        (&[OpShare { operation: ObjectOp::Put, percent: 100 }][..], 0)
    );
    let dataset = &plan.dataset;
    assert_eq!((shape(dataset), dataset.first, dataset.whole), ([1, 10_000, 1, 1], [0; 4], None));
    assert_eq!(
        (dataset.dkey_prefix.as_str(), dataset.akey_prefix.as_str(), dataset.first_id),
        ("blade-", "akey--", 1)
    );
    assert_eq!(
        (dataset.value, dataset.value_size.as_str(), dataset.value_size_bytes_max),
        (ValueKind::Single, "4KiB", 4096)
    );
    assert_eq!(
        (plan.pattern.clone(), plan.share, plan.class),
        (Pattern::Sequential, Share::Partition, ObjectClass::S1)
    );
    assert_eq!(
        (plan.object_type, plan.cell_size_bytes, plan.chunk_size_cells),
        (ObjectType::KvHashed, 1, 1 << 20)
    );
    assert_eq!((plan.punch, plan.list_max, plan.ids_per_call), (PunchScope::Record, 1000, 1));
    assert_eq!(
        (plan.short_read_bytes, plan.keeps_handles, plan.verify, plan.is_fill),
        (None, true, false, false)
    );
    assert_eq!(plan.content.refill, Refill::Stamp);
    assert_eq!((plan.load.threads, plan.load.depth, plan.load.limit), (1, 1, LimitPlan::default()));
    assert_eq!((plan.load.on_error, plan.load.seed), (OnError::Stop, 7));
    let options = &plan.options;
    assert_eq!(
        (options.scm_bytes, options.nvme_bytes, options.threshold_bytes, options.targets),
        (256 << 20, 0, 4096, 1)
    );
    assert_eq!(
        (options.durability, options.checksum, options.zero_copy),
        (Durability::Sync, Checksum::Crc32, true)
    );
    assert_eq!(
        (options.retries, options.timeout_ns, options.s3_region.as_str()),
        (0, 0, ""),
        "vos has no use for them"
    );
    assert!(plan.is_one_pass() && !plan.is_private());
}

#[test]
fn arrays_have_transfers_and_their_own_types() {
    let write = plan("op=write objects=8");
    assert_eq!((shape(&write.dataset), write.dataset.value), ([8, 1, 1, 256], ValueKind::Array));
    assert_eq!((write.dataset.value_size_bytes_max, write.dataset.stride_bytes), (1 << 20, 1 << 20));
    assert_eq!(write.object_type, ObjectType::ArrayByte);
    assert_eq!(plan("op=write cell-size=4k chunk-size=64k").object_type, ObjectType::ArrayAttr);
    assert_eq!(plan("op=write cell-size=4k chunk-size=64k").chunk_size_cells, 16);
    let stored = plans("op=create,write,open,read,size,destroy objects=8 records=4");
    assert!(
        stored.iter().all(|plan| plan.object_type == ObjectType::Array),
        "one type, so one id, in all phases"
    );
    assert!(stored.iter().all(|plan| shape(&plan.dataset) == [8, 1, 1, 4] && plan.dataset.whole.is_none()));
    let sequence = plan("sequence=open-with-attr,read records=4");
    assert_eq!((sequence.name.as_str(), shape(&sequence.dataset)), ("open-with-attr,read", [1, 1, 1, 4]));
    assert_eq!(plan("op=read read-size=2m").short_read_bytes, Some(2 << 20));
    assert_eq!(plan("op=read read-size=1m").short_read_bytes, None);
    let strided = plan("op=write value-size=4k stride=8k record-offset=4k").dataset;
    assert_eq!((strided.stride_bytes, strided.offset_bytes), (8192, 4096));
}

#[test]
fn operations_on_more_than_records_are_shared_by_what_they_work_on() {
    let words = "objects=2 dkeys=3 akeys=5 records=7 value=array integer-dkeys";
    for (operation, units) in [
        ("update", 210),
        ("punch", 210),
        ("punch punch=akey", 30),
        ("punch punch=dkey", 6),
        ("punch punch=object", 2),
        ("query share=partition", 2),
        ("iterate share=partition", 2),
        ("aggregate share=partition", 1),
    ] {
        let keys = if operation.starts_with("aggregate") { "" } else { words };
        let with =
            |threads: u32| plans_on("vos:p", &format!("op={operation} {keys} threads={threads}"), &vos());
        assert_eq!(shape(&with(units).expect(operation)[0].dataset)[0], if keys.is_empty() { 1 } else { 2 });
        let message = with(units + 1).expect_err(operation).to_string();
        assert!(message.starts_with(&format!("{} threads cannot share {units} ", units + 1)), "{message}");
    }
    let mixed = plan(&format!("mix=fetch=90,query=10 {words}"));
    assert_eq!((shape(&mixed.dataset), mixed.pattern), ([2, 3, 5, 7], Pattern::Permutation));
    assert_eq!(mixed.object_type, ObjectType::DkeyUint64);
}

#[test]
fn phases_end_after_a_pass_or_a_time() {
    let limit = |words: &str| plan(words).load.limit.time_ns;
    for words in [
        "op=put",
        "op=update",
        "op=write",
        "op=remove",
        "op=punch",
        "op=create",
        "op=destroy",
        "sequence=create,write",
        "op=aggregate",
        "op=fetch one-pass=true",
    ] {
        assert_eq!((limit(words), plan(words).is_one_pass()), (None, true), "{words}");
    }
    for words in [
        "op=get",
        "op=read",
        "op=list",
        "op=stat",
        "mix=get=70,put=30",
        "sequence=put,get",
        "op=open-container",
        "op=allocate-ids",
    ] {
        assert_eq!((limit(words), plan(words).is_one_pass()), (Some(10_000_000_000), false), "{words}");
    }
    assert_eq!(limit("op=put time=3s"), Some(3_000_000_000));
    assert!(!plan("op=put time=3s").is_one_pass() && plan("op=remove time=3s").is_one_pass());
    assert!(!plan("sequence=put,remove time=3s").is_one_pass(), "what was removed is put again");
    assert!(plan("mix=get=90,remove=10").is_one_pass());
    assert_eq!(plan("op=get count=5").load.limit, LimitPlan { operations: Some(5), ..LimitPlan::default() });
}

#[test]
fn workers_share_or_have_their_own() {
    let share = |words: &str| plan(words).share;
    assert_eq!(share("op=put threads=4"), Share::Partition);
    assert_eq!(share("op=put threads=4 object-scope=private"), Share::Whole);
    assert_eq!(share("op=put threads=4 containers=private"), Share::Whole);
    assert_eq!(share("op=list threads=4"), Share::Whole);
    assert_eq!(share("op=list threads=4 objects=4 share=partition"), Share::Partition);
    assert_eq!(share("op=open-container threads=4"), Share::Whole);
    refused(
        "op=put threads=4 dkeys=3",
        "4 threads cannot share 3 records: use fewer threads, more records, or --share whole",
    );
    refused(
        "op=destroy threads=2",
        "2 threads cannot share 1 objects: use fewer threads, more objects, or --share whole",
    );
    refused(
        "op=remove threads=2 share=whole",
        "records can be created or removed only once: leave out --share whole",
    );
    refused(
        "op=put share=partition object-scope=private",
        "--share partition divides shared records, but each worker has its own records: leave it out",
    );
    refused(
        "op=put,get threads=2 share=whole verify",
        "--verify requires one writer per record: leave out --share whole",
    );
}

#[test]
fn containers_are_named_by_target_or_option() {
    let container = |target: &str, words: &str| {
        let facts = ObjectFacts { options: DRIVER_OPTIONS, ..vos() };
        let words = format!("op=put s3-endpoint=http://a {words}");
        plans_on(target, &words, &facts)
            .map(|plans| plans[0].container.clone())
            .map_err(|error| error.to_string())
    };
    assert_eq!(container("vos:pool", "container=c").as_deref(), Ok("c"));
    assert_eq!(container("engine://h:1/p/c", "").as_deref(), Ok("c"));
    assert_eq!(container("engine://h:1/p", "").as_deref(), Ok("strata"));
    assert_eq!(container("daos://p/c", "container=c").as_deref(), Ok("c"));
    assert_eq!(
        container("daos://p/c", "container=d"),
        Err("--container d differs from the container of daos://p/c: leave out one of the two".to_owned())
    );
    let none = Spec { targets: Vec::new(), ..spec_on("", "op=put") };
    let message =
        resolve_object(&none, &ObjectPhase::Operation(ObjectOp::Put), &vos(), 7).expect_err("no target");
    assert!(
        message.to_string().starts_with("0 targets, but exactly one is required: use one of vos:DIR"),
        "{message}"
    );
}

#[test]
fn classes_need_their_targets() {
    let class = |words: &str, targets| {
        plans_on("vos:pool", words, &ObjectFacts { targets, ..vos() })
            .map(|plans| plans[0].class.to_string())
            .map_err(|error| error.to_string())
    };
    assert_eq!(class("op=put", 1).as_deref(), Ok("S1"));
    assert_eq!(class("op=put", 4).as_deref(), Ok("SX"));
    assert_eq!(class("op=put store-targets=4", 0).as_deref(), Ok("SX"));
    assert_eq!(class("op=put class=EC_2P1G1 store-targets=3", 0).as_deref(), Ok("EC_2P1G1"));
    let refused = |words: &str, targets| class(words, targets).expect_err(words);
    assert_eq!(
        refused("op=put class=EC_4P2G1", 4),
        "class EC_4P2G1 needs 6 targets, but the store has 4: use SX or RP_2GX, or a store with more targets"
    );
    assert_eq!(
        refused("op=put class=S8", 4),
        "class S8 needs 8 targets, but the store has 4: use SX, or a store with more targets"
    );
    assert_eq!(
        refused("op=put class=RP_2G4", 4),
        "class RP_2G4 needs 8 targets, but the store has 4: use RP_2GX, or a store with more targets"
    );
    assert_eq!(
        refused("op=put class=RP_2GX", 0),
        "class RP_2GX needs 2 targets, but the store has 1: use S1, or a store with more targets"
    );
    assert_eq!(
        refused("op=put store-targets=2", 4),
        "--store-targets 2 applies when a store is created, but this one has 4: leave it out"
    );
    let unknown = ObjectFacts { options: &["class"], ..vos() };
    assert_eq!(plans_on("daos://p", "op=put", &unknown).expect("a plan")[0].class, ObjectClass::SX);
    let large: ObjectClass = "EC_8P2GX".parse().expect("a class");
    assert_eq!(plans_on("daos://p", "op=put class=EC_8P2GX", &unknown).expect("a plan")[0].class, large);
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (words, message) in [
        (
            "value-size=4k",
            "no operation is specified: use --op such as put,get, --mix such as get=70,put=30, or --sequence such as open,read",
        ),
        ("op=put mix=get=100", "--op, --mix and --sequence exclude each other: use one of them"),
        (
            "op=put,write",
            "write works on arrays, but the operations before it work on key-value objects: use operations of one kind, or a job file with several phases",
        ),
        (
            "op=create,open-with-attr",
            "create and open are for arrays with stored attributes, open-with-attr for arrays without: use one of the two",
        ),
        ("op=put punch=dkey", "--punch requires --op punch: it sets what a punch removes"),
        ("op=put list-max=5", "--list-max requires --op list"),
        ("op=put ids-per-call=5", "--ids-per-call requires --op allocate-ids"),
        (
            "op=put read-size=8k",
            "--read-size requires a read, get or fetch: add one of them, or leave it out",
        ),
        ("op=put no-fill", "--no-fill applies to phases that read, but no phase reads: leave it out"),
        ("op=list verify", "--verify has no effect: no operation stores or reads values; leave it out"),
        ("op=stat bytes=1g", "--bytes never ends a phase that moves no values: use --count or --time"),
        (
            "op=aggregate value-size=8k",
            "--value-size has no effect: no operation stores or reads values; leave it out",
        ),
        (
            "op=write dkeys=2",
            "--dkeys and --akeys do not apply to arrays, because their chunks are the dkeys: use --objects and --records",
        ),
        (
            "op=put akeys=2",
            "a key has one value: use --dkeys for the number of keys, or update and fetch for akeys and records",
        ),
        (
            "op=put value=array",
            "--value requires update and fetch: keys have single values, arrays have records",
        ),
        (
            "op=write dkey-prefix=x",
            "--dkey-prefix does not apply to arrays, because their chunks are the dkeys",
        ),
        (
            "op=update integer-dkeys dkey-prefix=x",
            "--dkey-prefix is for names, but --integer-dkeys uses numbers: leave out one of them",
        ),
        (
            "op=update stride=8k",
            "--stride and --record-offset require arrays: use --value array with update and fetch, or write and read",
        ),
        ("op=put cell-size=8", "--cell-size and --chunk-size require arrays: use write and read"),
        ("op=query", "query returns the largest dkey, which requires numeric dkeys: add --integer-dkeys"),
        (
            "op=put verify content=zero",
            "--verify generates its own values: leave out --content, --compress, --dedupe and --refill",
        ),
        (
            "op=get read-size=1k",
            "--read-size 1KiB is smaller than a value of 4KiB: use the size of the value, or more for short reads",
        ),
        ("op=put value-size=2g", "--value-size 2GiB is too large: use 1GiB or less"),
        (
            "op=write value-size=8k stride=4k",
            "records of up to 8KiB at offset 0 overlap with a --stride of 4KiB: use 8KiB or more",
        ),
        (
            "op=write record-offset=1",
            "records of up to 1MiB at offset 1 overlap with a --stride of 1MiB: use 1048577 bytes or more",
        ),
        (
            "op=write cell-size=3",
            "a chunk of 1MiB is not a whole number of cells of 3 bytes: use a --chunk-size such as 1048578",
        ),
        (
            "op=write cell-size=4k value-size=6k",
            "--value-size must be a whole number of cells of 4KiB, but it is 6KiB: use a multiple of --cell-size",
        ),
        (
            "op=update first=0,5,0,0 dkeys=4 whole=1,8,1,1",
            "4 dkeys from 5 on exceed the 8 of --whole: use 3 or fewer, or a larger --whole",
        ),
        (
            "op=update first=0,18446744073709551615,0,0",
            "10000 dkeys from 18446744073709551615 on are too many: use fewer",
        ),
        (
            "op=remove pattern=uniform",
            "--pattern uniform repeats records, which can be created or removed only once: use sequential, backward, strided or permutation",
        ),
        (
            "op=put pattern=strided:10001",
            "\"strided:10001\" is not an access pattern: use a stride of at most the region, 10000 blocks",
        ),
        (
            "op=put retries=1",
            "--retries is not an option of vos: its driver options are --container, --containers, --class, --reopen, --scm, --nvme, --threshold, --store-targets, --durability, --flush, --allocate, --checksum, --cache, --zero-copy",
        ),
        (
            "op=put depth=4",
            "engine vos runs one operation at a time and does not support --depth 4: use --threads 4",
        ),
        (
            "op=put objects=4294967296 dkeys=4294967296",
            "4294967296 objects x 4294967296 dkeys x 1 akeys x 1 records of up to 4KiB exceed 8EiB: use less",
        ),
        (
            "op=put first-id=18446744073709551615",
            "ids of 1 objects do not fit after --first-id 18446744073709551615: use a smaller one",
        ),
        (
            "op=put value-size=1g threads=8 dkeys=8",
            "8 operations in flight with buffers of 1GiB each need more than half of the memory: use 4 or fewer in flight, or a smaller --value-size",
        ),
        (
            "op=get value-size=4k read-size=16777215t",
            "1 operations in flight with buffers of 16777215TiB each need more than half of the memory: use a smaller --read-size",
        ),
        ("op=put compress=50 refill=once", "--compress and --dedupe require --refill full"),
    ] {
        refused(words, message);
    }
}

#[test]
fn drivers_refuse_what_they_do_not_have() {
    let refused = |words: &str| refusal_on("s3://bucket", &format!("s3-endpoint=http://a {words}"), &s3());
    assert_eq!(
        refused("op=punch"),
        "s3 does not support punch: supported operations are put, get, remove, list, stat, read"
    );
    assert!(refused("op=put scm=1g").starts_with("--scm is not an option of s3: "));
    assert_eq!(
        refusal_on("s3://b", "op=put", &s3()),
        "no server is specified: use --s3-endpoint http://HOST:PORT"
    );
    assert_eq!(
        refused("op=put s3-part-size=1m"),
        "--s3-part-size 1MiB is below the S3 minimum: use 5m or more, or 0 for no parts"
    );
    let reader = ObjectFacts { operations: &["get"], ..vos() };
    assert_eq!(
        refusal_on("vos:p", "op=get", &reader),
        "vos does not support put, so it cannot store the data to read: use --no-fill if the data already exists"
    );
    assert!(plans_on("vos:p", "op=get no-fill", &reader).is_ok());
    let plan = plans_on("s3://bucket", "s3-endpoint=http://a op=put s3-signing=none", &s3())
        .expect("a plan")
        .remove(0);
    let options = &plan.options;
    assert_eq!(
        (options.retries, options.timeout_ns, options.s3_region.as_str()),
        (3, 30_000_000_000, "us-east-1")
    );
    assert_eq!(
        (options.scm_bytes, options.targets, options.zero_copy, options.checksum),
        (0, 0, false, Checksum::Off)
    );
    assert_eq!((options.s3_signing, plan.class), (Signing::None, ObjectClass::S1));
}

#[test]
fn ranges_of_values_are_read_where_there_are_no_arrays() {
    let plans = |words: &str| plans_on("s3://b", &format!("s3-endpoint=http://a {words}"), &s3());
    let both = plans("op=put,read dkeys=10 value-size=16m read-size=4m").expect("plans");
    assert_eq!((shape(&both[0].dataset), both[0].dataset.value_size.as_str()), ([1, 10, 1, 1], "16MiB"));
    let ranges = &both[1];
    assert!(ranges.reads_ranges() && !both[0].reads_ranges());
    assert_eq!((shape(&ranges.dataset), ranges.dataset.value_size.as_str()), ([1, 10, 1, 4], "4MiB"));
    assert_eq!((ranges.dataset.stride_bytes, ranges.object_type), (4 << 20, ObjectType::KvHashed));
    assert!(!needs_fill(ranges, &both[..1]), "the values were put");
    let fill = fill_phases(ranges);
    assert_eq!((fill.len(), fill[0].dataset.clone()), (1, both[0].dataset.clone()));
    let refused = |words: &str| plans(words).expect_err(words).to_string();
    assert!(
        refused("op=read value-size=16m read-size=5m").ends_with("use a --read-size that divides the value")
    );
    assert!(refused("op=read value-size=4k-64k").ends_with("use one --value-size, or --op get"));
    assert!(refused("op=read verify").starts_with("--verify checks whole values"));
    assert!(refused("mix=get=50,read=50").starts_with("reads of ranges need a separate phase"));
}

#[test]
fn what_is_read_is_stored_first() {
    let get = plan("op=get threads=4 time=3s rate=100 pattern=zipf:0.9 value-size=1k-64k");
    assert!(needs_fill(&get, &[]));
    let fill = fill_phases(&get).remove(0);
    assert_eq!((fill.name.as_str(), fill.mix[0].operation, fill.is_fill), ("fill", ObjectOp::Put, true));
    assert_eq!((fill.dataset.clone(), fill.pattern.clone()), (get.dataset.clone(), Pattern::Sequential));
    assert!(fill.is_one_pass() && fill.load.arrivals.is_none() && fill.load.threads == 4);
    assert!(!needs_fill(&get, std::slice::from_ref(&fill)));

    let phases = plans("op=put,get,remove,stat");
    let needs: Vec<_> = (0..4).map(|at| needs_fill(&phases[at], &phases[..at])).collect();
    assert_eq!(needs, [false, false, false, true], "what was removed is not there");
    let timed = plans("op=put,get time=1s");
    assert!(needs_fill(&timed[1], &timed[..1]), "a phase with a limit may not have stored all");
    assert!(needs_fill(&plan("op=get value-size=8k"), &plans("op=put")), "other sizes");
    let overwritten = [plan("op=put"), plan("op=put value-size=8k")];
    assert!(needs_fill(&plan("op=get"), &overwritten), "other sizes stand where they were");
    let counted = |count: u64| plan(&format!("op=put dkeys=100 count={count}"));
    assert!(
        !needs_fill(&plan("op=get dkeys=100"), &[counted(100)])
            && needs_fill(&plan("op=get dkeys=100"), &[counted(99)])
    );
    assert!(
        needs_fill(&plan("op=get verify"), &plans("op=put")),
        "values that do not say which record they are"
    );
    assert!(needs_fill(
        &plan("op=get threads=4 object-scope=private"),
        &plans("op=put object-scope=private threads=2")
    ));
    assert!(!needs_fill(&plan("sequence=put,get"), &[]) && needs_fill(&plan("sequence=get,put"), &[]));
    assert!(needs_fill(&plan("mix=put=50,get=50"), &[]) && !needs_fill(&plan("op=create"), &[]));

    let open = plan("sequence=open,read objects=3 records=4 threads=8 share=whole");
    let fills = fill_phases(&open);
    let of: Vec<_> =
        fills.iter().map(|plan| (plan.mix[0].operation, shape(&plan.dataset), plan.load.threads)).collect();
    assert_eq!(of, [(ObjectOp::Create, [3, 1, 1, 4], 3), (ObjectOp::Write, [3, 1, 1, 4], 8)]);
    assert!(!needs_fill(&open, &fills));
    let part = plan("op=fetch dkeys=2 first=0,4,0,0 whole=1,8,1,1");
    assert_eq!(
        (part.dataset.whole, shape(&fill_phases(&part)[0].dataset)),
        (Some([1, 8, 1, 1]), [1, 8, 1, 1])
    );
}

#[test]
fn a_store_is_sized_for_its_data() {
    let scm = |words: &str| plan(words).options.scm_bytes;
    assert_eq!(scm("op=put"), 256 << 20);
    assert_eq!(scm("op=put scm=100m"), 100 << 20);
    let million = 1_000_000 * (8192 + 256);
    assert_eq!(scm("op=put dkeys=1000000"), u64::div_ceil(million, 1 << 20) << 20);
    assert_eq!(scm("op=put dkeys=1000000 nvme=10g"), 256 << 20, "values lie in the data file");
    assert!(scm("op=put dkeys=1000000 nvme=10g threshold=8k") > 8_000_000_000);
    let doubled = scm("op=put dkeys=1000000 store-targets=2 class=RP_2G1");
    assert_eq!(doubled, u64::div_ceil(2 * million, 2 << 20) * (2 << 20));
    let phases = plans("op=put,open-container dkeys=1000000");
    assert_eq!(object_options(&phases).expect("options").scm_bytes, phases[0].options.scm_bytes);
    let mut other = phases.clone();
    other[1].options.zero_copy = false;
    let message = object_options(&other).expect_err("two ways").to_string();
    assert!(message.starts_with("phase open-container has other options for vos:pool"), "{message}");
    assert!(object_options(&[]).is_err());
}

proptest! {
    /// Whatever is asked for, there is a plan that holds together, or one line.
    #[test]
    fn every_request_is_planned_or_refused_in_a_line(
        operations in prop::collection::vec(0..OBJECT_OPERATIONS.len(), 1..3),
        counts in prop::array::uniform4(prop::option::of(prop_oneof![1u64..100, Just(u64::MAX), Just(1 << 40)])),
        sizes in prop::array::uniform4(prop::option::of(prop_oneof![1u64..10_000, Just(1 << 20), Just(u64::MAX)])),
        first in prop::option::of(prop::array::uniform4(prop_oneof![0u64..3, Just(u64::MAX)])),
        whole in prop::option::of(prop::array::uniform4(prop_oneof![1u64..100, Just(u64::MAX)])),
        (threads, targets, array, private) in (prop::option::of(1u32..64), 0u32..9, any::<bool>(), any::<bool>()),
        class in 0usize..4,
    ) {
        let mut spec = Spec { layer: LAYER, targets: vec!["vos:p".to_owned()], threads, ..Spec::default() };
        *ObjectSpec::of_mut(&mut spec) = ObjectSpec {
            operations: operations.iter().map(|&at| ObjectOp::ALL[at]).collect(),
            objects: counts[0], dkeys: counts[1], akeys: counts[2], records: counts[3],
            value_size: sizes[0].map(|size| ByteSize(size).to_string()),
            stride: sizes[1].map(ByteSize), record_offset: sizes[2].map(ByteSize), read_size: sizes[3].map(ByteSize),
            first, whole,
            value: array.then_some(ValueKind::Array),
            object_scope: private.then_some(Scope::Private),
            integer_dkeys: true,
            class: [None, Some(ObjectClass::SX), "RP_2G2".parse().ok(), "EC_4P2GX".parse().ok()][class],
            ..ObjectSpec::default()
        };
        let facts = ObjectFacts { targets, ..vos() };
        for phase in object_phases(&spec).expect("operations") {
            match resolve_object(&spec, &phase, &facts, 1) {
                Err(error) => prop_assert!(!error.0.is_empty() && !error.0.contains('\n') && error.0.len() < 500),
                Ok(plan) => {
                    let dataset = &plan.dataset;
                    let ends = [0, 1, 2, 3].map(|at| dataset.first[at] + shape(dataset)[at]);
                    prop_assert!((0..4).all(|at| ends[at] <= dataset.whole()[at]));
                    let last = dataset.whole()[3] - 1;
                    let end = last * dataset.stride_bytes + dataset.offset_bytes + dataset.value_size_bytes_max;
                    prop_assert!(end <= i64::MAX as u64);
                    prop_assert!(targets == 0 || plan.class.groups_over(targets).is_some());
                    for fill in fill_phases(&plan) {
                        prop_assert!(fill.is_fill && fill.is_one_pass() && fill.load.threads > 0);
                        prop_assert!(!needs_fill(&fill, &[]));
                    }
                    let text = serde_json::to_string(&plan).expect("JSON");
                    prop_assert_eq!(serde_json::from_str::<ObjectPlan>(&text).expect("a plan"), plan);
                }
            }
        }
    }
}

#[test]
fn every_option_of_drivers_is_refused_where_it_means_nothing() {
    let none = ObjectFacts { options: &[], ..vos() };
    let value = |name: &str| match name {
        "class" => "S1",
        "durability" => "none",
        "flush" => "cpu",
        "allocate" => "whole",
        "checksum" => "crc16",
        "cache" => "drop",
        "zero-copy" => "off",
        "containers" => "private",
        "s3-endpoint" => "http://a",
        "s3-addressing" => "path",
        "s3-signing" => "none",
        "reopen" | "tls" => "true",
        _ => "7",
    };
    for name in DRIVER_OPTIONS {
        let message = refusal_on("vos:p", &format!("op=put {name}={}", value(name)), &none);
        let generic = format!("--{name} is not an option of vos: its driver options are none");
        let expected = match *name {
            "snapshot" => {
                "--snapshot 7 requires a store that keeps versions, but vos has only the latest: use vos:, engine:// or daos://"
            }
            _ => &generic,
        };
        assert_eq!(message, expected);
    }
    let timeout = ObjectSpec::of(&spec_on("vos:p", "op=put timeout=5s")).timeout;
    assert_eq!(timeout, Some(Span(5_000_000_000)));
}

#[test]
fn names_of_objects_are_one_for_each() {
    let facts = ObjectFacts { options: &["object-names"], ..vos() };
    let plan = |words: &str| plans_on("rados://p", words, &facts);
    let base = "op=update,fetch value=array records=4 object-names=a,b";
    let plans = plan(base).expect("good");
    assert_eq!((plans[0].container.as_str(), plans[0].dataset.objects, plans[0].dataset.dkeys), ("", 2, 1));
    assert_eq!(plans[1].dataset.object_names, ["a", "b"]);
    assert!(!crate::plan::needs_fill(&plans[1], &plans[..1]));
    let other = plan("op=fetch value=array records=4 object-names=a,c").expect("good");
    assert!(crate::plan::needs_fill(&other[0], &plans[..1]), "other objects");
    for (more, why) in [
        ("objects=3", "2 names for 3 objects"),
        ("dkeys=2", "without dkeys and akeys"),
        ("akeys=2", "without dkeys and akeys"),
        ("value=single", "--value array"),
        ("object-names=a,a", "a twice"),
        ("object-scope=private", "applies to all workers"),
    ] {
        let error = plan(&format!("{base} {more}")).expect_err(more).to_string();
        assert!(error.contains(why), "{more}: {error}");
    }
    for words in ["op=put object-names=a", "op=punch punch=object value=array object-names=a"] {
        assert!(plan(words).expect_err(words).to_string().contains("extents of objects"), "{words}");
    }
    let error = plans_on("vos:pool", base, &vos()).expect_err("no option of vos").to_string();
    assert!(error.contains("--object-names is not an option of vos"), "{error}");
}

#[test]
fn fields_of_a_plan_are_read_as_the_record_has_them() {
    let plan = plans_on("vos:pool", "op=get dkeys=7 value-size=4k", &vos()).expect("good").remove(0);
    let plan = workload::plan::PhasePlan::new(plan);
    assert_eq!(plan.value("/layer"), Some("object".into()));
    assert_eq!(plan.value("/dataset/dkeys"), Some(7.into()));
    assert_eq!(plan.value("/mix/0/operation"), Some("get".into()));
    assert_eq!(plan.value("/dataset/nothing"), None);
}
