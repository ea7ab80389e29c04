//! The result files: CSV and JSON.

use serde_json::{Map, Value, json};
use statistics::Histogram;

use super::figures::{Done, Figures, Side, date_text, quarter_buckets, us_text};
use super::settings::Output;

/// The command line as far as the result files show it.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    /// `file`, `blockdev`, `dir`, or `netbench`.
    pub(crate) path_type: &'static str,
    /// Hosts that took part.
    pub(crate) hosts: usize,
    /// Whether they shared the paths; none where this process measured alone.
    pub(crate) shares_paths: Option<bool>,
    pub(crate) paths: usize,
    pub(crate) threads: u32,
    pub(crate) size_bytes: u64,
    pub(crate) block_bytes: u64,
    pub(crate) direct: bool,
    pub(crate) random: bool,
    pub(crate) unaligned: bool,
    pub(crate) depth: u32,
    /// Whether files are cut to nothing first, where there are files.
    pub(crate) truncate: Option<bool>,
    /// Directories of a thread, and files or objects of each.
    pub(crate) dirs_and_files: Option<(u64, u64)>,
    /// Whether the table shows directories beside files.
    pub(crate) shows_directories: bool,
    /// The words, quoted each.
    pub(crate) command: String,
}

/// A phase, and where it belongs.
pub(crate) struct Entry<'a> {
    pub(crate) operation: &'a str,
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) figures: &'a Figures,
}

/// The columns before those of the figures.
const HEAD: &[&str] = &[
    "ISO date",
    "label",
    "path type",
    "paths",
    "hosts",
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "direct IO",
    "random",
    "random aligned",
    "IO depth",
    "shared paths",
    "truncate",
    "operation",
    "time ms [first]",
    "time ms [last]",
    "entries/s [first]",
    "entries/s [last]",
    "IOPS [first]",
    "IOPS [last]",
    "MiB/s [first]",
    "MiB/s [last]",
    "CPU% [first]",
    "CPU% [last]",
    "entries [first]",
    "entries [last]",
    "MiB [first]",
    "MiB [last]",
    "Ent lat us [min]",
    "Ent lat us [avg]",
    "Ent lat us [max]",
    "IO lat us [min]",
    "IO lat us [avg]",
    "IO lat us [max]",
    "rwmix read entries/s [first]",
    "rwmix read entries/s [last]",
    "rwmix read IOPS [first]",
    "rwmix read IOPS [last]",
    "rwmix read MiB/s [first]",
    "rwmix read MiB/s [last]",
    "rwmix read entries [first]",
    "rwmix read entries [last]",
    "rwmix read MiB [first]",
    "rwmix read MiB [last]",
    "rwmix read Ent lat us [min]",
    "rwmix read Ent lat us [avg]",
    "rwmix read Ent lat us [max]",
    "rwmix read IO lat us [min]",
    "rwmix read IO lat us [avg]",
    "rwmix read IO lat us [max]",
    "version",
    "command",
];

/// Number of columns.
pub(crate) fn csv_columns() -> usize {
    HEAD.len()
}

/// The line of labels.
pub(crate) fn csv_header() -> String {
    csv_line(HEAD.iter().map(|label| (*label).to_owned()).collect())
}

/// RFC 4180: quotes where a field needs them.
fn csv_line(fields: Vec<String>) -> String {
    let quoted = |field: String| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    };
    let mut line = fields.into_iter().map(quoted).collect::<Vec<_>>().join(",");
    line.push('\n');
    line
}

fn flag(is_set: bool) -> String {
    u8::from(is_set).to_string()
}

fn pair(side: &Side, figure: fn(Done) -> f64) -> [String; 2] {
    let text = |done: Done| if side.is_empty() { String::new() } else { (figure(done) as u64).to_string() };
    [text(side.first), text(side.last)]
}

fn latency_us(latency: &Histogram) -> [String; 3] {
    match (latency.min_ns(), latency.mean_ns(), latency.max_ns()) {
        (Some(min), Some(mean), Some(max)) => {
            [min / 1000, (mean / 1000.0) as u64, max / 1000].map(|us| us.to_string())
        }
        _ => [const { String::new() }; 3],
    }
}

