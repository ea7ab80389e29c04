//! The result files of IO500, made from the record of a suite.

use std::fmt::Write as _;
use std::path::Path;

use driver::Error;
use report::record::{PhaseRecord, Record, SuitePhase, SuiteRecord, SuiteScore};

use super::ini::{Config, hash_of};
use super::programme::{Kind, PhaseDef};

/// Name of the version in result files: figures are those of strata, and the hashes say so.
pub(super) const VERSION: &str = concat!("strata-", env!("CARGO_PKG_VERSION"));
/// Columns of the report of a phase in its file.
const WIDTH: usize = 120;

/// Writes a result file as a whole.
///
/// # Errors
/// As the system says.
pub(super) fn write(directory: &Path, name: &str, text: &str) -> Result<(), Error> {
    let (path, beside) = (directory.join(name), directory.join(format!("{name}.part")));
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, &path)).map_err(|error| {
        Error::system("io500", "cannot write a result file", error).with("path", path.display())
    })
}

/// ` [INVALID]`, or nothing.
fn mark(is_valid: bool) -> &'static str {
    if is_valid { "" } else { " [INVALID]" }
}

/// First line of a run.
pub(super) fn banner(suite: &SuiteRecord) -> String {
    format!("IO500 version {VERSION} ({})\n", suite.mode)
}

/// The line of a phase.
pub(super) fn phase_line(phase: &SuitePhase) -> String {
    let head = if phase.group.is_some() { "[RESULT]" } else { "[      ]" };
    let (score, unit) = (format!("{:.6}", phase.score), phase.unit.as_deref().unwrap_or("kIOPS"));
    let (name, seconds, mark) = (&phase.name, phase.seconds, mark(phase.invalid.is_empty()));
    format!("{head} {name:>20} {score:>15} {unit} : time {seconds:.3} seconds{mark}\n")
}

/// The line of a score.
pub(super) fn score_line(score: &SuiteScore) -> String {
    format!(
        "[{:<6}] Bandwidth {:.6} GiB/s : IOPS {:.6} kiops : TOTAL {:.6}{}\n",
        score.name,
        score.bandwidth_gib_per_second,
        score.metadata_kiops,
        score.total,
        mark(score.is_valid)
    )
}

/// `result_summary.txt`.
pub(super) fn summary(suite: &SuiteRecord) -> String {
    let phases = suite.phases.iter().map(phase_line);
    banner(suite) + &phases.chain(suite.scores.iter().map(score_line)).collect::<String>()
}

/// When a run began and ended, as result files have it; none where they leave times out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times<'a> {
    pub(super) start: Option<&'a str>,
    pub(super) end: Option<&'a str>,
}

/// `result.txt`.
pub(super) fn result(suite: &SuiteRecord, config: &Config, times: Times<'_>) -> String {
    let mut text = String::from("[run]\n");
    // Writing to a String cannot fail.
    let pair = |text: &mut String, key: &str, value: &str| {
        let _ = writeln!(text, "{key:<15} = {value}");
    };
    pair(&mut text, "procs", &suite.ranks.to_string());
    pair(&mut text, "version", VERSION);
    pair(&mut text, "config-hash", &format!("{:X}", config.hash()));
    pair(&mut text, "result-dir", &suite.result_directory);
    pair(&mut text, "mode", &suite.mode);
    suite.invalid.iter().for_each(|reason| comment(&mut text, "ERROR INVALID", reason));
    if let Some(start) = times.start {
        comment(&mut text, "START", start);
    }
    for phase in &suite.phases {
        let _ = write!(text, "\n[{}]\n", phase.name);
        phase.facts.iter().for_each(|[key, value]| pair(&mut text, key, value));
        phase.invalid.iter().for_each(|reason| comment(&mut text, "ERROR INVALID", reason));
        phase.doubts.iter().for_each(|doubt| comment(&mut text, "DOUBT", doubt));
    }
    for score in &suite.scores {
        let _ = write!(text, "\n[{}]\n", score.name);
        pair(&mut text, "MD", &format!("{:.6}", score.metadata_kiops));
        pair(&mut text, "BW", &format!("{:.6}", score.bandwidth_gib_per_second));
        pair(&mut text, "SCORE", &format!("{:.6}{}", score.total, mark(score.is_valid)));
        pair(&mut text, "hash", &format!("{:X}", score_hash(suite, score)));
    }
    if let Some(end) = times.end {
        text.push('\n');
        comment(&mut text, "END", end);
    }
    text
}

