//! `--scale`: shares of the full size of an application.

use std::fs;

use serde_json::Value;

use crate::support::{Scratch, class, names_in};

fn parameter(record: &Value, name: &str) -> String {
    let parameters = record["phases"][0]["plan"]["parameters"].as_array().unwrap();
    let found = parameters.iter().find(|one| one["name"] == name);
    found.map_or("none", |one| one["value"].as_str().unwrap()).to_owned()
}

#[test]
fn parameters_are_shares_of_the_full_size() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    // 30 GB and 16 checkpoints, shared by three ranks.
    let record = scratch.measured("app vpic data --scale 1/10000 --format raw --set ranks=3,compute=0");
    let told = ["particles", "steps", "ranks", "scale"].map(|name| parameter(&record, name));
    assert_eq!(told, ["31250", "16", "3", "1/10000"]);
    assert_eq!(class(&record, 0, "write").1, 16 * 3_000_000, "a ten-thousandth of 480 GB");
    assert_eq!(class(&record, 1, "read").1, 3_000_000);
    let shown = scratch.run("report record.json").stdout;
    assert!(shown.contains("particles=31250") && shown.contains("scale=1/10000"), "{shown}");
    let record = scratch.measured("app bd-cats data --scale 0.0001 --steps 2 --format raw --set compute=0");
    assert_eq!(class(&record, 1, "read").1, 2 * 3_000_000, "what does not scale may be given");
    assert_eq!(parameter(&record, "scale"), "1/10000");
    let record = scratch.measured("app cosmic-tagger null: --scale 0.01 --set step=0ms");
    assert_eq!((parameter(&record, "samples"), parameter(&record, "batches")), ("4300".into(), "67".into()));
    let record = scratch.measured("app fdb-hammer null: --scale 1/45 --levels 2 --size 4KiB");
    assert_eq!((parameter(&record, "steps"), parameter(&record, "params")), ("2".into(), "6".into()));
    assert_eq!(parameter(&scratch.measured("app vpic null: --steps 1 --format raw"), "scale"), "none");
    for scale in ["0.0001", "'1/10000'"] {
        let job = format!(
            "[[phase]]\nlayer = 'application'\napp = 'vpic'\ntargets = ['null:']\nscale = {scale}\nsteps = 1\n"
        );
        fs::write(scratch.join("job.toml"), job).unwrap();
        let record = scratch.measured("run job.toml");
        assert_eq!(
            (parameter(&record, "particles"), parameter(&record, "scale")),
            ("46875".into(), "1/10000".into())
        );
    }
    assert!(names_in(&scratch.join("data")).is_empty());
}

#[test]
fn scales_that_cannot_be_are_refused_before_anything_is_made() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.join("data")).unwrap();
    let accepted = "a fraction such as 1/1000";
    for (words, said) in [
        ("vpic data --scale 0", accepted),
        ("vpic data --scale=-1", accepted),
        ("vpic data --scale NaN", accepted),
        ("vpic data --scale half", accepted),
        ("vpic data --scale 1/0", accepted),
        ("vpic data --scale 2000", accepted),
        ("vpic data --scale 1/2 --set particles=100", "omit --scale, or particles"),
        ("fdb-hammer data --scale 1/2 --steps 3", "omit --scale, or steps"),
        ("checkpoint data --scale 1/2", "checkpoint does not support --scale"),
        ("dlio data --scale 1/2", "its workload defines its sizes"),
        ("vpic data --scale 1000 --format raw", "but the target has only"),
    ] {
        let ended = scratch.run(&format!("app {words}"));
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(said) && ended.stderr.lines().count() == 1,
            "{words}: {}",
            ended.stderr
        );
    }
    assert!(names_in(&scratch.join("data")).is_empty());
    let shown = scratch.run("app show vpic").stdout;
    assert!(
        shown.contains("[--scale 1: 937500000 among ranks]") && shown.contains("[any --scale: 16]"),
        "{shown}"
    );
}
