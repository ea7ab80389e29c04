//! The alternate screen of the terminal at standard error, and how it is always given back.
//!
//! No raw mode: it would swallow Ctrl-C. The terminal keeps its signals and only stops echoing what is typed.

use std::io::{self, Write, stderr};
use std::panic;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::crossterm::{execute, queue};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::terminal::{in_foreground, stderr_size};

/// The modes to restore; there while the alternate screen is ours. Locked only within a lock of standard error, so
/// that no frame is written after the screen was given back.
static SAVED: Mutex<Option<Termios>> = Mutex::new(None);
/// The panic hook is put in place once.
static HOOK: Once = Once::new();
/// Switches a control character off (`_POSIX_VDISABLE`).
const DISABLED: u8 = 0;

fn saved() -> MutexGuard<'static, Option<Termios>> {
    SAVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the alternate screen is still ours.
pub(crate) fn is_ours() -> bool {
    let _writing = stderr().lock();
    saved().is_some()
}

fn enter() -> io::Result<()> {
    let mut err = stderr().lock();
    let before = tcgetattr(&err)?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
    // Ctrl-S would stop the thread that draws, Ctrl-Z the run.
    quiet.input_modes.remove(InputModes::IXON);
    quiet.special_codes[SpecialCodeIndex::VSUSP] = DISABLED;
    tcsetattr(&err, OptionalActions::Now, &quiet)?;
    *saved() = Some(before);
    execute!(err, EnterAlternateScreen, Hide, Clear(ClearType::All))
}

/// Gives the terminal back as it was; does nothing when that has been done.
fn leave() {
    let mut err = stderr().lock();
    let Some(before) = saved().take() else { return };
    // A terminal that went away cannot be restored, and nobody looks at it.
    let _ = execute!(err, Show, LeaveAlternateScreen);
    // From the background the system would stop the process for it.
    if in_foreground() {
        // What was typed unseen is not meant for the shell.
        let _ = tcsetattr(&err, OptionalActions::Flush, &before);
    }
}

/// Lets a panic of any thread be read: the message comes after the terminal has been given back.
fn restore_on_panic() {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            leave();
            previous(info);
        }));
    });
}

/// Collects a frame and writes it in one piece.
#[derive(Default)]
struct FrameWriter(Vec<u8>);

impl Write for FrameWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut err = stderr().lock();
        let frame = std::mem::take(&mut self.0);
        if saved().is_some() { err.write_all(&frame) } else { Ok(()) }
    }
}

type FrameTerminal = Terminal<CrosstermBackend<FrameWriter>>;

/// The alternate screen, given back on drop.
pub(crate) struct Screen {
    size: (u16, u16),
    terminal: FrameTerminal,
}

impl Screen {
    /// Takes over the terminal at standard error.
    ///
    /// # Errors
    /// When it is no terminal.
    pub(crate) fn open() -> io::Result<Self> {
        restore_on_panic();
        let size = stderr_size();
        let terminal = terminal_of(size)?;
        enter().inspect_err(|_| leave())?;
        Ok(Self { size, terminal })
    }

    /// Draws a frame at the size that the terminal has now. A terminal that fails is given back.
    pub(crate) fn draw(&mut self, render: impl FnOnce(&mut Frame)) {
        if self.try_draw(render).is_err() {
            leave();
        }
    }

    fn try_draw(&mut self, render: impl FnOnce(&mut Frame)) -> io::Result<()> {
        let size = stderr_size();
        if size != self.size {
            // A fixed viewport, replaced when the size changes: asking the terminal for its cursor or size would read
            // its answers from standard input.
            self.terminal = terminal_of(size)?;
            self.size = size;
            queue!(self.terminal.backend_mut(), Clear(ClearType::All))?;
        }
        self.terminal.draw(render)?;
        Ok(())
    }
}

fn terminal_of((columns, rows): (u16, u16)) -> io::Result<FrameTerminal> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, rows));
    Terminal::with_options(CrosstermBackend::new(FrameWriter::default()), TerminalOptions { viewport })
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}
