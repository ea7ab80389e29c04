//! Workloads of DLIO: files as they are and values in the way of Hydra, on files and objects; utilisation; what cannot be.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::support::{Mounted, Running, Scratch, assert_partial, class, names_in, read_record};

/// A small workload, written as DLIO's own are.
const SMALL: &str = "model:\n  name: small\n  model_size_bytes: 300000\n\nframework: pytorch\n\nworkflow:\n  generate_data: False\n  train: True\n  checkpoint: True\n\n\
    dataset:\n  data_folder: data/small/\n  format: npz\n  num_files_train: 23\n  num_samples_per_file: 1\n  record_length_bytes: 20000\n  record_length_bytes_stdev: 3000\n\n\
    reader:\n  data_loader: pytorch\n  batch_size: 5\n  read_threads: 2\n  file_shuffle: seed\n  sample_shuffle: seed\n\n\
    train:\n  epochs: 2\n  computation_time: 0.01\n\ncheckpoint:\n  checkpoint_after_epoch: 2\n  fsync: True\n\nmetric:\n  au: 0.001\n";

/// Checkpoints alone of a language model, as MLPerf Storage has them.
const LLM: &str = "model:\n  name: llama\n  type: transformer\n  model_size: 30102\n  num_layers: 4\n  parallelism:\n    tensor: 2\n    pipeline: 2\n    zero_stage: 1\n\
    \x20 transformer:\n    vocab_size: 512\n    hidden_size: 128\n    ffn_hidden_size: 256\n    num_attention_heads: 8\n    num_kv_heads: 4\n\nframework: pytorch\n\n\
    workflow:\n  generate_data: False\n  train: False\n  checkpoint: True\n\n\
    checkpoint:\n  checkpoint_folder: checkpoints/llama\n  time_between_checkpoints: 0.01\n  num_checkpoints_write: 2\n  num_checkpoints_read: 1\n  fsync: True\n  mode: default\n";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    fs::write(scratch.join("small.yaml"), SMALL).unwrap();
    fs::write(scratch.join("llm.yaml"), LLM).unwrap();
    scratch
}

fn names(record: &Value) -> Vec<&str> {
    let phases = record["phases"].as_array().unwrap().iter();
    phases.map(|phase| phase["plan"]["name"].as_str().unwrap()).collect()
}

/// Epochs of 4 steps of 5 samples for one accelerator: the last 3 samples are left out.
fn check(record: &Value, target: &str) {
    assert_eq!(
        names(record),
        ["dlio generate", "dlio train-1", "dlio train-2", "dlio checkpoint-1"],
        "{target}"
    );
    assert_eq!(class(record, 0, "write").0, 23, "{target}");
    for epoch in [1, 2] {
        assert_eq!((class(record, epoch, "read").0, class(record, epoch, "compute").0), (20, 4), "{target}");
        let seen = &record["phases"][epoch]["observations"]["utilisation"];
        let steps = seen["steps"].as_u64().unwrap();
        assert_eq!((seen["accelerators"].as_u64(), steps), (Some(1), 3), "the first is left out: {seen}");
        let (compute, time) = (seen["compute_ns"].as_f64().unwrap(), seen["time_ns"].as_f64().unwrap());
        assert!(compute >= 3.0 * 10e6 && compute <= time, "{seen}");
        assert!((seen["fraction"].as_f64().unwrap() - compute / time).abs() < 1e-9, "{seen}");
        assert_eq!(seen["is_met"], true, "{seen}");
    }
    assert!(record["phases"][0]["observations"].get("utilisation").is_none());
    assert_eq!(class(record, 3, "write").1, 300_000, "{target}");
}

