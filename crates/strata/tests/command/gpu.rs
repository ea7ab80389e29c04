//! Buffers on GPUs through the binary, on the libraries of the tests (`testkit::gpu`).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::Value;

use crate::doubts::Told;
use crate::support::{Ended, Scratch, class, read_record, total};

/// Drivers that reach memory of a GPU, with the words that choose them.
const ENGINES: [&str; 9] = [
    "-e psync",
    "-e pvsync2",
    "-e mmap",
    "-e io_uring -q 4",
    "-e libaio -q 4 --gpu-staging pageable",
    "-e cufile",
    "-e cufile_batch -q 4",
    "-e cufile_stream -q 4",
    "-e cufile_batch",
];

/// The libraries of the tests; none where there is no C compiler.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        testkit::gpu::compile(Path::new(env!("CARGO_TARGET_TMPDIR")))
            .expect("the libraries of the tests compile")
    })
}

/// Variables that name the libraries, which have these settings.
pub(crate) fn variables(settings: &str) -> Vec<(&'static str, String)> {
    let library = library().to_str().expect("a plain path").to_owned();
    let mut variables: Vec<_> =
        testkit::gpu::LIBRARY_VARIABLES.iter().map(|name| (*name, library.clone())).collect();
    variables.push((testkit::gpu::SETTINGS_VARIABLE, settings.to_owned()));
    variables
}

/// Runs words with the libraries.
pub(crate) fn run(scratch: &Scratch, words: &str, settings: &str) -> Ended {
    scratch.start_in(words, &variables(settings)).end()
}

/// The same with a record.
pub(crate) fn measure(scratch: &Scratch, words: &str, settings: &str) -> (Ended, Value) {
    let ended = run(scratch, &format!("{words} --json record.json"), settings);
    let record = read_record(&scratch.join("record.json"));
    (ended, record)
}

fn told(scratch: &Scratch, words: &str, settings: &str) -> Told {
    let (ended, record) = measure(scratch, words, settings);
    Told::new(&ended, record)
}

#[test]
fn blocks_are_made_and_checked_on_the_device_by_every_engine() {
    for engine in ENGINES {
        let scratch = Scratch::new();
        let words =
            format!("media f -s 512k -b 8k --op write,randread --verify --memory gpu {engine} -t 2 --keep");
        let (ended, record) = measure(&scratch, &words, "devices=2 lazy=1");
        assert_eq!(ended.code, Some(0), "{engine}: {}", ended.stderr);
        assert_eq!(class(&record, 0, "write"), (64, 64 * 8192), "{engine}");
        assert_eq!(class(&record, 1, "read"), (64, 64 * 8192), "{engine}");
        let notes = record["phases"][0]["notes"].to_string();
        assert!(
            notes.contains("buffers on GPU 0") && notes.contains("buffers on GPU 1"),
            "{engine}: {notes}"
        );
        assert_eq!(record["phases"][0]["plan"]["memory"]["kind"], "gpu", "{engine}");
        let facts = &record["phases"][0]["observations"]["gpu"]["facts"];
        assert_eq!(
            (&facts["cuda_version"], &facts["devices"][1]["name"]),
            (&"13.0".into(), &"Stand-in 1".into())
        );
        // What was written lies in the file: memory of the host finds it right too.
        let host = scratch.run("media f -b 8k --op read --verify -e psync --destroy-data");
        assert_eq!(host.code, Some(0), "{engine}: {}", host.stdout);
    }
}

#[test]
fn a_bit_that_changes_on_the_way_to_the_device_is_found() {
    let scratch = Scratch::new();
    let written = scratch.run("media f -s 1m -b 64k --op write --verify --keep --no-read-back -e psync");
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    let (ended, record) =
        measure(&scratch, "media f -b 64k --op read --verify --memory gpu -e psync --verify-run 1", "flip=3");
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    drop(record);
    // Blocks of this run, so that the device judges them itself.
    let scratch = Scratch::new();
    let words = "media f -s 1m -b 64k --op write --verify --memory gpu -e psync";
    let (ended, record) = measure(&scratch, words, "flip=30");
    let text = record["phases"].to_string();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(text.contains("block at offset "), "{text}");
}

