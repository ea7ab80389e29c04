//! Exit codes: 0 all went well, 1 something failed, 2 refused before anything was touched.

use std::fs;

use testkit::s3::{S3Options, S3Server};

use crate::engines::Engine;
use crate::pool::target;
use crate::support::{Scratch, names_in};

/// Runs each line and holds its exit code and the words of its last line against what is expected. What is refused says one line,
/// and makes nothing.
fn hold(scratch: &Scratch, cases: &[(&str, i32, &str)]) {
    for (words, code, cause) in cases {
        let before = names_in(scratch.path());
        let ended = scratch.run(words);
        assert_eq!(ended.code, Some(*code), "{words}: {}", ended.stderr);
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(*code == 0 || last.contains(cause), "{words}: {cause}: {}", ended.stderr);
        if *code == 2 && !words.starts_with("as ") {
            assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
            assert_eq!(names_in(scratch.path()), before, "{words}");
        }
    }
}

#[test]
fn words_and_files_that_cannot_be_meant_exit_with_2() {
    let scratch = Scratch::new();
    scratch.measured("media null: --op nop --count 10");
    let record = fs::read_to_string(scratch.join("record.json")).unwrap();
    let newer = record.replacen("\"schema_version\": 1", "\"schema_version\": 99", 1);
    assert_ne!(newer, record);
    fs::write(scratch.join("newer.json"), newer).unwrap();
    fs::write(
        scratch.join("older.json"),
        record.replacen("\"schema_version\": 1", "\"schema_version\": 0", 1),
    )
    .unwrap();
    fs::write(scratch.join("wrong.toml"), "targets = ['null:']\nop = 'nop'\nfrobnicate = 1\n").unwrap();
    fs::write(scratch.join("broken.toml"), "targets = [\n").unwrap();
    fs::write(scratch.join("data"), [7_u8; 65536]).unwrap();
    fs::create_dir(scratch.join("directory")).unwrap();
    hold(
        &scratch,
        &[
            ("media null: --op nop --count 10 --live none", 0, ""),
            ("nosuch", 2, "nosuch"),
            ("--nosuch", 2, "--nosuch"),
            ("schema nosuch", 2, "nosuch"),
            ("completions nosuch", 2, "nosuch"),
            ("media data", 2, "--op"),
            ("media data --op nosuch", 2, "randread"),
            ("media data --op read --engine nosuch", 2, "psync"),
            ("media none --op read", 2, "no such file"),
            ("media directory --op read", 2, "is a directory"),
            ("media none/file --op write -s 1m", 2, "no such directory"),
            ("media data --op write -b 4k", 2, "--destroy-data"),
            ("media data --op read -b 4k --json none/record.json", 2, "cannot write"),
            ("media data --op read -b 4k --json data", 2, "a target"),
            ("stack --dir none --quick", 2, "none"),
            ("run none.toml", 2, "cannot read"),
            ("run wrong.toml", 2, "frobnicate"),
            ("run broken.toml", 2, "broken.toml"),
            ("run record.json", 2, "record.json"),
            ("report none.json", 2, "cannot read"),
            ("report newer.json", 2, "use a newer strata"),
            ("report older.json", 2, "use the strata that wrote it"),
            ("report wrong.toml", 2, "not a record"),
            ("compare newer.json record.json", 2, "use a newer strata"),
            ("compare record.json none.json", 2, "cannot read"),
            ("net tcp://127.0.0.1 --count 1", 2, "tcp://"),
            ("net scan --interface nosuch", 2, "nosuch"),
            ("as nosuch", 2, "fio"),
            ("as fio none.fio", 2, "none.fio"),
            ("as fio --rw=nosuch --name=j", 2, "nosuch"),
            ("as elbencho -r none", 2, "none"),
            ("as spdk_nvme_perf --nosuch", 2, "nosuch"),
        ],
    );
}

#[test]
fn stores_that_are_not_there_or_of_another_version_exit_with_2() {
    let scratch = Scratch::new();
    let engine = Engine::start(scratch.path(), "--dir tank --pool fields --scm 64m");
    let at = target(&engine);
    assert_eq!(scratch.run("pool create vos:store --scm 64m").code, Some(0));
    assert_eq!(scratch.run("pool create vos:other --scm 64m").code, Some(0));
    let superblock = scratch.join("other/superblock");
    let mut bytes = fs::read(&superblock).unwrap();
    // The version follows the magic number.
    bytes[8] = 99;
    fs::write(&superblock, bytes).unwrap();
    fs::create_dir(scratch.join("foreign")).unwrap();
    fs::write(scratch.join("foreign/thesis.tex"), "x").unwrap();
    let owned = [
        (format!("object {at}/none --op put --count 1"), 2, "none"),
        (format!("pool query {at}/none"), 2, "none"),
        (format!("container query {at}/fields/none"), 2, "none"),
        (format!("container list {at}/fields"), 0, ""),
    ];
    let owned: Vec<(&str, i32, &str)> =
        owned.iter().map(|(words, code, cause)| (words.as_str(), *code, *cause)).collect();
    hold(&scratch, &owned);
    hold(
        &scratch,
        &[
            ("pool query vos:none", 2, "no pool"),
            ("pool create vos:store", 2, "already contains a pool"),
            ("pool create vos:foreign", 2, "other files"),
            ("pool query vos:other", 2, "format version 99"),
            ("object vos:other --op get --count 1", 2, "format version 99"),
            ("object vos:foreign --op put --count 1", 2, "other files"),
            ("container query vos:store none", 2, "none"),
            ("container destroy vos:store none --destroy-data", 2, "none"),
            ("object vos:store --op put --class RP_3G1", 2, "needs 3 targets"),
        ],
    );
}

#[test]
fn a_bucket_that_is_not_there_exits_with_2() {
    let (scratch, server) = (Scratch::new(), S3Server::start(S3Options::default()).unwrap());
    let options = S3Options::default();
    fs::write(scratch.join("keys"), format!("{}\n{}\n", options.access, options.secret)).unwrap();
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(scratch.join("keys"), own).unwrap();
    let at = server.endpoint();
    let words =
        format!("object s3://none --s3-endpoint {at} --s3-key-file keys --op get --no-fill --count 1");
    hold(&scratch, &[(&words, 2, "bucket \"none\" does not exist")]);
    let words = format!(
        "as elbencho --s3endpoints {at} --s3key {} --s3secret {} -r -n 1 -N 1 -s 1k s3://none",
        options.access, options.secret
    );
    hold(&scratch, &[(&words, 2, "bucket \"none\" does not exist")]);
}

#[test]
fn what_fails_on_the_way_exits_with_1() {
    let scratch = Scratch::new();
    fs::write(scratch.join("short"), [7_u8; 4096]).unwrap();
    hold(
        &scratch,
        &[
            // Nobody listens there.
            ("net tcp://127.0.0.1:1 --count 1 --live none", 1, "127.0.0.1:1"),
            // Every write to it fails.
            ("media /dev/full --op write -b 4k -s 64k --live none", 1, "No space left"),
        ],
    );
}
