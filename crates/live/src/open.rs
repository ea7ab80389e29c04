//! From what the user asked for to the views that do it.

use std::fmt;
use std::fs::File;
use std::io::{self, Stderr, Write, stderr, stdout};

use rustix::termios::isatty;
use statistics::Event;

use crate::full::FullView;
use crate::line::LineView;
use crate::mode::{CsvTarget, LiveMode};
use crate::plain::PlainView;
use crate::rows::RowsView;
use crate::throttle::monotonic_clock;
use crate::{View, terminal};

/// Why a live view cannot be had, or was given up: one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveError {
    message: String,
    cause: Option<io::ErrorKind>,
}

impl LiveError {
    pub(crate) fn new(message: String) -> Self {
        Self { message, cause: None }
    }

    /// Why something could not be written.
    pub(crate) fn unwritable(what: &str, cause: &io::Error) -> Self {
        Self { message: format!("{what}: {cause}"), cause: Some(cause.kind()) }
    }

    /// Error kind of the system, where it was the system that refused.
    #[must_use]
    pub fn cause(&self) -> Option<io::ErrorKind> {
        self.cause
    }
}

impl fmt::Display for LiveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&crate::text::printable(&self.message))
    }
}

impl std::error::Error for LiveError {}

/// Kind of drawing, given where standard error and the rows lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drawing {
    Nothing,
    Plain,
    Line,
    Full,
}

/// Facts of the surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Surroundings {
    /// Standard error is a terminal that can be drawn on.
    can_draw: bool,
    /// The terminal is ours to take over.
    in_foreground: bool,
    /// CSV rows are printed on a terminal.
    rows_on_terminal: bool,
}

/// Chooses; the text says what is shown instead of what was asked for.
fn choose(mode: LiveMode, place: Surroundings) -> Result<(Drawing, Option<&'static str>), LiveError> {
    let line = match () {
        // Rows that scroll over the terminal show the progress themselves.
        () if place.can_draw && place.rows_on_terminal => Drawing::Nothing,
        () if place.can_draw => Drawing::Line,
        () => Drawing::Plain,
    };
    match mode {
        LiveMode::None => Ok((Drawing::Nothing, None)),
        LiveMode::Auto | LiveMode::Line => Ok((line, None)),
        LiveMode::Full if place.can_draw && place.rows_on_terminal => Err(LiveError::new(
            "the full-screen view and CSV rows on standard output would share one terminal: write the rows to a file".to_owned(),
        )),
        LiveMode::Full if !place.can_draw => {
            Ok((line, Some("the full-screen view needs a terminal on standard error; showing plain lines")))
        }
        LiveMode::Full if !place.in_foreground => {
            Ok((line, Some("the full-screen view cannot be shown from the background; showing one line")))
        }
        LiveMode::Full => Ok((Drawing::Full, None)),
    }
}

/// How often progress is drawn; none: as the view does by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tempo {
    /// Nanoseconds between two drawings.
    pub draw_ns: Option<u64>,
    /// Nanoseconds between two lines that stay: plain lines are shown on a terminal, too.
    pub line_ns: Option<u64>,
}

/// Opens what `mode` asks for on standard error, and CSV rows on `csv`. A full screen that cannot be had is replaced
/// by lines, which is said on standard error.
///
/// # Errors
/// When the file of the rows cannot be made, or rows and full screen want the same terminal.
pub fn open(mode: LiveMode, csv: Option<&CsvTarget>, tempo: Tempo) -> Result<Box<dyn View>, LiveError> {
    let place = Surroundings {
        can_draw: terminal::stderr_can_draw(),
        in_foreground: terminal::in_foreground(),
        rows_on_terminal: csv == Some(&CsvTarget::Stdout) && isatty(stdout()),
    };
    let (drawing, notice) = choose(mode, place)?;
    let mut views: Vec<Box<dyn View>> = Vec::new();
    // Rows first: when their file cannot be made, the terminal has not been touched.
    if let Some(target) = csv {
        views.push(Box::new(open_rows(target)?));
    }
    if let Some(notice) = notice {
        // Without a standard error there is nobody to tell.
        let _ = writeln!(stderr(), "live: {notice}");
    }
    let lines_ns = tempo.line_ns.or(tempo.draw_ns);
    match drawing {
        Drawing::Nothing => {}
        Drawing::Line if tempo.line_ns.is_none() => views.push(Box::new(terminal_line(tempo.draw_ns))),
        Drawing::Plain | Drawing::Line => {
            views.push(Box::new(PlainView::new(stderr(), monotonic_clock(), lines_ns)));
        }
        Drawing::Full => views.push(Box::new(FullView::open()?)),
    }
    Ok(Box::new(Views(views)))
}

