//! Shapes as SVG. Every colour stands in the element itself, so that any viewer shows it; a style sheet turns it dark.

use std::fmt::Write;

use super::model::{Align, Look, Ramp, Rgb, Theme};
use super::scene::{PALETTE_LEN, Paint, RAMP_LEN, Shape, Stroke, Text};

/// Fonts, the one that lengths were measured with first.
const FONTS: &str = "'Noto Sans','Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif";

/// The text with everything replaced that has a meaning in XML and HTML, or none at all.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(letter),
            // XML has no way to write these.
            _ if letter.is_control() || ('\u{FFFE}'..='\u{FFFF}').contains(&letter) => out.push('\u{FFFD}'),
            _ => out.push(letter),
        }
    }
    out
}

fn hex(Rgb(red, green, blue): Rgb) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A length to a hundredth of a pixel.
struct Px(f64);

impl std::fmt::Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = (self.0 * 100.0).round() / 100.0;
        write!(f, "{}", if value == 0.0 { 0.0 } else { value })
    }
}

/// The letters of a paint's class.
fn class(paint: Paint) -> String {
    match paint {
        Paint::Ink => "i".to_owned(),
        Paint::Muted => "m".to_owned(),
        Paint::Grid => "g".to_owned(),
        Paint::Paper => "p".to_owned(),
        Paint::Warning => "w".to_owned(),
        Paint::Series(number) => format!("c{}", number % PALETTE_LEN),
        Paint::Heat(ramp, level) => format!("h{}{level}", ramp_class(ramp)),
        Paint::OnHeat(ramp, level) => format!("t{}{level}", ramp_class(ramp)),
    }
}

fn ramp_class(ramp: Ramp) -> char {
    if ramp == Ramp::Blues { 'b' } else { 'o' }
}

/// Style rules that turn charts of the default look dark where the reader prefers that.
pub(super) fn dark_rules() -> String {
    let look = Look::default();
    let named = [Paint::Ink, Paint::Muted, Paint::Grid, Paint::Paper, Paint::Warning];
    let levels = [Ramp::Blues, Ramp::Oranges].into_iter().flat_map(|ramp| {
        (0..RAMP_LEN).flat_map(move |level| [Paint::Heat(ramp, level), Paint::OnHeat(ramp, level)])
    });
    let paints = named.into_iter().chain((0..PALETTE_LEN).map(Paint::Series)).chain(levels);
    let rules: String = paints
        .map(|paint| {
            let (class, colour) = (class(paint), hex(paint.colours(&look).1));
            format!(".s-{class}{{stroke:{colour}}}.f-{class}{{fill:{colour}}}")
        })
        .collect();
    format!("@media (prefers-color-scheme:dark){{{rules}}}")
}

/// Writes shapes of one look.
struct Writer<'a> {
    out: String,
    look: &'a Look,
}

