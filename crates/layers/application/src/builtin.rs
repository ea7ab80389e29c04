//! Applications that come with strata: their descriptions are files of this crate.

use std::path::Path;

use driver::Error;
use units::{nearest, path_of};

use crate::description::{Description, parse};
use crate::dlio;

/// An application that comes with strata.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// Name.
    pub name: &'static str,
    /// Its description.
    pub text: &'static str,
}

/// All of them, in the order of lists.
pub const BUILTIN: &[Builtin] = &[
    Builtin { name: "fdb-hammer", text: include_str!("applications/fdb-hammer.toml") },
    Builtin { name: "checkpoint", text: include_str!("applications/checkpoint.toml") },
    Builtin { name: "vpic", text: include_str!("applications/vpic.toml") },
    Builtin { name: "bd-cats", text: include_str!("applications/bd-cats.toml") },
    Builtin { name: "cosmic-tagger", text: include_str!("applications/cosmic-tagger.toml") },
    Builtin { name: "database", text: include_str!("applications/database.toml") },
];

/// Whether a word is the path of a description.
pub(crate) fn is_path(word: &str) -> bool {
    word.contains('/') || Path::new(word).extension().is_some_and(|ending| ending == "toml")
}

/// Text of the description of a name or path.
///
/// # Errors
/// A name that there is none of, with the nearest; a file that cannot be read.
pub(crate) fn text_of(name: &str) -> Result<String, Error> {
    if name == dlio::NAME {
        return dlio::text_of(dlio::DEFAULT);
    }
    if is_path(name) {
        return std::fs::read_to_string(path_of(name)).map_err(|error| {
            Error::usage("description", format!("cannot read the description: {error}"))
                .with("path", name)
                .remedy("use the path of a TOML file, or a name from strata app list")
        });
    }
    let found = BUILTIN.iter().find(|builtin| builtin.name == name);
    found.map(|builtin| builtin.text.to_owned()).ok_or_else(|| {
        let names: Vec<&str> = names().collect();
        let accepted = match nearest(name, names.iter().copied()) {
            Some(near) => format!("{near} (the closest match), or the path of a description"),
            None => format!("one of {}, or the path of a description", names.join(", ")),
        };
        Error::usage("plan", format!("no application {name:?} exists")).remedy(format!("use {accepted}"))
    })
}

/// Name and value of a parameter, as given.
pub(crate) type Setting = (String, String);

/// Names of all applications that come with strata, in the order of lists.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|builtin| builtin.name).chain([dlio::NAME])
}

/// The description of a name or path, and those of the values that are ones of its parameters: the keys of a workload shape the description.
///
/// # Errors
/// As [`text_of`], and a description that is none.
pub(crate) fn load<'a>(name: &str, settings: &'a [Setting]) -> Result<(Description, &'a [Setting]), Error> {
    if name == dlio::NAME {
        return dlio::load(settings).map(|description| (description, &[][..]));
    }
    let description = parse(&text_of(name)?).map_err(|error| error.with("description", name))?;
    Ok((description, settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::resolve;

    #[test]
    fn descriptions_resolve_with_every_choice() {
        for builtin in BUILTIN {
            let (description, _) = load(builtin.name, &[]).unwrap();
            assert_eq!(description.name, builtin.name);
            resolve(&description, &[]).unwrap();
            let stack: Vec<Setting> =
                description.stack.iter().map(|(name, value)| (name.clone(), value.text())).collect();
            assert!(!stack.is_empty(), "{}: a row of the stack would take long", builtin.name);
            resolve(&description, &stack).unwrap();
            for (name, parameter) in &description.parameters {
                for choice in &parameter.choices {
                    let settings = [(name.clone(), choice.clone())];
                    let error = resolve(&description, &settings).err().map(|error| error.to_string());
                    assert_eq!(error, None, "{} {name}={choice}", builtin.name);
                }
            }
        }
    }

    #[test]
    fn names_that_there_are_none_of_are_refused() {
        let error = text_of("fdb-hamer").unwrap_err().to_string();
        assert!(error.contains("fdb-hammer (the closest"), "{error}");
        assert!(text_of("./not-there.toml").unwrap_err().to_string().contains("cannot read"));
    }
}
