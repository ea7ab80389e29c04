//! The dialect of spdk_nvme_perf: block devices, files, and NVMe drives by their PCI address, through the kernel.

mod cores;
mod render;
mod table;
mod targets;
#[cfg(test)]
mod tests;

use driver::Error;
use units::{ByteSize, Span};
use workload::plan::Pattern;
use workload::spec::{OnError, Operation, Share, Spec, Warmup};

use crate::options::{said, said_if, say, switch};
use crate::words::{Words, quoted};
use crate::{PathFacts, Piece, Progress, Request, Run, World};
use render::{Device, Model, Tracking};
use table::{TABLE, TOOL};
use targets::Target;

/// Workloads of `-w`.
const WORKLOADS: &[(&str, Operation)] = &[
    ("read", Operation::Read),
    ("write", Operation::Write),
    ("randread", Operation::RandRead),
    ("randwrite", Operation::RandWrite),
    ("rw", Operation::ReadWrite),
    ("randrw", Operation::RandRw),
];

/// Reads the words after the name.
///
/// # Errors
/// Bad usage.
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    let words = TABLE.split(words)?;
    if words.has("help") || words.has("help-full") {
        return Ok(Request::Show(vec![Piece::stdout(format!(
            "{TOOL} options [devices and files]...\n\n{}",
            TABLE.help()
        ))]));
    }
    let mut warnings = words.warnings.clone();
    check_alignment(&words)?;
    let load = Load::read(&words, &mut warnings)?;
    let cores = usable_cores(&words, world, &mut warnings)?;
    let targets = targets::find(&words, world)?;
    let dealt = cores::deal(targets.len(), &cores, words.has("use-every-core"));
    let mut specs = Vec::new();
    let mut devices = Vec::new();
    for (target, cores) in targets.into_iter().zip(dealt) {
        let mut spec = load.spec(&words, &target, &cores, world, &mut warnings)?;
        spec.concurrent = !specs.is_empty();
        specs.push(spec);
        devices.push(Device { name: target.name, pci_address: target.pci_address, cores });
    }
    let tracking = match words.count("enable-sw-latency-tracking") {
        0 => Tracking::None,
        1 => Tracking::Percentiles,
        _ => Tracking::Histogram,
    };
    let render = Box::new(Model { devices, cores, tracking });
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs,
        render,
        warnings,
        token_file: None,
        secrets: Vec::new(),
        progress: Progress::Auto,
    })))
}

/// A required or optional whole number.
fn number(words: &Words, long: &str, min: u64, max: u64) -> Result<Option<u64>, Error> {
    let Some(text) = words.value(long) else { return Ok(None) };
    let read = units::parse_u64_in(long, text, min..=max);
    read.map(Some).map_err(|error| Error::usage(TOOL, error.to_string()))
}

fn required<T>(value: Option<T>, option: &str, example: &str) -> Result<T, Error> {
    value.ok_or_else(|| TABLE.error(format!("no {option}"), format!("add it, for example {example}")))
}

/// A number with k, m or g, by 1024, which is all that SPDK takes.
fn capacity(words: &Words, long: &str) -> Result<Option<u64>, Error> {
    let Some(text) = words.value(long) else { return Ok(None) };
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let is_known = matches!(unit.as_str(), "" | "k" | "m" | "g" | "kib" | "mib" | "gib");
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let size: Option<ByteSize> = (is_known && is_plain).then(|| text.parse().ok()).flatten();
    match size {
        Some(ByteSize(bytes)) => Ok(Some(bytes)),
        None => TABLE.refuse(
            format!("--{long} {} is not a number", quoted(text)),
            "give a whole number, with k, m or g for powers of 1024, such as 4096 or 4k",
        ),
    }
}

fn check_alignment(words: &Words) -> Result<(), Error> {
    match capacity(words, "buffer-alignment")? {
        Some(bytes) if !bytes.is_power_of_two() || !(64..=4096).contains(&bytes) => TABLE.refuse(
            format!("-A/--buffer-alignment {bytes} is not supported"),
            "give a power of two from 64 to 4096: buffers are page-aligned",
        ),
        _ => Ok(()),
    }
}

