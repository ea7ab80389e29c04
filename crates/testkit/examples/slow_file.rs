//! A file with declared service times, for scripts: mounts it, prints its path, and when its standard input ends prints what it
//! served, one operation a line (arrival and latency in nanoseconds). `slow_file DIRECTORY KIND SEED`: a file of 1 MiB, the mean is
//! 8 ms or near it. `slow_file DIRECTORY drive SIZE_MIB`: as a drive that nobody else uses; `slow-drive`: one with half of its operations,
//! for machines where serving them would load the CPUs.

use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use testkit::{Arrival, SlowFile};

/// SplitMix64 (Steele, Lea and Flood 2014), and what is drawn from it.
struct Random {
    state: u64,
    /// State of the kinds whose operations are like the one before.
    level: f64,
}

impl Random {
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Kinds of drives: the operations that one serves at a time, and the seconds that each takes besides those for its bytes. They are long
/// enough that the scheduler's part in a latency is small.
const DRIVES: [(&str, usize, f64); 2] = [("drive", 8, 2e-3), ("slow-drive", 4, 2e-3)];

/// Bytes a second of each operation that a drive serves.
const DRIVE_BYTES_PER_SECOND: f64 = (256 << 20) as f64;

/// Milliseconds of one operation.
fn milliseconds(kind: &str, random: &mut Random) -> Option<f64> {
    Some(match kind {
        "constant" => 8.0,
        "exponential" => 2.0 + 6.0 * random.exponential(),
        "lognormal" => 6.0 * (0.6 * random.normal()).exp(),
        "bimodal" => (if random.uniform() < 0.03 { 50.0 } else { 6.0 }) * (0.1 * random.normal()).exp(),
        // Spells of 200 operations on average, fast and slow.
        "regimes" => {
            if random.uniform() < 1.0 / 200.0 {
                random.level = 1.0 - random.level;
            }
            (if random.level > 0.5 { 11.0 } else { 5.0 }) * (0.5 + 0.5 * random.exponential())
        }
        _ => return None,
    })
}

/// The file that the words ask for, mounted.
fn mounted(words: &[String]) -> Result<SlowFile, String> {
    let [directory, kind, number] = words else { return Err("accepted is DIRECTORY KIND SEED".into()) };
    let number: u64 = number.parse().map_err(|_| format!("{number:?}: accepted is a whole number"))?;
    let failed = |error| format!("{directory}: cannot be mounted: {error}");
    if let Some((_, stations, each)) = DRIVES.into_iter().find(|(name, ..)| name == kind) {
        let time = move |arrival: &Arrival| {
            Duration::from_secs_f64(each + arrival.size_bytes as f64 / DRIVE_BYTES_PER_SECOND)
        };
        return SlowFile::mount(Path::new(directory), number << 20, stations, time).map_err(failed);
    }
    let mut random = Random { state: number, level: 0.0 };
    random.level = if random.uniform() < 0.5 { 1.0 } else { 0.0 };
    if milliseconds(kind, &mut random).is_none() {
        let accepted = "accepted are constant, exponential, lognormal, bimodal, regimes, drive, slow-drive";
        return Err(format!("{kind:?}: {accepted}"));
    }
    let (random, own_kind) = (Mutex::new(random), kind.clone());
    let time = move |_: &Arrival| {
        let mut random = random.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Duration::from_secs_f64(milliseconds(&own_kind, &mut random).unwrap_or(0.0) / 1e3)
    };
    SlowFile::mount(Path::new(directory), 1 << 20, 0, time).map_err(failed)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let file = match mounted(&words) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("slow_file: {error}");
            return ExitCode::from(2);
        }
    };
    println!("{}", file.path().display());
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for served in file.served() {
        let _ = writeln!(out, "{} {}", served.arrival.at.as_nanos(), served.latency.as_nanos());
    }
    ExitCode::from(u8::from(out.flush().is_err()))
}
