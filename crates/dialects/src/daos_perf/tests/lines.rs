//! Tests of command lines: the specs that they give.

use proptest::prelude::*;
use workload::spec::{OnError, Refill, Warmup};

use super::*;
use crate::options::asked::{assert_asks, assert_silent, made};
use crate::words::tests::check_docs;

const ENGINE: &str = "daos_perf --target engine://127.0.0.1:31416/pool/cont";

#[test]
fn the_lines_of_the_guide_are_read_as_written() {
    let specs = specs("vos_perf -f ./vos -P 100G -d 10000000 -a 1 -n 1 -s 4K -z -R \"U;p F;p\"");
    let [update, fetch] = &specs[..] else { panic!("{} phases", specs.len()) };
    let own = [
        ("objects", "1"),
        ("dkeys", "10000000"),
        ("akeys", "1"),
        ("records", "1"),
        ("value", "single"),
        ("value-size", "4096"),
        ("dkey-prefix", "blade-"),
        ("akey-prefix", "akey--"),
        ("scm", "100g"),
        ("store-targets", "1"),
        ("zero-copy", "on"),
        ("checksum", "off"),
        ("allocate", "whole"),
        ("one-pass", "true"),
    ];
    for (spec, operation) in [(update, "update"), (fetch, "fetch")] {
        let is_update = operation == "update";
        let no_fill = ("no-fill", if is_update { "false" } else { "true" });
        let expected = Spec {
            name: Some(operation.to_uppercase()),
            targets: vec!["vos:./vos0".to_owned()],
            threads: Some(1),
            depth: Some(1),
            warmup: Some(Warmup::None),
            refill: is_update.then_some(Refill::Once),
            on_error: Some(OnError::Stop),
            ..made("object", &[&own[..], &[("op", operation), no_fill]].concat())
        };
        assert_eq!(*spec, expected);
    }
    assert_asks(&super::specs("vos_perf -f ./vos --checksum crc32 -R U")[0], "checksum", "crc32");
    assert_asks(&specs_of_size("1M"), "value-size", "1048576");
}

fn specs_of_size(size: &str) -> Spec {
    specs(&format!("vos_perf -f ./vos -P 100G -d 40000 -a 1 -n 1 -s {size} -z -R U;p")).remove(0)
}

#[test]
fn options_are_read_as_getopt_reads_them() {
    let defaults = specs("vos_perf -D /dev/shm -R U").remove(0);
    assert_eq!(defaults.targets, ["vos:/dev/shm/vos_perf0.pmem"]);
    assert_counts(&defaults, [1, 256, 16, 16]);
    assert_asks(&defaults, "value-size", "64");
    for line in [
        "vos_perf --dir=/dev/shm --run U --size 4k --array=R --int_dkey --const_akey --zcopy --pool_scm 1g --pool_nvme 2G",
        "vos_perf -D/dev/shm -RU -s4K -AR -iIz -P1G -N 2g",
        "vos_perf --di /dev/shm --ru U --stride 4096 --arr=r --int --const --zc --pool_s 1024m --pool_n 2048M",
    ] {
        let spec = specs(line).remove(0);
        assert_eq!(spec.pattern.as_deref(), Some("permutation"), "{line}");
        for (name, value) in [
            ("value", "array"),
            ("stride", "4k"),
            ("integer-dkeys", "true"),
            ("constant-akey", "true"),
            ("akeys", "1"),
            ("zero-copy", "on"),
            ("scm", "1g"),
            ("nvme", "2g"),
        ] {
            assert_asks(&spec, name, value);
        }
    }
}

#[track_caller]
fn assert_counts(spec: &Spec, counts: [u64; 4]) {
    for (name, count) in ["objects", "dkeys", "akeys", "records"].iter().zip(counts) {
        assert_asks(spec, name, &count.to_string());
    }
}

#[test]
fn f_is_a_file_where_a_path_follows_and_a_switch_elsewhere() {
    for line in
        ["vos_perf -f ./v -R U", "vos_perf -f./v -R U", "vos_perf -zf ./v -R U", "vos_perf --file=./v -R U"]
    {
        assert_eq!(specs(line)[0].targets, ["vos:./v0"], "{line}");
    }
    assert_eq!(specs("vos_perf -f vos -R U")[0].targets, ["vos:vos0"]);
    for line in
        ["vos_perf -D /dev/shm -f -R U", "vos_perf -D /dev/shm -fz -R U", "vos_perf -R U -D /dev/shm -xf"]
    {
        assert_eq!(specs(line)[0].targets, ["vos:/dev/shm/vos_perf0.pmem"], "{line}");
    }
}