fn comment(text: &mut String, head: &str, line: &str) {
    let _ = writeln!(text, "; {head} {}", units::clean(line));
}

/// IO500's hash of a score: of the version, the phases that count and the means.
fn score_hash(suite: &SuiteRecord, score: &SuiteScore) -> u32 {
    let is_extended = score.name == "SCOREX";
    let number = |key: &str, value: f64| hash_of(key, &format!("{value:.6}"));
    let version = if is_extended { 0 } else { hash_of("version", VERSION) };
    let counted =
        suite.phases.iter().filter(|phase| phase.group.is_some() && phase.is_extended == is_extended);
    let phases = counted.fold(version, |hash, phase| hash ^ number(&phase.name, phase.score));
    let means = number("MD", score.metadata_kiops)
        ^ number("BW", score.bandwidth_gib_per_second)
        ^ number("SCORE", score.total);
    phases ^ means ^ if score.is_valid { 0 } else { hash_of("valid", "NO") }
}

/// The report of one phase, as `NAME.txt` has it.
pub(super) fn phase_text(record: &mut Record, at: usize) -> String {
    let suite = record.suite.take();
    let phases = std::mem::take(&mut record.phases);
    let mut alone = record.clone();
    (record.phases, record.suite) = (phases, suite);
    alone.phases = record.phases.get(at).cloned().into_iter().collect();
    report::render(&alone, WIDTH, false)
}

/// Figures of a phase by rank, as `NAME.csv` has them: in the columns of IOR or mdtest.
pub(super) fn phase_csv(def: &PhaseDef, phase: &PhaseRecord) -> String {
    let class = |name: &str| phase.samples.classes.iter().position(|known| known == name);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let rate = |amount: u64, seconds: f64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let workers = phase.samples.workers.iter();
    match def.kind {
        Kind::Transfer(name) => {
            let mut text = String::from(
                "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n",
            );
            for worker in workers {
                let bytes = class(name).and_then(|at| worker.classes.get(at)).map_or(0, |class| class.bytes);
                let whole = seconds(worker.finished_ns.saturating_sub(worker.started_ns));
                let until = worker.finals_from_ns.unwrap_or(worker.finished_ns);
                let moving = seconds(until.saturating_sub(worker.started_ns));
                let (rank, with, without) = (worker.worker, rate(bytes, whole), rate(bytes, moving));
                let _ = writeln!(text, "{name},{rank},{whole:.10e},{moving:.10e},{with:.10e},{without:.10e}");
            }
            text
        }
        Kind::Items(name) => {
            let mut text = format!("rank,items,rate-{name},time-{name}\n");
            for worker in workers {
                let items =
                    class(name).and_then(|at| worker.classes.get(at)).map_or(0, |class| class.operations);
                let whole = seconds(worker.finished_ns.saturating_sub(worker.started_ns));
                let _ = writeln!(text, "{},{items},{:.10e},{whole:.10e}", worker.worker, rate(items, whole));
            }
            text
        }
        Kind::Find | Kind::Timestamp => {
            let found = phase.observations.files.as_ref().and_then(|files| files.found).unwrap_or_default();
            let whole = seconds(phase.samples.elapsed_ns);
            let (entries, matched) = (found.entries, found.matched);
            let mut text = format!("runtime: {whole:.6} rate: {:.6}\n", rate(entries, whole));
            let _ =
                writeln!(text, "errors, found, total\n{}, {matched}, {entries}", phase.summary.total.errors);
            text
        }
    }
}

