//! The shapes that a chart is made of: what SVG and PNG draw.

use super::model::{Align, Dash, Look, Ramp, Rgb, Theme};

/// Paint of a shape, a line or a text.
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
    /// A level of a heat map, from 0 to below [`RAMP_LEN`].
    Heat(Ramp, usize),
    /// Writing on that level.
    OnHeat(Ramp, usize),
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

/// Levels of a heat map.
pub(super) const RAMP_LEN: usize = 9;

/// Brewer and Harrower (2003), ColorBrewer 2.0, sequential schemes of nine classes: readers without full colour vision can order them.
const BLUES: [Rgb; RAMP_LEN] = [
    Rgb(247, 251, 255),
    Rgb(222, 235, 247),
    Rgb(198, 219, 239),
    Rgb(158, 202, 225),
    Rgb(107, 174, 214),
    Rgb(66, 146, 198),
    Rgb(33, 113, 181),
    Rgb(8, 81, 156),
    Rgb(8, 48, 107),
];
const ORANGES: [Rgb; RAMP_LEN] = [
    Rgb(255, 245, 235),
    Rgb(254, 230, 206),
    Rgb(253, 208, 162),
    Rgb(253, 174, 107),
    Rgb(253, 141, 60),
    Rgb(241, 105, 19),
    Rgb(217, 72, 1),
    Rgb(166, 54, 3),
    Rgb(127, 39, 4),
];
const BLACK: Rgb = Rgb(20, 20, 20);
const WHITE: Rgb = Rgb(255, 255, 255);

/// The level on light paper, and on dark paper, where more is paler.
fn heat(ramp: Ramp, level: usize) -> Pair {
    let colours = if ramp == Ramp::Blues { &BLUES } else { &ORANGES };
    let level = level.min(RAMP_LEN - 1);
    (colours[level], colours[RAMP_LEN - 1 - level])
}

/// Black or white, whichever has more contrast (WCAG 2.1, relative luminance).
fn readable_on(ground: Rgb) -> Rgb {
    let linear = |part: u8| {
        let share = f64::from(part) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    let luminance = 0.2126 * linear(ground.0) + 0.7152 * linear(ground.1) + 0.0722 * linear(ground.2);
    if (luminance + 0.05).powi(2) > 1.05 * 0.05 { BLACK } else { WHITE }
}

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
            Self::Heat(ramp, level) => heat(ramp, level),
            Self::OnHeat(ramp, level) => {
                let (light, dark) = heat(ramp, level);
                (readable_on(light), readable_on(dark))
            }
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