#[test]
fn a_workload_file_runs_on_files_and_objects() {
    let scratch = scratch();
    assert_eq!(scratch.run("pool create vos:pool --scm 64m").code, Some(0));
    for target in ["data", "vos:store", "dfs+vos:pool", "null:"] {
        check(&scratch.measured(&format!("app dlio {target} --workload small.yaml")), target);
    }
    assert!(names_in(&scratch.join("data")).is_empty());
    let ended = scratch.run("app dlio data --workload small.yaml --csv phases.csv");
    let csv = fs::read_to_string(scratch.join("phases.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains(",utilisation,samples_per_second"), "{csv}");
    for part in
        ["utilisation", "samples/s", "passes 0.1 %", "npz is neither written nor", "dataset.data_folder"]
    {
        assert!(ended.stdout.contains(part), "{part}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_workload_runs_behind_an_engine() {
    let scratch = scratch();
    let words = "--no-attach-info --interface lo --pool tank --dir pool --scm 128m --nvme 256m --listen";
    let engine = Engine::start_words(scratch.path(), &format!("engine {words} 127.0.0.1:0"));
    let address = engine.uri().strip_prefix("tcp://").unwrap().to_owned();
    for target in [format!("engine://{address}/tank/samples"), format!("dfs+engine://{address}/tank/files")] {
        check(&scratch.measured(&format!("app dlio {target} --workload small.yaml")), &target);
    }
}

#[test]
fn a_workload_runs_on_a_bucket() {
    let (scratch, options) = (scratch(), S3Options::default());
    let server = S3Server::start(S3Options::default()).unwrap();
    server.store().create_bucket("samples");
    let keys =
        [("AWS_ACCESS_KEY_ID", options.access.clone()), ("AWS_SECRET_ACCESS_KEY", options.secret.clone())];
    let words = format!(
        "app dlio s3://samples --workload small.yaml --target-options s3-endpoint={} --json record.json",
        server.endpoint()
    );
    let ended = scratch.start_in(&words, &keys).end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    check(&read_record(&scratch.join("record.json")), "s3");
    assert!(server.store().keys("samples").is_empty());
}

#[test]
fn values_are_set_as_hydra_does() {
    let scratch = scratch();
    let record = scratch.measured(
        "app dlio data --workload small.yaml --accelerators 2 --set \
         ++workload.dataset.num_files_train=6,workload.dataset.num_samples_per_file=4,reader.batch_size=3,\
         ++workload.workflow.evaluation=True,dataset.num_files_eval=2,reader.batch_size_eval=2,evaluation.eval_time=0.001,\
         checkpoint.steps_between_checkpoints=3,train.computation_time=0.001,reader.read_threads=3,train.seed_change_epoch=false",
    );
    let expected = [
        "generate",
        "train-1",
        "checkpoint-1",
        "train-1-2",
        "eval-1",
        "train-2",
        "checkpoint-2",
        "train-2-2",
        "eval-2",
    ];
    let expected: Vec<String> = expected.iter().map(|name| format!("dlio {name}")).collect();
    assert_eq!(names(&record), expected);
    assert_eq!(class(&record, 0, "write").0, 24 + 8);
    // Each block of steps takes samples of its own, so that an epoch reads each once.
    let read = class(&record, 1, "read").1 + class(&record, 3, "read").1;
    let again = class(&record, 5, "read").1 + class(&record, 7, "read").1;
    assert_eq!(class(&record, 1, "read").0, 18);
    assert_eq!(class(&record, 3, "read").0, 6);
    assert_eq!(read, again, "every sample in each epoch");
    assert_eq!(read + class(&record, 4, "read").1, class(&record, 0, "write").1);
    assert_eq!(record["phases"][1]["observations"]["utilisation"]["accelerators"], 2);
}

/// Files and bytes of a checkpoint of the model above on 8 ranks: states and optimizers of all, layers of two ranks in each of two stages, both
/// ends of the model.
const LLM_FILES: u64 = 8 + 8 + 4 * 2 + 2 + 2 + 2;
const LLM_BYTES: u64 = 8 * 30_102 + 8 * 1_090_752 + 4 * 2 * 147_968 + 2 * 131_072 + 2 * 131_072 + 2 * 256;

#[test]
fn checkpoints_of_a_language_model_are_written_and_read_back() {
    let scratch = scratch();
    assert_eq!(scratch.run("pool create vos:pool --scm 256m").code, Some(0));
    for target in ["data", "vos:store", "dfs+vos:pool"] {
        let record = scratch.measured(&format!("app dlio {target} --workload llm.yaml --accelerators 8"));
        let stages = ["dlio checkpoint-1", "dlio pause-2", "dlio checkpoint-2", "dlio restore-2"];
        assert_eq!(names(&record), stages, "{target}");
        for phase in [0, 2] {
            assert_eq!(class(&record, phase, "write"), (LLM_FILES, LLM_BYTES), "{target}");
            let seen = &record["phases"][phase]["observations"]["checkpoint"];
            assert_eq!(
                (seen["bytes"].as_u64(), seen["ranks"].as_u64()),
                (Some(LLM_BYTES), Some(8)),
                "{seen}"
            );
            assert_eq!(seen["files"].as_u64(), Some(LLM_FILES), "{seen}");
        }
        assert_eq!(class(&record, 3, "read"), (LLM_FILES, LLM_BYTES), "{target}");
        if target != "vos:store" {
            assert_eq!(class(&record, 0, "sync").0, LLM_FILES, "fsync");
        }
    }
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn checkpoints_between_steps_have_their_share_of_the_time() {
    let scratch = scratch();
    let model = "model.num_layers=2,model.parallelism.tensor=2,model.transformer.hidden_size=64,\
                 model.transformer.vocab_size=100,model.transformer.ffn_hidden_size=64,checkpoint.num_checkpoints_read=1";
    let words = format!(
        "app dlio data --workload small.yaml --accelerators 2 --json record.json --set \
         train.epochs=1,checkpoint.steps_between_checkpoints=1,{model}"
    );
    let ended = scratch.run(&words);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let record = read_record(&scratch.join("record.json"));
    let stages = ["generate", "train-1", "checkpoint-1", "train-1-2", "checkpoint-2", "restore-2"];
    let stages: Vec<String> = stages.iter().map(|name| format!("dlio {name}")).collect();
    assert_eq!(names(&record), stages);
    for phase in [2, 4] {
        let share = record["phases"][phase]["observations"]["checkpoint"]["share_fraction"].as_f64().unwrap();
        assert!(share > 0.0 && share < 1.0, "{share}");
    }
    assert_eq!(class(&record, 5, "read").1, class(&record, 4, "write").1);
    assert!(ended.stdout.contains("% of the time so far"), "{}", ended.stdout);
    // Older files say lists of sizes, and that every rank writes.
    fs::write(
        scratch.join("old.yaml"),
        SMALL
            .replace(
                "  model_size_bytes: 300000",
                "  optimization_groups: [1000, 500]\n  num_layers: 2\n  layer_parameters: [3000, 40]",
            )
            .replace("  fsync: True", "  type: independent"),
    )
    .unwrap();
    let record = scratch.measured("app dlio data --workload old.yaml --accelerators 2");
    assert_eq!(class(&record, 3, "write"), (2 * 4, 2 * (10_240 + 3 * 1500 + 2 * 3040)));
}

/// Numbers that a search tried, and what it found, from its last run.
fn search(record: &Value) -> (Vec<u64>, Value) {
    let last = record["phases"].as_array().unwrap().last().unwrap();
    let found = last["observations"]["utilisation"]["search"].clone();
    let tries = found["tries"].as_array().unwrap().iter();
    (tries.map(|one| one["accelerators"].as_u64().unwrap()).collect(), found)
}

#[test]
fn the_most_accelerators_are_searched_for() {
    let scratch = scratch();
    assert_eq!(scratch.run("pool create vos:pool --scm 64m").code, Some(0));
    // 23 samples: steps of 2 for each of up to 11 accelerators. Everything passes 0.1 %, nothing 100 %.
    let words =
        "--workload small.yaml --accelerators max --set reader.batch_size=2,train.computation_time=0.002";
    for target in ["data", "vos:store", "dfs+vos:pool", "null:"] {
        let ended = scratch.run(&format!("app dlio {target} {words} --json record.json"));
        assert_eq!(ended.code, Some(0), "{target}: {}", ended.stderr);
        let record = read_record(&scratch.join("record.json"));
        let (tried, found) = search(&record);
        assert_eq!(tried, [1, 2, 4, 8, 11], "{target}");
        assert_eq!((found["most"].as_u64(), found.get("surely_not_fed")), (Some(11), None), "{found}");
        assert!(found["ended"].as_str().unwrap().contains("use more files"), "{found}");
        assert_eq!(names(&record)[..2], ["dlio generate", "dlio accelerators-1"]);
        let last = names(&record).iter().position(|name| *name == "dlio accelerators-11").unwrap();
        assert_eq!(class(&record, last, "read").0, 11 * 11 * 2, "as many steps as one accelerator has");
        assert!(ended.stdout.contains("feeds     at least 11 (the data set"), "{}", ended.stdout);
        assert!(!ended.stdout.contains("side by side"), "{}", ended.stdout);
        assert!(
            ended.stderr.contains("accelerators 4: ") && ended.stderr.contains("next: 8"),
            "{}",
            ended.stderr
        );
    }
    assert!(names_in(&scratch.join("data")).is_empty());
    let ended = scratch.run(&format!("app dlio data {words},metric.au=1 --json record.json"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (tried, found) = search(&read_record(&scratch.join("record.json")));
    assert_eq!((tried, found["most"].as_u64()), (vec![1], Some(0)), "{found}");
    assert!(ended.stdout.contains("feeds     0 (1 accelerator is below the limit)"), "{}", ended.stdout);
}

#[test]
fn a_search_in_a_job_is_over_before_the_next_phase() {
    let scratch = scratch();
    let phase = |target| {
        format!(
            "[[phase]]\nlayer = 'application'\napp = 'dlio'\ntargets = ['{target}']\nworkload = 'small.yaml'\n\
             accelerators = 'max'\nset = ['reader.batch_size=3', 'train.computation_time=0.001']\n"
        )
    };
    fs::write(scratch.join("job.toml"), [phase("data"), phase("null:")].concat()).unwrap();
    let record = scratch.measured("run job.toml");
    let one = ["generate", "accelerators-1", "accelerators-2", "accelerators-4", "accelerators-7"];
    let one: Vec<String> = one.iter().map(|name| format!("dlio {name}")).collect();
    // A busy machine may have numbers run again.
    let is_first = |name: &&&str| name.matches('-').count() < 2;
    let found: Vec<String> = names(&record).iter().filter(is_first).map(|name| (*name).to_owned()).collect();
    assert_eq!(found, [one.clone(), one].concat());
    assert_eq!(record["phases"].as_array().unwrap().last().unwrap()["request"], 1);
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let scratch = scratch();
    for (more, told) in [
        ("--workload cosmoflow --set dataset.num_files_train=2000000000", "free"),
        ("--workload small.yml", "cannot read the workload"),
        ("--workload small", "one of unet3d"),
        ("--workload small.yaml --set train.epoch=2", "train.epochs (the closest"),
        ("--workload small.yaml --set dataset.compression=gzip", "dataset.compression=none"),
        ("--workload small.yaml --set checkpoint.mode=subset", "--accelerators with all ranks"),
        ("--workload small.yaml --set model.num_layers=8,model.parallelism.tensor=2", "--accelerators 2"),
        ("--workload llm.yaml --accelerators 6", "--accelerators 4"),
        ("--workload llm.yaml --accelerators 8 --set checkpoint.num_checkpoints_read=3", "as many or fewer"),
        ("--workload llm.yaml --accelerators 8 --set workflow.checkpoint=false", "num_checkpoints_write"),
        ("--workload small.yaml --set reader.batch_size=24", "fewer than one step"),
        ("--workload small.yaml --accelerators none", "1 to 4096, or max"),
        ("--workload small.yaml --accelerators max", "3 of them measured"),
    ] {
        let ended = scratch.run(&format!("app dlio data {more}"));
        assert_eq!(ended.code, Some(2), "{more}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{more}: {}", ended.stderr);
        assert!(names_in(&scratch.join("data")).is_empty(), "{more}");
    }
    fs::write(scratch.join("small.yaml"), "train: {epochs: 1\n").unwrap();
    let ended = scratch.run("app dlio data --workload small.yaml");
    assert!(ended.code == Some(2) && ended.stderr.contains("not YAML"), "{}", ended.stderr);
}

/// Two epochs of two steps: the first lasts long enough to change what the second reads.
const SLOW: &str = "--set dataset.num_files_train=2,reader.batch_size=1,train.computation_time=1.5,checkpoint.checkpoint_after_epoch=1,\
    checkpoint.epochs_between_checkpoints=9";

/// The samples of the run, once they are there.
fn samples_of(running: &Running, data: &Path) -> PathBuf {
    running.await_some(|| {
        let top = names_in(data).into_iter().find(|name| name.starts_with("strata-app-"))?;
        let samples = data.join(top).join("sample");
        (samples.is_dir() && names_in(&samples).len() == 2).then_some(samples)
    })
}

#[test]
fn samples_that_are_damaged_or_missing_are_named() {
    let scratch = scratch();
    for is_missing in [false, true] {
        let words = format!("app dlio data --workload small.yaml {SLOW} --json record.json");
        let running = scratch.start(&words);
        let sample = samples_of(&running, &scratch.join("data")).join("1");
        // The last sample may still be on its way to the file.
        std::thread::sleep(Duration::from_millis(300));
        if is_missing {
            fs::remove_file(&sample).unwrap();
        } else {
            let mut bytes = fs::read(&sample).unwrap();
            bytes[5000] ^= 0x10;
            fs::write(&sample, bytes).unwrap();
        }
        let ended = running.end();
        let record = read_record(&scratch.join("record.json"));
        assert_partial(&scratch, &ended, &record, if is_missing { "sample 1 (" } else { "damaged" });
        let said = record["failure"].as_str().unwrap();
        let part = if is_missing { "/sample/1" } else { "byte 5000" };
        assert!(said.contains("sample 1 (") && said.contains(part), "{said}");
        assert!(names_in(&scratch.join("data")).is_empty());
    }
}

#[test]
fn a_target_that_fills_up_before_a_checkpoint_ends_the_run() {
    let scratch = scratch();
    let Some(small) = Mounted::tmpfs("8m") else { return };
    let target = small.path().display().to_string();
    let model = ",model.model_size_bytes=4000000 --json record.json";
    let running = scratch.start(&format!("app dlio {target} --workload small.yaml {SLOW}{model}"));
    samples_of(&running, small.path());
    fs::write(small.path().join("others"), vec![0; 6 << 20]).unwrap();
    let ended = running.end();
    let record = read_record(&scratch.join("record.json"));
    assert_partial(&scratch, &ended, &record, "No space left");
    assert_eq!(names_in(small.path()), ["others"]);
}
