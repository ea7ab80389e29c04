//! The data themselves.

use super::font::width;
use super::frame::Frame;
use super::model::{Align, Band, Chart, Dash, Look, Mark, Point, Series, Side, Style};
use super::scale::written;
use super::scene::{Paint, Shape, Stroke, Text};

/// Share of a name's place that its bars fill.
const BARS_SHARE: f64 = 0.7;
/// Widest bar in pixels.
const BAR_WIDTH_MAX: f64 = 90.0;
/// Half of the width of the ends of an error bar, in pixels.
const ERROR_CAP: f64 = 4.0;
/// Widest bar in parts, in pixels.
const STACK_WIDTH_MAX: f64 = 90.0;

/// Places that writing has taken.
#[derive(Default)]
pub(super) struct Taken(Vec<(f64, f64, f64, f64)>);

impl Taken {
    /// Takes a place unless something is there.
    fn take(&mut self, place: (f64, f64, f64, f64)) -> bool {
        let meets = |other: &(f64, f64, f64, f64)| {
            place.0 < other.2 && other.0 < place.2 && place.1 < other.3 && other.1 < place.3
        };
        let is_free = !self.0.iter().any(meets);
        if is_free {
            self.0.push(place);
        }
        is_free
    }
}

/// Draws everything within a frame.
pub(super) struct Plot<'a> {
    pub(super) chart: &'a Chart,
    pub(super) look: &'a Look,
    pub(super) frame: &'a Frame<'a>,
    pub(super) shapes: &'a mut Vec<Shape>,
    pub(super) taken: Taken,
}

