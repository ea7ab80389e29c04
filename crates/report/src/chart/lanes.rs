//! Events in lanes below the data.

use super::font::fitted;
use super::frame::{Frame, GAP};
use super::model::{Align, Band, Chart, Lane, Look};
use super::scene::{Paint, Shape, Text};

/// Height of a lane, in sizes of the writing.
const LANE: f64 = 1.15;
/// Height of an event within it.
const EVENT: f64 = 0.7;
/// Narrowest event, in pixels.
const EVENT_WIDTH_MIN: f64 = 2.0;
/// Space at the left edge of the image, in pixels.
const EDGE: f64 = 4.0;

/// Height of all lanes.
pub(super) fn height(chart: &Chart, look: &Look) -> f64 {
    chart.lanes.len() as f64 * look.font_size * LANE
}

/// Draws the lanes from `top` on, along the x axis of the frame.
pub(super) fn draw(chart: &Chart, look: &Look, frame: &Frame<'_>, top: f64, shapes: &mut Vec<Shape>) {
    let size = look.font_size;
    for (at, Lane { name, colour, events }) in chart.lanes.iter().enumerate() {
        let middle = top + (at as f64 + 0.5) * size * LANE;
        let (from, to) = (frame.data.left, frame.data.right);
        let strip = |left: f64, right: f64, paint, opacity, hint: &str| Shape::Box {
            at: (left, middle - size * EVENT / 2.0),
            size: (right - left, size * EVENT),
            paint,
            opacity,
            hint: hint.to_owned(),
        };
        shapes.push(strip(from, to, Paint::Muted, 0.1, ""));
        let small = size * 0.85;
        shapes.push(Shape::Text(Text {
            at: (from - GAP, middle + small * 0.35),
            align: Align::End,
            degrees: 0.0,
            size: small,
            bold: false,
            paint: Paint::Muted,
            halo: false,
            text: fitted(name, small, false, from - GAP - EDGE),
        }));
        for Band { from: begin, to: end, label } in events {
            let (Some(left), Some(right)) = (frame.x(*begin), frame.x(*end)) else { continue };
            // The last one keeps its width within the data.
            let left = left.min(to - EVENT_WIDTH_MIN);
            let right = right.max(left + EVENT_WIDTH_MIN);
            shapes.push(strip(left, right, Paint::Series(*colour), 1.0, label));
        }
    }
}
