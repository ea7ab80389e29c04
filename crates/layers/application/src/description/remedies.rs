//! Values of parameters that may shorten a part of the time: `[[remedy]]` of a description, for `--try`.

use driver::Error;

use super::parse::refused;
use super::values::Values;
use super::{Description, Quantity, Remedy};
use crate::operation::{APP_CLASSES, AppClass};

/// A remedy with the value that it has for a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemedyValue {
    /// Part of the time that it is for, by its name in the profile.
    pub part: String,
    /// Parameter.
    pub name: String,
    /// Value, other than that of the load.
    pub value: String,
    /// It is compared by the time of the whole stage.
    pub by_stage: bool,
}

/// Parts of `NAME=VALUE`.
fn assignment(remedy: &Remedy) -> Result<(&str, &str), Error> {
    let parts = remedy.set.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| {
        let given = format!("[[remedy]] has set = {:?}", remedy.set);
        refused(given, "a parameter and its value, such as index=process or ids=ids * 10")
    })
}

/// Whether a remedy is compared by the time of the whole stage: waiting, which is in no call, always is.
fn by_stage(remedy: &Remedy) -> Result<bool, Error> {
    match remedy.by.as_deref() {
        None => Ok(remedy.part == AppClass::Wait.name()),
        Some("calls") => Ok(false),
        Some("stage") => Ok(true),
        Some(other) => Err(refused(format!("[[remedy]] has by = {other:?}"), "calls or stage")),
    }
}

/// Refuses remedies for parts that no profile has, and of parameters that there are not.
///
/// # Errors
/// Them, with what would be accepted.
pub(super) fn check(description: &Description) -> Result<(), Error> {
    for remedy in &description.remedies {
        let (name, value) = assignment(remedy)?;
        if !APP_CLASSES.contains(&remedy.part.as_str()) {
            let accepted = format!("one of {}", APP_CLASSES.join(", "));
            return Err(refused(format!("[[remedy]] has part = {:?}", remedy.part), &accepted));
        }
        by_stage(remedy)?;
        let Some(parameter) = description.parameters.get(name) else {
            return Err(refused(
                format!("[[remedy]] sets {name}, which is not a parameter"),
                "names of [parameters]",
            ));
        };
        if !parameter.choices.is_empty() && !parameter.choices.iter().any(|choice| choice == value) {
            let given = format!("[[remedy]] has set = {:?}", remedy.set);
            return Err(refused(given, &format!("one of {}", parameter.choices.join(", "))));
        }
    }
    Ok(())
}

/// The remedies of a description with their values for a load; those whose value it has already are left out.
///
/// # Errors
/// Values of parameters that are none, and conditions that cannot be.
pub fn remedies(description: &Description, settings: &[(String, String)]) -> Result<Vec<RemedyValue>, Error> {
    let values = Values::new(description, settings)?;
    let mut found = Vec::new();
    for remedy in values.those(&description.remedies, |remedy| &remedy.when)? {
        let (name, text) = assignment(remedy)?;
        let is_word = description.parameters.get(name).is_some_and(|parameter| !parameter.choices.is_empty());
        let value = match is_word {
            true => text.to_owned(),
            false => values.number(&Quantity::Text(text.to_owned()))?.to_string(),
        };
        if values.word(name) != Some(value.as_str()) {
            found.push(RemedyValue {
                part: remedy.part.clone(),
                name: name.to_owned(),
                value,
                by_stage: by_stage(remedy)?,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    const TEXT: &str = "format = 1\nname = 'a'\nversion = '1'\nsummary = 'b'\n[parameters]\nids = { default = 5, help = 'h' }\nkind = { default = 'x', choices = ['x', 'y'], help = 'h' }\n[[remedy]]\npart = 'put'\nset = 'kind=y'\n[[remedy]]\npart = 'allocate-ids'\nset = 'ids=ids * 10'\nwhen = 'kind=x'\n[[group]]\nname = 'g'\nstage = 's'\nprocesses = 1\niterations = 1\n[[group.step]]\nname = 'x'\n";

    #[test]
    fn values_are_those_of_the_load_and_never_what_it_has() {
        let description = parse(TEXT).unwrap();
        let all = |settings: &[(&str, &str)]| -> Vec<String> {
            let settings: Vec<_> = settings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            let found = remedies(&description, &settings).unwrap();
            found.into_iter().map(|one| format!("{} {}={}", one.part, one.name, one.value)).collect()
        };
        assert_eq!(all(&[]), ["put kind=y", "allocate-ids ids=50"]);
        assert_eq!(
            all(&[("kind", "y")]),
            Vec::<String>::new(),
            "it has one, and the other is under a condition"
        );
        assert_eq!(all(&[("ids", "7")]), ["put kind=y", "allocate-ids ids=70"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (from, to, told) in [
            ("part = 'put'", "part = 'push'", "use one of open-container"),
            ("kind=y", "kind=z", "one of x, y"),
            ("part = 'put'", "part = 'put'\nby = 'all'", "use calls or stage"),
            ("kind=y", "colour=y", "names of [parameters]"),
            ("kind=y", "kind", "a parameter and its value"),
        ] {
            let error = parse(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains('\n'), "{to}: {error}");
        }
    }
}
