//! Every option of elbencho 3.1, and what becomes of it.

use crate::words::{Flag, Table};

/// The tool's name.
pub(crate) const TOOL: &str = "elbencho";

const LEAVE_OUT: &str = "leave it out";
/// Why directories are refused.
pub(crate) const NO_DIRECTORIES: &str = "many files in directories are not measured in this version";
/// What to give instead.
pub(crate) const NAME_FILES: &str = "give large files by name, such as DIR/file[1-4], or block devices";
const GIVE_FILES: &str = "give files or block devices";
const NO_GPU: &str = "memory of GPUs is not measured in this version";
const TO_HOST: &str = "leave it out: data goes to and from the host's memory";
const NO_S3: &str = "object stores are not measured in this version";
const NO_NETBENCH: &str = "networks are not measured in this version";
const NO_HOSTS: &str = "one host is measured in this version";
const LAUNCH: &str = "start it on each host with a launcher such as pdsh";
const NO_HDFS: &str = "HDFS is not measured in this version";
const LIVE: &str = "strata has live rows of its own";
const LIVE_CSV: &str = "use strata's --live-csv FILE";

const fn dir(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_DIRECTORIES, NAME_FILES)
}

const fn gpu(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_GPU, TO_HOST)
}

const fn s3(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_S3, GIVE_FILES)
}

const fn net(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_NETBENCH, GIVE_FILES)
}

const fn hosts(long: &'static str, value: &'static str) -> Flag {
    Flag::refused(long, value, NO_HOSTS, LAUNCH)
}

/// The options.
pub(crate) static TABLE: Table = Table { tool: TOOL, flags: FLAGS, switch_values: true, single_dash: true };

