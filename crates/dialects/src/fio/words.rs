//! Values that are words of fio's own.

use workload::spec::{CoresPolicy, Layout, Operation, Spacing};

use crate::fio::draft::{Access, Advise, Engine, OnErrors, ZoneMode};
use crate::fio::fault::shown;
use crate::fio::value::Value;

type Read<T> = Result<T, String>;

const ACCESSES: &[(&str, Operation)] = &[
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("trim", Operation::Discard),
    ("randread", Operation::RandRead),
    ("randwrite", Operation::RandWrite),
    ("randtrim", Operation::RandDiscard),
    ("rw", Operation::ReadWrite),
    ("readwrite", Operation::ReadWrite),
    ("randrw", Operation::RandRw),
];

/// Engines, the engine here that carries them out, and what of them is different.
pub(crate) const ENGINES: &[(&str, &str, Option<&str>)] = &[
    ("psync", "psync", None),
    ("sync", "psync", Some("lseek and read are one pread here: one system call an operation, not two")),
    ("vsync", "psync", Some("each block is one pread or pwrite: neighbours are not put together")),
    ("pvsync", "psync", Some("preadv of one block is pread")),
    ("pvsync2", "pvsync2", None),
    ("libaio", "libaio", None),
    ("io_uring", "io_uring", None),
    ("mmap", "mmap", None),
    ("null", "null", None),
    (
        "posixaio",
        "io_uring",
        Some(
            "the C library has a thread for each file, which works off one operation after the other; io_uring does them at the same time",
        ),
    ),
    ("falloc", "falloc", None),
    ("ftruncate", "ftruncate", None),
    ("filestat", "filestat", None),
    (
        "filedelete",
        "filedelete",
        Some("a removal counts as a write, which it is to the file's owner; fio counts it as rw says"),
    ),
];

