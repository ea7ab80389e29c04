//! From a chart to shapes: heading, legend, axes and data, each in a place of its own.

use super::font::{fitted, width, wrapped};
use super::frame::{Area, Frame};
use super::model::{Align, Chart, Legend, Look, Series, Side, Style, Theme};
use super::plot::{Plot, Taken};
use super::scene::{Paint, Shape, Stroke, Text};
use super::{heat, lanes};

/// Space at the edges of the image.
const EDGE: f64 = 14.0;
/// Length of the sample beside a name in the legend.
const SAMPLE: f64 = 24.0;
/// Share of the image's width that a legend in a column takes at most.
const COLUMN_SHARE_MAX: f64 = 0.3;

/// A name in the legend.
struct Item<'a> {
    series: &'a Series,
    text: String,
    width: f64,
}

/// Everything of a chart, the first shape at the bottom.
pub(super) fn scene(chart: &Chart, look: &Look) -> Vec<Shape> {
    let mut shapes = Vec::new();
    if look.theme != Theme::Fixed(None) {
        let size = (look.width, look.height);
        shapes.push(Shape::Box {
            at: (0.0, 0.0),
            size,
            paint: Paint::Paper,
            opacity: 1.0,
            hint: String::new(),
        });
    }
    let mut room = Area { left: EDGE, top: EDGE, right: look.width - EDGE, bottom: look.height - EDGE };
    heading(chart, look, &mut room, &mut shapes);
    if let Some(map) = &chart.heat {
        heat::draw(chart, map, look, room, &mut shapes);
        return shapes;
    }
    legend(chart, look, &mut room, &mut shapes);
    // Half a label of the y axis stands above its top tick.
    room.top += look.font_size * 0.6;
    let lanes_top = room.bottom - lanes::height(chart, look);
    room.bottom = lanes_top;
    let frame = Frame::new(chart, look, room);
    frame.grid(&mut shapes);
    let has_data = chart.series.iter().any(|series| series.points.iter().any(|point| point.y.is_finite()));
    let mut plot = Plot { chart, look, frame: &frame, shapes: &mut shapes, taken: Taken::default() };
    plot.bands();
    plot.series();
    frame.axes(&mut shapes);
    lanes::draw(chart, look, &frame, lanes_top, &mut shapes);
    if !has_data {
        let at = (
            f64::midpoint(frame.data.left, frame.data.right),
            f64::midpoint(frame.data.top, frame.data.bottom),
        );
        let text = "nothing was measured".to_owned();
        shapes.push(writing(at, Align::Middle, look.font_size, Paint::Muted, text));
    }
    shapes
}

fn writing(at: (f64, f64), align: Align, size: f64, paint: Paint, text: String) -> Shape {
    Shape::Text(Text { at, align, degrees: 0.0, size, bold: false, paint, halo: false, text })
}

fn heading(chart: &Chart, look: &Look, room: &mut Area, shapes: &mut Vec<Shape>) {
    let (size, wide) = (look.font_size, room.width());
    if !chart.title.is_empty() {
        let large = size * 1.3;
        let text = fitted(&chart.title, large, true, wide);
        let mut title = writing((room.left, room.top + large * 0.8), Align::Start, large, Paint::Ink, text);
        if let Shape::Text(text) = &mut title {
            text.bold = true;
        }
        shapes.push(title);
        room.top += large * 1.35;
    }
    let small = size * 0.95;
    for (text, paint, lines) in [(&chart.note, Paint::Muted, 3), (&chart.warning, Paint::Warning, 2)] {
        for line in wrapped(text, small, wide, lines) {
            shapes.push(writing((room.left, room.top + small * 0.8), Align::Start, small, paint, line));
            room.top += small * 1.35;
        }
    }
    if !chart.title.is_empty() || !chart.note.is_empty() {
        room.top += size * 0.3;
    }
}

