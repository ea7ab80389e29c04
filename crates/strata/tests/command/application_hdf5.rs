//! Applications through HDF5: files that other tools read, the choice between HDF5 and raw files, and what goes wrong.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Ended, Mounted, Running, Scratch, assert_partial, class, names_in, read_record, skipped, tool,
};

/// A small load: 4 MiB in all.
const SMALL: &str = "--steps 2 --set particles=16384,compute=1ms,transfer=16KiB";
/// Bytes of a variable in a checkpoint of it, with two ranks.
const VARIABLE_BYTES: usize = 2 * 16384 * 4;
/// Names of the variables, in the order in which they are written.
const VARIABLES: [&str; 8] = ["x", "y", "z", "px", "py", "pz", "id1", "id2"];

/// A run directory with a directory for data. None, and a line that says so, where there is no libhdf5.
fn with_hdf5(test: &str) -> Option<Scratch> {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let ended = scratch.run("app vpic data --format hdf5 --set particles=2,ranks=1,steps=1,compute=0");
    if ended.stderr.contains("libhdf5_serial.so.103 is missing") {
        skipped(test, "libhdf5 is not installed");
        return None;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    Some(scratch)
}

/// Files of the particles of a run that kept them, or that goes on.
fn particles(data: &Path) -> Option<PathBuf> {
    let top = names_in(data).into_iter().find(|name| name.starts_with("strata-app-"))?;
    Some(data.join(top).join("particles")).filter(|particles| particles.is_dir())
}

fn parameter<'a>(record: &'a Value, name: &str) -> &'a Value {
    let all = record["phases"][0]["plan"]["parameters"].as_array().unwrap();
    &all.iter().find(|parameter| parameter["name"] == name).unwrap()["value"]
}

#[test]
fn variables_are_datasets_with_the_bytes_of_the_raw_file() {
    let Some(scratch) = with_hdf5("variables_are_datasets") else { return };
    let mut found = Vec::new();
    for format in ["raw", "hdf5"] {
        fs::create_dir(scratch.join(format)).unwrap();
        let record =
            scratch.measured(&format!("app vpic {format} {SMALL} --format {format} --seed 5 --keep"));
        assert_eq!(class(&record, 0, "create").0, 4);
        assert_eq!(class(&record, 0, "write"), (2 * 2 * 8 * 4, 2 * 8 * VARIABLE_BYTES as u64));
        assert_eq!((class(&record, 0, "sync").0, class(&record, 0, "close").0), (4, 4));
        assert_eq!(class(&record, 1, "read").1, 8 * VARIABLE_BYTES as u64);
        let plan = &record["phases"][0]["plan"];
        assert_eq!(plan["sets"][0]["format"], format);
        assert_eq!(*parameter(&record, "format"), format);
        assert_eq!(plan["engine"], if format == "raw" { "posix" } else { "hdf5" });
        let library = plan["hdf5_library"].as_str().unwrap_or("none");
        assert_eq!(library.starts_with("HDF5 1."), format == "hdf5", "{library}");
        found.push(particles(&scratch.join(format)).unwrap());
    }
    if tool(&["h5dump", "--version"]).is_none() {
        return skipped("variables_are_datasets", "hdf5-tools is not installed");
    }
    for checkpoint in ["0", "1"] {
        let raw = fs::read(found[0].join(checkpoint)).unwrap();
        let file = found[1].join(checkpoint).display().to_string();
        let listed = tool(&["h5ls", "-r", &file]).unwrap();
        assert!(listed.contains("/particles/id2           Dataset {32768}"), "{listed}");
        let header = tool(&["h5dump", "-p", "-H", &file]).unwrap();
        assert_eq!(header.matches("H5T_IEEE_F32LE").count(), 6, "{header}");
        assert_eq!(header.matches("H5T_STD_I32LE").count(), 2, "{header}");
        assert_eq!(header.matches("CONTIGUOUS").count(), 8, "{header}");
        for (at, name) in VARIABLES.iter().enumerate() {
            let path = format!("/particles/{name}");
            let out = scratch.join("out").display().to_string();
            tool(&["h5dump", "-d", &path, "-b", "FILE", "-o", &out, &file]).unwrap();
            let own = at * VARIABLE_BYTES..(at + 1) * VARIABLE_BYTES;
            assert!(fs::read(&out).unwrap() == raw[own], "checkpoint {checkpoint}, {name}");
        }
    }
    h5py_reads(&found[0].join("1"), &found[1].join("1"));
}

