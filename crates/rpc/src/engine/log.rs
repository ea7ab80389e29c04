//! A log that clients cannot flood.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::seat::Log;

/// Lines a second that pass.
pub(super) const LINES_MAX: u32 = 20;
/// Longest line that passes whole, in bytes.
const LINE_BYTES_MAX: usize = 512;
const SPAN: Duration = Duration::from_secs(1);

struct Window {
    begin: Instant,
    passed: u32,
    left_out: u64,
}

impl Window {
    /// Whether a line passes at `now`, and how many were left out before it.
    fn pass(&mut self, now: Instant) -> Option<u64> {
        if now.saturating_duration_since(self.begin) >= SPAN {
            *self = Self { begin: now, passed: 0, left_out: self.left_out };
        }
        if self.passed == LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.passed += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Hands on [`LINES_MAX`] lines a second to `log`, and the number of those that it left out with the next that passes, or in the end. What
/// clients put into a line comes out in one line and without control characters.
pub(super) fn limited(log: Log) -> Log {
    let window = Mutex::new(Window { begin: Instant::now(), passed: 0, left_out: 0 });
    let gate = Gate { log, window };
    Arc::new(move |line: &str| gate.say(line))
}

struct Gate {
    log: Log,
    window: Mutex<Window>,
}

impl Gate {
    fn say(&self, line: &str) {
        let passed = self.window.lock().unwrap_or_else(PoisonError::into_inner).pass(Instant::now());
        let Some(left_out) = passed else { return };
        self.tell_left_out(left_out);
        (self.log)(&clean(line));
    }

    fn tell_left_out(&self, left_out: u64) {
        if left_out > 0 {
            (self.log)(&format!("{left_out} lines were left out"));
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let left_out = self.window.get_mut().unwrap_or_else(PoisonError::into_inner).left_out;
        self.tell_left_out(left_out);
    }
}

fn clean(line: &str) -> String {
    let end = line.floor_char_boundary(LINE_BYTES_MAX);
    line[..end].chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_not_told() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let log = limited(Arc::new(move |line: &str| sink.lock().expect("a list").push(line.to_owned())));
        for number in 0..1000 {
            log(&format!("\u{1b}[31mline\n{number}"));
        }
        drop(log);
        let lines = lines.lock().expect("a list");
        assert!(lines.iter().all(|line| !line.contains(char::is_control)));
        let told = lines.iter().filter(|line| line.starts_with("?[31mline?")).count();
        // More than one second may have gone by.
        assert!((20..200).contains(&told), "{told}");
        let left_out: usize = lines
            .iter()
            .filter_map(|line| line.strip_suffix(" lines were left out")?.parse::<usize>().ok())
            .sum();
        assert_eq!(told + left_out, 1000);
    }

    #[test]
    fn a_new_second_lets_lines_pass_again() {
        let begin = Instant::now();
        let mut window = Window { begin, passed: 0, left_out: 0 };
        assert_eq!((0..25).filter(|_| window.pass(begin).is_some()).count(), 20);
        assert_eq!(window.pass(begin + SPAN), Some(5));
        assert_eq!(window.pass(begin + SPAN), Some(0));
    }
}
