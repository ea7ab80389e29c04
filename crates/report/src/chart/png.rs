//! Shapes as a PNG image, on light paper.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint as Ink, Path, PathBuilder, Pixmap, Rect, StrokeDash, Transform,
};

use super::font;
use super::model::{Align, Look, Theme};
use super::scene::{Paint, Shape, Stroke, Text};

struct Canvas<'a> {
    pixmap: Pixmap,
    look: &'a Look,
    /// From the units of the look to pixels.
    scale: Transform,
}

/// The image with `pixels` pixels to a unit of the look.
pub(super) fn image(shapes: &[Shape], look: &Look, pixels: f32) -> Result<Vec<u8>, String> {
    let side = |length: f64| (length * f64::from(pixels)).round() as u32;
    let (width, height) = (side(look.width), side(look.height));
    let pixmap = Pixmap::new(width, height)
        .ok_or_else(|| format!("an image of {width} x {height} pixels cannot be made"))?;
    let mut canvas = Canvas { pixmap, look, scale: Transform::from_scale(pixels, pixels) };
    shapes.iter().for_each(|shape| canvas.shape(shape));
    canvas.pixmap.encode_png().map_err(|error| format!("the image cannot be compressed: {error}"))
}

fn line_path(points: &[(f64, f64)], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (at, &(x, y)) in points.iter().enumerate() {
        if at == 0 { builder.move_to(x as f32, y as f32) } else { builder.line_to(x as f32, y as f32) }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

impl Canvas<'_> {
    fn ink(&self, paint: Paint, opacity: f64) -> Ink<'static> {
        let colour = paint.colours(self.look).0;
        let mut ink = Ink { anti_alias: true, ..Ink::default() };
        let opacity = (opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
        ink.set_color(Color::from_rgba8(colour.0, colour.1, colour.2, opacity));
        ink
    }

    fn fill(&mut self, path: Option<Path>, paint: Paint, opacity: f64) {
        if let Some(path) = path {
            let ink = self.ink(paint, opacity);
            self.pixmap.fill_path(&path, &ink, FillRule::Winding, self.scale, None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, stroke: &Stroke, transform: Transform) {
        let Some(path) = path else { return };
        let ink = self.ink(stroke.paint, stroke.opacity);
        let dash = stroke.pattern().and_then(|[on, off]| StrokeDash::new(vec![on as f32, off as f32], 0.0));
        let pen = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_join: LineJoin::Round,
            line_cap: LineCap::Butt,
            dash,
            ..tiny_skia::Stroke::default()
        };
        self.pixmap.stroke_path(&path, &ink, &pen, transform, None);
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, stroke } => self.stroke(line_path(points, false), stroke, self.scale),
            Shape::Area { points, paint, opacity } => self.fill(line_path(points, true), *paint, *opacity),
            Shape::Box { at, size, paint, opacity, .. } => {
                let rect = Rect::from_xywh(at.0 as f32, at.1 as f32, size.0 as f32, size.1 as f32);
                self.fill(rect.map(PathBuilder::from_rect), *paint, *opacity);
            }
            Shape::Dot { at, radius, paint, .. } => {
                let path = PathBuilder::from_circle(at.0 as f32, at.1 as f32, *radius as f32);
                self.fill(path, *paint, 1.0);
            }
            Shape::Ring { at, radius, stroke } => {
                let path = PathBuilder::from_circle(at.0 as f32, at.1 as f32, *radius as f32);
                self.stroke(path, stroke, self.scale);
            }
            Shape::Text(text) => self.text(text),
        }
    }

    fn text(&mut self, text: &Text) {
        let Some(path) = font::outline(&text.text, text.size, text.bold) else { return };
        let width = font::exact_width(&text.text, text.size, text.bold);
        let shift = match text.align {
            Align::Start => 0.0,
            Align::Middle => -width / 2.0,
            Align::End => -width,
        };
        let transform = Transform::from_translate(shift as f32, 0.0)
            .post_rotate(text.degrees as f32)
            .post_translate(text.at.0 as f32, text.at.1 as f32)
            .post_concat(self.scale);
        // Where the paper is transparent, there is nothing to shine around the writing.
        if text.halo && self.look.theme != Theme::Fixed(None) {
            self.stroke(Some(path.clone()), &Stroke::new(Paint::Paper, 3.0), transform);
        }
        let ink = self.ink(text.paint, 1.0);
        self.pixmap.fill_path(&path, &ink, FillRule::Winding, transform, None);
    }
}