#[test]
fn tests_become_phases() {
    let head = "vos_perf -D /dev/shm -o 3 -d 8 -a 2 -n 4 -s 1k -A -iI -R";
    let specs = specs(&format!("{head} \"U;p;i=5 F;O=2;d=4;n=3 Q P;d P I A;f;m D G\""));
    let expected = [
        ("update", [3, 8, 1, 4], Some(480)),
        ("fetch", [2, 4, 1, 3], None),
        ("query", [3, 1, 1, 1], None),
        ("punch", [3, 8, 1, 1], None),
        ("punch", [3, 1, 1, 1], None),
        ("iterate", [3, 1, 1, 1], None),
        ("aggregate", [1, 1, 1, 1], None),
        ("discard", [1, 1, 1, 1], None),
        ("collect", [1, 1, 1, 1], None),
    ];
    assert_eq!(specs.len(), expected.len());
    for (spec, (operation, counts, count)) in specs.iter().zip(expected) {
        assert_asks(spec, "op", operation);
        if ["aggregate", "discard", "collect"].contains(&operation) {
            for name in ["objects", "dkeys", "akeys", "records", "value-size"] {
                assert_silent(spec, name, "1");
            }
            assert_silent(spec, "whole", "3,8,1,4");
            continue;
        }
        assert_counts(spec, counts);
        assert_asks(spec, "no-fill", if operation == "update" { "false" } else { "true" });
        if counts == [3, 8, 1, 4] {
            assert_silent(spec, "whole", "3,8,1,4");
        } else {
            assert_asks(spec, "whole", "3,8,1,4");
        }
        assert_eq!(spec.count, count, "{operation}");
    }
    assert_asks(&specs[3], "punch", "dkey");
    assert_asks(&specs[4], "punch", "object");
}

#[test]
fn k_goes_on_with_new_dkeys() {
    let specs = specs("vos_perf -D /dev/shm -d 10 -R \"U U;k;i=3 F;k F\"");
    let extents = [(None, "10"), (Some("0,10,0,0"), "30"), (Some("0,40,0,0"), "10"), (None, "10")];
    assert_eq!(specs.len(), extents.len());
    for (spec, (first, dkeys)) in specs.iter().zip(extents) {
        match first {
            Some(first) => assert_asks(spec, "first", first),
            None => assert_silent(spec, "first", "0,10,0,0"),
        }
        assert_asks(spec, "dkeys", dkeys);
        assert_asks(spec, "whole", "1,50,16,16");
        assert_eq!(spec.count, None);
    }
}

#[test]
fn what_is_verified_is_written_so_that_it_can_be() {
    let specs = specs("vos_perf -D /dev/shm -s 8k -A -G 7 -R \"U U;o=4k;s=4k F V;o=4k;s=4k\"");
    assert_eq!(specs.iter().map(|spec| spec.verify).collect::<Vec<_>>(), [true, true, false, true]);
    assert!(specs.iter().all(|spec| spec.seed == Some(7)));
    for (name, value) in [("record-offset", "4k"), ("stride", "8k"), ("value-size", "4096")] {
        assert_asks(&specs[1], name, value);
    }
    assert!(refusal("vos_perf -D /dev/shm -s 8k -A -R \"U U;o=4k;s=4k V\"").contains("give V;o=4096;s=4096"));
}

#[test]
fn processes_have_a_store_each_in_vos_perf_and_objects_of_their_own_in_daos_perf() {
    let specs = super::specs("vos_perf -f ./vos --procs 3 -R \"U F\"");
    let stores: Vec<_> = specs.iter().map(|spec| (spec.targets[0].as_str(), spec.concurrent)).collect();
    let one = [("vos:./vos0", false), ("vos:./vos1", true), ("vos:./vos2", true)];
    assert_eq!(stores, [one, one].concat());
    let specs = super::specs(&format!("{ENGINE} --procs 3 -C 16 -R U;i=2"));
    assert_eq!(specs.len(), 1);
    assert_eq!((specs[0].threads, specs[0].depth), (Some(3), Some(16)));
    assert_asks(&specs[0], "object-scope", "private");
    assert_eq!(specs[0].count, Some(2 * 3 * 256 * 16 * 16));
}

#[test]
fn daos_perf_finds_its_target() {
    let target = |line: &str| specs(line).remove(0).targets.remove(0);
    assert_eq!(target(&format!("{ENGINE} -R U")), "engine://127.0.0.1:31416/pool/cont");
    assert_eq!(target("daos_perf -u p -X c -R U"), "daos://p/c");
    assert_eq!(target("daos_perf -u p -g /etc/dmg.yml -R U"), "daos://p");
    let spec = specs("daos_perf --target engine://h:1/pool -X c -R U").remove(0);
    assert_asks(&spec, "container", "c");
    assert_silent(&specs(&format!("{ENGINE} -X c -R U"))[0], "container", "c");
    let message = refusal("daos_perf -R U");
    assert!(message.contains("--target engine://HOST:PORT/POOL/CONT"), "{message}");
}

