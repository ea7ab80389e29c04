//! Tests of the output on a real terminal: the demonstration runs on a pseudoterminal that it controls.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, SpecialCodeIndex, Termios, Winsize, tcgetattr, tcsetwinsize};

const ENTER_SCREEN: &str = "\x1b[?1049h";
const LEAVE_SCREEN: &str = "\x1b[?1049l";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Only a broken view takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The demonstration on a terminal of its own.
struct Session {
    child: Child,
    /// The side of the user: what is written here is typed.
    keyboard: File,
    /// The side of the program, kept open so that its settings can be looked at.
    terminal: OwnedFd,
    output: Receiver<Vec<u8>>,
    seen: String,
    before: Termios,
}

fn demo() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let demo = test.parent().and_then(|deps| deps.parent()).unwrap().join("examples/demo");
    assert!(demo.exists(), "build the example first: cargo build -p live --example demo");
    demo
}

impl Session {
    fn start(arguments: &str) -> Self {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&user).unwrap();
        unlockpt(&user).unwrap();
        let name = ptsname(&user, Vec::new()).unwrap().into_string().unwrap();
        let terminal = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let before = tcgetattr(&terminal).unwrap();
        // setsid makes the terminal the controlling one, so that Ctrl-C becomes a signal.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(demo())
            .args(arguments.split_whitespace())
            .env("TERM", "xterm")
            .stdin(terminal.try_clone().unwrap())
            .stderr(terminal.try_clone().unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let keyboard = File::from(user);
        let output = read_all(keyboard.try_clone().unwrap());
        Self { child, keyboard, terminal, output, seen: String::new(), before }
    }

    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            let bytes = self.output.recv_timeout(PATIENCE).expect("the awaited text never came");
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// How it ended, and everything that the terminal saw. The terminal must be as it was.
    fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let after = tcgetattr(&self.terminal).unwrap();
        assert_eq!(format!("{after:?}"), format!("{:?}", self.before));
        // The last one to hold the terminal open: the reader now comes to the end.
        drop(self.terminal);
        for bytes in self.output {
            self.seen.push_str(&String::from_utf8_lossy(&bytes));
        }
        (status, self.seen)
    }
}

/// Hands over what can be read until the terminal is closed.
fn read_all(mut from: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

#[track_caller]
fn assert_restored(seen: &str) {
    let entered = seen.find(ENTER_SCREEN).expect("the alternate screen was entered");
    let left = seen.rfind(LEAVE_SCREEN).expect("the alternate screen was left");
    assert!(entered < left);
    let hidden = seen.rfind(HIDE_CURSOR).expect("the cursor was hidden");
    let shown = seen.rfind(SHOW_CURSOR).expect("the cursor was shown");
    assert!(hidden < shown);
    assert_eq!(seen.matches(ENTER_SCREEN).count(), 1);
    assert_eq!(seen.matches(LEAVE_SCREEN).count(), 1);
}

#[test]
fn the_full_screen_is_given_back_at_the_end() {
    let (status, seen) = Session::start("full 2 5 1").end();
    assert!(status.success());
    assert_restored(&seen);
    assert!(seen.ends_with(LEAVE_SCREEN), "nothing follows");
}

#[test]
fn control_c_ends_a_full_screen_run_and_gives_the_screen_back() {
    let mut session = Session::start("full 2 1000000 5");
    // The screen is entered before the first picture hides the cursor.
    session.wait_for(HIDE_CURSOR);
    let during = tcgetattr(session.terminal.as_fd()).unwrap();
    assert!(during.local_modes.contains(LocalModes::ISIG), "Ctrl-C is still a signal");
    assert!(!during.local_modes.contains(LocalModes::ECHO), "what is typed does not spoil the screen");
    assert_eq!(during.special_codes[SpecialCodeIndex::VSUSP], 0, "Ctrl-Z does not stop the run");
    session.type_in("typed unseen\x03");
    let (status, seen) = session.end();
    assert_eq!(status.code(), Some(130));
    assert!(!seen.contains("typed unseen"));
    assert_restored(&seen);
}

#[test]
fn the_message_of_a_panic_comes_after_the_full_screen() {
    let (status, seen) = Session::start("full 2 20 1 --panic").end();
    assert!(status.success());
    assert_restored(&seen);
    let message = seen.find("a worker of the demonstration").expect("the message is there");
    assert!(seen.find(LEAVE_SCREEN).unwrap() < message);
}

#[test]
fn a_new_size_is_drawn_anew() {
    let mut session = Session::start("full 2 1000000 5");
    session.wait_for("operations/s");
    let size = Winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&session.terminal, size).unwrap();
    session.wait_for("bandwidth, bytes/s");
    session.type_in("\x03");
    let (_, seen) = session.end();
    assert_restored(&seen);
}

#[test]
fn the_progress_line_is_erased_at_the_end() {
    let (status, seen) = Session::start("auto 2 5 1").end();
    assert!(status.success());
    assert!(!seen.contains(ENTER_SCREEN));
    assert!(seen.starts_with("\r\x1b[Klaying out /scratch/strata.0  0 %"), "{seen:?}");
    assert!(seen.ends_with("\r\x1b[K"), "{seen:?}");
}

#[test]
fn without_a_terminal_there_are_plain_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("stderr");
    let status = Command::new(demo())
        .args(["full", "2", "5", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&path).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "live: the full-screen view needs a terminal on standard error; showing plain lines\n\
         randread  done in 5.0s  0 operations  err 0\n\
         mixed 70/30  done in 5.0s  0 operations  err 0\n"
    );
}
