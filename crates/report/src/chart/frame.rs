//! The place of the data within the image, its axes and its grid.

use super::font::{fitted, width};
use super::model::{Align, Chart, Look, Point, Scale, Side, Style};
use super::scale::{Range, Tick};
use super::scene::{Paint, Shape, Stroke, Text};

/// Space between an axis and its labels.
pub(super) const GAP: f64 = 6.0;
/// Length of the tick at a name.
const TICK: f64 = 4.0;
/// Widest label of a name on the x axis that is not cut, in sizes of the writing.
const NAME_SIZES_MAX: f64 = 14.0;

/// A part of the image: left, top, right, bottom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }
}

/// The axes with their places.
pub(super) struct Frame<'a> {
    chart: &'a Chart,
    look: &'a Look,
    pub(super) data: Area,
    x: Range,
    left: Range,
    right: Option<Range>,
}

/// Values that the axis of a point reaches: its own, and the ends of its interval.
fn reach(point: &Point) -> impl Iterator<Item = f64> {
    std::iter::once(point.y).chain(point.interval.into_iter().flat_map(|(low, high)| [low, high]))
}

/// Values of a side, and 0 where bars or areas stand on it.
fn values(chart: &Chart, side: Side) -> impl Iterator<Item = f64> + '_ {
    chart.series.iter().filter(move |series| series.side == side).flat_map(|series| {
        let grounded = matches!(series.style, Style::Bars | Style::Stacked | Style::Steps { filled: true });
        series.points.iter().flat_map(reach).chain(grounded.then_some(0.0))
    })
}

/// Title beside an axis, with the unit where the ticks do not say it.
fn titled(title: &str, range: &Range) -> String {
    if range.unit.is_empty() { title.to_owned() } else { format!("{title} ({})", range.unit) }
}

impl<'a> Frame<'a> {
    /// Makes the axes within `room`.
    pub(super) fn new(chart: &'a Chart, look: &'a Look, room: Area) -> Self {
        let size = look.font_size;
        let count = ((room.height() / (size * 4.0)) as usize).clamp(2, 8);
        let left = Range::new(&chart.y, values(chart, Side::Left), count);
        let right = chart.y_right.as_ref().map(|axis| Range::new(axis, values(chart, Side::Right), count));
        let bands = chart.bands.iter().flat_map(|band| [band.from, band.to]);
        let points = chart.series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
        let x_count = ((room.width() / (size * 7.0)) as usize).clamp(2, 12);
        let x = Range::new(&chart.x, points.chain(bands), x_count);
        let side = |range: &Range, title: &str| {
            let labels = range.ticks.iter().map(|tick| width(&tick.label, size, false)).fold(0.0, f64::max);
            labels + GAP + if titled(title, range).is_empty() { 0.0 } else { size * 1.7 }
        };
        let mut data = room;
        data.left += side(&left, &chart.y.title);
        data.right -= match (&right, &chart.y_right) {
            (Some(range), Some(axis)) => side(range, &axis.title),
            // The last label of the x axis may stand out by half of its width.
            _ => size * 1.5,
        };
        data.bottom -= if titled(&chart.x.title, &x).is_empty() { 0.0 } else { size * 1.6 };
        // However little room there is: the axes keep their order.
        data.right = data.right.max(data.left + 1.0);
        let mut frame = Self { chart, look, data, x, left, right };
        frame.data.bottom = (frame.data.bottom - frame.x_labels_height()).max(frame.data.top + 1.0);
        frame
    }

    /// Where an x lies.
    pub(super) fn x(&self, value: f64) -> Option<f64> {
        self.x.share(value).map(|share| self.data.left + share * self.data.width())
    }

    fn range(&self, side: Side) -> &Range {
        match (side, &self.right) {
            (Side::Right, Some(range)) => range,
            _ => &self.left,
        }
    }

    /// Where a y of this side lies.
    pub(super) fn y(&self, side: Side, value: f64) -> Option<f64> {
        self.range(side).share(value).map(|share| self.data.bottom - share * self.data.height())
    }

    /// Where bars and areas of this side stand.
    pub(super) fn ground(&self, side: Side) -> f64 {
        self.y(side, self.range(side).ground()).unwrap_or(self.data.bottom)
    }

    /// The lines to read values by.
    pub(super) fn grid(&self, shapes: &mut Vec<Shape>) {
        let data = self.data;
        let stroke = Stroke::new(Paint::Grid, 1.0);
        let mut line = |from, to| shapes.push(Shape::Line { points: vec![from, to], stroke });
        for y in self.left.ticks.iter().filter_map(|tick| self.y(Side::Left, tick.value)) {
            line((data.left, y), (data.right, y));
        }
        if !matches!(self.chart.x.scale, Scale::Names(_)) {
            for x in self.x.ticks.iter().filter_map(|tick| self.x(tick.value)) {
                line((x, data.top), (x, data.bottom));
            }
        }
    }

