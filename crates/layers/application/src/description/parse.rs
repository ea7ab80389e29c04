//! From text to a description: what it is by itself, without values of parameters.

use driver::Error;

use super::{Description, remedies, scale};

/// Version of the format that this build reads.
pub const FORMAT: u32 = 1;
/// Longest description, in bytes.
const BYTES_MAX: usize = 256 << 10;

/// The refusal of a description.
pub(super) fn refused(what: String, accepted: &str) -> Error {
    Error::usage("description", what).remedy(format!("use {accepted}"))
}

/// Reads a description.
///
/// # Errors
/// Text that is no TOML, unknown and missing fields, another version of the format, names that are none or stand twice.
pub fn parse(text: &str) -> Result<Description, Error> {
    if text.len() > BYTES_MAX {
        return Err(refused(format!("it has {} bytes", text.len()), &format!("at most {BYTES_MAX} bytes")));
    }
    // Another version may have other fields: its number is looked at first.
    if let Ok(table) = text.parse::<toml::Table>()
        && let Some(format) = table.get("format").and_then(toml::Value::as_integer)
        && format != i64::from(FORMAT)
    {
        return Err(refused(format!("it is of format {format}"), &format!("format = {FORMAT}")));
    }
    let description: Description = toml::from_str(text).map_err(|error| {
        let line =
            error.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        let message = error.message().replace('\n', " ");
        refused(format!("line {line}: {message}"), "the fields of docs/applications.md")
    })?;
    check_names(&description)?;
    remedies::check(&description)?;
    Ok(description)
}

fn name_of(what: &str, name: &str) -> Result<(), Error> {
    let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name
            .bytes()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-')
        && name.len() <= 24;
    if is_name {
        return Ok(());
    }
    let accepted = "at most 24 lower-case letters, digits and hyphens, a letter first";
    Err(refused(format!("{name:?} is not a valid name of {what}"), accepted))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    let mut seen: Vec<&String> = Vec::new();
    for name in names {
        name_of(what, name)?;
        if seen.contains(&name) {
            return Err(refused(format!("{name:?} is used twice as the name of {what}"), "another name"));
        }
        seen.push(name);
    }
    Ok(())
}

/// Groups and sets under a condition may share a name: where several of them are there, values of parameters tell.
fn check_names(description: &Description) -> Result<(), Error> {
    name_of("an application", &description.name)?;
    for name in description.parameters.keys() {
        let is_name = name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name
                .bytes()
                .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'_');
        if !is_name {
            let accepted = "lower-case letters, digits and _, a letter first: expressions use these names";
            return Err(refused(format!("{name:?} is not a valid name of a parameter"), accepted));
        }
    }
    if let Some(name) = description.stack.keys().find(|name| !description.parameters.contains_key(*name)) {
        return Err(refused(
            format!("[stack] has {name}, which is not a parameter"),
            "names of [parameters]",
        ));
    }
    scale::check(description)?;
    unique("a set", description.sets.iter().filter(|set| set.when.is_none()).map(|set| &set.name))?;
    unique(
        "a group",
        description.groups.iter().filter(|group| group.when.is_none()).map(|group| &group.name),
    )?;
    description.sets.iter().try_for_each(|set| name_of("a set", &set.name))?;
    for group in &description.groups {
        name_of("a group", &group.name)?;
        name_of("a stage", &group.stage)?;
        unique("a step", group.steps.iter().filter(|step| step.when.is_none()).map(|step| &step.name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn faults_are_named() {
        let good = "format = 1\nname = 'a'\nversion = '1'\nsummary = 'b'\n[[group]]\nname = 'g'\nstage = 's'\nprocesses = 1\niterations = 1\n[[group.step]]\nname = 'x'\n";
        assert_eq!(parse(good).unwrap().groups[0].steps[0].name, "x");
        for (text, told) in [
            ("", "missing field"),
            ("format = 2\nshape = 3", "use format = 1"),
            (&good.replace("name = 'x'", "name = 'x'\ncolour = 1"), "unknown field `colour`"),
            (&good.replace("name = 'a'", "name = 'A b'"), "not a valid name of an application"),
            (&format!("{good}[[group.step]]\nname = 'x'\n"), "twice"),
            (&good.replace("[[group]]", "[stack]\nranks = 1\n[[group]]"), "[stack] has ranks"),
            (&good.replace("processes = 1", "processes = -1"), "line 8: expected a whole number"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains('\n'), "{text}: {error}");
        }
        assert!(parse(&"#".repeat(BYTES_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[a-z0-9=\\[\\]'\" .\n-]{0,200}") {
            let _ = parse(&text);
        }
    }
}
