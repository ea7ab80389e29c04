//! Command lines of mdtest, and what is asked of the load for them.

use workload::spec::Spec;

use super::{refusal, run, run_on};
use crate::options::asked::{assert_asks, assert_silent};
use crate::words::machine::Machine;

fn names(specs: &[Spec]) -> Vec<&str> {
    specs.iter().filter_map(|spec| spec.name.as_deref()).collect()
}

#[test]
fn phases_come_in_the_order_of_the_tool() {
    let all = run("-n 10 -d /m -i 2").specs;
    let once = [
        "Tree creation",
        "Directory creation",
        "Directory stat",
        "Directory rename",
        "Directory removal",
        "File creation",
        "File stat",
        "File read",
        "File removal",
        "Tree removal",
    ];
    assert_eq!(names(&all), [once, once].concat());
    assert!(all.iter().all(|spec| !spec.keep && spec.targets == ["/m"]));
    assert_eq!(names(&run("-n 10 -F -C").specs), ["Tree creation", "File creation"]);
    assert_eq!(names(&run("-n 10 -F -T -E").specs), ["File stat", "File read"]);
    assert_eq!(names(&run("-n 10 -D -r").specs), ["Directory removal", "Tree removal"]);
    assert_eq!(
        names(&run("-n 1 -D -C -U").specs),
        ["Tree creation", "Directory creation"],
        "one cannot be renamed"
    );
    assert_eq!(run("-n 10 -C").specs[0].targets, ["./out"]);
    assert!(run("-n 10 -C").specs.iter().all(|spec| spec.keep), "later runs work on them");
}

#[test]
fn the_lines_of_io500_are_read_as_written() {
    let easy = "-n 1000000 -u -L -F -P -N 1 -x /r/easy -d /d/easy --tasks 4";
    let run_of = run(&format!("{easy} -C -Y -W 300"));
    let create = &run_of.specs[1];
    for (name, value) in [
        ("op", "create"),
        ("shape", "tree"),
        ("names", "mdtest"),
        ("items", "1000000"),
        ("files", "1000000"),
        ("branch", "1"),
        ("levels", "0"),
        ("leaves-only", "true"),
        ("time", "300s"),
        ("wear-out", "true"),
        ("phase-sync", "true"),
        ("threads", "4"),
    ] {
        assert_asks(create, name, value);
    }
    assert_silent(create, "shared-tree", "true");
    assert_eq!(run_of.render.files(), [std::path::Path::new("/r/easy")]);
    let noted = Machine::new().text("/r/easy", "777");
    let stat = &run_on(&format!("{easy} -T"), &noted).specs[0];
    for (name, value) in
        [("op", "stat"), ("items", "777"), ("files", "1000000"), ("rank-shift", "1"), ("no-fill", "true")]
    {
        assert_asks(stat, name, value);
    }
    let removed = run_on(&format!("{easy} -r"), &noted).specs;
    assert_asks(&removed[0], "rank-shift", "3");
    assert!(removed.iter().all(|spec| !spec.keep));

    let hard = "-n 1000000 -t -w 3901 -e 3901 -P -N 1 -F -d /d/hard";
    let create = &run(&format!("{hard} -C -Y -W 300")).specs[1];
    for (name, value) in [
        ("op", "write"),
        ("file-size", "3901"),
        ("block-size", "3901"),
        ("verify", "true"),
        ("shared-tree", "true"),
    ] {
        assert_asks(create, name, value);
    }
    let read = &run(&format!("{hard} -E -X")).specs[0];
    for (name, value) in [("op", "read"), ("file-size", "3901"), ("verify", "true"), ("rank-shift", "2")] {
        assert_asks(read, name, value);
    }
}