    /// Axes, their labels and titles.
    pub(super) fn axes(&self, shapes: &mut Vec<Shape>) {
        let (data, look) = (self.data, self.look);
        let stroke = Stroke::new(Paint::Muted, 1.0);
        let corners = [
            (1, (data.left, data.bottom), (data.right, data.bottom)),
            (2, (data.left, data.top), (data.left, data.bottom)),
            (4, (data.left, data.top), (data.right, data.top)),
            (8, (data.right, data.top), (data.right, data.bottom)),
        ];
        for (_, from, to) in corners.into_iter().filter(|(bit, ..)| look.border & bit != 0) {
            shapes.push(Shape::Line { points: vec![from, to], stroke });
        }
        self.x_labels(shapes);
        self.y_labels(&self.left, Side::Left, shapes);
        let (middle, size) = (f64::midpoint(data.top, data.bottom), look.font_size);
        let mut title = |text: String, at, degrees, room| {
            if !text.is_empty() {
                shapes.push(Shape::Text(Text {
                    at,
                    align: Align::Middle,
                    degrees,
                    size,
                    bold: false,
                    paint: Paint::Ink,
                    halo: false,
                    text: fitted(&text, size, false, room),
                }));
            }
        };
        let out = |range: &Range| {
            range.ticks.iter().map(|tick| width(&tick.label, size, false)).fold(0.0, f64::max)
                + GAP
                + size * 0.7
        };
        let room = data.height() + size * 4.0;
        title(titled(&self.chart.y.title, &self.left), (data.left - out(&self.left), middle), -90.0, room);
        if let (Some(range), Some(axis)) = (&self.right, &self.chart.y_right) {
            title(titled(&axis.title, range), (data.right + out(range), middle), 90.0, room);
        }
        let below = data.bottom + self.x_labels_height() + size * 1.25;
        let centre = f64::midpoint(data.left, data.right);
        title(titled(&self.chart.x.title, &self.x), (centre, below), 0.0, data.width());
        if let Some(range) = &self.right {
            self.y_labels(range, Side::Right, shapes);
        }
    }

    fn y_labels(&self, range: &Range, side: Side, shapes: &mut Vec<Shape>) {
        let size = self.look.font_size;
        let mut last = f64::INFINITY;
        for tick in &range.ticks {
            let Some(y) = self.y(side, tick.value).filter(|y| last - y >= size * 1.1) else { continue };
            last = y;
            let (x, align) = match side {
                Side::Left => (self.data.left - GAP, Align::End),
                Side::Right => (self.data.right + GAP, Align::Start),
            };
            shapes.push(self.label((x, y + size * 0.35), align, 0.0, tick.label.clone()));
        }
    }

    fn label(&self, at: (f64, f64), align: Align, degrees: f64, text: String) -> Shape {
        let size = self.look.font_size;
        Shape::Text(Text { at, align, degrees, size, bold: false, paint: Paint::Muted, halo: false, text })
    }

    /// The names along the x axis as they are written.
    fn x_label(&self, tick: &Tick) -> String {
        let size = self.look.font_size;
        let room = match self.chart.x.scale {
            // Turned names may be longer, but leave most of the image to the data.
            Scale::Names(_) if self.look.x_label_degrees != 0.0 => self.look.height * 0.35,
            Scale::Names(_) => size * NAME_SIZES_MAX,
            _ => f64::INFINITY,
        };
        fitted(&tick.label, size, false, room)
    }

    fn turn(&self) -> f64 {
        if matches!(self.chart.x.scale, Scale::Names(_)) { self.look.x_label_degrees } else { 0.0 }
    }

    fn x_labels_height(&self) -> f64 {
        let size = self.look.font_size;
        let turn = self.turn().to_radians();
        let widest = self.x.ticks.iter().map(|tick| width(&self.x_label(tick), size, false));
        let longest = if turn == 0.0 { 0.0 } else { widest.fold(0.0, f64::max) };
        GAP + longest * turn.sin().abs() + size * turn.cos().abs()
    }

    fn x_labels(&self, shapes: &mut Vec<Shape>) {
        let (size, turn) = (self.look.font_size, self.turn());
        let align = match turn {
            _ if turn > 0.0 => Align::End,
            _ if turn < 0.0 => Align::Start,
            _ => Align::Middle,
        };
        let is_names = matches!(self.chart.x.scale, Scale::Names(_));
        let stroke = Stroke::new(Paint::Muted, 1.0);
        let mut free = f64::NEG_INFINITY;
        for tick in &self.x.ticks {
            let Some(x) = self.x(tick.value) else { continue };
            let text = self.x_label(tick);
            let half = if turn == 0.0 { width(&text, size, false) / 2.0 } else { size * 0.6 };
            if x - half < free {
                continue;
            }
            free = x + half + if turn == 0.0 { size * 0.6 } else { 0.0 };
            if is_names {
                let points = vec![(x, self.data.bottom), (x, self.data.bottom + TICK)];
                shapes.push(Shape::Line { points, stroke });
            }
            let down = GAP + size * (0.8 * turn.to_radians().cos() + 0.2).max(0.4);
            let aside = if turn == 0.0 { 0.0 } else { size * 0.3 * turn.to_radians().sin() };
            shapes.push(self.label((x + aside, self.data.bottom + down), align, -turn, text));
        }
    }
}
