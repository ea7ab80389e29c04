//! The command line of elbencho-chart.

use driver::Error;
use report::chart::{Align, Legend, Rgb};

use super::NAME;

/// Sides of an image in pixels that can be made.
const SIDE_PIXELS: std::ops::RangeInclusive<u32> = 64..=8192;

/// Shown for `-h`.
pub(super) const HELP: &str = "\
elbencho-chart: draws a line or bar chart of an elbencho CSV file.

Usage: elbencho-chart [OPTIONS] CSVFILE      (- reads standard input)

  -c                 list the columns of the CSV file
  -o                 list the operations of the CSV file
  -x COL             column for the names on the x axis; several columns are joined with @
  -y COL[:OP]        column for a graph on the left y axis, from the lines with operation OP; repeatable
  -Y COL[:OP]        like -y, on the right y axis
  --imgfile PATH     image to write, .svg or .png [default: name of CSVFILE with .svg, in this directory]
  --bars             bars instead of lines
  --chartsize W,H    width and height in pixels [default: 960,440]
  --fontsize NUM     text size in pixels [default: 13]
  --imgbg RGB        background colour, such as \"#ffffff\" [default: transparent]
  --keypos STRING    position of the graph names, always outside the data: words of top, bottom, left, right,
                     center, outside, off [default: top center]
  --linecolors LIST  colours of the graphs, such as \"#0072b2 #d55e00\" [default: a colour-blind safe palette]
  --linewidth NUM    width of lines [default: 3]
  --pointsize NUM    size of dots relative to the text [default: 0.5]
  --pointbox NUM     gap between a dot and its line, relative to the dot [default: 1]
  --borderflags NUM  lines around the data, as a sum: 1 bottom, 2 left, 4 top, 8 right [default: 15]
  --title STRING     headline
  --xrot NUM         rotation of the names on the x axis in degrees, -90 to 90 [default: 0]
  --xtitle, --ytitle, --Ytitle STRING
                     titles of the x axis, the left y axis and the right y axis
  -h, --help         show this help

Not supported: --excel (write an image), --terminaltype (gnuplot is not used), --imgfile with .pdf.
";

/// Options of the command line.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) csv: String,
    pub(super) list_columns: bool,
    pub(super) list_operations: bool,
    pub(super) x: Vec<String>,
    pub(super) left: Vec<String>,
    pub(super) right: Vec<String>,
    pub(super) image: Option<String>,
    pub(super) bars: bool,
    pub(super) size: (f64, f64),
    pub(super) font_size: f64,
    pub(super) background: Option<Rgb>,
    pub(super) legend: Legend,
    pub(super) colours: Vec<Rgb>,
    pub(super) line_width: f64,
    pub(super) point_size: f64,
    pub(super) point_box: f64,
    pub(super) border: u8,
    pub(super) title: String,
    pub(super) x_title: String,
    pub(super) left_title: String,
    pub(super) right_title: String,
    pub(super) x_degrees: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            csv: String::new(),
            list_columns: false,
            list_operations: false,
            x: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
            image: None,
            bars: false,
            size: (960.0, 440.0),
            font_size: 13.0,
            background: None,
            legend: Legend::Top(Align::Middle),
            colours: Vec::new(),
            line_width: 3.0,
            point_size: 0.5,
            point_box: 1.0,
            border: 15,
            title: String::new(),
            x_title: String::new(),
            left_title: String::new(),
            right_title: String::new(),
            x_degrees: 0.0,
        }
    }
}

/// Result of parsing a command line.
pub(super) enum Parsed {
    /// Help is asked for.
    Help,
    /// A chart or a list is.
    Options(Box<Options>),
}

fn bad(option: &str, value: &str, accepted: &str) -> Error {
    Error::usage(NAME, format!("{option} {}: expected {accepted}", value.escape_debug()))
}