#[test]
fn loads_without_verification_run_too() {
    let scratch = Scratch::new();
    for (words, operations) in [
        ("media f -s 1m -b 4k --op randwrite --memory gpu --count 64", 64),
        ("media f -s 1m -b 4k --op randwrite --memory gpu --content zero --count 64", 64),
        ("media f -s 1m -b 4k --op randrw --memory gpu --compress 50 --count 64 -q 4", 64),
        ("media f -b 4k --op randread --memory gpu:1 --count 64 --gpu-path cufile --gpu-register off", 64),
        ("media f -b 4k --op randread --memory gpu --count 640 --gpu-path cufile-batch -q 32", 640),
        ("media f -b 4k --op randrw --memory gpu --count 640 --gpu-path cufile-stream -q 32", 640),
        (
            "media f -b 4k --op randread --memory gpu --count 640 --gpu-path cufile-batch -q 32 --rate 100k",
            640,
        ),
        ("media f -s 1m -b 4k --op write --memory gpu --gpu-path cufile-stream -q 32 --fsync 16", 256 + 16),
        ("media mem: -s 4m -b 1m --op read --memory gpu --count 8", 8),
        ("media mem: -s 4m -b 1m --op write --memory gpu --gpu-staging pageable --count 8", 8),
        ("media mem: -s 4m -b 1m --op read -e gpu_mem --memory gpu --count 8", 8),
        ("media f -b 4k --op randread --memory pinned --count 64", 64),
    ] {
        let words = format!("{words} --keep --destroy-data");
        let (ended, record) = measure(&scratch, &words, "devices=2");
        assert_eq!(ended.code, Some(0), "{words}: {}", ended.stderr);
        assert_eq!(total(&record, 0, "operations"), operations, "{words}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("f"), vec![1; 1 << 20]).expect("a file");
    for (words, wanted) in [
        ("media f --op read --gpu-path cufile", "--memory gpu"),
        ("media f --op read -e psync --gpu-staging pinned", "give --memory gpu with it"),
        ("media f --op read -e cufile", "give --memory gpu"),
        ("media f --op read -e psync --memory gpu --gpu-path cufile", "use --engine cufile"),
        ("media f --op read -e cufile --memory gpu --gpu-path staged", "goes by --gpu-path cufile"),
        ("media f --op read -e cufile --memory gpu -q 4", "depth"),
        ("media f --op read --memory gpu --gpu-register on -e psync", "gpu-register"),
        ("media f --op read --memory gpu --gpu-path cufile-batch -e cufile", "goes by --gpu-path cufile"),
        ("media f --op read --memory gpu --gpu-path cufile-stream -e io_uring", "use --engine cufile_stream"),
        ("media f --op read --memory gpu --gpu-path cufile-batch -q 129", "depth of at most 128"),
        (
            "media f --op read --memory gpu --gpu-path direct",
            "use one of staged, cufile, cufile-batch, cufile-stream",
        ),
        ("media null: --op nop --memory gpu", "--memory is not an option of engine null"),
        ("media f --op read --memory gpu:", "host, pinned, gpu, or gpu:0,1"),
        ("media f --op read --memory gpu:7", "there is no GPU 7; use one of 0"),
    ] {
        let ended = run(&scratch, words, "");
        assert_eq!(ended.code, Some(2), "{words}: {}{}", ended.stdout, ended.stderr);
        assert!(
            ended.stderr.contains(wanted) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_missing_library_names_its_package() {
    let scratch = Scratch::new();
    std::fs::write(scratch.join("f"), vec![1; 1 << 20]).expect("a file");
    let none = [("STRATA_LIBCUDA", "/nonexistent/libcuda.so.1".to_owned())];
    let ended = scratch.start_in("media f --op read --memory gpu", &none).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("libcuda.so.1 is missing: install the driver of the GPU"),
        "{}",
        ended.stderr
    );
    let library = library().to_str().expect("a plain path").to_owned();
    let half = [("STRATA_LIBCUDA", library), ("STRATA_LIBCUFILE", "/nonexistent/libcufile.so.0".to_owned())];
    let ended = scratch.start_in("media f --op read --memory gpu -e cufile", &half).end();
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("libcufile.so.0 is missing: install GPUDirect Storage"),
        "{}",
        ended.stderr
    );
}

#[test]
fn every_call_that_fails_is_told_by_its_name() {
    let staged = "media f -s 1m -b 64k --op write --memory gpu -e psync --destroy-data";
    let cufile = "media f -s 1m -b 64k --op read --memory gpu -e cufile --destroy-data";
    let batch = "media f -s 1m -b 64k --op read --memory gpu -e cufile_batch -q 4 --destroy-data";
    let stream = "media f -s 1m -b 64k --op read --memory gpu -e cufile_stream -q 4 --destroy-data";
    for (words, fault, wanted) in [
        (staged, "cuInit:1:803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        (staged, "cuDeviceGetCount:1:100", "CUDA_ERROR_NO_DEVICE"),
        (staged, "cuDevicePrimaryCtxRetain:1:2", "CUDA_ERROR_OUT_OF_MEMORY"),
        (staged, "cuMemAlloc_v2:1:2", "use a smaller block size"),
        (staged, "cuMemHostRegister_v2:1:712", "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
        (staged, "cuModuleLoadData:1:218", "the driver does not take the kernels"),
        (staged, "cuStreamCreate:1:2", "cannot make a stream"),
        (staged, "cuMemcpyDtoHAsync_v2:5:700", "a copy from the device failed"),
        (staged, "cuStreamSynchronize:7:700", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (staged, "cuLaunchKernel:4:700", "a kernel does not start"),
        (cufile, "cuFileDriverOpen:1:5001", "CU_FILE_DRIVER_NOT_INITIALIZED"),
        (cufile, "cuFileHandleRegister:1:5027", "/run/udev"),
        (cufile, "cuFileBufRegister:1:5045", "CU_FILE_INTERNAL_BUF_REGISTER_ERROR"),
        (cufile, "cuFileRead:3:-5044", "Input/output error"),
        (batch, "cuFileBatchIOSetUp:1:5039", "CU_FILE_INTERNAL_BATCH_SETUP_ERROR"),
        (batch, "cuFileBatchIOSubmit:2:5049", "Operation not supported"),
        (batch, "cuFileBatchIOGetStatus:2:5041", "CU_FILE_INTERNAL_BATCH_GETSTATUS_ERROR"),
        (batch, "batch:2:5043", "Cannot allocate memory"),
        (stream, "cuFileStreamRegister:2:5030", "CU_FILE_INTERNAL_ERROR"),
        (stream, "cuFileReadAsync:3:5038", "Operation not supported"),
        (stream, "cuStreamQuery:3:700", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ] {
        let scratch = Scratch::new();
        std::fs::write(scratch.join("f"), vec![1; 1 << 20]).expect("a file");
        let ended = run(&scratch, words, &format!("fail={fault}"));
        assert_eq!(ended.code, Some(1), "{fault}: {}{}", ended.stdout, ended.stderr);
        let text =
            format!("{}{}", ended.stdout, ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(wanted), "{fault}: {text}");
    }
}

#[test]
fn cufile_that_is_not_direct() {
    let scratch = Scratch::new();
    let words = "media f -s 1m -b 64k --op write --memory gpu --destroy-data --count 64";
    let told_cufile = told(&scratch, &format!("{words} -e cufile"), "compat=1");
    assert!(told_cufile.raised("gpu_staged").contains("in compatibility mode"));
    told(&scratch, &format!("{words} -e psync"), "").silent("gpu_staged");
    let peer = told(&scratch, &format!("{words} -e cufile_stream -q 4"), "p2p=1");
    peer.silent("gpu_staged");
    let seen = &peer.record["phases"][0]["observations"]["gpu"];
    assert_eq!((&seen["cufile_transport"], &seen["cufile_requests"]), (&"peer_to_peer".into(), &64.into()));
    let words = "media f -s 1m -b 6k --op write --memory gpu --destroy-data --count 64 -e cufile_batch -q 8";
    let unaligned = told(&scratch, words, "p2p=1");
    assert_eq!(unaligned.record["phases"][0]["observations"]["gpu"]["unaligned_requests"], 64);
    assert!(unaligned.raised("gpu_staged").starts_with("100% of the requests were not on multiples of 4096"));
    let smaller = "media f -s 1m --op read --memory gpu --gpu-path cufile-batch -q 32";
    let ended = run(&scratch, smaller, "batch=16");
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("use -q 16, or raise io_batchsize in cufile.json"), "{}", ended.stderr);
}

#[test]
fn devices_that_others_use_or_that_are_held_back() {
    let scratch = Scratch::new();
    let words = "media f -s 1m -b 64k --op write --memory gpu -e psync --destroy-data --count 64";
    let disturbed = told(&scratch, words, "others=2 held=4 violations=-1");
    assert_eq!(disturbed.raised("gpu_shared"), "2 other processes were on the GPU");
    assert_eq!(disturbed.raised("gpu_clocks"), "the clocks of a GPU were held back: GPU 0: power cap");
    let capped = told(&scratch, words, "violations=100000");
    assert_eq!(capped.raised("gpu_clocks"), "the clocks of a GPU were held back: GPU 0: power cap (100%)");
    let quiet = told(&scratch, words, "");
    ["gpu_shared", "gpu_clocks", "gpu_far"].iter().for_each(|kind| quiet.silent(kind));
}

#[test]
fn devices_are_dealt_out_to_hosts() {
    let scratch = Scratch::new();
    let words = "media f -s 2m -b 64k --op write --memory gpu -t 2 --hosts local:3 --destroy-data";
    let by_host = ["local:0, local:2: buffers on GPU 0", "local:1: buffers on GPU 1"];
    for (per, wanted) in [("host", by_host), ("worker", ["buffers on GPU 0", "buffers on GPU 1"])] {
        let (ended, record) = measure(&scratch, &format!("{words} --gpu-per {per}"), "devices=2");
        assert_eq!(ended.code, Some(0), "{per}: {}", ended.stderr);
        assert_eq!(record["phases"][0]["plan"]["memory"]["per"], per);
        let notes = record["phases"][0]["notes"].as_array().expect("notes").clone();
        let starts =
            |start: &str| notes.iter().any(|note| note.as_str().is_some_and(|note| note.starts_with(start)));
        assert!(wanted.iter().all(|start| starts(start)), "{per}: {notes:?}");
    }
    let ended = run(&scratch, "media f -s 2m --op write --gpu-per host", "");
    assert!(ended.code == Some(2) && ended.stderr.contains("give --memory gpu with it"), "{}", ended.stderr);
}

#[test]
fn lines_of_elbencho_run() {
    let scratch = Scratch::new();
    for line in [
        "-w -r -t 2 -s 4m -b 256k --gpuids 0,1 f",
        "-w -r -t 2 -s 4m -b 256k --gpuids all --cuhostbufreg --iodepth 4 f",
        "-w -r -t 1 -s 4m -b 256k --gpuids 0 --cufile --cufiledriveropen --gdsbufreg --verify 5 f",
        "-w -r -t 1 -s 4m -b 256k --gpuids 1 --gds --gpuperservice --lat f",
    ] {
        let ended = run(&scratch, &format!("as elbencho {line}"), "devices=2");
        assert_eq!(ended.code, Some(0), "{line}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.contains("WRITE") && ended.stdout.contains("READ"), "{line}: {}", ended.stdout);
        std::fs::remove_file(scratch.join("f")).expect("the file of the run");
    }
}

#[test]
fn lines_of_fio_run() {
    let scratch = Scratch::new();
    let line = "as fio --name=j --filename=f --size=1m --bs=64k --rw=write --ioengine=libcufile";
    for (more, wanted) in [
        ("", Some(0)),
        ("--gpu_dev_ids=0:1 --cuda_io=posix --numjobs=2", Some(0)),
        ("--gpu_dev_ids=1 --cuda_io=cufile --direct=1", Some(0)),
        ("--cuda_io=other", Some(2)),
        ("--gpu_dev_ids=x", Some(2)),
    ] {
        let ended = run(&scratch, &format!("{line} {more}"), "devices=2");
        assert_eq!(ended.code, wanted, "{more}: {}{}", ended.stdout, ended.stderr);
    }
    let ended = run(&scratch, "as fio --name=j --filename=f --size=1m --rw=read --gpu_dev_ids=0", "");
    assert!(ended.code == Some(2) && ended.stderr.contains("ioengine=libcufile"), "{}", ended.stderr);
}

#[test]
fn blocks_of_files_in_directories_go_to_the_device_and_back() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("pool create vos:p --scm 64m").code, Some(0));
    for (target, driver) in
        [("d", "-e posix"), ("d", "-e libc"), ("d", "-e io_uring -q 4"), ("dfs+vos:p", "-e dfs")]
    {
        // 47008 bytes are no whole number of lanes: such blocks are made on the host.
        for block in ["8k", "47008"] {
            let line = format!(
                "fs {target} --op write,read --files 6 --file-size {block} -b {block} --verify -t 2 --memory gpu {driver}"
            );
            let (ended, record) = measure(&scratch, &line, "devices=2 lazy=1");
            assert_eq!(ended.code, Some(0), "{line}: {}{}", ended.stdout, ended.stderr);
            assert_eq!(class(&record, 1, "read").0, 12, "{line}");
            let phase = &record["phases"][1];
            assert!(phase["notes"].to_string().contains("buffers on GPU 1"), "{line}: {}", phase["notes"]);
            assert_eq!(phase["observations"]["gpu"]["facts"]["devices"][0]["name"], "Stand-in 0", "{line}");
        }
    }
    let (ended, _) = measure(
        &scratch,
        "fs d --op write,read --files 4 --file-size 8k -b 8k --verify --memory gpu",
        "flip=4",
    );
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let ended = run(&scratch, "fs d --op write --gpu-staging pinned", "");
    assert!(ended.code == Some(2) && ended.stderr.contains("give --memory gpu with it"), "{}", ended.stderr);
}

#[test]
fn lines_of_elbencho_in_directories_run() {
    let scratch = Scratch::new();
    let line = "as elbencho -d -w -r -F -D -t 2 -n 2 -N 3 -s 64k -b 16k --gpuids 0,1 --cuhostbufreg d";
    let ended = run(&scratch, line, "devices=2");
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    for more in ["--gds", "--cufile --gdsbufreg --cufiledriveropen --verify 3"] {
        let line = format!("as elbencho -d -w -r -F -D -t 2 -n 2 -N 3 -s 64k -b 16k --gpuids 0 {more} d");
        let ended = run(&scratch, &line, "");
        assert_eq!(ended.code, Some(0), "{line}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn files_in_directories_go_by_gpu_direct_storage() {
    let scratch = Scratch::new();
    let words = "fs d --op write,read,unlink --files 6 --file-size 40k -b 8k --verify -t 2 --memory gpu --gpu-path cufile";
    for more in ["", "--gpu-register off", "-e cufile --fsync 2"] {
        let (ended, record) = measure(&scratch, &format!("{words} {more}"), "devices=2 compat=1");
        assert_eq!(ended.code, Some(0), "{more}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(class(&record, 1, "read").0, 60, "{more}");
        let phase = &record["phases"][1];
        assert_eq!(phase["plan"]["engine"], "cufile");
        let seen = &phase["observations"]["gpu"];
        assert_eq!((&seen["cufile_requests"], &seen["cufile_bytes"]), (&60.into(), &(60 * 8192).into()));
        assert!(phase["doubts"].to_string().contains("compatibility mode"), "{}", phase["doubts"]);
    }
    // The same bytes on the device and on the host.
    let words = "--files 4 --file-size 32k -b 8k --verify --verify-run 7";
    let gpu = "--memory gpu --gpu-path cufile";
    for (writes, reads) in [(gpu, ""), ("", gpu), (gpu, "--memory gpu")] {
        let written = run(&scratch, &format!("fs e --op write {words} --keep {writes}"), "");
        assert_eq!(written.code, Some(0), "{}{}", written.stdout, written.stderr);
        let read = run(&scratch, &format!("fs e --op read {words} --no-fill {reads}"), "");
        assert_eq!(read.code, Some(0), "{writes}, {reads}: {}{}", read.stdout, read.stderr);
        std::fs::remove_dir_all(scratch.join("e")).expect("the files");
    }
    let words = "fs d --op write,read --files 6 --file-size 8k -b 8k --memory gpu --gpu-path cufile";
    for (fault, wanted) in [
        ("cuFileHandleRegister:3:5027", "/run/udev"),
        ("cuFileWrite:2:-5044", "Input/output error"),
        ("cuFileBufRegister:1:5045", "CU_FILE_INTERNAL_BUF_REGISTER_ERROR"),
    ] {
        let ended = run(&scratch, words, &format!("fail={fault}"));
        let text =
            format!("{}{}", ended.stdout, ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ended.code == Some(1) && text.contains(wanted), "{fault}: {text}");
    }
    assert_eq!(scratch.run("pool create vos:p --scm 64m").code, Some(0));
    for (words, wanted) in [
        ("fs d --op write -e cufile", "give --memory gpu"),
        ("fs d --op write --memory gpu --gpu-path cufile -e posix", "use --engine cufile"),
        ("fs d --op write --memory gpu --gpu-path cufile -q 4", "takes up to 1 at once"),
        ("fs d --op write --memory gpu --gpu-path cufile-batch", "use one of staged, cufile"),
        ("fs dfs+vos:p --op write --memory gpu --gpu-path cufile", "use --engine cufile"),
        ("fs d --op write --memory gpu --gpu-register on", "is for --gpu-path cufile"),
    ] {
        let ended = run(&scratch, words, "");
        assert_eq!(ended.code, Some(2), "{words}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains(wanted), "{words}: {}", ended.stderr);
    }
}

#[test]
fn lines_of_ior_and_mdtest_run() {
    let scratch = Scratch::new();
    for (line, memory) in [
        ("as ior -w -r -R -t 64k -b 256k -N 2 -O allocateBufferOnGPU=3 -o f", "staged"),
        ("as ior -w -r -W -t 64k -b 256k -F -O allocateBufferOnGPU=3,GPUid=1,GPUDirect=1 -o f", "cufile"),
        ("as mdtest -n 4 -w 4096 -e 4096 -X -F --allocateBufferOnGPU 3 -d m", "staged"),
        ("as mdtest -n 4 -w 4096 -e 4096 -X -F --allocateBufferOnGPU 3 --gpuDirect --GPUid 0 -d m", "cufile"),
    ] {
        let (name, words) = line.strip_prefix("as ").and_then(|line| line.split_once(' ')).expect("a tool");
        let ended = run(&scratch, &format!("as --json record.json {name} {words}"), "devices=2");
        assert_eq!(ended.code, Some(0), "{line}: {}{}", ended.stdout, ended.stderr);
        let record = read_record(&scratch.join("record.json"));
        let phases = record["phases"].as_array().expect("phases");
        let paths = phases.iter().filter_map(|phase| phase["plan"]["memory"]["path"].as_str());
        let paths: Vec<_> = paths.collect();
        assert!(paths.len() >= 2 && paths.iter().all(|path| *path == memory), "{line}: {paths:?}");
    }
    for (line, wanted) in [
        ("as ior -w -O allocateBufferOnGPU=1 -o f", "use 3 for device memory"),
        ("as ior -w -O GPUid=x -o f", "-1 to use all devices in turn"),
        ("as mdtest -n 1 --allocateBufferOnGPU 7 -d m", "give 0 or 3"),
    ] {
        let ended = run(&scratch, line, "");
        assert!(ended.code == Some(2) && ended.stderr.contains(wanted), "{line}: {}", ended.stderr);
    }
}

#[test]
fn applications_keep_their_data_on_the_device() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("d")).expect("a directory");
    assert_eq!(scratch.run("pool create vos:pool --scm 256m").code, Some(0));
    let settings = "--size 1MiB --steps 2 --set transfer=64KiB,compute=0s";
    for target in ["d", "dfs+vos:pool", "vos:pool"] {
        let names = if target.starts_with("vos:") { ",names=direct" } else { "" };
        let words = format!("app checkpoint {target} {settings}{names} --memory gpu");
        let (ended, record) = measure(&scratch, &words, "devices=2");
        assert_eq!(ended.code, Some(0), "{target}: {}{}", ended.stdout, ended.stderr);
        let phase = &record["phases"][0];
        assert!(phase["notes"].to_string().contains("buffers on GPU 1"), "{target}: {}", phase["notes"]);
        assert_eq!(phase["observations"]["gpu"]["facts"]["cuda_version"], "13.0", "{target}");
    }
    let small = "dataset.num_files_train=4,dataset.record_length_bytes=100000,dataset.record_length_bytes_stdev=0,\
        reader.batch_size=1,train.computation_time=0.001,train.epochs=1,checkpoint.checkpoint_after_epoch=1,model.model_size_bytes=100000";
    for target in ["d", "vos:pool"] {
        let words = format!("app dlio {target} --set {small} --memory gpu");
        let (ended, record) = measure(&scratch, &words, "devices=2");
        assert_eq!(ended.code, Some(0), "{target}: {}{}", ended.stdout, ended.stderr);
        // Samples end on the device, and the checkpoint begins there.
        for phase in record["phases"].as_array().expect("phases") {
            assert!(phase["observations"]["gpu"].is_object(), "{target}: {phase}");
        }
    }
    let (ended, _) = measure(&scratch, &format!("app checkpoint d {settings} --memory gpu"), "flip=70");
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(ended.stderr.contains("damaged"), "{}", ended.stderr);
}

#[test]
fn the_stack_has_rows_of_gpus() {
    let scratch = Scratch::new();
    let (ended, record) = measure(&scratch, "stack --quick --passes 2 --size 64m --gpu all", "devices=2");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let rows = record["stack"]["rows"].as_array().expect("rows");
    for layer in
        ["gpu-memory", "gpu-copy", "gpu-pageable", "gpu-staged", "gpu-cufile", "gpu-batch", "gpu-stream"]
    {
        for load in ["write 1 MiB", "read 1 MiB"] {
            let row = rows.iter().find(|row| row["layer"] == layer && row["load"] == load);
            assert!(row.is_some(), "{layer}, {load}: {}", record["stack"]);
        }
        assert!(ended.stdout.contains(layer), "{layer}: {}", ended.stdout);
    }
    let none = [("STRATA_LIBCUDA", "/nonexistent/libcuda.so.1".to_owned())];
    let ended = scratch.start_in("stack --quick --gpu 0", &none).end();
    assert!(ended.code == Some(2) && ended.stderr.contains("libcuda.so.1 is missing"), "{}", ended.stderr);
    let ended = scratch.run("stack --quick --gpu x");
    assert!(
        ended.code == Some(2) && ended.stderr.contains("all, or numbers such as 0,1"),
        "{}",
        ended.stderr
    );
}
