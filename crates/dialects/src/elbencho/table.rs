//! Every option of elbencho 3.1, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "elbencho";
/// The version that is spoken, as `--version` tells it. Scripts take the number from this line and compute with it, so it has
/// the form of elbencho's own (major.minor-patch level, the level one digit).
pub(crate) const VERSION: &str = "3.1-0";

const LEAVE_OUT: &str = "leave it out";
/// Options of directories, the first of them of buckets too; refused with files and block devices.
pub(crate) const OF_DIRECTORIES: &[&str] =
    &["mkdirs", "deldirs", "dirs", "files", "stat", "dirsharing", "dirstats"];
/// Options of directories that buckets do not have.
pub(crate) const NOT_OF_S3: &[&str] = &["dirsharing", "dirstats"];
const NO_TREE: &str = "trees from a list are not measured in this version";
const SAME_FILES: &str = "give -n and -N, for files of one size";
const GIVE_FILES: &str = "give files, block devices or buckets";
const NO_GPU: &str = "memory of GPUs is not measured in this version";
const TO_HOST: &str = "leave it out: data goes to and from the host's memory";
const NO_S3: &str = "of S3 only objects are measured: write, read, stat, list, delete";
const DELETES_OTHERS: &str = "strata removes only objects of its own data set";
const NO_HOSTS: &str = "files are measured on one host in this version";
const LAUNCH: &str = "start it on each host with a launcher such as pdsh";
const NO_HDFS: &str = "HDFS is not measured in this version";
const LIVE: &str = "strata has live rows of its own";
const LIVE_CSV: &str = "use strata's --live-csv FILE";

const fn gpu(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_GPU, TO_HOST)
}

const fn s3(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_S3, LEAVE_OUT)
}

const fn hosts(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_HOSTS, LAUNCH)
}

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: true, single_dash: true };