/// The variables as h5py has them, against a raw file.
fn h5py_reads(raw: &Path, file: &Path) {
    let program = "import h5py, sys\nparticles = h5py.File(sys.argv[2], 'r')['particles']\n\
        names = 'x y z px py pz id1 id2'.split()\n\
        print(b''.join(particles[name][:].tobytes() for name in names) == open(sys.argv[1], 'rb').read(), \
        particles['px'].dtype, particles['id1'].dtype)";
    let (raw, file) = (raw.display().to_string(), file.display().to_string());
    match tool(&["/usr/bin/python3", "-c", program, &raw, &file]) {
        Some(said) => assert_eq!(said.trim(), "True float32 int32"),
        None => skipped("h5py_reads", "python3-h5py is not installed"),
    }
}

#[test]
fn every_way_through_hdf5_reads_back_what_it_wrote() {
    let Some(scratch) = with_hdf5("every_way_through_hdf5") else { return };
    let all = 2 * 8 * VARIABLE_BYTES as u64;
    for (files, ranks) in [("one", 3), ("rank", 2)] {
        let record =
            scratch.measured(&format!("app bd-cats data {SMALL},files={files},ranks={ranks} --profile"));
        assert_eq!(class(&record, 1, "read").1, all, "all of both checkpoints");
        assert_eq!(*parameter(&record, "format"), "hdf5", "auto");
        let words = format!("app vpic data {SMALL},files={files} --hosts local:2 --format hdf5");
        let ended = scratch.run(&format!("{words} --json record.json"));
        if files == "rank" {
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            assert_eq!(class(&read_record(&scratch.join("record.json")), 1, "read").1, all / 2);
        } else {
            assert_eq!(ended.code, Some(2), "{}", ended.stderr);
            assert!(
                ended.stderr.contains("only through parallel HDF5") && ended.stderr.contains("files=rank")
            );
        }
    }
    // Hosts may have other libraries, and targets side by side other formats: all have the same.
    let record = scratch.measured(&format!("app vpic data {SMALL} --hosts local:2"));
    assert_eq!(*parameter(&record, "format"), "raw");
    let record = scratch.measured(&format!("app vpic --on data,vos:store {SMALL} --passes 2"));
    for phase in record["phases"].as_array().unwrap() {
        assert_eq!(phase["plan"]["sets"][0]["format"], "raw");
    }
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn two_formats_are_different_loads() {
    let Some(scratch) = with_hdf5("two_formats") else { return };
    for format in ["raw", "hdf5"] {
        let words = format!("app vpic data {SMALL} --format {format} --json {format}.json");
        assert_eq!(scratch.run(&words).code, Some(0));
    }
    let refused = scratch.run("compare raw.json hdf5.json");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("sets.0.format: raw → hdf5"), "{}", refused.stderr);
}

fn without_library(scratch: &Scratch, words: &str) -> Ended {
    scratch.start_in(words, &[("STRATA_LIBHDF5", "libstrata-absent.so".to_owned())]).end()
}

