//! The tables of options: parser, help, completions, man page, job files and docs are made from them. One table a layer, over the
//! same [`Spec`]; the options of loads that several layers have stand in tables of their own ([`SHARED`]).

/// An option without a field of its own: how it applies is said in full.
#[macro_export]
macro_rules! option {
    ($name:literal, $short:expr, $value:literal, $default:literal, $group:ident, $help:expr, $apply:expr) => {
        $crate::options::OptionDef {
            name: $name,
            short: $short,
            value: $value,
            default: $default,
            help: $help,
            group: $crate::options::Group::$group,
            apply: $apply,
        }
    };
}

/// An option whose parsed value is kept in a field of one layer's spec, whose type comes first.
#[macro_export]
macro_rules! own_of {
    ($own:ty, $name:literal, $short:expr, $value:literal, $default:literal, $group:ident, $help:literal, $field:ident, $parse:expr) => {
        $crate::option!(
            $name,
            $short,
            $value,
            $default,
            $group,
            $help,
            |spec: &mut $crate::spec::Spec, text| {
                let value = $parse(text)?;
                spec.own.get_mut::<$own>().$field = Some(value);
                Ok(())
            }
        )
    };
}

/// A switch in a field of one layer's spec, whose type comes first.
#[macro_export]
macro_rules! switch_of {
    ($own:ty, $name:literal, $default:literal, $group:ident, $help:literal, $field:ident) => {
        $crate::option!($name, None, "", $default, $group, $help, |spec: &mut $crate::spec::Spec, text| {
            let is_on = $crate::options::switch($name, text)?;
            spec.own.get_mut::<$own>().$field = is_on;
            Ok(())
        })
    };
}

/// An option of several layers ([`SHARED`]) that reads the same in one of them and has another default or meaning there.
#[macro_export]
macro_rules! as_shared {
    ($name:literal, $short:expr, $value:literal, $default:literal, $group:ident, $help:literal) => {
        $crate::option!($name, $short, $value, $default, $group, $help, |spec, text| {
            $crate::options::apply_shared(spec, $name, text)
        })
    };
}

mod control;
mod hosts;
pub mod masters;
mod shared;
pub mod value;

use units::ParseError;

use crate::spec::{Layer, Spec};

pub use control::CONTROL;
pub use hosts::HOSTS;
pub use masters::MASTERS;
pub use shared::{BLOCK_SIZE, CONTENT, LOAD, PATTERN, RUN, SHARE, SHARED};
pub use value::{path, switch};

/// Heading that an option stands under in help and docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Options of the operations.
    Workload,
    /// How much, for how long, how fast.
    Load,
    /// With which driver.
    Engine,
    /// Options of the data that is written and checked.
    Data,
    /// Where it runs and how it ends.
    Run,
    /// Options of the results.
    Output,
}

impl Group {
    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Workload => "Workload",
            Self::Load => "Load",
            Self::Engine => "Engine",
            Self::Data => "Data",
            Self::Run => "Run",
            Self::Output => "Output",
        }
    }
}

/// One option. The flag is `--name`, the key in a job file is the same with `_` for `-`.
pub struct OptionDef<T = Spec> {
    /// Long name.
    pub name: &'static str,
    /// Short letter.
    pub short: Option<char>,
    /// Placeholder of the value in help; empty for a switch, which in a job file is `true` or `false`.
    pub value: &'static str,
    /// Default, in words.
    pub default: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Heading.
    pub group: Group,
    /// Parses `text` into the spec.
    pub apply: fn(&mut T, &str) -> Result<(), ParseError>,
}

impl<T> OptionDef<T> {
    /// An option of the operations without a short letter; `value` is the placeholder, `default` the default in words.
    pub const fn new(
        name: &'static str,
        value: &'static str,
        default: &'static str,
        help: &'static str,
        apply: fn(&mut T, &str) -> Result<(), ParseError>,
    ) -> Self {
        Self { name, short: None, value, default, help, group: Group::Workload, apply }
    }

    /// Whether it takes no value on the command line.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.value.is_empty()
    }
}

/// The options of a layer, each once, in the order of help.
pub fn of(layer: Layer) -> impl Iterator<Item = &'static OptionDef> {
    let own = layer.options.iter().copied().flatten();
    let common = shared().filter(move |option| layer.common.contains(&option.name));
    own.chain(common).chain(HOSTS.iter().filter(move |option| !has_own(layer, option.name)))
}

