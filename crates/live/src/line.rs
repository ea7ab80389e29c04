//! One line on the terminal, written over and over in place.

use std::io::Write;

use statistics::Event;

use crate::View;
use crate::text;
use crate::throttle::{Clock, Throttle};

/// At most four drawings a second: more cannot be read.
const INTERVAL_NS: u64 = 250_000_000;
/// To the first column, then clear to the end of the line.
const ERASE: &str = "\r\x1b[K";

/// The progress line of a terminal.
pub(crate) struct LineView<W: Write> {
    out: W,
    /// Columns of the terminal as it is now.
    width: Box<dyn FnMut() -> usize>,
    clock: Clock,
    throttle: Throttle,
    drawn: bool,
    closed: bool,
}

impl<W: Write> LineView<W> {
    /// A line on `out`, which is a terminal of `width` columns.
    pub(crate) fn new(out: W, width: Box<dyn FnMut() -> usize>, clock: Clock) -> Self {
        Self { out, width, clock, throttle: Throttle::new(INTERVAL_NS), drawn: false, closed: false }
    }

    /// With so many nanoseconds between two drawings.
    pub(crate) fn every(mut self, interval_ns: Option<u64>) -> Self {
        self.throttle = Throttle::new(interval_ns.unwrap_or(INTERVAL_NS));
        self
    }

    fn draw(&mut self, line: impl FnOnce(usize) -> String) {
        if !self.throttle.pass((self.clock)()) {
            return;
        }
        // The last column stays free: a cursor beyond it would wrap on some terminals.
        let width = (self.width)().saturating_sub(1);
        self.write(&format!("{ERASE}{}", line(width)));
        self.drawn = true;
    }

    fn erase(&mut self) {
        if self.drawn {
            self.drawn = false;
            self.write(ERASE);
        }
    }

    fn write(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        // A terminal that went away must not end the run.
        self.closed |= written.is_err();
    }
}

impl<W: Write> View for LineView<W> {
    fn event(&mut self, event: &Event<'_>) {
        if self.closed {
            return;
        }
        match event {
            Event::Preparing(what, fraction) => {
                self.draw(|width| text::cut(&text::preparing(what, *fraction), width));
            }
            Event::Running(snapshot) => self.draw(|width| text::progress_line(snapshot, width)),
            Event::Finished(..) => self.erase(),
        }
    }

    fn finish(&mut self) {
        self.erase();
        self.closed = true;
    }
}

impl<W: Write> Drop for LineView<W> {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FullDisk, HandClock, Sink, randread, randread_samples};

    fn view(sink: &Sink, clock: &HandClock, width: usize) -> LineView<Sink> {
        LineView::new(sink.clone(), Box::new(move || width), clock.clock())
    }

    #[test]
    fn rewritten_in_place_at_most_every_quarter_second_and_erased() {
        let (sink, clock) = (Sink::default(), HandClock::default());
        let mut view = view(&sink, &clock, 41);
        view.event(&Event::Preparing("laying out /x", 0.45));
        assert_eq!(sink.take(), "\r\x1b[Klaying out /x  45 %");
        clock.set_ms(249);
        view.event(&Event::Running(&randread()));
        assert_eq!(sink.take(), "");
        clock.set_ms(250);
        view.event(&Event::Running(&randread()));
        assert_eq!(sink.take(), "\r\x1b[Krandread  12.0s/30s  412k/s  err 0");
        view.event(&Event::Finished("randread", &randread_samples()));
        assert_eq!(sink.take(), "\r\x1b[K");
        view.finish();
        assert_eq!(sink.take(), "");
    }

    #[test]
    fn nothing_is_drawn_after_the_end() {
        let (sink, clock) = (Sink::default(), HandClock::default());
        let mut view = view(&sink, &clock, 80);
        view.event(&Event::Running(&randread()));
        view.finish();
        assert!(sink.take().ends_with("err 0\r\x1b[K"));
        clock.set_ms(1_000);
        view.event(&Event::Running(&randread()));
        drop(view);
        assert_eq!(sink.take(), "");
    }

    #[test]
    fn a_dropped_view_leaves_a_clean_line() {
        let (sink, clock) = (Sink::default(), HandClock::default());
        let mut view = view(&sink, &clock, 80);
        view.event(&Event::Running(&randread()));
        drop(view);
        assert!(sink.take().ends_with("\r\x1b[K"));
    }

    #[test]
    fn a_terminal_that_went_away_is_left_alone() {
        let clock = HandClock::default();
        let mut view = LineView::new(FullDisk, Box::new(|| 80), clock.clock());
        view.event(&Event::Running(&randread()));
        assert!(view.closed);
    }
}