#[test]
fn classes_and_credits() {
    for (text, expected) in [
        ("TINY", "S1"),
        ("large", "SX"),
        ("R2S", "RP_2G1"),
        ("R4S", "RP_4G1"),
        ("EC2P2", "EC_2P2G1"),
        ("EC8P2", "EC_8P2G1"),
        ("RP_2GX", "RP_2GX"),
        ("ec_04p2gx", "EC_4P2GX"),
    ] {
        assert_asks(&specs(&format!("{ENGINE} -c {text} -R U"))[0], "class", expected);
    }
    // The engine knows its targets.
    assert_silent(&specs(&format!("{ENGINE} -R U"))[0], "class", "SX");
    assert_asks(&specs("daos_perf -u p -R U")[0], "class", "SX");
    for (credits, depth) in [("-1", 1), ("0", 1), ("1", 1), ("64", 64)] {
        assert_eq!(specs(&format!("{ENGINE} -C {credits} -R U"))[0].depth, Some(depth));
    }
}

#[test]
fn echo_is_rpcs_of_the_same_sizes() {
    let specs = specs(
        "daos_perf -T echo --target engine://h:31416/p/c -C 8 -o 2 -d 4 -a 1 -n 1 -s 4k -R \"U;i=3 F\"",
    );
    for (spec, sizes) in specs.iter().zip(["b4KiB 0", "0 b4KiB"]) {
        assert_asks(spec, "message-sizes", sizes);
        assert_eq!((spec.layer.name, &spec.targets[..]), ("network", &["tcp://h:31416".to_owned()][..]));
    }
    assert_eq!((specs[0].count, specs[1].count, specs[0].depth), (Some(24), Some(8), Some(8)));
}

#[test]
fn stores_that_are_there_are_used_only_by_name() {
    let own = "a3b7ff28-56ff-4974-9283-62990dd770ad";
    let spec = specs(&format!("vos_perf -u {own} -X {own} -R F")).remove(0);
    assert_eq!(spec.targets, ["vos:/mnt/daos/vos_perf0.pmem"]);
    assert!(spec.keep);
    assert_asks(&spec, "container", own);
    assert!(!specs(&format!("vos_perf -u {own} -R F")).remove(0).keep);
    assert!(specs("vos_perf -D /dev/shm --keep -R U").remove(0).keep);
    assert!(refusal("vos_perf -R U").contains("already exists"));
    assert!(refusal(&format!("vos_perf -D /dev/shm -u {own} -R F")).contains("does not exist"));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    for (line, expected) in [
        ("vos_perf -D /dev/shm", "no -R/--run"),
        ("vos_perf -D /dev/shm -R X", "use one of U (UPDATE)"),
        ("vos_perf -D /dev/shm -R O", "use one of U (UPDATE)"),
        ("vos_perf -D /dev/shm -R U;z", "the parameters of UPDATE: p, i=N"),
        ("vos_perf -D /dev/shm -R U;pk", "parameters separated by semicolons"),
        ("vos_perf -D /dev/shm -R U;i=0", "1 to 1000000"),
        ("vos_perf -D /dev/shm -R U;i", "i=NUMBER"),
        ("vos_perf -D /dev/shm -R U;o", "o=BYTES"),
        ("vos_perf -D /dev/shm -R U;d", "d=NUMBER"),
        ("vos_perf -D /dev/shm -R Q;p=1", "p without a value"),
        ("vos_perf -D /dev/shm -R \" \"", "\"U;p F;p\""),
        ("vos_perf -D /dev/shm -R U;d=257", "give at most 256"),
        ("vos_perf -D /dev/shm -R U;s=65", "exceed the end of a record"),
        ("vos_perf -D /dev/shm -R U;o=4;s=4", "a single value"),
        ("vos_perf -D /dev/shm -R F", "reads data that no test has written"),
        ("vos_perf -D /dev/shm -R \"U Q\"", "add -i, -A and -I"),
        ("vos_perf -D /dev/shm -R \"U I;s\"", "I without s"),
        ("vos_perf -D /dev/shm -R \"U P;i=2\"", "leave out i="),
        ("vos_perf -D /dev/shm -s 3 -R U", "4 to 1073741824"),
        ("vos_perf -D /dev/shm -s 4KB -R U", "k, m or g"),
        ("vos_perf -D /dev/shm -d 010 -R U", "is not a value of --dkey"),
        ("vos_perf -D /dev/shm -o 0 -R U", "is not a value of --obj"),
        ("vos_perf -D /dev/shm -d 1000g -o 1000g -R U", "smaller numbers"),
        ("vos_perf -D /dev/shm -A R -R U", "-AR"),
        ("vos_perf -D /dev/shm -Ax -R U", "is not R"),
        ("vos_perf -D /dev/shm -f ./vos -R U", "give one of them"),
        ("vos_perf -D /none -R U", "is not a directory"),
        ("vos_perf -D /dev/shm -X x -R U", "is not a UUID"),
        ("vos_perf -D /dev/shm -w -R U", "requires a terminal"),
        ("vos_perf -D /dev/shm --checksum md5 -R U", "crc32"),
        ("vos_perf -D /dev/shm --text-of 2.6 -R U", "give 2.8 or 2.0"),
        ("vos_perf -D /dev/shm -C 1 -R U", "\"-C\" is not an option"),
        ("vos_perf -D /dev/shm --pool_ 1 -R U", "\"--pool_\" is ambiguous"),
        (
            "daos_perf --target engine://h:1/p -R I",
            "use one of U (UPDATE), F (FETCH), V (VERIFY), O (OIT), P (PUNCH)",
        ),
        ("daos_perf --target vos:x -R U", "is not a daos_perf target"),
        ("daos_perf --target engine://h:1/p -u p -R U", "both set the pool"),
        ("daos_perf -T echo -u p -R U", "does not answer strata RPCs"),
        ("daos_perf -T echo --target engine://h:1 -R V", "stores no data"),
        ("daos_perf -T vos -u p -R U", "daos, echo"),
        ("daos_perf -u p -c R9S -R U", "TINY, LARGE"),
        ("daos_perf -u p -C many -R U", "1 to 65536"),
    ] {
        let refusal = refusal(line);
        assert!(refusal.contains(expected), "{line}: {refusal}");
        assert!(refusal.contains("_perf: ") && !refusal.contains('\n'), "{line}: {refusal}");
    }
}

