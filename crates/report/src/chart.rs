//! Charts: of records, as a set of SVG or PNG images or as one HTML page; and a plain line or bar chart for others to fill.
//!
//! A [`Chart`] says what is to be seen. Layout turns it into shapes, and these become SVG or PNG, so both show the same.

mod dates;
mod font;
mod frame;
mod heat;
mod lanes;
mod layout;
mod model;
mod page;
mod plot;
mod png;
mod scale;
mod scene;
mod svg;
mod views;

#[cfg(test)]
mod tests;

pub use model::{
    Align, Axis, Band, Chart, Dash, Heat, Lane, Legend, Look, Mark, Point, Ramp, Rgb, Scale, Series, Side,
    Style, Theme, Unit,
};
pub(crate) use page::document;
pub use page::to_html;
pub(crate) use svg::escaped;
pub(crate) use views::rung_name;
pub use views::{Named, NamedChart, charts};

/// The chart as a complete SVG document.
#[must_use]
pub fn to_svg(chart: &Chart, look: &Look) -> String {
    svg::document(&layout::scene(chart, look), look, &chart.title)
}

/// The chart as an SVG element within a page of [`document`].
pub(crate) fn to_element(chart: &Chart, look: &Look) -> String {
    svg::element(&layout::scene(chart, look), look, &chart.title)
}

/// The chart as a PNG image with `pixels` pixels to each unit of the look's width and height.
///
/// # Errors
/// One line, when an image of that size cannot be made.
pub fn to_png(chart: &Chart, look: &Look, pixels: f32) -> Result<Vec<u8>, String> {
    png::image(&layout::scene(chart, look), look, pixels)
}