impl Writer<'_> {
    fn fill(&self, paint: Paint) -> String {
        let colour = hex(paint.colours(self.look).0);
        self.coloured("fill", "f-", &colour, paint)
    }

    fn stroke(&self, stroke: &Stroke) -> String {
        let colour = hex(stroke.paint.colours(self.look).0);
        let mut text = self.coloured("stroke", "s-", &colour, stroke.paint);
        let _ = write!(text, " stroke-width=\"{}\"", Px(stroke.width));
        if let Some([on, off]) = stroke.pattern() {
            let _ = write!(text, " stroke-dasharray=\"{} {}\"", Px(on), Px(off));
        }
        if stroke.opacity < 1.0 {
            let _ = write!(text, " stroke-opacity=\"{}\"", Px(stroke.opacity));
        }
        text
    }

    fn coloured(&self, attribute: &str, prefix: &str, colour: &str, paint: Paint) -> String {
        let is_themed = self.look.theme == Theme::Adaptive
            && (self.look.palette.is_empty() || !matches!(paint, Paint::Series(_)));
        if is_themed {
            format!("{attribute}=\"{colour}\" class=\"{prefix}{}\"", class(paint))
        } else {
            format!("{attribute}=\"{colour}\"")
        }
    }

    fn points(points: &[(f64, f64)]) -> String {
        let pairs: Vec<_> = points.iter().map(|(x, y)| format!("{},{}", Px(*x), Px(*y))).collect();
        pairs.join(" ")
    }

    /// Closes an element, with the words that a pointing reader sees inside.
    fn close(&mut self, name: &str, hint: &str) {
        let end = if hint.is_empty() {
            "/>\n".to_owned()
        } else {
            format!("><title>{}</title></{name}>\n", escaped(hint))
        };
        self.out += &end;
    }

    fn shape(&mut self, shape: &Shape) {
        // Writing to a String cannot fail.
        let _ = match shape {
            Shape::Line { points, stroke } => {
                let (stroke, points) = (self.stroke(stroke), Self::points(points));
                writeln!(
                    self.out,
                    "<polyline points=\"{points}\" fill=\"none\" stroke-linejoin=\"round\" {stroke}/>"
                )
            }
            Shape::Area { points, paint, opacity } => {
                let (fill, points) = (self.fill(*paint), Self::points(points));
                writeln!(self.out, "<polygon points=\"{points}\" fill-opacity=\"{}\" {fill}/>", Px(*opacity))
            }
            Shape::Box { at, size, paint, opacity, hint } => {
                let fill = self.fill(*paint);
                let place = format!(
                    "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                    Px(at.0),
                    Px(at.1),
                    Px(size.0),
                    Px(size.1)
                );
                let done = write!(self.out, "<rect {place} fill-opacity=\"{}\" {fill}", Px(*opacity));
                self.close("rect", hint);
                done
            }
            Shape::Dot { at, radius, paint, hint } => {
                let fill = self.fill(*paint);
                let done = write!(
                    self.out,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {fill}",
                    Px(at.0),
                    Px(at.1),
                    Px(*radius)
                );
                self.close("circle", hint);
                done
            }
            Shape::Ring { at, radius, stroke } => {
                let stroke = self.stroke(stroke);
                writeln!(
                    self.out,
                    "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"none\" {stroke}/>",
                    Px(at.0),
                    Px(at.1),
                    Px(*radius)
                )
            }
            Shape::Text(text) => {
                if text.halo {
                    let halo = self.stroke(&Stroke::new(Paint::Paper, 3.0));
                    self.text(text, &format!("fill=\"none\" stroke-linejoin=\"round\" {halo}"), true);
                }
                let fill = self.fill(text.paint);
                self.text(text, &fill, false);
                Ok(())
            }
        };
    }

    fn text(&mut self, text: &Text, paint: &str, is_halo: bool) {
        let anchor = match text.align {
            Align::Start => "",
            Align::Middle => " text-anchor=\"middle\"",
            Align::End => " text-anchor=\"end\"",
        };
        let bold = if text.bold { " font-weight=\"bold\"" } else { "" };
        let turn = if text.degrees == 0.0 {
            String::new()
        } else {
            format!(" transform=\"rotate({} {} {})\"", Px(text.degrees), Px(text.at.0), Px(text.at.1))
        };
        // Readers by ear hear a word once.
        let hidden = if is_halo { " aria-hidden=\"true\"" } else { "" };
        let _ = writeln!(
            self.out,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}{bold}{turn}{hidden} {paint}>{}</text>",
            Px(text.at.0),
            Px(text.at.1),
            Px(text.size),
            escaped(&text.text)
        );
    }
}

/// An `svg` element for an HTML page, which brings the style sheet.
pub(super) fn element(shapes: &[Shape], look: &Look, title: &str) -> String {
    written(shapes, look, title, "", "")
}

fn written(shapes: &[Shape], look: &Look, title: &str, attributes: &str, style: &str) -> String {
    let mut writer = Writer { out: String::new(), look };
    let (width, height) = (Px(look.width), Px(look.height));
    let _ = writeln!(
        writer.out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" role=\"img\" \
         aria-label=\"{}\"{attributes}>",
        escaped(title)
    );
    writer.out += style;
    shapes.iter().for_each(|shape| writer.shape(shape));
    writer.out += "</svg>\n";
    writer.out
}

/// A complete document.
pub(super) fn document(shapes: &[Shape], look: &Look, title: &str) -> String {
    let size = format!(" width=\"{}\" height=\"{}\"", Px(look.width), Px(look.height));
    let style = match look.theme {
        Theme::Adaptive => format!("<style>{}</style>\n", dark_rules()),
        Theme::Fixed(_) => String::new(),
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", written(shapes, look, title, &size, &style))
}