/// A mebibyte figure.
fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1u32 << 20)
}

/// The line of a phase.
pub(crate) fn csv_row(entry: &Entry<'_>, configuration: &Configuration, show: &Output) -> String {
    let none = String::new;
    let figures = entry.figures;
    let mut fields = vec![
        date_text(&figures.started_at),
        show.label.clone(),
        configuration.path_type.to_owned(),
        configuration.paths.to_string(),
        configuration.hosts.to_string(),
        configuration.threads.to_string(),
        configuration.dirs_and_files.map_or_else(none, |(dirs, _)| dirs.to_string()),
        configuration.dirs_and_files.map_or_else(none, |(_, files)| files.to_string()),
        configuration.size_bytes.to_string(),
        configuration.block_bytes.to_string(),
        flag(configuration.direct),
        flag(configuration.random),
        if configuration.random { flag(!configuration.unaligned) } else { none() },
        configuration.depth.to_string(),
        configuration.shares_paths.map_or_else(none, flag),
        configuration.truncate.map_or_else(none, flag),
        entry.operation.to_owned(),
        (figures.first_ns / 1_000_000).to_string(),
        (figures.last_ns / 1_000_000).to_string(),
    ];
    let main = &figures.main;
    let entries = figures.entries.as_ref();
    fields.extend(
        entries.map_or_else(|| [none(), none()], |side| pair(side, |done| done.operations_per_second)),
    );
    fields.extend(pair(main, |done| done.operations_per_second));
    fields.extend(pair(main, |done| mib(done.bytes_per_second)));
    fields.extend(figures.cpu_texts());
    fields.extend(entries.map_or_else(|| [none(), none()], |side| pair(side, |done| done.operations as f64)));
    fields.extend(pair(main, |done| mib(done.bytes as f64)));
    fields.extend(entries.map_or_else(|| [none(), none(), none()], |side| latency_us(&side.latency)));
    fields.extend(latency_us(&main.latency));
    let reads = &figures.mixed_reads;
    fields.extend([none(), none()]);
    fields.extend(pair(reads, |done| done.operations_per_second));
    fields.extend(pair(reads, |done| mib(done.bytes_per_second)));
    fields.extend([none(), none()]);
    fields.extend(pair(reads, |done| mib(done.bytes as f64)));
    fields.extend([none(), none(), none()]);
    fields.extend(latency_us(&reads.latency));
    fields.extend([entry.version.clone(), configuration.command.clone()]);
    csv_line(fields)
}

fn side_json(main: &Side, reads: &Side, pick: fn(&Side) -> Done, elapsed_ns: u64) -> Map<String, Value> {
    let of = |side: &Side| {
        let done = pick(side);
        let mut map = Map::new();
        map.insert("iops".to_owned(), json!(done.operations_per_second));
        map.insert("bytes/s".to_owned(), json!(done.bytes_per_second));
        map.insert("bytes".to_owned(), json!(done.bytes));
        map
    };
    let mut map = Map::new();
    map.insert("elapsed_time_ms".to_owned(), json!(elapsed_ns / 1_000_000));
    if !main.is_empty() {
        map.extend(of(main));
    }
    if !reads.is_empty() {
        map.insert("rwmix_read".to_owned(), Value::Object(of(reads)));
    }
    map
}

fn latency_json(latency: &Histogram) -> Option<Map<String, Value>> {
    let mut map = Map::new();
    map.insert("min_us".to_owned(), json!(latency.min_ns()? as f64 / 1000.0));
    map.insert("avg_us".to_owned(), json!(latency.mean_ns()? / 1000.0));
    map.insert("max_us".to_owned(), json!(latency.max_ns()? as f64 / 1000.0));
    Some(map)
}

