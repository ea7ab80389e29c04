//! The writing of a chart: Noto Sans, which travels with the binary, so that an image needs no font of the system.

use std::sync::LazyLock;

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, OutlineBuilder};

/// Fonts of readers may be wider than ours; room is left for that.
const WIDER: f64 = 1.06;
/// Stands for what was cut off.
const ELLIPSIS: char = '…';

static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(notosans::REGULAR_TTF, 0).ok());
static BOLD: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(notosans::BOLD_TTF, 0).ok());

fn face(bold: bool) -> Option<&'static Face<'static>> {
    if bold { BOLD.as_ref() } else { REGULAR.as_ref() }
}

/// Advance of a letter at size 1.
fn advance(face: &Face<'_>, letter: char) -> f64 {
    let glyph = face.glyph_index(letter).unwrap_or_default();
    f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / f64::from(face.units_per_em())
}

/// Width of a text, with room for wider fonts.
pub(super) fn width(text: &str, size: f64, bold: bool) -> f64 {
    exact_width(text, size, bold) * WIDER
}

/// Width of a text in our font.
pub(super) fn exact_width(text: &str, size: f64, bold: bool) -> f64 {
    face(bold).map_or(0.0, |face| text.chars().map(|letter| advance(face, letter)).sum::<f64>() * size)
}

/// The text, cut so that it fits.
pub(super) fn fitted(text: &str, size: f64, bold: bool, room: f64) -> String {
    if width(text, size, bold) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = width(&ELLIPSIS.to_string(), size, bold);
    for letter in text.chars() {
        used += width(letter.encode_utf8(&mut [0; 4]), size, bold);
        if used > room {
            break;
        }
        kept.push(letter);
    }
    kept.truncate(kept.trim_end().len());
    kept.push(ELLIPSIS);
    kept
}

/// The text in lines that fit, at most `lines_max` of them; the last one is cut.
pub(super) fn wrapped(text: &str, size: f64, room: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_last = lines.len() == lines_max;
        match lines.last_mut() {
            Some(line) if is_last || width(&format!("{line} {word}"), size, false) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| fitted(line, size, false, room)).collect()
}

/// Collects the outlines of glyphs, moved to their places.
struct Outline {
    builder: PathBuilder,
    scale: f32,
    x: f32,
}

impl Outline {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.builder.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.builder.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.builder.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.builder.close();
    }
}

/// The outline of a text that begins at the origin, its base line on the x axis; none when there is nothing to see.
pub(super) fn outline(text: &str, size: f64, bold: bool) -> Option<Path> {
    let face = face(bold)?;
    let scale = (size / f64::from(face.units_per_em())) as f32;
    let mut outline = Outline { builder: PathBuilder::new(), scale, x: 0.0 };
    for letter in text.chars() {
        // A letter that the font lacks shows as its box.
        face.outline_glyph(face.glyph_index(letter).unwrap_or_default(), &mut outline);
        outline.x += (advance(face, letter) * size) as f32;
    }
    outline.builder.finish()
}
