//! Names under `/dev` where no device is: nothing is made there.

use std::path::Path;

use crate::support::Scratch;

#[test]
fn a_missing_device_is_refused_and_not_made() {
    let scratch = Scratch::new();
    let name = format!("/dev/strata-none-{}", std::process::id());
    let link = scratch.join("dev");
    std::os::unix::fs::symlink("/dev", &link).unwrap();
    let through_link = format!("{}/strata-none-{}", link.display(), std::process::id());
    scratch.measured("media null: --op nop --count 1");
    let cases = [
        format!("media {name} --op write -s 1m"),
        format!("media {name} --op randread -s 1m"),
        format!("media {through_link} --op write -s 1m"),
        format!("media null: --op nop --count 1 --json {name}"),
        format!("media null: --op nop --count 1 --csv {name}"),
        format!("media null: --op nop --count 1 --live-csv {name}"),
        format!("media null: --op nop --count 1 --out {name}"),
        format!("report record.json --html {name}"),
        format!("report record.json --svg {name}"),
        format!("compare record.json record.json --json {name}"),
        format!("pool create vos:{name} --scm 64m"),
        format!("object vos:{name} --op put --count 1"),
        format!("as fio --name=j --filename={name} --rw=write --size=1m"),
        format!("as fio --name=j --ioengine=null --rw=read --size=4k --output={name}"),
        format!("as elbencho -w -s 1m -b 64k {name}"),
    ];
    for words in cases {
        let ended = scratch.run(&words);
        let was_made = Path::new(&name).exists();
        if was_made {
            // Not left behind where the test fails.
            let _ = std::fs::remove_file(&name).or_else(|_| std::fs::remove_dir_all(&name));
        }
        assert!(!was_made, "{words}");
        assert_eq!(ended.code, Some(2), "{words}: {}", ended.stderr);
        let last = ended.stderr.lines().last().unwrap_or_default();
        let is_told = ["no such device", "no file is created in /dev"].iter().any(|why| last.contains(why));
        assert!(is_told, "{words}: {}", ended.stderr);
    }
    // Memory that is there to hold files takes them.
    if Path::new("/dev/shm").is_dir() {
        let file = format!("/dev/shm/strata-some-{}", std::process::id());
        let ended = scratch.run(&format!("media {file} --op write -s 64k -b 4k"));
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}