/// The cores asked for that this machine has.
fn usable_cores(words: &Words, world: &dyn World, warnings: &mut Vec<String>) -> Result<Vec<u32>, Error> {
    let processors = world.processors();
    let text = words.value("core-mask");
    let asked = cores::parse(text.unwrap_or("0x1"))?;
    let (found, missing): (Vec<u32>, Vec<u32>) = asked.iter().partition(|&core| processors.contains(core));
    let list = |cores: &[u32]| cores.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if found.is_empty() {
        return match (text, processors.first()) {
            (None, Some(&first)) => {
                warnings.push(format!("core 0 is not available here: using core {first}"));
                Ok(vec![first])
            }
            _ => TABLE.refuse(
                format!("none of the cores {} is available here", list(&asked)),
                format!("give one or more of {}", list(&processors)),
            ),
        };
    }
    if !missing.is_empty() {
        warnings.push(format!("cores {} of -c are not available here and are ignored", list(&missing)));
    }
    Ok(found)
}

/// How much of a worker's operations ends it.
#[derive(Clone, Copy)]
enum Amount {
    Operations(u64),
    /// Percent of the operations that the device holds.
    Percent(u64),
}

/// Load that is the same for all devices.
struct Load {
    operation: Operation,
    block_size_bytes: u64,
    depth: u32,
    queues: u32,
    time: Span,
    warmup: Warmup,
    mix: Option<String>,
    pattern: Option<String>,
    amount: Option<Amount>,
}

impl Load {
    fn read(words: &Words, warnings: &mut Vec<String>) -> Result<Self, Error> {
        let block_size_bytes = required(
            capacity(words, "io-size")?.filter(|&bytes| bytes > 0),
            "-o/--io-size above 0",
            "-o 4096",
        )?;
        let depth = required(
            capacity(words, "io-depth")?.filter(|&depth| depth > 0),
            "-q/--io-depth above 0",
            "-q 16",
        )?;
        let operation = operation(required(words.value("io-pattern"), "-w/--io-pattern", "-w randread")?)?;
        let seconds = required(number(words, "time", 1, 1 << 32)?, "-t/--time", "-t 60")?;
        let queues = number(words, "num-qpairs", 1, 4096)?.unwrap_or(1);
        if !depth.is_multiple_of(queues) || depth > 65_536 {
            return TABLE.refuse(
                format!("-q/--io-depth {depth} cannot be divided among {queues} queue pairs (-P)"),
                "give a depth up to 65536 that is a multiple of -P",
            );
        }
        // Read whatever the workload, so that a value that cannot be is refused.
        number(words, "continue-on-error", 1, u64::MAX)?;
        let warmup = match number(words, "warmup-time", 0, 1 << 32)? {
            Some(seconds) if seconds > 0 => Warmup::Fixed(seconds * 1_000_000_000),
            _ => Warmup::None,
        };
        Ok(Self {
            operation,
            block_size_bytes,
            depth: (depth / queues) as u32,
            queues: queues as u32,
            time: Span(seconds * 1_000_000_000),
            warmup,
            mix: mix(words, operation, warnings)?,
            pattern: pattern(words, operation)?,
            amount: amount(words, depth)?,
        })
    }

    fn spec(
        &self,
        words: &Words,
        target: &Target,
        cores: &[u32],
        world: &dyn World,
        warnings: &mut Vec<String>,
    ) -> Result<Spec, Error> {
        let threads = cores.len() as u32 * self.queues;
        let usage = |error: units::ParseError| Error::usage(TOOL, error.to_string());
        let mut spec = Spec {
            name: Some(target.name.clone()),
            targets: vec![target.path.clone()],
            block_size: Some(self.block_size_bytes.to_string()),
            threads: Some(threads),
            depth: Some(self.depth),
            time: Some(self.time),
            count: self.count(target, threads, world)?,
            warmup: Some(self.warmup),
            pattern: self.pattern.clone(),
            share: Some(Share::Whole),
            cores: Some(cores.to_vec()),
            keep: true,
            on_error: Some(if words.has("continue-on-error") { OnError::Continue } else { OnError::Stop }),
            ..Spec::of_layer("media").map_err(usage)?
        };
        let own = [
            said("op", self.operation.name()),
            said("engine", engine(words, target, world, warnings)),
            switch("direct", true),
            said_if("mix", self.mix.as_ref()),
            said_if("sync", words.has("fua").then_some("dsync")),
        ];
        say(&mut spec, own).map_err(usage)?;
        Ok(spec)
    }