static FLAGS: &[Flag] = &[
    Flag::honoured("write", "", "writes the files or devices; files that are not there are created").short('w'),
    Flag::honoured("read", "", "reads them").short('r'),
    Flag::honoured("delfiles", "", "with -w: files that this run creates are removed at its end, and not timed; files that were there before are refused")
        .short('F'),
    Flag::honoured("path", "PATH", "a path, as without the option"),
    Flag::honoured("threads", "N", "worker threads, 1 or more; each has its own part of all paths together").short('t'),
    Flag::honoured("size", "SIZE", "bytes of each path to work on; 4k, 1MiB, 1.5g; default: all there is").short('s'),
    Flag::honoured("block", "SIZE", "bytes of one operation; default 1M; made as small as the size, with a warning").short('b'),
    Flag::honoured("iterations", "N", "does all phases so many times").short('i'),
    Flag::honoured("iodepth", "N", "1: one blocking call at a time; 2 or more: libaio with so many in flight for each thread"),
    Flag::honoured("mmap", "", "through memory maps"),
    Flag::honoured("direct", "", "past the page cache"),
    Flag::honoured("rand", "", "random positions within each thread's part: writes each block once in random order, reads draw with repeats"),
    Flag::honoured("norandalign", "", "random positions at any byte; left out with --direct, with a warning"),
    Flag::honoured("randamount", "SIZE", "bytes of random operations of all threads; default: as much as the paths hold"),
    Flag::honoured("randalgo", "NAME", "any of fast, balanced, balanced_single and strong: random writes draw with repeats too; the generator is always the same"),
    Flag::honoured("backward", "", "from the end to the beginning"),
    Flag::honoured("strided", "", "threads take blocks in turn; with several threads for one path"),
    Flag::honoured("infloop", "", "repeats until --timelimit, which it needs"),
    Flag::honoured("timelimit", "SECONDS", "ends each phase after this long, to the millisecond; the phases after it are run too"),
    Flag::honoured("rwmixpct", "0-100", "percentage of reads in the write phase, interleaved"),
    Flag::honoured("rwmixthr", "N", "this many of the threads read their parts in the write phase"),
    Flag::refused("rwmixthrpct", "0-100", "reading and writing threads are not held at a ratio", "use --rwmixpct, or --limitread and --limitwrite"),
    Flag::honoured("verify", "SALT", "written blocks carry the salt and are checked when they are read; the format is strata's own"),
    Flag::honoured("verifydirect", "", "what was written is read back and checked when the phase is over, outside its figures"),
    Flag::honoured("blockvarpct", "0|100", "100 (the default): each block is new; 0: buffers are filled once; others are refused"),
    Flag::honoured("blockvaralgo", "NAME", "any of fast, balanced, balanced_single and strong; the generator is always the same"),
    Flag::honoured("limitread", "SIZE", "bytes a second that each thread reads at most, evenly spaced; latency counts from when an operation was due"),
    Flag::honoured("limitwrite", "SIZE", "the same for the write phase"),
    Flag::honoured("sync", "", "with --dropcache: data is written back before the cache is dropped; alone: at the end of write phases, within their time"),
    Flag::honoured("dropcache", "", "the page cache of the paths, not of the machine, is dropped before phases that read"),
    Flag::honoured("phasedelay", "SECONDS", "pause before each phase but the first"),
    Flag::honoured("cores", "LIST", "threads are bound to these processors in turn: 0,1, [0-3] or all"),
    Flag::honoured("zones", "LIST", "threads are bound to these NUMA nodes in turn: 0,1 or [0-1]"),
    Flag::honoured("trunctosize", "", "a new file gets its length before it is written; one that is there must have it"),
    Flag::honoured("trunc", "", "new files are empty anyway; files that are there are refused"),
    Flag::honoured("preallocfile", "", "space is allocated before a new file is written"),
    Flag::accepted("nodelerr", "", "a file that is gone already is no error"),
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
    Flag::refused("help-multi", "", NO_DIRECTORIES, "see --help"),
    Flag::refused("help-s3", "", NO_S3, "see --help"),
    Flag::refused("help-dist", "", NO_HOSTS, "see --help"),
    Flag::refused("start", "SECONDS", "a run begins at once", "start it with at(1), or sleep until then"),
    Flag::refused("fadv", "LIST", "no advice is given to the page cache", "use --dropcache for dontneed"),
    Flag::refused("madv", "LIST", "no advice is given on memory maps", LEAVE_OUT),
    Flag::refused("flock", "KIND", "files are not locked", LEAVE_OUT),
    Flag::refused("opslog", "FILE", "single operations are not logged", "see the series in strata's record, --json FILE"),
    Flag::refused("opsloglock", "", "single operations are not logged", "see the series in strata's record, --json FILE"),
    dir("mkdirs", "").short('d'),
    dir("deldirs", "").short('D'),
    dir("dirs", "N").short('n'),
    dir("files", "N").short('N'),
    dir("stat", ""),
    dir("statinline", ""),
    dir("readinline", ""),
    dir("dirsharing", ""),
    dir("dirstats", ""),
    dir("treefile", "FILE"),
    dir("treescan", "PATH"),
    dir("treerand", ""),
    dir("treeroundrob", ""),
    dir("treeroundup", "SIZE"),
    dir("sharesize", "SIZE"),
    gpu("gpuids", "LIST"),
    gpu("gpuperservice", ""),
    gpu("cuhostbufreg", ""),
    gpu("cufile", ""),
    gpu("cufiledriveropen", ""),
    gpu("gdsbufreg", ""),
    gpu("gds", ""),
    net("netbench", ""),
    net("servers", "LIST"),
    net("serversfile", "FILE"),
    net("clients", "LIST"),
    net("clientsfile", "FILE"),
    net("respsize", "SIZE"),
    net("sendbuf", "SIZE"),
    net("recvbuf", "SIZE"),
    net("netdevs", "LIST"),
    hosts("hosts", "LIST"),
    hosts("hostsfile", "FILE"),
    hosts("numhosts", "N"),
    hosts("rotatehosts", "N"),
    hosts("rankoffset", "N"),
    hosts("nosvcshare", ""),
    hosts("service", ""),
    hosts("foreground", ""),
    hosts("nodetach", ""),
    hosts("port", "N"),
    hosts("interrupt", ""),
    hosts("quit", ""),
    hosts("svcelapsed", ""),
    hosts("svcping", ""),
    hosts("svcpwfile", "FILE"),
    hosts("svcupint", "MS"),
    hosts("svcwait", "SECONDS"),
    hosts("althttpsvc", ""),
    Flag::refused("hdfs", "", NO_HDFS, GIVE_FILES),
    s3("s3endpoints", "LIST"),
    s3("s3key", "KEY"),
    s3("s3secret", "SECRET"),
    s3("s3sessiontoken", "TOKEN"),
    s3("s3credfile", "FILE"),
    s3("s3credlist", "LIST"),
    s3("s3region", "NAME"),
    s3("s3virtaddr", ""),
    s3("s3single", ""),
    s3("s3sign", "N"),
    s3("s3targetgbps", "N"),
    s3("s3maxconns", "N"),
    s3("s3objprefix", "TEXT"),
    s3("s3randobj", ""),
    s3("s3fastget", ""),
    s3("s3fastput", ""),
    s3("s3nocompress", ""),
    s3("s3chksumalgo", "NAME"),
    s3("s3checksumalgo", "NAME"),
    s3("s3mpusharing", ""),
    s3("s3mpucomplphase", ""),
    s3("s3mpusizevar", "SIZE"),
    s3("s3mpusplit", "SIZE"),
    s3("s3nompcheck", ""),
    s3("s3nompucompl", ""),
    s3("s3multiignore404", ""),
    s3("s3ignoreerrors", ""),
    s3("s3listobj", "N"),
    s3("s3listobjpar", ""),
    s3("s3listverify", ""),
    s3("s3multidel", "N"),
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
