//! The full screen: state kept from events, drawn onto the alternate screen of the terminal.

mod charts;
mod dashboard;
mod history;
mod hosts;
mod screen;
mod workers;

use std::io::Stderr;

use statistics::Event;

use crate::line::LineView;
use crate::open::terminal_line;
use crate::throttle::{Clock, Throttle, monotonic_clock};
use crate::{LiveError, View};
use dashboard::Dashboard;
use screen::Screen;

/// At most ten drawings a second.
const INTERVAL_NS: u64 = 100_000_000;

/// Where the view draws.
enum Surface {
    Screen(Screen),
    /// The screen was given back because of a panic somewhere, whose message stands there now.
    Line(LineView<Stderr>),
    Closed,
}

/// The full-screen view.
pub(crate) struct FullView {
    dashboard: Dashboard,
    surface: Surface,
    clock: Clock,
    throttle: Throttle,
}

impl FullView {
    /// Takes over the terminal at standard error.
    ///
    /// # Errors
    /// When the terminal refuses.
    pub(crate) fn open() -> Result<Self, LiveError> {
        let screen = Screen::open()
            .map_err(|error| LiveError::new(format!("cannot take over the terminal: {error}")))?;
        let cpu_count = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            dashboard: Dashboard::new(cpu_count),
            surface: Surface::Screen(screen),
            clock: monotonic_clock(),
            throttle: Throttle::new(INTERVAL_NS),
        })
    }
}

impl View for FullView {
    fn event(&mut self, event: &Event<'_>) {
        if let Surface::Screen(_) = &self.surface
            && !screen::is_ours()
        {
            self.surface = Surface::Line(terminal_line(None));
        }
        match &mut self.surface {
            Surface::Closed => {}
            Surface::Line(line) => line.event(event),
            Surface::Screen(screen) => {
                self.dashboard.take(event);
                // The end of a phase is always drawn: nothing may follow it for a while.
                if self.throttle.pass((self.clock)()) || matches!(event, Event::Finished(..)) {
                    screen.draw(|frame| self.dashboard.draw(frame));
                }
            }
        }
    }

    fn finish(&mut self) {
        // Dropping gives the terminal back.
        self.surface = Surface::Closed;
    }
}
