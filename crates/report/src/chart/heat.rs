//! A heat map: a matrix in colours, with the numbers in its cells where there is room.

use super::font::{fitted, width};
use super::frame::Area;
use super::model::{Align, Chart, Heat, Look};
use super::scale::written;
use super::scene::{Paint, RAMP_LEN, Shape, Stroke, Text};

/// Most rows and columns whose cells have numbers.
const NUMBERED_MAX: usize = 12;
/// Width of the bar that says what the colours mean, and of the space before it, in sizes of the writing.
const BAR_SIZES: f64 = 1.2;
const BAR_GAP_SIZES: f64 = 1.5;
/// Widest name of a row, in sizes of the writing.
const NAME_SIZES_MAX: f64 = 8.0;

/// Everything between heading and edges.
pub(super) fn draw(chart: &Chart, heat: &Heat, look: &Look, room: Area, shapes: &mut Vec<Shape>) {
    let mut map = Map { heat, look, shapes };
    map.draw(chart, room);
}

struct Map<'a> {
    heat: &'a Heat,
    look: &'a Look,
    shapes: &'a mut Vec<Shape>,
}

impl Map<'_> {
    fn write(&mut self, at: (f64, f64), align: Align, paint: Paint, text: String) {
        let size = self.look.font_size;
        self.shapes.push(Shape::Text(Text {
            at,
            align,
            degrees: 0.0,
            size,
            bold: false,
            paint,
            halo: false,
            text,
        }));
    }

    fn level(&self, value: f64) -> usize {
        let scaled = |value: f64| if self.heat.is_log { value.ln() } else { value };
        let (low, high) = (scaled(self.heat.range.0), scaled(self.heat.range.1));
        let value = scaled(value);
        let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
        (share * (RAMP_LEN - 1) as f64).round() as usize
    }

    fn draw(&mut self, chart: &Chart, room: Area) {
        let size = self.look.font_size;
        let (low, high) = self.heat.range;
        let ends = [low, high].map(|value| written(value, self.heat.unit));
        let scale = ends.iter().map(|text| width(text, size, false)).fold(0.0, f64::max);
        let names = self.heat.rows.iter().map(|name| width(name, size, false)).fold(0.0, f64::max);
        let names = names.min(size * NAME_SIZES_MAX);
        let data = Area {
            left: room.left + names + size * 2.2,
            top: room.top + size * 2.6,
            right: room.right - scale - size * (BAR_SIZES + BAR_GAP_SIZES + 0.5),
            bottom: room.bottom,
        };
        let data =
            Area { right: data.right.max(data.left + 1.0), bottom: data.bottom.max(data.top + 1.0), ..data };
        self.cells(data);
        self.names(chart, data, room, names);
        self.bar(data, &ends);
    }

    fn cells(&mut self, data: Area) {
        let heat = self.heat;
        let (rows, columns) = (heat.rows.len().max(1), heat.columns.len().max(1));
        let (wide, high) = (data.width() / columns as f64, data.height() / rows as f64);
        let gap = (wide.min(high) * 0.04).min(2.0);
        let is_numbered = rows <= NUMBERED_MAX && columns <= NUMBERED_MAX;
        for (row, values) in heat.values.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let at = (data.left + column as f64 * wide, data.top + row as f64 * high);
                let Some(value) = value.filter(|value| value.is_finite()) else { continue };
                let text = written(value, heat.unit);
                let level = self.level(value);
                let names = heat.rows.get(row).zip(heat.columns.get(column));
                let hint = names.map_or_else(String::new, |(from, to)| format!("{from} → {to}: {text}"));
                self.shapes.push(Shape::Box {
                    at,
                    size: (wide - gap, high - gap),
                    paint: Paint::Heat(heat.ramp, level),
                    opacity: 1.0,
                    hint,
                });
                let size = self.look.font_size;
                if is_numbered && width(&text, size, false) + 4.0 <= wide && size * 1.2 <= high {
                    let middle = (at.0 + (wide - gap) / 2.0, at.1 + (high - gap) / 2.0 + size * 0.35);
                    self.write(middle, Align::Middle, Paint::OnHeat(heat.ramp, level), text);
                }
            }
        }
        // The palest level is nearly paper: an outline shows where the matrix ends.
        let (left, top, right, bottom) = (data.left, data.top, data.right - gap, data.bottom - gap);
        let points = vec![(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.shapes.push(Shape::Line { points, stroke: Stroke::new(Paint::Muted, 1.0) });
    }

    /// Names of rows and columns, as many as there is room for, and what they are.
    fn names(&mut self, chart: &Chart, data: Area, room: Area, names: f64) {
        let size = self.look.font_size;
        let heat = self.heat;
        let (rows, columns) = (heat.rows.len().max(1) as f64, heat.columns.len().max(1) as f64);
        let (wide, high) = (data.width() / columns, data.height() / rows);
        let widest = heat.columns.iter().map(|name| width(name, size, false)).fold(1.0, f64::max);
        let every = ((widest + size * 0.5) / wide).ceil().clamp(1.0, columns) as usize;
        for (at, name) in heat.columns.iter().enumerate().step_by(every) {
            let x = data.left + (at as f64 + 0.5) * wide;
            let text = fitted(name, size, false, wide * every as f64);
            self.write((x, data.top - size * 0.5), Align::Middle, Paint::Muted, text);
        }
        let every = (size * 1.2 / high).ceil().clamp(1.0, rows) as usize;
        for (at, name) in heat.rows.iter().enumerate().step_by(every) {
            let y = data.top + (at as f64 + 0.5) * high + size * 0.35;
            let text = fitted(name, size, false, names.max(1.0));
            self.write((data.left - size * 0.5, y), Align::End, Paint::Muted, text);
        }
        let middle = (f64::midpoint(data.left, data.right), room.top + size * 0.8);
        self.write(middle, Align::Middle, Paint::Ink, chart.x.title.clone());
        let at = (room.left + size, f64::midpoint(data.top, data.bottom));
        self.shapes.push(Shape::Text(Text {
            at,
            align: Align::Middle,
            degrees: -90.0,
            size,
            bold: false,
            paint: Paint::Ink,
            halo: false,
            text: chart.y.title.clone(),
        }));
    }

    /// Draws the legend of the colours.
    fn bar(&mut self, data: Area, [low, high]: &[String; 2]) {
        let size = self.look.font_size;
        let left = data.right + size * BAR_GAP_SIZES;
        let step = data.height() / RAMP_LEN as f64;
        for level in 0..RAMP_LEN {
            self.shapes.push(Shape::Box {
                at: (left, data.bottom - (level + 1) as f64 * step),
                size: (size * BAR_SIZES, step),
                paint: Paint::Heat(self.heat.ramp, level),
                opacity: 1.0,
                hint: String::new(),
            });
        }
        let right = left + size * BAR_SIZES;
        let points = vec![
            (left, data.top),
            (right, data.top),
            (right, data.bottom),
            (left, data.bottom),
            (left, data.top),
        ];
        self.shapes.push(Shape::Line { points, stroke: Stroke::new(Paint::Muted, 1.0) });
        let x = right + size * 0.4;
        self.write((x, data.top + size * 0.9), Align::Start, Paint::Muted, high.clone());
        self.write((x, data.bottom - size * 0.2), Align::Start, Paint::Muted, low.clone());
        let title = fitted(&self.heat.title, size, false, self.look.width - left);
        self.write((left, data.top - size * 0.5), Align::Start, Paint::Ink, title);
    }
}
