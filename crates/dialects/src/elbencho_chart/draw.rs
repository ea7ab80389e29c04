//! The chart itself.

use driver::Error;
use report::chart::{Axis, Chart, Look, Point, Scale, Series, Side, Style, Theme, Unit, to_png, to_svg};

use super::NAME;
use super::options::Options;
use super::table::{Graph, Table};

/// In every SVG that this dialect makes: tells its own files from others'.
pub(super) const SIGNATURE: &str = "<!-- elbencho-chart by strata -->";
/// Most names along the x axis: more lines than this make a chart that nobody can read, and the file is another than was meant.
const LINES_MAX: usize = 10_000;

/// An image, and what is to be known about it.
pub(super) struct Drawing {
    pub(super) image: Vec<u8>,
    pub(super) warnings: Vec<String>,
}

fn name_of(graph: &Graph) -> String {
    match &graph.operation {
        Some(operation) => format!("{operation} {}", graph.column),
        None => graph.column.clone(),
    }
}

/// Names along the x axis: the cells of the first graph's lines.
fn names(options: &Options, table: &Table, first: &Graph) -> Result<Vec<String>, Error> {
    let columns = options.x.iter().map(|column| table.find(column)).collect::<Result<Vec<_>, _>>()?;
    let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
    let joined = |row: &&Vec<String>| columns.iter().map(|at| cell(row, *at)).collect::<Vec<_>>().join("@");
    Ok(table.rows_of(first)?.iter().map(joined).collect())
}

/// Warnings about a chart that its reader could misunderstand.
fn warnings(table: &Table, graphs: &[(Graph, Side)], lengths: &[usize]) -> Vec<String> {
    let mut warnings = Vec::new();
    let operations = table.operations().unwrap_or_default();
    if operations.len() > 1 && graphs.iter().any(|(graph, _)| graph.operation.is_none()) {
        warnings.push(format!(
            "the CSV file has several operations ({}), and a graph without :OP shows them one after another; name one, as in -y \"{}:{}\"",
            operations.join(", "),
            graphs[0].0.column,
            operations[0]
        ));
    }
    if lengths.iter().any(|length| *length != lengths[0]) {
        let counted: Vec<_> = graphs
            .iter()
            .zip(lengths)
            .map(|((graph, _), length)| format!("{} has {length}", name_of(graph)))
            .collect();
        warnings.push(format!(
            "the graphs have different numbers of lines ({}): the x axis uses the names of the first graph",
            counted.join(", ")
        ));
    }
    warnings
}

/// Draws what the options ask for.
pub(super) fn chart(options: &Options, table: &Table) -> Result<Drawing, Error> {
    let of_side = |words: &[String], side: Side| {
        words.iter().map(|word| table.graph(word).map(|graph| (graph, side))).collect::<Result<Vec<_>, _>>()
    };
    let mut graphs = of_side(&options.left, Side::Left)?;
    graphs.extend(of_side(&options.right, Side::Right)?);
    let mut names = names(options, table, &graphs[0].0)?;
    let style = if options.bars { Style::Bars } else { Style::Points };
    let (mut series, mut lengths) = (Vec::new(), Vec::new());
    for (colour, (graph, side)) in graphs.iter().enumerate() {
        let numbers = table.numbers(graph)?;
        lengths.push(numbers.len());
        let points = numbers.iter().enumerate();
        let points = points.map(|(at, number)| Point::new(at as f64, number.unwrap_or(f64::NAN))).collect();
        series.push(Series { side: *side, ..Series::new(name_of(graph), style, colour, points) });
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    if longest > LINES_MAX {
        return Err(Error::usage(
            NAME,
            format!("{longest} lines of results: at most {LINES_MAX} can be drawn"),
        )
        .remedy("choose one operation with -y COL:OP"));
    }
    names.resize(longest.max(names.len()), String::new());
    let axis = |title: &str, scale| Axis::new(title, Unit::Plain, scale);
    let mut chart = Chart::new(
        options.title.clone(),
        axis(&options.x_title, Scale::Names(names)),
        axis(&options.left_title, Scale::Linear),
    );
    chart.y_right = (!options.right.is_empty()).then(|| axis(&options.right_title, Scale::Linear));
    chart.series = series;
    Ok(Drawing { image: image(&chart, options)?, warnings: warnings(table, &graphs, &lengths) })
}

fn image(chart: &Chart, options: &Options) -> Result<Vec<u8>, Error> {
    let point_radius = options.point_size * options.font_size / 2.0;
    let look = Look {
        width: options.size.0,
        height: options.size.1,
        font_size: options.font_size,
        line_width: options.line_width,
        point_radius,
        point_gap: point_radius * options.point_box * 0.5,
        theme: Theme::Fixed(options.background),
        palette: options.colours.clone(),
        legend: options.legend,
        border: options.border,
        x_label_degrees: options.x_degrees,
    };
    if options.image.as_ref().is_some_and(|path| path.ends_with(".png")) {
        return to_png(chart, &look, 1.0).map_err(|message| {
            Error::usage(NAME, message).remedy("choose another --chartsize, or an .svg file")
        });
    }
    Ok(format!("{}{SIGNATURE}\n", to_svg(chart, &look)).into_bytes())
}
