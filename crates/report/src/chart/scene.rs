//! The shapes that a chart is made of: what SVG and PNG draw.

use super::model::{Align, Dash, Look, Rgb, Theme};

/// What something is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// Writing.
    Ink,
    /// Writing that matters less, and axes.
    Muted,
    /// Lines to read values by.
    Grid,
    /// The paper itself.
    Paper,
    /// A warning.
    Warning,
    /// A colour of the palette, by number.
    Series(usize),
}

/// A colour on white paper and on dark paper.
pub(super) type Pair = (Rgb, Rgb);

/// Okabe and Ito (2008), "Color Universal Design", in an order that keeps neighbours apart; yellow cannot be read on white and is left
/// out. On dark paper the darker ones are lightened.
const OKABE_ITO: [Pair; 7] = [
    (Rgb(0, 114, 178), Rgb(70, 160, 220)),
    (Rgb(213, 94, 0), Rgb(240, 120, 40)),
    (Rgb(0, 158, 115), Rgb(30, 180, 135)),
    (Rgb(204, 121, 167), Rgb(215, 140, 180)),
    (Rgb(230, 159, 0), Rgb(230, 159, 0)),
    (Rgb(86, 180, 233), Rgb(140, 205, 245)),
    (Rgb(70, 70, 70), Rgb(200, 200, 200)),
];

/// Colours of the palette before they come round again.
pub(super) const PALETTE_LEN: usize = OKABE_ITO.len();

impl Paint {
    /// Its colours.
    pub(super) fn colours(self, look: &Look) -> Pair {
        match self {
            Self::Ink => (Rgb(30, 30, 30), Rgb(230, 230, 230)),
            Self::Muted => (Rgb(95, 95, 95), Rgb(165, 165, 165)),
            Self::Grid => (Rgb(226, 226, 226), Rgb(56, 60, 66)),
            Self::Paper => match look.theme {
                Theme::Fixed(Some(paper)) => (paper, paper),
                _ => (Rgb(255, 255, 255), Rgb(24, 26, 30)),
            },
            Self::Warning => (Rgb(176, 58, 0), Rgb(255, 150, 90)),
            Self::Series(number) if look.palette.is_empty() => OKABE_ITO[number % PALETTE_LEN],
            Self::Series(number) => {
                let colour = look.palette[number % look.palette.len()];
                (colour, colour)
            }
        }
    }
}

/// A stroke.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stroke {
    pub(super) paint: Paint,
    pub(super) width: f64,
    pub(super) dash: Dash,
    pub(super) opacity: f64,
}

impl Stroke {
    pub(super) fn new(paint: Paint, width: f64) -> Self {
        Self { paint, width, dash: Dash::Solid, opacity: 1.0 }
    }

    /// Lengths of stroke and gap; none for a solid line.
    pub(super) fn pattern(&self) -> Option<[f64; 2]> {
        match self.dash {
            Dash::Solid => None,
            Dash::Dashed => Some([self.width * 4.0, self.width * 2.5]),
            Dash::Dotted => Some([self.width, self.width * 2.0]),
        }
    }
}

/// Writing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    /// Where its base line begins, ends or has its middle.
    pub(super) at: (f64, f64),
    pub(super) align: Align,
    /// Degrees clockwise around `at`.
    pub(super) degrees: f64,
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) paint: Paint,
    /// Whether paper shines around it, so that it can be read over lines.
    pub(super) halo: bool,
    pub(super) text: String,
}

/// A shape. y grows downwards.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A line through points.
    Line { points: Vec<(f64, f64)>, stroke: Stroke },
    /// An area.
    Area { points: Vec<(f64, f64)>, paint: Paint, opacity: f64 },
    /// A rectangle, with words that a pointing reader sees.
    Box { at: (f64, f64), size: (f64, f64), paint: Paint, opacity: f64, hint: String },
    /// A dot, with words that a pointing reader sees.
    Dot { at: (f64, f64), radius: f64, paint: Paint, hint: String },
    /// A circle.
    Ring { at: (f64, f64), radius: f64, stroke: Stroke },
    /// Writing.
    Text(Text),
}