fn histogram_json(latency: &Histogram) -> Value {
    let mut begin = 0.0;
    let mut buckets = Vec::new();
    for (end, count) in quarter_buckets(latency) {
        // Empty buckets are left out, so the one before this one ends where this one begins.
        let start = if end <= 2f64.powf(0.25) { begin } else { end / 2f64.powf(0.25) };
        buckets.push(json!({"range": format!("{}-{}us", us_text(start), us_text(end)), "count": count}));
        begin = end;
    }
    json!({ "buckets": buckets })
}

fn all_latency_json(figures: &Figures, show: &Output) -> Map<String, Value> {
    let (main, reads) = (&figures.main.latency, &figures.mixed_reads.latency);
    let mut all = Map::new();
    let mut io = if show.latency { latency_json(main).unwrap_or_default() } else { Map::new() };
    if show.latency
        && let Some(reads) = latency_json(reads)
    {
        io.insert("rwmix_read".to_owned(), Value::Object(reads));
    }
    if show.histogram && !main.is_empty() {
        io.insert("histogram".to_owned(), histogram_json(main));
    }
    if show.histogram && !reads.is_empty() {
        let own = io.entry("histogram").or_insert_with(|| json!({}));
        own["rwmix_read"] = histogram_json(reads);
    }
    if !io.is_empty() {
        all.insert("IO".to_owned(), Value::Object(io));
    }
    let entries = figures.entries.as_ref().filter(|_| show.latency);
    if let Some(entries) = entries.and_then(|side| latency_json(&side.latency)) {
        all.insert("entries".to_owned(), Value::Object(entries));
    }
    all
}

/// The object of a phase, on one line.
pub(crate) fn json_line(entry: &Entry<'_>, configuration: &Configuration, show: &Output) -> String {
    let figures = entry.figures;
    let mut object = Map::new();
    object.insert("phase_type".to_owned(), json!(entry.operation));
    object.insert("phase_id".to_owned(), json!(entry.id));
    if !show.label.is_empty() {
        object.insert("label".to_owned(), json!(show.label));
    }
    object.insert("iso_start_date".to_owned(), json!(date_text(&figures.started_at)));
    object.insert("config".to_owned(), configuration.json(&entry.version));
    let (main, reads) = (&figures.main, &figures.mixed_reads);
    let mut first = side_json(main, reads, |side| side.first, figures.first_ns);
    let mut last = side_json(main, reads, |side| side.last, figures.last_ns);
    if let Some(entries) = &figures.entries {
        for (map, done) in [(&mut first, entries.first), (&mut last, entries.last)] {
            map.insert("entries/s".to_owned(), json!(done.operations_per_second));
            map.insert("entries".to_owned(), json!(done.operations));
        }
    }
    if let Some(percent) = figures.cpu_percent {
        for map in [&mut first, &mut last] {
            map.insert("cpu%".to_owned(), json!(percent as u64));
        }
    }
    let latency = all_latency_json(figures, show);
    if !latency.is_empty() {
        last.insert("latency".to_owned(), Value::Object(latency));
    }
    object.insert("first_done".to_owned(), Value::Object(first));
    object.insert("last_done".to_owned(), Value::Object(last));
    format!("{}\n", Value::Object(object))
}

impl Configuration {
    fn json(&self, version: &str) -> Value {
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        put("path_type", json!(self.path_type));
        put("paths", json!(self.paths));
        put("hosts", json!(self.hosts));
        put("threads", json!(self.threads));
        if let Some(shares) = self.shares_paths {
            put("shared_paths", json!(shares));
        }
        if let Some((dirs, files)) = self.dirs_and_files {
            put("dirs", json!(dirs));
            put("files", json!(files));
        }
        put("file_size", json!(self.size_bytes));
        put("block_size", json!(self.block_bytes));
        put("direct_io", json!(self.direct));
        put("random_offsets", json!(self.random));
        if self.random {
            put("random_aligned", json!(!self.unaligned));
        }
        put("io_depth", json!(self.depth));
        if let Some(truncate) = self.truncate {
            put("truncate_files", json!(truncate));
        }
        put("version", json!(version));
        put("command", json!(self.command));
        Value::Object(map)
    }
}