/// Reads the words.
pub(super) fn parse(words: &[String]) -> Result<Parsed, Error> {
    let mut options = Options::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-h" | "--help" => return Ok(Parsed::Help),
            "--bars" => options.bars = true,
            "-c" => options.list_columns = true,
            "-o" => options.list_operations = true,
            option if option.starts_with('-') && option != "-" => {
                refuse(option)?;
                let value = rest
                    .next()
                    .ok_or_else(|| Error::usage(NAME, format!("{option} needs a value")).remedy("see -h"))?;
                options.set(option, value)?;
            }
            file => {
                file.clone_into(&mut options.csv);
                if let Some(after) = rest.next() {
                    return Err(Error::usage(
                        NAME,
                        format!("unexpected word after the CSV file: {}", after.escape_debug()),
                    )
                    .remedy("put options before the file's name"));
                }
            }
        }
    }
    options.check()?;
    Ok(Parsed::Options(Box::new(options)))
}

/// Options that are not honoured, each with the nearest thing that is, and those that do not exist.
fn refuse(option: &str) -> Result<(), Error> {
    const TAKEN: &[&str] = &[
        "-x",
        "-y",
        "-Y",
        "--imgfile",
        "--chartsize",
        "--fontsize",
        "--imgbg",
        "--keypos",
        "--linecolors",
        "--linewidth",
        "--pointsize",
        "--pointbox",
        "--borderflags",
        "--title",
        "--xrot",
        "--xtitle",
        "--ytitle",
        "--Ytitle",
    ];
    match option {
        "--excel" => Err(Error::usage(NAME, "--excel is not supported: strata does not write Excel files")
            .remedy("write an image with --imgfile chart.svg, or open the CSV file itself in Excel")),
        "--terminaltype" => Err(Error::usage(
            NAME,
            "--terminaltype is not supported: strata does not use gnuplot and opens no window",
        )
        .remedy("write an image with --imgfile chart.svg")),
        _ if TAKEN.contains(&option) => Ok(()),
        _ => Err(Error::usage(NAME, format!("unknown option {}", option.escape_debug())).remedy("see -h")),
    }
}

