//! Tests of refusals and their texts.

use proptest::prelude::*;

use super::super::{parse, table::TABLE};
use super::{GIB, machine, refusal, refusal_on};
use crate::words::Fate;
use crate::words::machine::Machine;

#[test]
fn every_refused_option_names_its_reason_and_the_nearest() {
    for flag in TABLE.flags {
        if let Fate::Refused(why, nearest) = flag.fate {
            let value = if flag.value.is_empty() { "" } else { "1" };
            let error = refusal(&format!("-r /data/file --{} {value}", flag.long));
            assert!(
                error.contains(&format!("--{}: {why}", flag.long)) && error.ends_with(nearest),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1);
        }
    }
}

#[test]
fn values_that_elbencho_takes_by_mistake_are_refused() {
    for (line, part) in [
        ("-w --rwmixpct 150 /dev/nvme0n1", "a whole number from 0 to 100"),
        ("-r --iodepth 0 /data/file", "a whole number from 1 to 65536"),
        ("-r -t -1 /data/file", "a whole number from 1 to 4096"),
        ("-w -s 1zzm f", "\"1zzm\" is not a size"),
        ("/data/file", "no phase"),
        ("-r --timelimit 1.5 /data/file", "a whole number"),
        ("-r -t 0 /data/file", "from 1 to 4096"),
        ("-r -i 0 /data/file", "from 1 to"),
        ("-r -b 0 /data/file", "moves nothing"),
        ("-r -b 4q /data/file", "is not a size"),
    ] {
        let error = refusal(line);
        assert!(error.contains(part) && error.starts_with("elbencho: "), "{line}: {error}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (line, part) in [
        ("-F /data/file", "-F/--delfiles without -w"),
        ("-r --gds /data/file", "--gds requires buffers on GPUs; give --gpuids"),
        ("-r --cuhostbufreg /data/file", "give --gpuids with their numbers, or --gpuids all"),
        ("-r --gpuids 0 --gdsbufreg /data/file", "add --cufile"),
        ("-r --gpuids 0 --cufile --iodepth 4 /data/file", "give more threads"),
        ("-r --gpuids 0 --mmap /data/file", "leave out one of them"),
        ("-r --gpuids x /data/file", "gpuids"),
        ("-r -F /data/file", "-F/--delfiles without -w"),
        ("-w -F /data/file", "already exists"),
        ("-w -F /dev/nvme0n1", "does not apply to block devices"),
        ("-r --rwmixpct 50 /data/file", "add -w"),
        ("-w --rwmixpct 5 --rwmixthr 1 /dev/nvme0n1", "cannot be combined"),
        ("-w --rwmixthr 3 -t 2 /dev/nvme0n1", "give at most 2"),
        ("-w --rwmixthr 1 -t 2 -b 1m -s 1m /dev/nvme0n1", "too few"),
        ("-r --infloop /data/file", "--timelimit"),
        ("-r --rand --backward /data/file", "--rand and --backward cannot be combined"),
        ("-r --mmap --iodepth 4 /data/file", "--mmap"),
        ("-r --mmap --direct /data/file", "--mmap"),
        ("-w --sync --timelimit 5 /dev/nvme0n1", "--dropcache"),
        ("-w --verify 1 --rand /dev/nvme0n1", "random writes"),
        ("-w --verify 1 --rwmixpct 50 /dev/nvme0n1", "a mix of reads and writes"),
        ("-w --verifydirect /dev/nvme0n1", "--verify SALT"),
        ("-r --verify 1 --verifydirect /data/file", "--verify SALT and -w"),
        ("-w --blockvarpct 50 /dev/nvme0n1", "--dedupe"),
        ("-w --blockvaralgo md5 /dev/nvme0n1", "use one of fast"),
        ("-r --rand --randalgo md5 /data/file", "use one of fast"),
        ("-r --rand --randamount 4k -t 2 -b 4k /data/file", "give at least 8192"),
        ("-r --strided -t 2 /dev/nvme0n1 /dev/nvme1n1", "one path"),
        ("-r --strided -t 9 -b 1m -s 8m /data/file", "too few"),
        ("-r --strided -t 2 --infloop --timelimit 1 /data/file", "--infloop"),
        ("-r -t 2 -t 3 /data/file", "given more than once"),
        ("-w --trunc /data/file", "--trunc would delete the data"),
        ("-w --trunctosize -s 2g /data/file", "--trunctosize would change"),
    ] {
        let error = refusal(line);
        assert!(error.contains(part) && error.lines().count() == 1, "{line}: {error}");
    }
}

#[test]
fn paths_that_cannot_be_measured_are_refused() {
    for (line, part) in [
        ("-r", "no path"),
        ("-r /data/file /dev/nvme0n1", "not of the same type"),
        ("-r /data/none", "does not exist"),
        ("-w -s 1g /dev/none", "no file is created in /dev"),
        ("-w /data/new", "the size of \"/data/new\" is unknown"),
        ("-r -s 2g /data/file", "less than the size"),
        ("-w -s 200g /dev/nvme0n1", "less than the size"),
        ("-r /data/file /data/file", "given twice"),
        ("-r hdfs://node/dir", "this version does not support HDFS"),
        ("-r s3://bucket", "no S3 server is given"),
        ("-w -s 1g f[1-2-3]", "do not contain a list of numbers"),
        ("-w -s 1g f[,]", "do not contain a list of numbers"),
        ("-w -s 1g f[1-99999]", "paths are too many"),
        ("-w -s 1g f[1-999][1-999]", "paths are too many"),
    ] {
        let error = refusal(line);
        assert!(error.contains(part) && error.lines().count() == 1, "{line}: {error}");
    }
}

#[test]
fn unknown_options_come_with_the_nearest() {
    assert_eq!(
        refusal("-r --timelimt 3 f"),
        "elbencho: \"--timelimt\" is not an option; the closest match is --timelimit"
    );
    assert!(refusal("-r -q 3 f").contains("\"-q\" is not an option"));
}

#[test]
fn configuration_files_are_checked_line_by_line() {
    let refused = |text: &str| refusal_on("-r -c /c /data/file", &machine().text("/c", text));
    assert_eq!(
        refused("threads=2\ntreads=3\n"),
        "elbencho: \"--treads\" is not an option (path=\"/c\", line=2); the closest match is --threads"
    );
    assert!(refused("s3chksumalgo=x").contains("write, read, stat, list and delete of S3 objects"));
    assert!(refused("lat=maybe").contains("write true or false"));
    assert!(refused("lat").contains("is not OPTION=VALUE"));
    assert!(refused("configfile=x").contains("for the command line"));
    assert!(refusal("-r -c /none /data/file").contains("cannot read the configuration file"));
}

#[test]
fn a_csv_file_with_other_columns_is_refused() {
    let world = machine().text("/r.csv", "a,b,\"c,d\"\n1,2,3\n");
    assert_eq!(
        refusal_on("-r --csvfile /r.csv /data/file", &world),
        "elbencho: --csvfile \"/r.csv\" has 3 columns, not 55; give a new file"
    );
}

#[test]
fn the_docs_have_all_options() {
    crate::words::tests::check_docs(&TABLE, "elbencho.md");
}

proptest! {
    #[test]
    fn no_words_panic(words in prop::collection::vec("-{0,2}[a-zA-Z0-9=.,\\[\\]/ é-]{0,12}", 0..8)) {
        if let Err(error) = parse(&words, &machine()) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn no_values_panic(
        first in prop::sample::select(TABLE.flags),
        second in prop::sample::select(TABLE.flags),
        value in "[0-9a-z.,%\\[\\]-]{0,10}",
        number in 0u64..1000,
        write in any::<bool>(),
    ) {
        let mut words = vec![if write { "-w" } else { "-r" }.to_owned(), "/dev/nvme0n1".to_owned()];
        words.push(format!("--{}={value}", first.long));
        words.push(if second.value.is_empty() { format!("--{}", second.long) } else { format!("--{}={number}", second.long) });
        let world = Machine::new().device("/dev/nvme0n1", GIB);
        if let Err(error) = parse(&words, &world) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