/// Checks the hashes of a result file: what it says of the check, and whether all is well.
///
/// # Errors
/// A file that is no result file.
pub(super) fn verify(config: &Config, text: &str) -> Result<(String, bool), Error> {
    let (mut section, mut version, mut config_hash, mut score_hash_read) = ("", None, None, None);
    let mut hash = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(';')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            continue;
        }
        let Some((key, value)) = line.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
            continue;
        };
        match (section, key) {
            ("run", "version") => {
                version = Some(value);
                hash ^= hash_of(key, value);
            }
            ("run", "config-hash") => config_hash = Some(value),
            ("SCORE", "hash") => score_hash_read = Some(value),
            ("SCORE", "SCORE") => hash ^= hash_of(key, value.split(' ').next().unwrap_or_default()),
            ("SCORE", _) => hash ^= hash_of(key, value),
            (name, "score") if is_scored(name) => hash ^= hash_of(name, value),
            _ => {}
        }
    }
    let (Some(version), Some(config_hash), Some(read)) = (version, config_hash, score_hash_read) else {
        return Err(Error::usage("io500", "this is not the result.txt of a finished run")
            .remedy("use a result.txt that contains scores"));
    };
    let mut said =
        format!("version         = {version}\nconfig-hash     = {config_hash}\nscore-hash      = {read}\n\n");
    let expected = format!("{:X}", config.hash());
    let is_of_config = expected == config_hash;
    if !is_of_config {
        let _ = writeln!(said, "ERROR: configuration hash expected: {expected} read: {config_hash}");
    }
    let is_valid = format!("{hash:X}") == read;
    let is_whole = is_valid || format!("{:X}", hash ^ hash_of("valid", "NO")) == read;
    if !is_whole {
        let _ = writeln!(said, "ERROR: score hash expected: {hash:X} read: {read}");
    } else if !is_valid {
        said += "[OK] But this is an invalid run!\n";
    } else if is_of_config {
        said += "[OK]\n";
    }
    Ok((said, is_of_config && is_valid))
}

/// Whether the score of a phase is in the hash.
fn is_scored(name: &str) -> bool {
    let def = super::programme::PHASES.iter().find(|def| def.name == name);
    def.is_some_and(|def| def.group.name().is_some() && !def.is_extended)
}

#[cfg(test)]
mod tests {
    use super::super::score;
    use super::*;

    fn suite() -> SuiteRecord {
        let phases = super::super::programme::PHASES.iter().filter(|def| !def.is_extended).zip(1..);
        let phase = |(def, number): (&PhaseDef, u32)| {
            let score = f64::from(number) / 7.0;
            let facts = vec![["score".to_owned(), format!("{score:.6}")]];
            SuitePhase { score, facts, seconds: 1.0, ..def.entry() }
        };
        let phases: Vec<SuitePhase> = phases.map(phase).collect();
        let scores = vec![score::of(&phases, false, true)];
        SuiteRecord { mode: "standard".to_owned(), ranks: 2, phases, scores, ..SuiteRecord::default() }
    }

    #[test]
    fn lines_are_as_io500_prints_them() {
        let suite = suite();
        let text = summary(&suite);
        assert!(text.starts_with(&format!("IO500 version {VERSION} (standard)\n")), "{text}");
        let line = "[RESULT]       ior-easy-write        0.142857 GiB/s : time 1.000 seconds\n";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("[      ]  ior-rnd4K-easy-read "), "{text}");
        assert!(text.contains("\n[SCORE ] Bandwidth "), "{text}");
        let invalid = SuitePhase { invalid: vec!["short".to_owned()], ..suite.phases[0].clone() };
        assert!(phase_line(&invalid).ends_with("seconds [INVALID]\n"));
    }

    #[test]
    fn hashes_of_a_result_file_are_checked() {
        let (mut suite, config) = (suite(), Config::default());
        let check = |config: &Config, text: &str| verify(config, text).expect("it is a result file");
        let text = result(&suite, &config, Times { start: Some("then"), end: None });
        assert_eq!(check(&config, &text), (check(&config, &text).0, true));
        assert!(check(&config, &text).0.ends_with("\n[OK]\n"));
        let forged = text.replacen("score           = 0.285714", "score           = 9.285714", 1);
        assert_ne!(forged, text);
        assert!(!check(&config, &forged).1 && check(&config, &forged).0.contains("score hash expected"));
        let other = Config::parse("[mdtest-easy]\nn = 5\n").expect("a configuration");
        assert!(check(&other, &text).0.contains("configuration hash expected"));
        suite.scores[0].is_valid = false;
        let said = check(&config, &result(&suite, &config, Times::default()));
        assert!(!said.1 && said.0.contains("invalid run"), "{}", said.0);
        assert!(verify(&config, "[run]\n").is_err());
    }
}
