//! The dialect of elbencho-chart: line and bar charts of the CSV files that elbencho writes. Nothing is measured, and gnuplot is not
//! needed.

mod draw;
mod options;
mod table;
#[cfg(test)]
mod tests;

use driver::Error;

use crate::{Destination, PathFacts, Piece, Request, World};

use options::{Options, Parsed};
use table::Table;

/// The name in errors.
const NAME: &str = "elbencho-chart";
/// Column that names what was done.
const OPERATION: &str = "operation";

/// Reads the words after the name.
///
/// # Errors
/// Bad usage: unknown or unsupported options, a CSV file that is none, columns and operations that it does not have (with those that it
/// has).
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    let options = match options::parse(words)? {
        Parsed::Help => return Ok(Request::Show(vec![Piece::stdout(options::HELP)])),
        Parsed::Options(options) => options,
    };
    let text = world.read(&options.csv).map_err(|error| {
        Error::usage(NAME, format!("cannot read the CSV file: {error}")).with("file", &options.csv)
    })?;
    let table = Table::read(&text).map_err(|error| error.with("file", &options.csv))?;
    if options.list_columns {
        return Ok(Request::Show(vec![Piece::stdout(table.columns_listed())]));
    }
    if options.list_operations {
        let listed = table.operations_listed().map_err(|error| error.with("file", &options.csv))?;
        return Ok(Request::Show(vec![Piece::stdout(listed)]));
    }
    let drawing = draw::chart(&options, &table).map_err(|error| error.with("file", &options.csv))?;
    let mut pieces: Vec<Piece> =
        drawing.warnings.iter().map(|warning| stderr(&format!("{NAME}: {warning}\n"))).collect();
    match place(&options, world)? {
        Some(path) => {
            pieces.push(Piece { content: drawing.image, ..Piece::file(&path, false, "") });
            pieces.push(Piece::stdout(format!("Chart: {path}\n")));
        }
        None => pieces.push(Piece { place: Destination::Stdout, content: drawing.image }),
    }
    Ok(Request::Show(pieces))
}

fn stderr(text: &str) -> Piece {
    Piece { place: Destination::Stderr, ..Piece::stdout(text) }
}

/// Where the chart goes; none for standard output.
///
/// elbencho-chart shows a window where no file is named. Here the chart then goes to an SVG file with the CSV file's name, in the working
/// directory; what stands there is overwritten only if it is such a chart.
fn place(options: &Options, world: &dyn World) -> Result<Option<String>, Error> {
    if let Some(path) = &options.image {
        return Ok(Some(path.clone()));
    }
    if options.csv == "-" {
        return Ok(None);
    }
    let stem = std::path::Path::new(&options.csv).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let path = format!("{}.svg", stem.unwrap_or_else(|| "chart".to_owned()));
    let is_ours = || world.read(&path).is_ok_and(|text| text.contains(draw::SIGNATURE));
    if world.look(&path) != PathFacts::Missing && !is_ours() {
        return Err(Error::usage(
            NAME,
            "without --imgfile the chart would overwrite this file, which is not such a chart",
        )
        .with("path", &path)
        .remedy("name a file: --imgfile chart.svg"));
    }
    Ok(Some(path))
}