fn items<'a>(chart: &'a Chart, look: &Look, room: f64) -> Vec<Item<'a>> {
    let item = |series: &'a Series| {
        let side = match (series.side, &chart.y_right) {
            (Side::Right, Some(_)) => " (right)",
            _ => "",
        };
        let name = format!("{}{side}", series.name);
        let text = fitted(&name, look.font_size, false, room - SAMPLE - 6.0);
        let width = SAMPLE + 6.0 + width(&text, look.font_size, false);
        Item { series, text, width }
    };
    chart.series.iter().filter(|series| !series.name.is_empty()).map(item).collect()
}

fn legend(chart: &Chart, look: &Look, room: &mut Area, shapes: &mut Vec<Shape>) {
    let line = look.font_size * 1.5;
    let column = (look.width * COLUMN_SHARE_MAX).min(room.width());
    match look.legend {
        Legend::Off => {}
        Legend::Top(align) | Legend::Bottom(align) => {
            let rows = rows(items(chart, look, room.width()), room.width(), look.font_size * 1.4);
            let height = rows.len() as f64 * line;
            let is_top = matches!(look.legend, Legend::Top(_));
            let mut y = if is_top { room.top } else { room.bottom - height + look.font_size * 0.4 };
            for (width, row) in rows {
                let spare = room.width() - width;
                let mut x = room.left
                    + match align {
                        Align::Start => 0.0,
                        Align::Middle => spare / 2.0,
                        Align::End => spare,
                    };
                for item in row {
                    entry(&item, look, (x, y), shapes);
                    x += item.width + look.font_size * 1.4;
                }
                y += line;
            }
            if is_top {
                room.top += height + look.font_size * 0.2;
            } else {
                room.bottom -= height;
            }
        }
        Legend::Left | Legend::Right => {
            let items = items(chart, look, column);
            let wide = items.iter().map(|item| item.width).fold(0.0, f64::max);
            let x = if look.legend == Legend::Left { room.left } else { room.right - wide };
            let mut y = f64::midpoint(room.top, room.bottom) - items.len() as f64 * line / 2.0;
            for item in &items {
                entry(item, look, (x, y), shapes);
                y += line;
            }
            let taken = if items.is_empty() { 0.0 } else { wide + look.font_size };
            if look.legend == Legend::Left { room.left += taken } else { room.right -= taken }
        }
    }
}

/// The items in rows that fit, each with its width.
fn rows(items: Vec<Item<'_>>, room: f64, gap: f64) -> Vec<(f64, Vec<Item<'_>>)> {
    let mut rows: Vec<(f64, Vec<Item<'_>>)> = Vec::new();
    for item in items {
        match rows.last_mut() {
            Some((width, row)) if *width + gap + item.width <= room => {
                *width += gap + item.width;
                row.push(item);
            }
            _ => rows.push((item.width, vec![item])),
        }
    }
    rows
}

fn entry(item: &Item<'_>, look: &Look, (x, y): (f64, f64), shapes: &mut Vec<Shape>) {
    let (series, size) = (item.series, look.font_size);
    let (paint, middle) = (Paint::Series(series.colour), y + size * 0.65);
    match series.style {
        Style::Bars | Style::Stacked | Style::Steps { filled: true } => shapes.push(Shape::Box {
            at: (x + SAMPLE - size, middle - size * 0.45),
            size: (size, size * 0.9),
            paint,
            opacity: if matches!(series.style, Style::Steps { .. }) { 0.6 } else { 1.0 },
            hint: String::new(),
        }),
        _ => {
            let mut stroke = Stroke::new(paint, look.line_width);
            stroke.dash = series.dash;
            shapes.push(Shape::Line { points: vec![(x, middle), (x + SAMPLE, middle)], stroke });
            if series.style == Style::Points {
                let (at, radius) = ((x + SAMPLE / 2.0, middle), look.point_radius);
                shapes.push(Shape::Dot { at, radius, paint, hint: String::new() });
            }
        }
    }
    shapes.push(writing((x + SAMPLE + 6.0, y + size), Align::Start, size, Paint::Ink, item.text.clone()));
}
