//! Configuration files: lines of `OPTION=VALUE`.

use driver::Error;

use super::table::TABLE;
use crate::World;
use crate::words::{Given, Words, quoted};

/// Adds what the file of `-c` says; what the command line says stands.
///
/// # Errors
/// A file that cannot be read, and lines that no option takes.
pub(crate) fn merge(words: &mut Words, world: &dyn World) -> Result<(), Error> {
    let Some(path) = words.value("configfile").map(str::to_owned) else { return Ok(()) };
    let text = world.read(&path).map_err(|error| {
        Error::system("elbencho", "cannot read the configuration file", error).with("path", quoted(&path))
    })?;
    let mut added = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split_once('#').map_or(line, |(code, _)| code).trim();
        if line.is_empty() {
            continue;
        }
        let place = |error: Error| error.with("path", quoted(&path)).with("line", number + 1);
        if let Some(given) = option(line).map_err(place)?
            && !words.has(given.flag.long)
            && !words.turned_off.contains(&given.flag.long)
        {
            added.push(given);
        }
    }
    words.given.extend(added);
    Ok(())
}

/// The option of a line; none for a switch that is off.
fn option(line: &str) -> Result<Option<Given>, Error> {
    let Some((name, value)) = line.split_once('=').map(|(name, value)| (name.trim(), value.trim())) else {
        return TABLE
            .refuse(format!("{} is not OPTION=VALUE", quoted(line)), "write a switch as --lat's lat=true");
    };
    let flag = TABLE.find_long(name)?;
    TABLE.check(flag)?;
    if matches!(flag.long, "configfile" | "path" | "help" | "version") {
        return TABLE.refuse(format!("{} is for the command line", quoted(name)), "give it there");
    }
    if !flag.value.is_empty() {
        return Ok(Some(Given { flag, value: Some(value.to_owned()) }));
    }
    match value {
        "1" | "true" | "yes" | "on" => Ok(Some(Given { flag, value: None })),
        "0" | "false" | "no" | "off" => Ok(None),
        _ => TABLE.refuse(format!("{name} is a switch, not {}", quoted(value)), "write true or false"),
    }
}