/// Engines that are not spoken, and the nearest that is.
const OTHER_ENGINES: &[(&str, &str)] = &[
    (
        "io_uring_cmd",
        "it sends commands of NVMe through a character device; nearest: io_uring on the block device",
    ),
    ("sg", "it sends SCSI commands; nearest: psync or libaio on the block device"),
    ("splice", "it measures splice(2); nearest: psync"),
    ("libpmem", "it needs the library of PMDK; nearest: mmap on a file of the same file system"),
    ("pmemblk", "PMDK has withdrawn it; nearest: mmap"),
    ("dev-dax", "it maps a device-dax node; nearest: mmap on a file of a DAX file system"),
    (
        "cpuio",
        "it burns processor time and moves no data; nearest: a program such as stress-ng beside the run",
    ),
    ("cpp_null", "it is an example of an external engine; nearest: ioengine=null"),
    (
        "filecreate",
        "targets are made before anything is measured; nearest: filestat or filedelete, or create_on_open=1",
    ),
    ("libzbc", "it drives zoned devices by SCSI commands; nearest: psync on the block device"),
    ("libzbd", "it drives zoned devices; nearest: psync on the block device"),
    ("windowsaio", "it is of another system; nearest: libaio or io_uring"),
    ("solarisaio", "it is of another system; nearest: libaio or io_uring"),
    ("net", "it measures a network; nearest: strata net between two hosts"),
    ("netsplice", "it measures a network; nearest: strata net between two hosts"),
    ("rdma", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_apm_server", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_apm_client", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_gpspm_server", "it measures a network; nearest: strata net with libfabric"),
    ("librpma_gpspm_client", "it measures a network; nearest: strata net with libfabric"),
    ("exec", "it starts other programs; nearest: start them beside strata"),
    ("rados", "its blocks are objects, a load of another layer; nearest: strata object rados://POOL"),
    (
        "http",
        "its blocks are objects, a load of another layer; nearest: strata object s3://BUCKET for http_mode=s3",
    ),
    (
        "rbd",
        "images are reached through the kernel here; nearest: rbd map, and libaio or io_uring on /dev/rbd0",
    ),
    (
        "dfs",
        "a DAOS file system is no block device; nearest: strata object daos://POOL, or psync through dfuse",
    ),
    ("gfapi", "it needs the library of GlusterFS; nearest: psync or io_uring on the mounted volume"),
    ("gfapi_async", "it needs the library of GlusterFS; nearest: io_uring on the mounted volume"),
    ("libhdfs", "it needs the library of HDFS; nearest: psync on the volume mounted by FUSE"),
    ("libiscsi", "it speaks iSCSI itself; nearest: iscsiadm, and libaio or io_uring on the block device"),
    ("libnfs", "it speaks NFS itself; nearest: mount, and psync or io_uring on its files"),
    ("nfs", "it speaks NFS itself; nearest: mount, and psync or io_uring on its files"),
    ("nbd", "it speaks NBD itself; nearest: nbd-client, and libaio or io_uring on /dev/nbd0"),
    ("libblkio", "it needs the library libblkio; nearest: io_uring on the block device"),
    ("mtd", "raw flash has no block device; nearest: psync on a file of UBIFS"),
    ("e4defrag", "it moves extents of ext4; nearest: falloc"),
    ("ime_psync", "it needs the library of IME; nearest: psync on the mounted file system"),
    ("ime_aio", "it needs the library of IME; nearest: libaio on the mounted file system"),
    ("ime_psyncv", "it needs the library of IME; nearest: psync on the mounted file system"),
    ("xnvme", "it needs the library xNVMe; nearest: io_uring on the block device"),
    ("libcufile", "it needs the library of GPUDirect Storage; nearest: psync with direct=1"),
    ("guasi", "it is withdrawn; nearest: io_uring"),
];

impl Value<'_> {
    fn wrong(&self, accepted: &str) -> String {
        format!("\"{}\": use {accepted}", shown(self.text))
    }

    pub(crate) fn access(&self) -> Read<Access> {
        let accepted = "read, write, trim, randread, randwrite, randtrim, rw or randrw";
        let (word, rest) = match self.text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (self.text, None),
        };
        if ["trimwrite", "randtrimwrite"].contains(&word) {
            return Err(format!(
                "{word} is refused: no operation here is two; nearest: trim, then write in a job with stonewall"
            ));
        }
        let found = ACCESSES.iter().find(|(name, _)| *name == word);
        let operation = found.map(|(_, operation)| *operation).ok_or_else(|| self.wrong(accepted))?;
        let mut access = Access { operation, gap_bytes: 0, run: 1 };
        let Some(rest) = rest else { return Ok(access) };
        let number = |text| Value { text, kb_base: self.kb_base, notes: Default::default() }.number();
        if operation.is_random() {
            access.run = number(rest)?.max(1);
        } else {
            let (sign, bytes) = rest.strip_prefix('-').map_or((1, rest), |bytes| (-1, bytes));
            let bytes = i64::try_from(number(bytes)?).map_err(|_| self.wrong("a gap such as read:8k"))?;
            access.gap_bytes = sign * bytes;
        }
        Ok(access)
    }

    /// Whether the operations of a run have the same position.
    pub(crate) fn sequencer(&self) -> Read<bool> {
        self.choice(&[("sequential", false), ("identical", true)])
    }

    /// A percentage of which fio reads the part before the point.
    pub(crate) fn mix_percent(&self) -> Read<u8> {
        let Some((whole, part)) = self.text.split_once('.') else { return self.percent() };
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number {
            return Err(self.wrong("0 to 100"));
        }
        if part.bytes().any(|byte| byte != b'0') {
            self.notes.borrow_mut().push(format!("{} is read as {whole}, as fio does", self.text));
        }
        Value { text: whole, kb_base: self.kb_base, notes: Default::default() }.percent()
    }

    /// The percentage that the other direction has.
    pub(crate) fn mix_rest_percent(&self) -> Read<u8> {
        self.mix_percent().map(|percent| 100 - percent)
    }

    pub(crate) fn zone_mode(&self) -> Read<ZoneMode> {
        if self.text == "zbd" {
            return Err(
                "zbd is refused: write pointers of zoned devices are not followed; nearest: strided, which works on zones of any file or device"
                    .to_owned(),
            );
        }
        self.choice(&[("none", ZoneMode::None), ("strided", ZoneMode::Strided)])
    }

    pub(crate) fn engine(&self) -> Read<Engine> {
        let refuse = |name: &str, why: &str| Err(format!("engine {} is refused: {why}", shown(name)));
        if self.text.is_empty() {
            return Err("needs a value".to_owned());
        }
        if let Some(&(name, ours, difference)) = ENGINES.iter().find(|(name, ..)| *name == self.text) {
            return Ok(Engine { typed: name.to_owned(), ours, difference });
        }
        if let Some((name, why)) = OTHER_ENGINES.iter().find(|(name, _)| *name == self.text) {
            return refuse(name, why);
        }
        let is_external = self.text.starts_with("external:") || self.text.contains('/');
        let why = if is_external {
            "engines are not loaded from files"
        } else {
            "it is not one of files and block devices"
        };
        let names: Vec<&str> = ENGINES.iter().map(|(name, ..)| *name).collect();
        refuse(self.text, &format!("{why}; nearest: one of {}", names.join(", ")))
    }

    /// In the words of `--pattern`; none for `random`.
    pub(crate) fn distribution(&self) -> Read<String> {
        let parts: Vec<&str> = self.text.split(',').map(str::trim).collect();
        if parts.iter().any(|part| *part != parts[0]) {
            return Err("a distribution for each direction is refused; nearest: one for all".to_owned());
        }
        let (word, rest) = match parts[0].split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (parts[0], None),
        };
        if rest.is_some_and(|rest| !word.starts_with("zoned") && rest.contains([':', '/'])) {
            return Err(format!(
                "the centre in {} is refused: there is none here; nearest: {word} without it",
                shown(self.text)
            ));
        }
        match (word, rest) {
            ("random", None) => Ok(String::new()),
            ("zipf", theta) => Ok(format!("zipf:{}", theta.unwrap_or("1.1"))),
            ("pareto", power) => Ok(format!("pareto:{}", power.unwrap_or("0.2"))),
            ("normal", Some(deviation)) => Ok(format!("normal:{deviation}")),
            ("normal", None) => Err("needs a deviation in percent, such as normal:10".to_owned()),
            ("zoned", Some(zones)) => self.zones(zones),
            ("zoned_abs", _) => Err(
                "zoned_abs is refused: zones are shares of the range here; nearest: zoned:50/5:30/15:20/80"
                    .to_owned(),
            ),
            _ => Err(self.wrong("random, zipf:1.2, pareto:0.2, normal:10 or zoned:50/5:30/15:20/80")),
        }
        .and_then(checked_pattern)
    }

    /// `50/5:30/15:20/` in shares of accesses and of the range.
    fn zones(&self, text: &str) -> Read<String> {
        let share = |part: &str| match part {
            "" => Ok(None),
            part => part.parse::<u8>().map(Some).map_err(|_| self.wrong("whole percentages")),
        };
        let zone = |zone: &str| {
            let (access, size) = zone.split_once('/').unwrap_or((zone, ""));
            Ok((share(size)?, share(access)?))
        };
        let zones = text.split(':').map(zone).collect::<Read<Vec<_>>>()?;
        let by_access = self.fill_shares(zones)?;
        let sizes = by_access.into_iter().map(|(size, access)| (access, size)).collect();
        let zones: Vec<String> =
            self.fill_shares(sizes)?.iter().map(|(access, size)| format!("{access}/{size}")).collect();
        Ok(format!("zoned:{}", zones.join(",")))
    }

    pub(crate) fn layout(&self) -> Read<Layout> {
        let why = match self.text {
            "none" | "0" => return Ok(Layout::Sparse),
            "native" | "posix" | "1" => return Ok(Layout::Allocate),
            "keep" => "space beyond a file's end is not allocated here",
            "truncate" => "nearest: fallocate=none, which gives a file its length and no space",
            _ => return Err(self.wrong("none, native or posix")),
        };
        Err(format!("{} is refused: {why}; use none, native or posix", self.text))
    }

    pub(crate) fn verification(&self) -> Read<bool> {
        const SUMS: &[&str] = &[
            "md5",
            "crc64",
            "crc32",
            "crc32c",
            "crc32c-intel",
            "crc16",
            "crc7",
            "sha1",
            "sha256",
            "sha512",
            "sha3-224",
            "sha3-256",
            "sha3-384",
            "sha3-512",
            "xxhash",
            "meta",
        ];
        match self.text {
            "0" => Ok(false),
            "pattern" | "pattern_hdr" => Err(format!(
                "{} is refused: a block without a sum of its own cannot tell an old block from a new one; nearest: verify=crc32c",
                self.text
            )),
            "null" => Err("null is refused: it checks nothing; nearest: leave verify out".to_owned()),
            text if SUMS.contains(&text) => Ok(true),
            _ => Err(self.wrong("crc32c, md5, sha256, xxhash, or another sum of fio's")),
        }
    }

    pub(crate) fn arrivals(&self) -> Read<Spacing> {
        self.choice(&[("linear", Spacing::Constant), ("poisson", Spacing::Poisson)])
    }

    pub(crate) fn cores_policy(&self) -> Read<CoresPolicy> {
        self.choice(&[("shared", CoresPolicy::Shared), ("split", CoresPolicy::Split)])
    }

    pub(crate) fn on_errors(&self) -> Read<OnErrors> {
        if self.text == "verify" {
            return Err(
                "verify is refused: a wrong block fails the run, after all are counted; nearest: all"
                    .to_owned(),
            );
        }
        self.choice(&[
            ("none", OnErrors::None),
            ("0", OnErrors::None),
            ("read", OnErrors::Reads),
            ("write", OnErrors::Writes),
            ("io", OnErrors::All),
            ("all", OnErrors::All),
            ("1", OnErrors::All),
        ])
    }

    /// Whether operations are to be issued by other threads than the one that paces them.
    pub(crate) fn submit_mode(&self) -> Read<bool> {
        self.choice(&[("inline", false), ("offload", true)])
    }

    /// Whether pauses count what was issued.
    pub(crate) fn think_kind(&self) -> Read<bool> {
        self.choice(&[("complete", false), ("issue", true)])
    }

    /// What the kernel is told of the order of access.
    pub(crate) fn advice(&self) -> Read<Advise> {
        self.choice(&[
            ("0", Advise::Nothing),
            ("none", Advise::Nothing),
            ("", Advise::ByOrder),
            ("1", Advise::ByOrder),
            ("sequential", Advise::Sequential),
            ("random", Advise::Random),
            ("noreuse", Advise::NoReuse),
        ])
    }

    /// `iops:10%` as figure and limit.
    pub(crate) fn steady(&self) -> Read<(String, String)> {
        let accepted = "iops:LIMIT, bw:LIMIT, iops_slope:LIMIT or bw_slope:LIMIT, such as iops:10%";
        let (figure, limit) = self.text.split_once(':').ok_or_else(|| self.wrong(accepted))?;
        if !["iops", "bw", "iops_slope", "bw_slope"].contains(&figure) {
            return Err(self.wrong(accepted));
        }
        let number = limit.trim_end_matches('%');
        let is_number = number.parse::<f64>().is_ok_and(|limit| limit.is_finite() && limit >= 0.0);
        let limit = if is_number { limit.to_owned() } else { self.number_of(limit)?.to_string() };
        Ok((figure.to_owned(), limit))
    }

    /// `EIO:ENOSPC,ENOSPC` (reads, writes, trims) in the words of `--ignore-error`.
    pub(crate) fn ignored(&self) -> Read<String> {
        let classes = ["read", "write", "discard"];
        let parts: Vec<&str> = self.text.split(',').collect();
        if parts.len() > classes.len() {
            return Err(self.wrong("lists of errors for reads, writes and trims, such as EIO,ENOSPC:EDQUOT"));
        }
        let errors = |(class, list): (&&str, &&str)| {
            let one = |error: &str| {
                workload::control::errno(error.trim()).map_err(|error| error.to_string())?;
                Ok(format!("{class}:{}", error.trim()))
            };
            list.split(':').filter(|error| !error.trim().is_empty()).map(one).collect::<Read<Vec<String>>>()
        };
        Ok(classes.iter().zip(&parts).map(errors).collect::<Read<Vec<_>>>()?.concat().join(","))
    }

    /// Whether lines hold the largest value of their interval.
    pub(crate) fn log_value(&self) -> Read<bool> {
        if self.text == "both" {
            return Err(
                "both is refused: a line has one value; nearest: max, or json+ for the whole distribution"
                    .to_owned(),
            );
        }
        self.choice(&[("avg", false), ("0", false), ("max", true), ("1", true)])
    }

    /// In the words of `--sync`.
    pub(crate) fn sync_mode(&self) -> Read<String> {
        let word = self.choice(&[
            ("none", "none"),
            ("0", "none"),
            ("sync", "sync"),
            ("1", "sync"),
            ("dsync", "dsync"),
        ]);
        word.map(str::to_owned)
    }

    /// Whether buffers lie on huge pages.
    pub(crate) fn memory(&self) -> Read<bool> {
        let (word, file) = self.text.split_once(':').unwrap_or((self.text, ""));
        if !file.is_empty() {
            return Err("a file for the buffers is refused; nearest: mem=mmaphuge without one".to_owned());
        }
        match word {
            "malloc" | "shm" | "mmap" => Ok(false),
            "shmhuge" | "mmaphuge" => Ok(true),
            "mmapshared" | "cudamalloc" => Err(format!(
                "{word} is refused: buffers are memory of the process; nearest: malloc or mmaphuge"
            )),
            _ => Err(self.wrong("malloc, shm, mmap, shmhuge or mmaphuge")),
        }
    }

    pub(crate) fn kb_base(&self) -> Read<u32> {
        self.choice(&[("1024", 1024), ("1000", 1000)])
    }

    /// 8 for bytes, 1 for bits.
    pub(crate) fn unit_base(&self) -> Read<u32> {
        self.choice(&[("0", 8), ("8", 8), ("1", 1)])
    }

    /// In the words of `--content`: strings in quotes, hexadecimal digits and decimal numbers, one after the other.
    pub(crate) fn content(&self) -> Read<String> {
        let accepted = "bytes such as 0xdeadbeef, \"text\" in quotes, or a number";
        let mut bytes: Vec<u8> = Vec::new();
        let mut rest = self.text;
        while let Some(first) = rest.chars().next() {
            if first == '\'' {
                return Err("the content of a file is refused; nearest: its bytes as 0x...".to_owned());
            }
            if first == '"' {
                let (string, after) = rest[1..].split_once('"').ok_or_else(|| self.wrong(accepted))?;
                bytes.extend(string.bytes());
                rest = after;
            } else if let Some(after) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
                let end = hex_end(after);
                bytes.extend(hex_bytes(&after[..end]).ok_or_else(|| self.wrong(accepted))?);
                rest = &after[end..];
            } else {
                let end = decimal_end(rest);
                let number: i32 = rest[..end].parse().map_err(|_| self.wrong(accepted))?;
                bytes.extend(little_bytes(number));
                rest = &rest[end..];
            }
        }
        if bytes.is_empty() || bytes.len() > 512 {
            return Err(self.wrong("1 to 512 bytes, such as 0xdeadbeef"));
        }
        Ok(bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")))
    }
}

fn checked_pattern(text: String) -> Read<String> {
    if !text.is_empty() {
        text.parse::<workload::plan::Pattern>().map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// Hexadecimal digits up to what is none, or up to the next `0x`.
fn hex_end(text: &str) -> usize {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let next = text.as_bytes().get(end).is_some_and(|byte| matches!(byte, b'x' | b'X'));
    if next && text[..end].ends_with('0') { end - 1 } else { end }
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    let digits = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    if digits.is_empty() { None } else { (0..digits.len()).step_by(2).map(byte).collect() }
}

fn decimal_end(text: &str) -> usize {
    let after = text.strip_prefix('-').unwrap_or(text);
    let sign = text.len() - after.len();
    if let Some(next) = after.find("0x").filter(|&at| at > 0) {
        return sign + next.min(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(next));
    }
    sign + after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())
}

/// The bytes of a number, lowest first, without the zeros at the top.
fn little_bytes(number: i32) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    let used = 4 - bytes.iter().rev().take_while(|byte| **byte == 0).count();
    bytes[..used.max(1)].to_vec()
}