#[test]
fn without_the_library_files_are_raw_and_hdf5_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let refused = without_library(&scratch, &format!("app vpic data {SMALL} --format hdf5"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    for said in ["libhdf5_serial.so.103 is missing", "install libhdf5-103-1", "libstrata-absent.so"] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let ended = without_library(&scratch, &format!("app vpic data {SMALL} --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    assert_eq!(*parameter(&record, "format"), "raw");
    let notes = record["phases"][0]["notes"].to_string();
    assert!(notes.contains("format raw, without HDF5: libhdf5_serial.so.103 is missing"), "{notes}");
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn hdf5_where_it_cannot_be_is_refused_before_anything_is_made() {
    let Some(scratch) = with_hdf5("hdf5_where_it_cannot_be") else { return };
    let description = scratch.run("app show vpic --toml").stdout;
    let write = |name: &str, from: &str, to: &str| {
        assert!(description.contains(from));
        fs::write(scratch.join(name), description.replace(from, to)).unwrap();
    };
    write("three.toml", "\"id1:int32\", \"id2:int32\"", "\"id:int64\"");
    write("kind.toml", "x:float32", "x:float16");
    write("index.toml", "kind = \"array\"", "kind = \"log\"");
    for (words, said) in [
        ("app vpic vos:store --format hdf5", "HDF5 files can only be created in directories"),
        ("app vpic null: --format hdf5", "can only be created in directories"),
        ("app vpic dfs+vos:pool --format hdf5", "this target does not support"),
        ("app vpic data --format hdf5 --target-options direct", "do not support direct I/O"),
        ("app vpic data --format netcdf", "auto, hdf5, raw"),
        ("app fdb-hammer data --format hdf5", "has no parameter format"),
        ("app three.toml data --format hdf5", "do not divide evenly among 7 datasets"),
        ("app kind.toml data", "\"x:float16\" is not a dataset"),
        ("app index.toml data", "log"),
    ] {
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(said) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
    // What fits raw alone is raw, and the record says why.
    let record = scratch.measured(&format!("app three.toml data {SMALL}"));
    assert_eq!(*parameter(&record, "format"), "raw");
    assert!(record["phases"][0]["notes"].to_string().contains("7 datasets"));
    let record = scratch.measured(&format!("app vpic data {SMALL} --target-options direct"));
    assert_eq!(*parameter(&record, "format"), "raw");
    assert!(names_in(&scratch.join("data")).is_empty() && !scratch.join("store").exists());
}

/// Starts a load that writes one checkpoint, pauses, and reads it; its file, once it is closed.
fn paused(scratch: &Scratch, pause: &str) -> (Running, PathBuf) {
    let description = scratch.run("app show vpic --toml").stdout;
    let pausing = "[[group]]\nname = \"pause\"\nstage = \"pause\"\nprocesses = 1\niterations = 1\n\
        [[group.step]]\nname = \"sleep\"\ncompute = \"pause\"\nbegin = [\"compute\"]\n\
        [[group]]\nname = \"restarted\"";
    let text = description
        .replace("[[group]]\nname = \"restarted\"", pausing)
        .replace("[parameters]", "[parameters]\npause = { default = \"20s\", help = \"Pause\" }");
    fs::write(scratch.join("paused.toml"), text).unwrap();
    let words =
        format!("app paused.toml data --steps 1 --set particles=16384,compute=0,pause={pause} --format hdf5");
    let running = scratch.start(&format!("{words} --json record.json"));
    let data = scratch.join("data");
    let file = running.await_some(|| {
        let file = particles(&data)?.join("0");
        (fs::metadata(&file).ok()?.len() > 8 * VARIABLE_BYTES as u64).then_some(file)
    });
    // The ranks close the file, and pause.
    std::thread::sleep(std::time::Duration::from_millis(500));
    (running, file)
}

/// Changes the bytes of the file that are `from`, or those at an offset from the end.
fn change(file: &Path, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_damaged_element_and_a_missing_dataset_are_named() {
    let Some(scratch) = with_hdf5("a_damaged_element") else { return };
    let (running, file) = paused(&scratch, "3s");
    change(&file, |bytes| {
        // Both ranks wrote their variables in order, so the end is of the last one.
        let at = bytes.len() - 1000;
        bytes[at] ^= 0x10;
    });
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "damaged");
    let said = record["failure"].as_str().unwrap();
    for part in ["item 7)", "(dataset id2, element ", "expected 0x"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (running, file) = paused(&scratch, "3s");
    change(&file, |bytes| {
        let at = bytes.windows(4).position(|four| four == b"id2\0").unwrap();
        bytes[at + 2] = b'9';
    });
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "object 'id2' doesn't exist");
    assert!(record["failure"].as_str().unwrap().contains("/particles/0"), "{}", record["failure"]);
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn a_target_that_fills_up_ends_the_run_and_nothing_is_left() {
    let Some(scratch) = with_hdf5("a_target_that_fills_up") else { return };
    let Some(small) = Mounted::tmpfs("8m") else { return };
    let target = small.path().display().to_string();
    let words = format!("app vpic {target} --steps 2 --set particles=65536,compute=1s --format hdf5");
    let refused = scratch.run(&words.replace("65536", "655360"));
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let running = scratch.start(&format!("{words} --json record.json"));
    running.await_that(|| particles(small.path()).is_some());
    fs::write(small.path().join("others"), vec![0; 7 << 20]).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "of HDF5: No space left on device");
    assert_eq!(names_in(small.path()), ["others"]);
}

#[test]
fn a_run_that_is_interrupted_or_killed_leaves_nothing() {
    let Some(scratch) = with_hdf5("a_run_that_is_interrupted") else { return };
    let (running, _) = paused(&scratch, "30s");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(read_record(&scratch.join("record.json"))["status"], "partial");
    assert!(names_in(&scratch.join("data")).is_empty());
    let (running, _) = paused(&scratch, "30s");
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(names_in(&scratch.join("data")).len(), 1);
    let cleaned = scratch.run("clean --yes");
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    assert!(names_in(&scratch.join("data")).is_empty());
}
