//! Forms of a result besides the text: where they go, and how they are written.

use std::borrow::Cow;
use std::path::PathBuf;

use driver::Error;
use units::path_of;

use crate::output;

/// Tries the places of forms, one of which may be standard output; they are none of what is read.
///
/// # Errors
/// Bad usage, before anything is measured or written.
pub(crate) fn check(operation: &'static str, places: &[&str], taken: &[String]) -> Result<(), Error> {
    if places.iter().filter(|place| **place == "-").count() > 1 {
        return Err(Error::usage(operation, "only one form of the result can go to standard output (-)")
            .remedy("give files for the others"));
    }
    let files: Vec<_> = places.iter().filter(|place| **place != "-").map(|place| path_of(place)).collect();
    output::check_given(files.iter().cloned(), taken)?;
    let files: Vec<PathBuf> = files.into_iter().map(Cow::into_owned).collect();
    files.iter().try_for_each(|place| output::try_place(place))
}

/// Writes forms to their places; what is for standard output is given back.
///
/// # Errors
/// A place that cannot be written.
pub(crate) fn write<'a>(forms: impl IntoIterator<Item = (&'a str, String)>) -> Result<Option<String>, Error> {
    let mut printed = None;
    for (place, text) in forms {
        match place {
            "-" => printed = Some(text),
            file => output::write_or_fail(&path_of(file), &text)?,
        }
    }
    Ok(printed)
}