impl Plot<'_> {
    /// Shaded ranges, below everything else.
    pub(super) fn bands(&mut self) {
        for Band { from, to, label } in &self.chart.bands {
            let (Some(left), Some(right)) = (self.frame.x(*from), self.frame.x(*to)) else { continue };
            let data = self.frame.data;
            let (at, size) = ((left, data.top), (right - left, data.height()));
            self.shapes.push(Shape::Box {
                at,
                size,
                paint: Paint::Muted,
                opacity: 0.14,
                hint: label.clone(),
            });
            let size = self.look.font_size * 0.9;
            if width(label, size, false) + 8.0 <= right - left {
                let at = (left + 4.0, data.top + size * 1.1);
                self.write(at, Align::Start, size, Paint::Muted, label.clone());
            }
        }
    }

    fn write(&mut self, at: (f64, f64), align: Align, size: f64, paint: Paint, text: String) {
        let text = Text { at, align, degrees: 0.0, size, bold: false, paint, halo: true, text };
        self.shapes.push(Shape::Text(text));
    }

    /// All series: areas and bars first, lines over them, writing on top.
    pub(super) fn series(&mut self) {
        let chart = self.chart;
        self.bars();
        self.stacks();
        // The first series comes last, so that nothing hides it; but a line with gaps hides nothing, and goes over those without.
        let lines = || {
            chart.series.iter().rev().filter(|series| !matches!(series.style, Style::Bars | Style::Stacked))
        };
        let is_solid = |series: &&Series| series.dash == Dash::Solid;
        for series in lines().filter(is_solid).chain(lines().filter(|series| !is_solid(series))) {
            match series.style {
                Style::Steps { filled } => self.steps(series, filled),
                _ => self.line(series),
            }
        }
        self.marks();
        self.take_dots();
        for series in chart.series.iter().filter(|series| series.style == Style::Points) {
            self.point_labels(series);
        }
    }

    fn place(&self, series: &Series, point: &Point) -> Option<(f64, f64)> {
        Some((self.frame.x(point.x)?, self.frame.y(series.side, point.y)?))
    }

    /// Text of the tooltip at a point.
    fn hint(&self, series: &Series, point: &Point) -> String {
        let axis = match (series.side, &self.chart.y_right) {
            (Side::Right, Some(axis)) => axis,
            _ => &self.chart.y,
        };
        let label = point.label.as_ref().map_or_else(String::new, |label| format!("{label}, "));
        let name = if series.name.is_empty() { String::new() } else { format!("{}: ", series.name) };
        format!("{name}{label}{}", written(point.y, axis.unit))
    }

    fn stroke(&self, series: &Series) -> Stroke {
        let mut stroke = Stroke::new(Paint::Series(series.colour), self.look.line_width);
        stroke.dash = series.dash;
        stroke
    }

    /// Stretches of points without a gap; pale ones apart, with the point that joins them in both.
    fn stretches(&self, series: &Series) -> Vec<(bool, Vec<(f64, f64)>)> {
        let mut stretches: Vec<(bool, Vec<(f64, f64)>)> = Vec::new();
        let mut broken = true;
        for point in &series.points {
            let Some(place) = self.place(series, point) else {
                broken = true;
                continue;
            };
            let is_pale = series.pale_until.is_some_and(|until| point.x < until);
            match stretches.last_mut() {
                Some((pale, points)) if !broken && *pale == is_pale => points.push(place),
                Some((_, points)) if !broken => {
                    points.push(place);
                    stretches.push((is_pale, vec![place]));
                }
                _ => stretches.push((is_pale, vec![place])),
            }
            broken = false;
        }
        stretches
    }

    fn line(&mut self, series: &Series) {
        let has_dots = series.style == Style::Points;
        let gap = if has_dots && self.look.point_gap > 0.0 {
            self.look.point_radius + self.look.point_gap
        } else {
            0.0
        };
        for (is_pale, points) in self.stretches(series) {
            let mut stroke = self.stroke(series);
            stroke.opacity = if is_pale { 0.35 } else { 1.0 };
            if points.len() == 1 && !has_dots {
                let radius = self.look.line_width;
                self.shapes.push(Shape::Dot {
                    at: points[0],
                    radius,
                    paint: stroke.paint,
                    hint: String::new(),
                });
            } else if gap == 0.0 {
                self.shapes.push(Shape::Line { points, stroke });
            } else {
                let parts = points.windows(2).filter_map(|pair| shortened(pair[0], pair[1], gap));
                self.shapes.extend(parts.map(|points| Shape::Line { points, stroke }));
            }
        }
        if has_dots {
            let (paint, radius) = (Paint::Series(series.colour), self.look.point_radius);
            for point in &series.points {
                let Some(at) = self.place(series, point) else { continue };
                self.shapes.push(Shape::Dot { at, radius, paint, hint: self.hint(series, point) });
            }
        }
    }

    fn steps(&mut self, series: &Series, filled: bool) {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for point in &series.points {
            let Some((x, y)) = self.place(series, point) else { continue };
            if let Some(&(_, before)) = points.last() {
                points.push((x, before));
            }
            points.push((x, y));
        }
        let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) else { return };
        let mut stroke = self.stroke(series);
        if filled {
            let ground = self.frame.ground(series.side);
            let mut area = points.clone();
            area.extend([(last.0, ground), (first.0, ground)]);
            self.shapes.push(Shape::Area { points: area, paint: stroke.paint, opacity: 0.45 });
            stroke.width *= 0.6;
        }
        self.shapes.push(Shape::Line { points, stroke });
    }

    fn bars(&mut self) {
        let chart = self.chart;
        let barred: Vec<_> = chart.series.iter().filter(|series| series.style == Style::Bars).collect();
        let (Some(first), Some(second)) =
            (self.frame.x(0.0), self.frame.x(1.0).or(Some(self.frame.data.right)))
        else {
            return;
        };
        let count = barred.len().max(1) as f64;
        let slot = if self.frame.x(1.0).is_some() { second - first } else { self.frame.data.width() };
        let bar = (slot * BARS_SHARE / count).min(BAR_WIDTH_MAX);
        for (number, series) in barred.iter().enumerate() {
            let ground = self.frame.ground(series.side);
            for point in &series.points {
                let Some((x, y)) = self.place(series, point) else { continue };
                let left = x + (number as f64 - count / 2.0) * bar;
                // Neighbours are told apart by a little paper.
                let thin = bar - (bar * 0.06).min(2.0);
                self.shapes.push(Shape::Box {
                    at: (left, y.min(ground)),
                    size: (thin, (ground - y).abs()),
                    paint: Paint::Series(point.colour.unwrap_or(series.colour)),
                    opacity: 1.0,
                    hint: self.hint(series, point),
                });
                let top = self.error_bar(series, point, left + thin / 2.0).unwrap_or(y);
                self.bar_label(point, left + thin / 2.0, y.min(top).min(ground));
            }
        }
    }

    /// The interval of a bar, at the middle of the bar; and where it ends above.
    fn error_bar(&mut self, series: &Series, point: &Point, x: f64) -> Option<f64> {
        let (low, high) = point.interval?;
        let (low, high) = (self.frame.y(series.side, low)?, self.frame.y(series.side, high)?);
        let stroke = Stroke::new(Paint::Ink, self.look.line_width * 0.75);
        for points in [
            vec![(x, low), (x, high)],
            vec![(x - ERROR_CAP, low), (x + ERROR_CAP, low)],
            vec![(x - ERROR_CAP, high), (x + ERROR_CAP, high)],
        ] {
            self.shapes.push(Shape::Line { points, stroke });
        }
        Some(high)
    }

    /// Bars in parts. The last part is drawn first, as high as the whole bar, and each part before it over the rest.
    fn stacks(&mut self) {
        let chart = self.chart;
        let stacked = chart.series.iter().filter(|series| series.style == Style::Stacked);
        let slot = match (self.frame.x(0.0), self.frame.x(1.0)) {
            (Some(first), Some(second)) => second - first,
            _ => self.frame.data.width(),
        };
        let bar = (slot * BARS_SHARE).min(STACK_WIDTH_MAX);
        for series in stacked.rev() {
            let ground = self.frame.ground(series.side);
            for point in &series.points {
                let Some((x, y)) = self.place(series, point) else { continue };
                let label = point.label.as_deref().unwrap_or_default();
                self.shapes.push(Shape::Box {
                    at: (x - bar / 2.0, y.min(ground)),
                    size: (bar, (ground - y).abs()),
                    paint: Paint::Series(series.colour),
                    opacity: 1.0,
                    hint: format!("{}: {label}", series.name),
                });
            }
        }
    }

    fn bar_label(&mut self, point: &Point, centre: f64, top: f64) {
        let Some(label) = &point.label else { return };
        let size = self.look.font_size * 0.9;
        let half = width(label, size, false) / 2.0;
        if self.taken.take((centre - half, top - size * 1.3, centre + half, top)) {
            self.write((centre, top - size * 0.35), Align::Middle, size, Paint::Ink, label.clone());
        }
    }

    /// Keeps writing away from dots.
    fn take_dots(&mut self) {
        let radius = self.look.point_radius;
        for series in self.chart.series.iter().filter(|series| series.style == Style::Points) {
            let places: Vec<_> = series.points.iter().filter_map(|point| self.place(series, point)).collect();
            for (x, y) in places {
                self.taken.take((x - radius, y - radius, x + radius, y + radius));
            }
        }
    }

    fn point_labels(&mut self, series: &Series) {
        for point in &series.points {
            if let (Some(label), Some(at)) = (&point.label, self.place(series, point)) {
                self.beside(at, label, Paint::Series(series.colour));
            }
        }
    }

    /// Writes at one of the sides of a place, where there is room within the data.
    fn beside(&mut self, (x, y): (f64, f64), text: &str, paint: Paint) -> bool {
        let size = self.look.font_size * 0.9;
        let (long, off) = (width(text, size, false), self.look.point_radius + 3.0);
        let (high, half) = (size * 1.2, size * 0.6);
        let places = [
            (x + off * 0.6, y + off * 0.4),
            (x - long / 2.0, y + off),
            (x - off * 0.6 - long, y - off * 0.4 - high),
            (x - long / 2.0, y - off - high),
            (x + off, y - half),
            (x - off - long, y - half),
        ];
        let data = self.frame.data;
        for (left, top) in places {
            let (right, bottom) = (left + long, top + high);
            let is_inside =
                left >= data.left && right <= data.right && top >= data.top && bottom <= data.bottom;
            if is_inside && self.taken.take((left, top, right, bottom)) {
                self.write((left, top + size * 0.95), Align::Start, size, paint, text.to_owned());
                return true;
            }
        }
        false
    }

    fn marks(&mut self) {
        for Mark { x, y, label } in &self.chart.marks {
            let (Some(x), Some(y)) = (self.frame.x(*x), self.frame.y(Side::Left, *y)) else { continue };
            let mut guide = Stroke::new(Paint::Ink, 1.0);
            guide.dash = Dash::Dashed;
            guide.opacity = 0.6;
            let points = vec![(x, y + self.look.point_radius + 4.0), (x, self.frame.data.bottom)];
            self.shapes.push(Shape::Line { points, stroke: guide });
            let radius = self.look.point_radius + 4.0;
            self.shapes.push(Shape::Ring { at: (x, y), radius, stroke: Stroke::new(Paint::Ink, 1.5) });
            self.taken.take((x - radius, y - radius, x + radius, y + radius));
            // At the foot of its guide, away from the data, on the side where there is room.
            let size = self.look.font_size;
            let data = self.frame.data;
            let long = width(label, size, false);
            let base = data.bottom - size * 0.6;
            let is_left = x + 6.0 + long > data.right;
            let (at, align, from) = if is_left {
                (x - 6.0, Align::End, x - 6.0 - long)
            } else {
                (x + 6.0, Align::Start, x + 6.0)
            };
            self.taken.take((from, base - size, from + long, base + size * 0.3));
            self.write((at, base), align, size, Paint::Ink, label.clone());
        }
    }
}

/// The line between two places without `gap` at each end; none when nothing is left.
fn shortened(from: (f64, f64), to: (f64, f64), gap: f64) -> Option<Vec<(f64, f64)>> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy);
    let share = gap / length;
    (length > 2.0 * gap)
        .then(|| vec![(from.0 + dx * share, from.1 + dy * share), (to.0 - dx * share, to.1 - dy * share)])
}