impl Options {
    fn set(&mut self, option: &str, value: &str) -> Result<(), Error> {
        let text = || value.to_owned();
        match option {
            "-x" => self.x.push(text()),
            "-y" => self.left.push(text()),
            "-Y" => self.right.push(text()),
            "--imgfile" => self.image = Some(image(value)?),
            "--chartsize" => self.size = size(value)?,
            "--fontsize" => self.font_size = number(option, value, 4.0, 100.0)?,
            "--imgbg" => self.background = Some(colour(option, value)?),
            "--keypos" => self.legend = legend(value)?,
            "--linecolors" => {
                self.colours =
                    value.split_whitespace().map(|word| colour(option, word)).collect::<Result<_, _>>()?;
                if self.colours.is_empty() {
                    return Err(bad(option, "\"\"", "a list of colours such as \"#0072b2 #d55e00\""));
                }
            }
            "--linewidth" => self.line_width = number(option, value, 0.1, 50.0)?,
            "--pointsize" => self.point_size = number(option, value, 0.0, 20.0)?,
            "--pointbox" => self.point_box = number(option, value, 0.0, 20.0)?,
            "--borderflags" => self.border = number_of_sides(option, value)?,
            "--title" => self.title = text(),
            "--xrot" => self.x_degrees = number(option, value, -90.0, 90.0)?,
            "--xtitle" => self.x_title = text(),
            "--ytitle" => self.left_title = text(),
            "--Ytitle" => self.right_title = text(),
            _ => return refuse(option),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        if self.csv.is_empty() {
            return Err(Error::usage(NAME, "no CSV file is given").remedy("see -h"));
        }
        if self.list_columns || self.list_operations {
            return Ok(());
        }
        for (missing, what) in [
            (self.x.is_empty(), "-x: a column for the x axis"),
            (self.left.is_empty(), "-y: a column for the left y axis"),
        ] {
            if missing {
                return Err(Error::usage(NAME, format!("missing {what}"))
                    .remedy(format!("see the columns with: elbencho-chart -c {}", self.csv)));
            }
        }
        let graphs = self.left.len() + self.right.len();
        if !self.colours.is_empty() && graphs > self.colours.len() {
            return Err(Error::usage(
                NAME,
                format!("--linecolors has {} colours for {graphs} graphs", self.colours.len()),
            )
            .remedy("give one colour per graph"));
        }
        if self.right.is_empty() && !self.right_title.is_empty() {
            return Err(Error::usage(NAME, "--Ytitle: the chart has no right y axis")
                .remedy("give a column for it with -Y"));
        }
        Ok(())
    }
}

fn number(option: &str, value: &str, low: f64, high: f64) -> Result<f64, Error> {
    let found = value.parse().ok().filter(|number: &f64| (low..=high).contains(number));
    found.ok_or_else(|| bad(option, value, &format!("a number from {low} to {high}")))
}

fn number_of_sides(option: &str, value: &str) -> Result<u8, Error> {
    let found = value.parse().ok().filter(|number: &u8| *number <= 15);
    found.ok_or_else(|| bad(option, value, "0 to 15, a sum of 1 bottom, 2 left, 4 top and 8 right"))
}

fn image(path: &str) -> Result<String, Error> {
    let extension = std::path::Path::new(path).extension().and_then(|extension| extension.to_str());
    match extension {
        Some("svg" | "png") => Ok(path.to_owned()),
        Some("pdf") => {
            Err(Error::usage(NAME, format!("--imgfile {}: strata does not write PDF", path.escape_debug()))
                .remedy("give an .svg file and convert it with rsvg-convert -f pdf"))
        }
        _ => Err(bad("--imgfile", path, "a name that ends in .svg or .png")),
    }
}

fn size(value: &str) -> Result<(f64, f64), Error> {
    let side =
        |text: &str| text.trim().parse().ok().filter(|side: &u32| SIDE_PIXELS.contains(side)).map(f64::from);
    let found = value.split_once(',').and_then(|(width, height)| Some((side(width)?, side(height)?)));
    found.ok_or_else(|| {
        let (low, high) = (SIDE_PIXELS.start(), SIDE_PIXELS.end());
        bad("--chartsize", value, &format!("WIDTH,HEIGHT in pixels from {low} to {high}"))
    })
}

fn colour(option: &str, value: &str) -> Result<Rgb, Error> {
    let digits = value
        .strip_prefix('#')
        .filter(|digits| digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let rgb = number.map(|number| {
        let [_, red, green, blue] = number.to_be_bytes();
        Rgb(red, green, blue)
    });
    rgb.ok_or_else(|| bad(option, value, "a colour such as #0072b2"))
}

/// The place of the legend, from the words of gnuplot's `set key`.
fn legend(value: &str) -> Result<Legend, Error> {
    let (mut across, mut down) = (None, None);
    let mut is_off = false;
    let mut centred = 0;
    for word in value.split_whitespace() {
        match word {
            "left" => across = Some(Align::Start),
            "right" => across = Some(Align::End),
            "top" => down = Some(Align::Start),
            "bottom" => down = Some(Align::End),
            "center" => centred += 1,
            "off" => is_off = true,
            "outside" => {}
            "inside" => {
                return Err(Error::usage(NAME, "--keypos inside: graph names are always placed outside the data, so that they hide no data")
                    .remedy("leave the word out"));
            }
            _ => {
                return Err(bad(
                    "--keypos",
                    value,
                    "words of top, bottom, left, right, center, outside and off",
                ));
            }
        }
    }
    if value.trim().is_empty() {
        return Err(bad("--keypos", "\"\"", "words of top, bottom, left, right, center, outside and off"));
    }
    Ok(match (down, across) {
        _ if is_off => Legend::Off,
        // As gnuplot does: what is not said is right and top.
        (Some(Align::End), across) => Legend::Bottom(aligned(across, centred)),
        (Some(_), across) => Legend::Top(aligned(across, centred)),
        (None, Some(Align::Start)) if centred > 0 => Legend::Left,
        (None, Some(Align::End)) if centred > 0 => Legend::Right,
        (None, across) => Legend::Top(aligned(across, centred)),
    })
}

fn aligned(across: Option<Align>, centred: usize) -> Align {
    across.unwrap_or(if centred > 0 { Align::Middle } else { Align::End })
}