/// The progress line on standard error.
pub(crate) fn terminal_line(interval_ns: Option<u64>) -> LineView<Stderr> {
    let width = Box::new(|| usize::from(terminal::stderr_size().0));
    LineView::new(stderr(), width, monotonic_clock()).every(interval_ns)
}

fn open_rows(target: &CsvTarget) -> Result<RowsView, LiveError> {
    match target {
        CsvTarget::Stdout => RowsView::new(Box::new(stdout()), "standard output".to_owned()),
        CsvTarget::File(path) => {
            let name = path.display().to_string();
            let file = File::create(path).map_err(|error| {
                LiveError::unwritable(&format!("cannot write live CSV rows to {name}"), &error)
            })?;
            RowsView::new(Box::new(file), name)
        }
    }
}

/// Several views as one; no view at all is one that shows nothing.
struct Views(Vec<Box<dyn View>>);

impl View for Views {
    fn event(&mut self, event: &Event<'_>) {
        for view in &mut self.0 {
            view.event(event);
        }
    }

    fn finish(&mut self) {
        for view in &mut self.0 {
            view.finish();
        }
    }

    fn failure(&self) -> Option<&LiveError> {
        self.0.iter().find_map(|view| view.failure())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{randread, randread_samples};

    const TERMINAL: Surroundings =
        Surroundings { can_draw: true, in_foreground: true, rows_on_terminal: false };
    const LOG: Surroundings = Surroundings { can_draw: false, in_foreground: false, rows_on_terminal: false };

    #[test]
    fn a_terminal_gets_what_was_asked_for() {
        assert_eq!(choose(LiveMode::Auto, TERMINAL), Ok((Drawing::Line, None)));
        assert_eq!(choose(LiveMode::Line, TERMINAL), Ok((Drawing::Line, None)));
        assert_eq!(choose(LiveMode::Full, TERMINAL), Ok((Drawing::Full, None)));
        assert_eq!(choose(LiveMode::None, TERMINAL), Ok((Drawing::Nothing, None)));
    }

    #[test]
    fn a_log_gets_plain_lines() {
        assert_eq!(choose(LiveMode::Auto, LOG), Ok((Drawing::Plain, None)));
        assert_eq!(choose(LiveMode::Line, LOG), Ok((Drawing::Plain, None)));
        assert_eq!(choose(LiveMode::None, LOG), Ok((Drawing::Nothing, None)));
        let (drawing, notice) = choose(LiveMode::Full, LOG).unwrap();
        assert_eq!(drawing, Drawing::Plain);
        assert!(notice.unwrap().contains("needs a terminal on standard error"));
    }

    #[test]
    fn the_background_gets_one_line() {
        let (drawing, notice) =
            choose(LiveMode::Full, Surroundings { in_foreground: false, ..TERMINAL }).unwrap();
        assert_eq!(drawing, Drawing::Line);
        assert!(notice.unwrap().contains("from the background"));
    }

    #[test]
    fn rows_on_the_terminal_have_it_to_themselves() {
        let shared = Surroundings { rows_on_terminal: true, ..TERMINAL };
        assert_eq!(choose(LiveMode::Auto, shared), Ok((Drawing::Nothing, None)));
        assert_eq!(
            choose(LiveMode::Full, shared).unwrap_err().to_string(),
            "the full-screen view and CSV rows on standard output would share one terminal: write the rows to a file"
        );
    }

    #[test]
    fn rows_are_on_the_file_while_the_run_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live.csv");
        let mut view = open(LiveMode::None, Some(&CsvTarget::File(path.clone())), Tempo::default()).unwrap();
        view.event(&Event::Running(&randread()));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("\nrandread,12000000000,read,412000,"));
        view.event(&Event::Finished("randread", &randread_samples()));
        view.finish();
        assert_eq!(view.failure(), None);
    }

    #[test]
    fn a_file_that_cannot_be_made_is_one_line_before_the_run() {
        let path = std::path::PathBuf::from("/no such\ndirectory/live.csv");
        let error =
            open(LiveMode::None, Some(&CsvTarget::File(path)), Tempo::default()).err().unwrap().to_string();
        assert_eq!(
            error,
            "cannot write live CSV rows to /no such\\ndirectory/live.csv: No such file or directory (os error 2)"
        );
    }
}