    /// Operations of all workers of a device.
    fn count(&self, target: &Target, threads: u32, world: &dyn World) -> Result<Option<u64>, Error> {
        let for_each = match self.amount {
            None => return Ok(None),
            Some(Amount::Operations(operations)) => operations,
            Some(Amount::Percent(percent)) => {
                let (PathFacts::BlockDevice { size_bytes } | PathFacts::File { size_bytes }) =
                    world.look(&target.path)
                else {
                    return TABLE.refuse(
                        format!(
                            "-d/--number-ios in percent: the size of {} is unknown",
                            quoted(&target.path)
                        ),
                        "give a number of operations",
                    );
                };
                let held = u128::from(size_bytes / self.block_size_bytes);
                u64::try_from(held * u128::from(percent) / 100).unwrap_or(u64::MAX).max(1)
            }
        };
        // A core's queue pairs share its operations.
        Ok(Some(for_each.saturating_mul(u64::from(threads / self.queues))))
    }
}

fn operation(text: &str) -> Result<Operation, Error> {
    let found = WORKLOADS.iter().find(|(name, _)| *name == text);
    found.map(|(_, operation)| *operation).ok_or_else(|| {
        let names: Vec<&str> = WORKLOADS.iter().map(|(name, _)| *name).collect();
        TABLE.error(
            format!("-w/--io-pattern {} is not a workload", quoted(text)),
            format!("use one of {}", names.join(", ")),
        )
    })
}

fn mix(words: &Words, operation: Operation, warnings: &mut Vec<String>) -> Result<Option<String>, Error> {
    let percent = number(words, "rwmixread", 0, 100)?;
    match percent {
        Some(percent) if operation.is_mixed() => Ok(Some(percent.to_string())),
        None if operation.is_mixed() => {
            TABLE.refuse("no -M/--rwmixread", "give the percentage of reads of rw and randrw, from 0 to 100")
        }
        Some(_) => {
            warnings.push("-M/--rwmixread is ignored: it applies only to -w rw and randrw".to_owned());
            Ok(None)
        }
        None => Ok(None),
    }
}

fn pattern(words: &Words, operation: Operation) -> Result<Option<String>, Error> {
    let uniform = || operation.is_random().then(|| "uniform".to_owned());
    let Some(theta) = words.value("zipf") else { return Ok(uniform()) };
    let text = format!("zipf:{theta}");
    let pattern: Pattern = text.parse().map_err(|_| {
        TABLE.error(
            format!("-F/--zipf {} is not a valid theta", quoted(theta)),
            "give a number from 0 to 10 such as 0.99",
        )
    })?;
    if !operation.is_random() {
        return TABLE
            .refuse("-F/--zipf requires random positions", "use it with -w randread, randwrite or randrw");
    }
    Ok(if matches!(pattern, Pattern::Zipf { theta } if theta == 0.0) { uniform() } else { Some(text) })
}

fn amount(words: &Words, depth: u64) -> Result<Option<Amount>, Error> {
    let percent = words.value("number-ios").and_then(|text| text.strip_suffix('%'));
    if let Some(percent) = percent {
        let read = units::parse_u64_in("number-ios in percent", percent, 1..=1_000_000);
        return read
            .map(|percent| Some(Amount::Percent(percent)))
            .map_err(|error| Error::usage(TOOL, error.to_string()));
    }
    match capacity(words, "number-ios")? {
        None | Some(0) => Ok(None),
        Some(operations) if operations < depth => TABLE.refuse(
            format!("-d/--number-ios {operations} is less than the depth (-q)"),
            format!("give {depth} or more, or a smaller -q"),
        ),
        Some(operations) => Ok(Some(Amount::Operations(operations))),
    }
}

/// io_uring, which comes nearest to SPDK's queues; libaio for paths behind the options without `-R`, as in the tool, and where
/// io_uring is not allowed.
fn engine(words: &Words, target: &Target, world: &dyn World, warnings: &mut Vec<String>) -> String {
    if target.is_kernel_path && !words.has("enable-uring") {
        return "libaio".to_owned();
    }
    if world.engines().contains(&"io_uring") {
        return "io_uring".to_owned();
    }
    let warning = "io_uring is not permitted here: using libaio".to_owned();
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
    "libaio".to_owned()
}
