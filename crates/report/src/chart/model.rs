//! Model of a chart: its contents and its look.

/// A colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// Unit of the numbers of an axis; decides how its ticks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers.
    Plain,
    /// Something a second, in units of 1000.
    PerSecond,
    /// Bytes a second, in units of 1024.
    BytesPerSecond,
    /// Seconds.
    Seconds,
    /// Moments, as seconds since 1970 UTC.
    Date,
    /// Nanoseconds.
    Nanoseconds,
    /// A share of 1, written as percent.
    Share,
    /// A percentile as its number of nines, `-log10(1 - share)`: 0 is 0 %, 1 is 90 %, 2 is 99 %.
    Nines,
}

/// How values lie along an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from 0 where no value is below it.
    Linear,
    /// Evenly from the smallest value to the largest.
    Spanning,
    /// By their logarithm; values of 0 and below are left out.
    Log,
    /// One place a name; a point's x is the number of the name, from 0.
    Names(Vec<String>),
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Quantity that it counts, without the unit.
    pub title: String,
    /// Unit of its numbers.
    pub unit: Unit,
    /// How they lie.
    pub scale: Scale,
}

impl Axis {
    /// An axis with this title.
    #[must_use]
    pub fn new(title: impl Into<String>, unit: Unit, scale: Scale) -> Self {
        Self { title: title.into(), unit, scale }
    }
}

/// A value. What is not finite is a gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// Written beside it where there is room.
    pub label: Option<String>,
    /// Interval of the value, drawn as an error bar; bars only.
    pub interval: Option<(f64, f64)>,
    /// Number of its colour in the palette, in place of that of its series; bars only.
    pub colour: Option<usize>,
}

impl Point {
    /// A point without a label.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, label: None, interval: None, colour: None }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Line,
    /// A line with a dot at every point.
    Points,
    /// Steps: a point's y holds from its x to that of the next point. Filled down to 0 where asked for.
    Steps {
        /// Whether the area below is filled.
        filled: bool,
    },
    /// Bars, clustered by the names of the x axis.
    Bars,
    /// Parts of one bar for each name of the x axis: a point's y is where its part ends, and it begins where that of the series before does.
    Stacked,
}

/// The stroke of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dash {
    /// Without gaps.
    #[default]
    Solid,
    /// Long strokes.
    Dashed,
    /// Dots.
    Dotted,
}

/// The y axis that a series belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The left one.
    #[default]
    Left,
    /// The right one.
    Right,
}

/// A row of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its values, in the order in which the line runs.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub style: Style,
    /// Its y axis.
    pub side: Side,
    /// Number of its colour in the palette, from 0.
    pub colour: usize,
    /// Stroke of its line.
    pub dash: Dash,
    /// Up to this x the line is pale: what it shows counts in no figure.
    pub pale_until: Option<f64>,
}

impl Series {
    /// A solid series on the left axis.
    #[must_use]
    pub fn new(name: impl Into<String>, style: Style, colour: usize, points: Vec<Point>) -> Self {
        let (side, dash) = (Side::Left, Dash::Solid);
        Self { name: name.into(), points, style, side, colour, dash, pale_until: None }
    }
}

/// A shaded range of x.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Label of the range.
    pub label: String,
}

/// Events of one kind along the x axis, in a lane of their own below the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Kind of its events, short.
    pub name: String,
    /// Number of its colour in the palette, from 0.
    pub colour: usize,
    /// When they were; the label is what a pointing reader sees.
    pub events: Vec<Band>,
}

/// A place that is pointed out.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// On the left axis.
    pub y: f64,
    /// Label of the place.
    pub label: String,
}

/// The colours of a heat map: each is one hue from pale to dark (on dark paper from dark to pale), so that lightness alone tells the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// For what is better when there is more of it.
    Blues,
    /// For what is worse when there is more of it.
    Oranges,
}

/// A matrix of values, drawn in colours in place of series.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// Names of the rows, the first on top.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows of values; what is none or not finite stays empty.
    pub values: Vec<Vec<Option<f64>>>,
    /// Title of the values.
    pub title: String,
    /// Unit of their numbers.
    pub unit: Unit,
    /// The values of the first and of the last colour.
    pub range: (f64, f64),
    /// Whether the colours stand for the logarithms of the values, so that small ones can be told apart; the range is above 0 then.
    pub is_log: bool,
    /// The colours.
    pub ramp: Ramp,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its headline; may be empty.
    pub title: String,
    /// Description of the measured load, in one or two lines; may be empty.
    pub note: String,
    /// Why it may not be believed; may be empty.
    pub warning: String,
    /// The x axis.
    pub x: Axis,
    /// The left y axis.
    pub y: Axis,
    /// The right y axis.
    pub y_right: Option<Axis>,
    /// Series of points that are shown.
    pub series: Vec<Series>,
    /// Shaded ranges.
    pub bands: Vec<Band>,
    /// Places that are pointed out.
    pub marks: Vec<Mark>,
    /// Events below the data.
    pub lanes: Vec<Lane>,
    /// A matrix, in place of all series: the axes have its rows and columns then.
    pub heat: Option<Heat>,
}

impl Chart {
    /// A chart without anything in it.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            note: String::new(),
            warning: String::new(),
            x,
            y,
            y_right: None,
            series: Vec::new(),
            bands: Vec::new(),
            marks: Vec::new(),
            lanes: Vec::new(),
            heat: None,
        }
    }
}

/// Where something stands along a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left.
    Start,
    /// In the middle.
    Middle,
    /// Right.
    End,
}

/// Where the names of the series stand: always outside of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Legend {
    /// Above the data.
    Top(Align),
    /// Below the x axis.
    Bottom(Align),
    /// In a column on the left.
    Left,
    /// In a column on the right.
    Right,
    /// Nowhere.
    Off,
}

/// The colours of paper and ink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// White paper; an SVG turns dark where the reader prefers that.
    Adaptive,
    /// This paper, whatever the reader prefers; without one it is transparent.
    Fixed(Option<Rgb>),
}

/// How a chart looks. Lengths are pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Width of the image.
    pub width: f64,
    /// Height of the image.
    pub height: f64,
    /// Size of the writing.
    pub font_size: f64,
    /// Width of lines.
    pub line_width: f64,
    /// Radius of dots.
    pub point_radius: f64,
    /// Gap between a dot and its line.
    pub point_gap: f64,
    /// Paper and ink.
    pub theme: Theme,
    /// Colours of the series; empty for the palette of Okabe and Ito, which readers without full colour vision can tell apart.
    pub palette: Vec<Rgb>,
    /// Where the names of the series stand.
    pub legend: Legend,
    /// Sides of the data that have a line: 1 bottom, 2 left, 4 top, 8 right, added up.
    pub border: u8,
    /// By how much the names along the x axis are turned, degrees counter-clockwise, -90 to 90.
    pub x_label_degrees: f64,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            width: 960.0,
            height: 440.0,
            font_size: 13.0,
            line_width: 1.8,
            point_radius: 3.5,
            point_gap: 0.0,
            theme: Theme::Adaptive,
            palette: Vec::new(),
            legend: Legend::Top(Align::Start),
            border: 1,
            x_label_degrees: 0.0,
        }
    }
}
