//! The dialect of fdb-hammer: fields of a weather model in an archive.

mod render;
mod table;
#[cfg(test)]
mod tests;

use driver::Error;
use workload::spec::Spec;

use crate::options::{said, say};
use crate::words::Words;
use crate::{PathFacts, Piece, Progress, Request, Run, World, tasks};
use render::Model;
use table::{TABLE, TOOL};

/// Most parameters that the tool has names for.
const PARAMS_MAX: u64 = 174;

/// Reads the words after the name.
///
/// # Errors
/// Bad usage.
pub fn parse(words: &[String], world: &dyn World) -> Result<Request, Error> {
    let split = TABLE.split(words)?;
    if split.has("help") {
        return Ok(Request::Show(vec![Piece::stdout(format!(
            "Usage: {TOOL} OPTIONS GRIB\n\nWrites and reads fields of a weather model; processes are threads. The \
             size of a field is the size of the GRIB file. Options:\n{}",
            TABLE.help()
        ))]));
    }
    tasks::refuse_ranks(&TABLE, world, "--ppn")?;
    let spec = spec(&split, world)?;
    Ok(Request::Run(Box::new(Run {
        tasks: None,
        specs: vec![spec],
        render: Box::new(Model { reads: split.has("read") }),
        warnings: warnings(&split),
        token_file: None,
        secrets: Vec::new(),
        progress: Progress::Auto,
    })))
}

/// A number of an option, at least 1.
fn number(words: &Words, name: &str, default: Option<u64>) -> Result<u64, Error> {
    let Some(text) = words.value(name) else {
        return default.map_or_else(|| TABLE.refuse(format!("no --{name}"), format!("give --{name} N")), Ok);
    };
    units::parse_u64_in(&format!("--{name}"), text, 1..=u64::from(u32::MAX))
        .map_err(|error| TABLE.error(error.to_string(), format!("--{name} 10")))
}

/// Bytes of a field: those of the template.
fn field_bytes(words: &Words, world: &dyn World) -> Result<u64, Error> {
    let path = match &words.paths[..] {
        [path] => path,
        [] => return TABLE.refuse("no GRIB file", "give a GRIB file; its size is the field size"),
        [_, other, ..] => {
            return TABLE.refuse(
                format!("unexpected {} after the GRIB file", crate::words::quoted(other)),
                "give only one GRIB file",
            );
        }
    };
    match world.look(path) {
        PathFacts::File { size_bytes } if size_bytes > 0 => Ok(size_bytes),
        _ => TABLE.refuse(
            format!("{} is not a file or is empty", crate::words::quoted(path)),
            "give a GRIB file; its size is the field size",
        ),
    }
}

fn spec(words: &Words, world: &dyn World) -> Result<Spec, Error> {
    let levels = match (words.value("levels"), words.has("nlevels")) {
        (Some(_), true) => {
            return TABLE.refuse("--levels and --nlevels are both given", "give one of the two");
        }
        (Some(list), false) => {
            let numbers = list.split(',').map(|level| level.trim().parse::<u32>().is_ok());
            let numbers: Vec<bool> = numbers.collect();
            if numbers.iter().any(|is_number| !is_number) {
                return TABLE.refuse(
                    format!("--levels {}", crate::words::quoted(list)),
                    "give numbers separated by commas, such as --levels 1,2,3",
                );
            }
            numbers.len() as u64
        }
        (None, _) => number(words, "nlevels", None)?,
    };
    let params = number(words, "nparams", None)?;
    if params > PARAMS_MAX {
        return TABLE.refuse(
            format!("--nparams {params} is too large"),
            format!("use {PARAMS_MAX} or fewer, the number of parameter names in the tool"),
        );
    }
    let Some(target) = words.value("target") else {
        return TABLE.refuse(
            "no --target",
            "give the place for the fields, such as --target vos:DIR or --target DIRECTORY",
        );
    };
    let processes = number(words, "ppn", Some(1))?;
    let usage = |error: units::ParseError| Error::usage(TOOL, error.to_string());
    let mut spec = Spec { targets: vec![target.to_owned()], ..Spec::of_layer("application").map_err(usage)? };
    let options = [
        said("app", TOOL),
        said("steps", number(words, "nsteps", None)?),
        said("members", number(words, "nensembles", Some(1))?),
        said("levels", levels),
        said("params", params),
        said("size", field_bytes(words, world)?),
        said("writers", processes),
        said("readers", processes),
        said("index", words.value("index").unwrap_or("process")),
        said("set", if words.has("read") { "read=yes" } else { "read=no" }),
    ];
    say(&mut spec, options).map_err(usage)?;
    Ok(spec)
}

fn warnings(words: &Words) -> Vec<String> {
    let mut warnings = words.warnings.clone();
    if words.has("read") {
        warnings.push(
            "--read: this run first writes the fields; the printed results are those of reading".to_owned(),
        );
    }
    warnings
}