#[test]
fn warnings_say_what_changes_nothing() {
    assert_eq!(run("vos_perf -D /dev/shm -R U;v").warnings.len(), 1);
    assert_eq!(run("daos_perf -u p -P 1g -N 1g -R U").warnings.len(), 2);
    assert!(run("vos_perf -D /dev/shm -P 1g -x -R U").warnings.is_empty());
}

#[test]
fn help_lists_every_option() {
    for (line, option) in [("vos_perf --help", "-f, --file FILE"), ("daos_perf -h", "-C, --credits N")] {
        let Ok(Request::Show(pieces)) = parse(line) else { panic!("{line}: no help") };
        let text = String::from_utf8_lossy(&pieces[0].content).into_owned();
        assert!(text.contains(option) && text.contains("-A, --array[=R]"), "{text}");
    }
}

#[test]
fn the_pages_list_the_options() {
    check_docs(&crate::daos_perf::table::VOS, "vos_perf.md");
    check_docs(&crate::daos_perf::table::DAOS, "daos_perf.md");
}

proptest! {
    #[test]
    fn any_words_are_read_or_refused(all in proptest::collection::vec("[-a-zA-Z0-9=;,./ ]{0,12}", 0..8)) {
        for parse in [crate::daos_perf::parse_vos, crate::daos_perf::parse_daos] {
            if let Err(error) = parse(&all, &machine()) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }

    #[test]
    fn commands_mean_what_they_say(
        code in "[UFV]", prints: bool, keeps: bool, passes in 1u64..1000, dkeys in 1u64..256, size in 1u64..64,
    ) {
        let flags = [(prints, ";p"), (keeps, ";k")].map(|(is_set, text)| if is_set { text } else { "" }).concat();
        let text = format!("{code}{flags};i={passes};d={dkeys};s={size}");
        for is_daos in [false, true] {
            let commands = crate::daos_perf::commands::parse(&text, is_daos).expect("a command");
            let command = &commands[0];
            prop_assert_eq!(commands.len(), 1);
            prop_assert_eq!((command.prints, command.keeps_keys, command.iterations), (prints, keeps, passes));
            prop_assert_eq!((command.subset[1], command.size_bytes), (Some(dkeys), Some(size)));
        }
    }

    #[test]
    fn numbers_have_suffixes(number in 0u64..1 << 34, suffix in 0usize..4) {
        let text = format!("{number}{}", ["", "k", "M", "g"][suffix]);
        let read = crate::daos_perf::numbers::parse("a number", &text, 0, u64::MAX);
        prop_assert_eq!(read.ok(), number.checked_mul(1 << (10 * suffix)));
    }
}