static FLAGS: &[Flag] = &[
    Flag::honoured("write", "", "writes the files or devices; files that are not there are created, and directories that are missing are made before, not timed").short('w'),
    Flag::honoured("read", "", "reads them").short('r'),
    Flag::honoured("delfiles", "", "in directories and with S3: a phase that deletes the files or objects; with large files and -w: files that this run creates are removed at its end, and not timed; files that were there before are refused")
        .short('F'),
    Flag::honoured("path", "PATH", "a path, as without the option"),
    Flag::honoured("threads", "N", "worker threads, 1 or more; each has its own part of all paths together").short('t'),
    Flag::honoured("size", "SIZE", "bytes of each path to work on, or of each file in a directory; 4k, 1MiB, 1.5g; default: all there is, in a directory 0").short('s'),
    Flag::honoured("block", "SIZE", "bytes of one operation; default 1M; made as small as the size, with a warning").short('b'),
    Flag::honoured("iterations", "N", "does all phases so many times").short('i'),
    Flag::honoured("iodepth", "N", "1: one blocking call at a time; 2 or more: libaio with so many in flight for each thread; in directories io_uring, with so many files in flight for each thread"),
    Flag::honoured("mmap", "", "through memory maps"),
    Flag::honoured("direct", "", "past the page cache"),
    Flag::honoured("rand", "", "random positions within each thread's part: writes each block once in random order, reads draw with repeats"),
    Flag::honoured("norandalign", "", "random positions at any byte; left out with --direct, with a warning"),
    Flag::honoured("randamount", "SIZE", "bytes of random operations of all threads; default: as much as the paths hold"),
    Flag::honoured("randalgo", "NAME", "any of fast, balanced, balanced_single and strong: random writes draw with repeats too; the generator is always the same"),
    Flag::honoured("backward", "", "from the end to the beginning"),
    Flag::honoured("strided", "", "threads take blocks in turn; with several threads for one path"),
    Flag::honoured("infloop", "", "repeats until --timelimit, which it needs"),
    Flag::honoured("timelimit", "SECONDS", "ends each phase after this long, to the millisecond; the phases after it are run too, in directories on the files that there are by then"),
    Flag::honoured("rwmixpct", "0-100", "percentage of reads in the write phase, interleaved"),
    Flag::honoured("rwmixthr", "N", "this many of the threads read their parts in the write phase"),
    Flag::refused("rwmixthrpct", "0-100", "reading and writing threads are not held at a ratio", "use --rwmixpct, or --limitread and --limitwrite"),
    Flag::honoured("verify", "SALT", "written blocks carry the salt and are checked when they are read; the format is strata's own"),
    Flag::honoured("verifydirect", "", "what was written is read back and checked when the phase is over, outside its figures"),
    Flag::honoured("blockvarpct", "0|100", "100 (the default): each block is new; 0: buffers are filled once; others are refused"),
    Flag::honoured("blockvaralgo", "NAME", "any of fast, balanced, balanced_single and strong; the generator is always the same"),
    Flag::honoured("limitread", "SIZE", "bytes a second that each thread reads at most, evenly spaced; latency counts from when an operation was due"),
    Flag::honoured("limitwrite", "SIZE", "the same for the write phase"),
    Flag::honoured("sync", "", "in directories: a phase SYNC before the first and after each; else with --dropcache: data is written back before the cache is dropped, alone: at the end of write phases, within their time"),
    Flag::honoured("dropcache", "", "the page cache of the paths, not of the machine, is dropped before phases that read; in directories before all phases, with names and inodes, of the machine where the rights allow it; it has no row of its own"),
    Flag::honoured("phasedelay", "SECONDS", "pause before each phase but the first"),
    Flag::honoured("cores", "LIST", "threads are bound to these processors in turn: 0,1, [0-3] or all"),
    Flag::honoured("zones", "LIST", "threads are bound to these NUMA nodes in turn: 0,1 or [0-1]"),
    Flag::honoured("trunctosize", "", "in directories: each file gets its length when it is opened; a new large file gets it before it is written, one that is there must have it"),
    Flag::honoured("trunc", "", "in directories: each file is cut to nothing when it is opened; large files that are there are refused"),
    Flag::honoured("preallocfile", "", "space is allocated before a new file is written"),
    Flag::honoured("nodelerr", "", "in directories: what is gone already is removed without error; a large file that is gone is no error anyway"),
    Flag::accepted("nofdsharing", "", "each thread has descriptors of its own"),
    Flag::accepted("nodiocheck", "", "alignment is checked against what the device needs"),
    Flag::accepted("no0usecerr", "", "times are in nanoseconds"),
    Flag::honoured("nopathexp", "", "brackets in paths are taken as they are"),
    Flag::honoured("lat", "", "shows least, mean and greatest latency"),
    Flag::honoured("latpercent", "", "shows percentiles of latency, to 0.05 %"),
    Flag::honoured("latpercent9s", "N", "with --latpercent: N more of 99.9, 99.99, ..., up to 8"),
    Flag::honoured("lathisto", "", "shows the histogram of latency, in quarters of powers of two"),
    Flag::honoured("allelapsed", "", "shows each thread's time"),
    Flag::honoured("cpu", "", "shows the use of the machine's processors"),
    Flag::honoured("base10", "", "shows MB/s instead of MiB/s"),
    Flag::honoured("log", "0-2", "from 1 on the number of operations is shown too"),
    Flag::honoured("csvfile", "FILE", "appends results with elbencho's columns; no file is written without it"),
    Flag::honoured("nocsvlabels", "", "no header in a new CSV file"),
    Flag::honoured("jsonfile", "FILE", "appends one object a phase and line, with elbencho's names and real numbers"),
    Flag::honoured("resfile", "FILE", "appends the table that is shown"),
    Flag::honoured("label", "TEXT", "stands in the result files"),
    Flag::honoured("live1", "", "one line of progress, where there is a terminal"),
    Flag::honoured("live1n", "", "lines of progress, terminal or not"),
    Flag::honoured("nolive", "", "no progress"),
    Flag::refused("livecsv", "FILE", LIVE, LIVE_CSV),
    Flag::refused("livecsvex", "", LIVE, LIVE_CSV),
    Flag::refused("livejson", "FILE", LIVE, LIVE_CSV),
    Flag::refused("livejsonex", "", LIVE, LIVE_CSV),
    Flag::refused("liveint", "MS", "strata chooses how often it shows progress", LEAVE_OUT),
    Flag::honoured("dryrun", "", "shows how much each phase would do, and does nothing"),
    Flag::honoured("configfile", "FILE", "lines of OPTION=VALUE; the command line comes first").short('c'),
    Flag::honoured("version", "", "shows the version"),
    Flag::honoured("help", "", "shows this").short('h'),
    Flag::honoured("help-large", "", "shows this"),
    Flag::honoured("help-bdev", "", "shows this"),
    Flag::honoured("help-all", "", "shows this"),
    Flag::honoured("help-multi", "", "shows this"),
    Flag::honoured("help-s3", "", "shows this"),
    Flag::refused("help-dist", "", NO_HOSTS, "see --help"),
    Flag::refused("start", "SECONDS", "a run begins at once", "start it with at(1), or sleep until then"),
    Flag::refused("fadv", "LIST", "no advice is given to the page cache", "use --dropcache for dontneed"),
    Flag::refused("madv", "LIST", "no advice is given on memory maps", LEAVE_OUT),
    Flag::refused("flock", "KIND", "files are not locked", LEAVE_OUT),
    Flag::refused("opslog", "FILE", "single operations are not logged", "see the series in strata's record, --json FILE"),
    Flag::refused("opsloglock", "", "single operations are not logged", "see the series in strata's record, --json FILE"),
    Flag::honoured("mkdirs", "", "makes the directories of all threads: r0/d0, r0/d1, ...; with S3 and -w: a bucket that is not there is made before the first phase, and not timed")
        .short('d'),
    Flag::honoured("deldirs", "", "removes the directories, which must be empty; with S3, -d and -w: a bucket that this run made is deleted at the end with all in it, and not timed").short('D'),
    Flag::honoured("dirs", "N", "directories of each thread; 0: none, the files lie in the directory that is given; default 1").short('n'),
    Flag::honoured("files", "N", "files (with S3: objects) of each thread in each of them: r0/d0/r0-f0, ...; default 1").short('N'),
    Flag::honoured("stat", "", "looks at the attributes of all files; with S3: of all objects (HEAD)"),
    Flag::refused("statinline", "", "files are not looked at while they are open", "use --stat, a phase of its own"),
    Flag::refused("readinline", "", "files are not read while they are open for writing", "give -w -r"),
    Flag::honoured("dirsharing", "", "all threads use the directories of the first; -n is then their number"),
    Flag::honoured("dirstats", "", "shows directories too in write and read phases: files by -N"),
    Flag::refused("treefile", "FILE", NO_TREE, SAME_FILES),
    Flag::refused("treescan", "PATH", NO_TREE, SAME_FILES),
    Flag::refused("treerand", "", NO_TREE, SAME_FILES),
    Flag::refused("treeroundrob", "", NO_TREE, SAME_FILES),
    Flag::refused("treeroundup", "SIZE", NO_TREE, SAME_FILES),
    Flag::refused("sharesize", "SIZE", NO_TREE, SAME_FILES),
    gpu("gpuids", "LIST"),
    gpu("gpuperservice", ""),
    gpu("cuhostbufreg", ""),
    gpu("cufile", ""),
    gpu("cufiledriveropen", ""),
    gpu("gdsbufreg", ""),
    gpu("gds", ""),
    Flag::honoured("netbench", "", "clients send -b bytes and wait for --respsize bytes, -t threads with a connection each; each byte is counted once; threads of all clients take the servers in turn; --iodepth N has N requests in flight on a connection"),
    Flag::honoured("servers", "LIST", "hosts with a service that receive, with commas or blanks between; name, name:port, node[1-4]"),
    Flag::honoured("serversfile", "FILE", "the same from a file, one a line"),
    Flag::honoured("clients", "LIST", "hosts with a service that send"),
    Flag::honoured("clientsfile", "FILE", "the same from a file, one a line"),
    Flag::honoured("respsize", "SIZE", "bytes of each reply; default 1"),
    Flag::honoured("sendbuf", "SIZE", "send buffer of the clients' sockets; default: the kernel decides"),
    Flag::honoured("recvbuf", "SIZE", "receive buffer of the clients' sockets; default: the kernel decides"),
    Flag::honoured("netdevs", "LIST", "devices that the clients' connections are bound to in turn"),
    Flag::honoured("hosts", "LIST", "with --quit, --interrupt and --svcping: the services that are told; for files it is refused"),
    Flag::honoured("hostsfile", "FILE", "the same from a file, one a line"),
    hosts("numhosts", "N"),
    hosts("rotatehosts", "N"),
    hosts("rankoffset", "N"),
    hosts("nosvcshare", ""),
    Flag::honoured("service", "", "serves netbench, for control at --port and for data at --port + 1000; on loopback alone without --svcpwfile"),
    Flag::honoured("foreground", "", "the service stays in the foreground"),
    Flag::honoured("nodetach", "", "the same"),
    Flag::honoured("port", "N", "port of the services; default 1611"),
    Flag::honoured("interrupt", "", "the services of --hosts end what they run"),
    Flag::honoured("quit", "", "the services of --hosts end"),
    hosts("svcelapsed", ""),
    Flag::honoured("svcping", "", "the services of --hosts say that they live"),
    Flag::honoured("svcpwfile", "FILE", "shared secret, 16 bytes or more: with it a service listens on all interfaces, control is encrypted, and everybody must prove that he knows it"),
    hosts("svcupint", "MS"),
    hosts("svcwait", "SECONDS"),
    hosts("althttpsvc", ""),
    Flag::refused("hdfs", "", NO_HDFS, GIVE_FILES),
    Flag::honoured("s3endpoints", "LIST", "servers of S3, with commas between: [http(s)://]HOST[:PORT], https where nothing is said; threads take them in turn; paths are buckets then; default AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL, for s3:// paths"),
    Flag::honoured("s3key", "KEY", "access key; default AWS_ACCESS_KEY_ID; it stands in no output"),
    Flag::honoured("s3secret", "SECRET", "secret key; default AWS_SECRET_ACCESS_KEY; it stands in no output, but other users see command lines"),
    Flag::refused("s3sessiontoken", "TOKEN", "temporary keys are not used", "give keys of a user, --s3key and --s3secret"),
    Flag::honoured("s3credfile", "FILE", "a line ACCESS:SECRET; # begins a comment; more than one is refused"),
    Flag::honoured("s3credlist", "LIST", "the same as a word"),
    Flag::honoured("s3region", "NAME", "region; default AWS_REGION, else AWS_DEFAULT_REGION, else us-east-1"),
    Flag::honoured("s3virtaddr", "", "the bucket stands in the host's name, not in the path"),
    Flag::accepted("s3single", "", "each thread has connections of its own"),
    Flag::honoured("s3sign", "N", "0 and 1: payloads are signed; 2: headers alone"),
    s3("s3targetgbps", "N"),
    Flag::accepted("s3maxconns", "N", "there is a connection for each operation in flight"),
    Flag::honoured("s3objprefix", "TEXT", "what the names of all objects begin with; %%% is refused"),
    Flag::refused("s3randobj", "", "objects are read in order", LEAVE_OUT),
    Flag::accepted("s3fastget", "", "what is received is not copied"),
    Flag::honoured("s3fastput", "", "headers alone are signed, as with --s3sign 2"),
    Flag::accepted("s3nocompress", "", "requests are never compressed"),
    s3("s3chksumalgo", "NAME"),
    s3("s3checksumalgo", "NAME"),
    Flag::refused("s3mpusharing", "", "an object is uploaded by one thread", "give more objects, -N"),
    s3("s3mpucomplphase", ""),
    s3("s3mpusizevar", "SIZE"),
    s3("s3mpusplit", "SIZE"),
    s3("s3nompcheck", ""),
    s3("s3nompucompl", ""),
    s3("s3multiignore404", ""),
    Flag::honoured("s3ignoreerrors", "", "a phase goes on after failed operations; they are counted, and the exit code is 1 all the same"),
    Flag::honoured("s3listobj", "N", "lists N objects, by requests for up to 1000"),
    Flag::refused("s3listobjpar", "", "one thread lists", "use --s3listobj"),
    s3("s3listverify", ""),
    Flag::refused("s3multidel", "N", DELETES_OTHERS, "use -F, which deletes the objects of -t, -n and -N one by one"),
    s3("s3statdirs", ""),
    s3("s3aclget", ""),
    s3("s3aclput", ""),
    s3("s3aclputinl", ""),
    s3("s3aclgrantee", "NAME"),
    s3("s3aclgtype", "TYPE"),
    s3("s3aclgrants", "LIST"),
    s3("s3aclverify", ""),
    s3("s3baclget", ""),
    s3("s3baclput", ""),
    s3("s3btag", ""),
    s3("s3btagverify", ""),
    s3("s3bversion", ""),
    s3("s3bversionverify", ""),
    s3("s3otag", ""),
    s3("s3otagverify", ""),
    s3("s3olockcfg", ""),
    s3("s3olockcfgverify", ""),
    s3("s3sse", ""),
    s3("s3sseckey", "KEY"),
    s3("s3ssekmskey", "KEY"),
    s3("s3log", "N"),
    s3("s3logprefix", "PATH"),
];
