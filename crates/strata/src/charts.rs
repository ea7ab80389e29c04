//! `strata report`: records again, as tables, CSV or charts.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use driver::Error;
use report::chart::{self, Look, Named, NamedChart};
use report::record::Record;
use report::stack::Detail;
use units::path_of;

use crate::commands::read_record;
use crate::output::{made_outside_dev, place, print, print_report, refused_place, tell, write_whole};

/// Pixels of a PNG to a unit of a chart: sharp on the screens of today.
const PNG_PIXELS: f32 = 2.0;

/// Where charts go.
struct Places<'a> {
    svg: Option<&'a Path>,
    png: Option<&'a Path>,
    html: Option<&'a Path>,
    csv: bool,
}

/// Renders the records that the words name.
pub(crate) fn report(matches: &ArgMatches) -> Result<u8, Error> {
    let words: Vec<&String> = matches.get_many("records").into_iter().flatten().collect();
    let path = |name: &str| matches.get_one::<String>(name).map(|word| path_of(word));
    let [svg, png, html] = ["svg", "png", "html"].map(path);
    let places = Places {
        svg: svg.as_deref(),
        png: png.as_deref(),
        html: html.as_deref(),
        csv: matches.get_flag("csv"),
    };
    places.check(&words)?;
    let records = words.iter().map(|word| read_record("report", word)).collect::<Result<Vec<_>, _>>()?;
    let names = names(&words);
    let named: Vec<Named<'_>> =
        records.iter().zip(&names).map(|(record, name)| Named { name, record }).collect();
    let detail = match (matches.get_flag("full"), matches.get_flag("warnings")) {
        (true, _) => Detail::Full,
        (false, true) => Detail::Warnings,
        (false, false) => Detail::Screen,
    };
    let wants_charts = places.svg.is_some() || places.png.is_some() || places.html.is_some();
    if wants_charts {
        let written = places.write(&named, &words)?;
        if !places.csv && !places.html_to_stdout() {
            let lines: String = written.iter().map(|path| format!("{}\n", path.display())).collect();
            print(&lines)?;
        }
    }
    if places.csv {
        let table = match (matches.get_flag("by-pair"), matches.get_flag("by-host")) {
            (true, _) => report::to_csv_by_pair,
            (false, true) => report::to_csv_by_host,
            (false, false) => report::to_csv,
        };
        print(&csv(&records, table))?;
    } else if !wants_charts {
        for (at, (record, name)) in records.iter().zip(&names).enumerate() {
            if records.len() > 1 {
                print(&format!("{}{name}:\n", if at > 0 { "\n" } else { "" }))?;
            }
            print_report(record, detail)?;
        }
    }
    Ok(0)
}

/// The rows of all records under one header.
fn csv(records: &[Record], table: fn(&Record) -> String) -> String {
    let mut all = String::new();
    for record in records {
        let text = table(record);
        // The header is a line of its own and the same for every record.
        let body = if all.is_empty() { 0 } else { text.find('\n').map_or(text.len(), |end| end + 1) };
        all += &text[body..];
    }
    all
}

/// Names of the records: those of their files without directory and extension where that tells them apart.
fn names(words: &[&String]) -> Vec<String> {
    let short = |word: &str| match word {
        "-" => "standard input".to_owned(),
        _ => Path::new(word)
            .file_stem()
            .map_or_else(|| word.to_owned(), |stem| stem.to_string_lossy().into_owned()),
    };
    let shorts: Vec<String> = words.iter().map(|word| short(word)).collect();
    let is_unique = |name: &String| shorts.iter().filter(|other| *other == name).count() == 1;
    shorts
        .iter()
        .zip(words)
        .map(|(name, word)| if is_unique(name) { name.clone() } else { (*word).clone() })
        .collect()
}

impl Places<'_> {
    fn html_to_stdout(&self) -> bool {
        self.html == Some(Path::new("-"))
    }

    /// Refuses places that cannot be meant, before anything is read or written.
    fn check(&self, words: &[&String]) -> Result<(), Error> {
        if words.iter().filter(|word| *word == &"-").count() > 1 {
            return Err(Error::usage("report", "standard input (-) can be read only once"));
        }
        if self.csv && self.html_to_stdout() {
            return Err(Error::usage("report", "--csv and --html - both write to standard output")
                .remedy("give --html a file"));
        }
        for (option, directory) in [("--svg", self.svg), ("--png", self.png)] {
            let Some(directory) = directory else { continue };
            if directory == Path::new("-") {
                return Err(Error::usage(
                    "report",
                    format!("{option} writes one file per chart: it requires a directory, not -"),
                )
                .remedy("--html - writes all charts to standard output"));
            }
            made_outside_dev(directory).and_then(|()| fs::create_dir_all(directory)).map_err(|error| {
                Error::usage("report", format!("{option}: cannot make the directory: {error}"))
                    .with("path", directory.display())
            })?;
        }
        Ok(())
    }

    /// Writes what is asked for and says which files these are.
    fn write(&self, records: &[Named<'_>], words: &[&String]) -> Result<Vec<PathBuf>, Error> {
        let sources: Vec<PathBuf> =
            words.iter().filter(|word| *word != &"-").map(|word| place(&path_of(word))).collect();
        let mut written = Vec::new();
        let mut write = |path: PathBuf, content: &[u8]| {
            write_chart(&path, content, &sources).map(|()| written.push(path))
        };
        let look = Look::default();
        let charts =
            if self.svg.is_some() || self.png.is_some() { chart::charts(records) } else { Vec::new() };
        if charts.is_empty() && (self.svg.is_some() || self.png.is_some()) {
            tell("strata: report: no chart to draw: no operation completed");
        }
        for NamedChart { file_stem, chart, .. } in &charts {
            if let Some(directory) = self.svg {
                let svg = chart::to_svg(chart, &look);
                write(directory.join(format!("{file_stem}.svg")), svg.as_bytes())?;
            }
            if let Some(directory) = self.png {
                let png = chart::to_png(chart, &look, PNG_PIXELS)
                    .map_err(|message| Error::new(driver::ErrorKind::Run, "report", message))?;
                write(directory.join(format!("{file_stem}.png")), &png)?;
            }
        }
        match self.html {
            Some(_) if self.html_to_stdout() => print(&chart::to_html(records))?,
            Some(path) => write(path.to_owned(), chart::to_html(records).as_bytes())?,
            None => {}
        }
        Ok(written)
    }
}

fn write_chart(path: &Path, content: &[u8], sources: &[PathBuf]) -> Result<(), Error> {
    let is_device = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device());
    if is_device || sources.contains(&place(path)) {
        return Err(Error::usage("report", "this is an input record or a block device")
            .with("path", path.display())
            .remedy("give another file"));
    }
    write_whole(path, content).map_err(|error| refused_place(path, error))
}