/// Whether an option is one of the layer's own tables, and not of hosts alone ([`HOSTS`]).
#[must_use]
pub fn has_own(layer: Layer, name: &str) -> bool {
    layer.options.iter().copied().flatten().any(|option| option.name == name)
}

fn shared() -> impl Iterator<Item = &'static OptionDef> + Clone {
    SHARED.iter().copied().flatten()
}

/// Whether an option may be given several times, each adding to what was said before.
#[must_use]
pub fn is_repeatable(name: &str) -> bool {
    matches!(
        name,
        "endpoint"
            | "master"
            | "s3-endpoint"
            | "hosts"
            | "fingerprint"
            | "host-options"
            | "root"
            | "set"
            | "target-options"
            | "on"
    )
}

/// Applies the option of several layers with this name.
///
/// # Errors
/// A bad value, with what would be accepted.
pub fn apply_shared(spec: &mut Spec, name: &'static str, text: &str) -> Result<(), ParseError> {
    apply_in(shared(), spec, name, text)
}

/// The option of a flag or job-file key of a layer.
#[must_use]
pub fn find_in(layer: Layer, name: &str) -> Option<&'static OptionDef> {
    let flag = name.replace('_', "-");
    of(layer).find(|option| option.name == flag)
}

/// Applies one `key = value` to a spec, as an option of its layer.
///
/// # Errors
/// An unknown key, with the nearest one there is, or why the layer does not have it; a bad value, with what would be accepted.
pub fn apply(spec: &mut Spec, key: &str, text: &str) -> Result<(), ParseError> {
    match find_in(spec.layer, key) {
        Some(option) => say(spec, option, text),
        None => Err(unknown(spec.layer, key)),
    }
}

/// Applies an option of the spec's layer, and remembers that it was said.
///
/// # Errors
/// A bad value, with what would be accepted.
pub fn say(spec: &mut Spec, option: &OptionDef, text: &str) -> Result<(), ParseError> {
    (option.apply)(spec, text)?;
    spec.said.note(option.name, text, false);
    Ok(())
}

/// Applies a secret of the spec's layer, by its name.
///
/// # Errors
/// A name that is none of the layer's secrets, or a bad value; neither says the value.
pub fn apply_secret(spec: &mut Spec, name: &str, text: &str) -> Result<(), ParseError> {
    apply_of(spec.layer.secrets, spec, name, text)?;
    spec.said.note(name, text, true);
    Ok(())
}

/// Applies the option with this name of a table.
///
/// # Errors
/// A name that the table does not have, or a bad value, with what would be accepted.
pub fn apply_of<T>(table: &[OptionDef<T>], spec: &mut T, name: &str, text: &str) -> Result<(), ParseError> {
    apply_in(table.iter(), spec, name, text)
}

fn apply_in<'a, T: 'a>(
    options: impl Iterator<Item = &'a OptionDef<T>> + Clone,
    spec: &mut T,
    name: &str,
    text: &str,
) -> Result<(), ParseError> {
    match options.clone().find(|option| option.name == name) {
        Some(option) => (option.apply)(spec, text),
        None => {
            let names: Vec<_> = options.map(|option| option.name).collect();
            Err(ParseError::new("an option", name, format!("one of {}", names.join(", "))))
        }
    }
}

/// The refusal of an option that a layer does not have.
#[must_use]
pub fn unknown(layer: Layer, key: &str) -> ParseError {
    let flag = key.replace('_', "-");
    let instead = layer.refused.iter().find(|(name, _)| *name == flag).map(|(_, instead)| *instead);
    let what = || format!("an option of the {} layer", layer.name);
    if let Some(instead) = instead {
        return ParseError::new(what(), key, instead);
    }
    let has = |other: &&Layer| of(**other).any(|option| option.name == flag);
    let others: Vec<_> = Layer::all().iter().filter(has).map(|other| other.name).collect();
    match others[..] {
        [] => ParseError::new("an option", key, nearest(layer, &flag)),
        [other] => ParseError::new(what(), key, format!("it only for the {other} layer")),
        [ref first @ .., last] => {
            let all = format!("it only for the {} and {last} layers", first.join(", "));
            ParseError::new(what(), key, all)
        }
    }
}

fn nearest(layer: Layer, flag: &str) -> String {
    match units::nearest(flag, of(layer).map(|option| option.name)) {
        Some(name) => format!("{name} (the closest match)"),
        None => format!("an option listed in `strata {} --help`", layer.command),
    }
}