#[test]
fn items_are_dealt_out_by_the_rule_of_the_tool() {
    let rows = [
        ("-n 20 -b 2 -z 2", ["2", "14"]),
        ("-n 20 -b 2 -z 2 -L", ["5", "20"]),
        ("-I 3 -b 2 -z 2 -L", ["3", "12"]),
        ("-I 3 -b 2 -z 2", ["3", "21"]),
        ("-n 20 -z 2", ["6", "18"]),
        ("-n 20 -z 2 -L", ["20", "20"]),
    ];
    for (line, [per, items]) in rows {
        let spec = &run(line).specs[0];
        assert_asks(spec, "files", per);
        assert_asks(spec, "items", items);
    }
    let both = run("-n 20 -I 5 -F");
    assert_asks(&both.specs[0], "dirs", "4");
    assert_asks(&both.specs[0], "files", "5");
    assert_eq!(both.warnings.len(), 1);
}

#[test]
fn options_say_what_they_say_in_the_tool() {
    let spec = |line: &str, name: &str| {
        let specs = run(line).specs;
        specs
            .into_iter()
            .find(|spec| spec.name.as_deref() == Some(name))
            .unwrap_or_else(|| panic!("{line}: {name}"))
    };
    let rows: &[(&str, &str, &str, &str)] = &[
        ("-n 5", "File read", "file-size", "0"),
        ("-n 5 -k", "File creation", "op", "mknod"),
        ("-n 5 -w 1k -e 1k -y", "File creation", "end-fsync", "true"),
        ("-n 5 -R", "File stat", "item-order", "random"),
        ("-n 5 -R --random-seed 3", "File read", "seed", "3"),
        ("-n 5 -p 2", "File creation", "start-delay", "2s"),
        ("-n 5 -a DUMMY", "File stat", "engine", "null"),
        ("-n 5 -w 4k -e 4k --posix.odirect", "File read", "direct", "true"),
        ("-n 5 -w 4k -G 9", "File creation", "verify-run", "9"),
        ("-n=5 -N=2 --tasks 8", "Directory removal", "rank-shift", "6"),
    ];
    for (line, phase, name, value) in rows {
        assert_asks(&spec(line, phase), name, value);
    }
    let ranges = run("-n 5 -f 2 -l 6 -s 2 --tasks 8 -F").specs;
    let tasks: Vec<_> = ranges.iter().filter(|spec| spec.name.as_deref() == Some("File stat")).collect();
    assert_eq!(tasks.iter().map(|spec| spec.threads).collect::<Vec<_>>(), [Some(2), Some(4), Some(6)]);
    assert_eq!(run("-n 5 -u -d a@b --tasks 2").specs[0].targets, ["a", "b"]);
}

#[test]
fn refusals_say_what_would_be_taken() {
    let rows = [
        ("-F", "give -n, or -I"),
        ("-n 3 -b 2 -z 2", "give at least 7"),
        ("-n 10 -I 3", "is not a multiple of -I 3"),
        ("-n 10 -I 5 -u", "give one of them"),
        ("-n 10 -d a@b", "give -u, or one directory"),
        ("-n 10 -d a@b -u", "more --tasks"),
        ("-n 10 -d a@b -u -N 1 --tasks 2", "leave out -N"),
        ("-n 10 -W 3 -b 2 -z 1", "leave out -b, or -W"),
        ("-n 10 -k -w 5", "give one of them"),
        ("-n 10 -X", "add -E and -e SIZE"),
        ("-n 10 -w 5 -e 6", "of at most -w"),
        ("-n 10 -E -X -w 9 -e 6", "the same -e as -w"),
        ("-n 10 -C -i 2", "add -r"),
        ("-n 10 -T -F -x f", "run a write first with the same -x"),
        ("-n 10 -l 3", "at most --tasks"),
        ("-n 10 -B 1", "leave it out"),
        ("-n 10 -S", "strata fs --shape shared"),
        ("-n 10 -a DFS", "use -a POSIX"),
        ("-n ten", "is not a whole number"),
        ("-n 10 dir", "give the directory with -d PATH"),
        ("-n 10 --verify-write", "use -X, which checks them"),
    ];
    for (line, part) in rows {
        let told = refusal(line);
        assert!(
            told.contains(part) && told.starts_with("mdtest:") && told.lines().count() == 1,
            "{line}: {told}"
        );
    }
}

#[test]
fn the_page_has_every_option() {
    crate::words::tests::check_docs(&crate::mdtest::table::TABLE, "mdtest.md");
}
