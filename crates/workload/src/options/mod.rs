//! The tables of options: parser, help, completions, man page, job files and docs are made from them. One table a layer, over the
//! same [`Spec`]; the options of media that hold for the network too stand in the table of media alone.

macro_rules! option {
    ($name:literal, $short:expr, $value:literal, $default:literal, $group:ident, $help:literal, $apply:expr) => {
        OptionDef {
            name: $name,
            short: $short,
            value: $value,
            default: $default,
            help: $help,
            group: Group::$group,
            apply: $apply,
        }
    };
}

mod engine;
mod media;
mod network;
mod value;

use units::ParseError;

use crate::spec::{Layer, Spec};

pub use engine::ENGINE;
pub use media::OPTIONS;
pub use network::{COMMON, NETWORK};
pub use value::{path, switch};

/// Heading that an option stands under in help and docs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// What is done.
    Workload,
    /// How much, for how long, how fast.
    Load,
    /// With which driver.
    Engine,
    /// What is written and checked.
    Data,
    /// Where it runs and how it ends.
    Run,
    /// What comes out of it.
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
    /// What stands for the value in help; empty for a switch, which in a job file is `true` or `false`.
    pub value: &'static str,
    /// What holds when it is not given, in words.
    pub default: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// Heading.
    pub group: Group,
    /// Parses `text` into the spec.
    pub apply: fn(&mut T, &str) -> Result<(), ParseError>,
}

impl<T> OptionDef<T> {
    /// Whether it takes no value on the command line.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.value.is_empty()
    }
}

/// The options of a layer, each once, in the order of help.
pub fn of(layer: Layer) -> impl Iterator<Item = &'static OptionDef> {
    let is_network = layer == Layer::Network;
    let own = NETWORK.iter().filter(move |_| is_network);
    own.chain(OPTIONS.iter().filter(move |option| !is_network || COMMON.contains(&option.name)))
}

/// Whether an option may be given several times, each adding to what was said before.
#[must_use]
pub fn is_repeatable(name: &str) -> bool {
    matches!(name, "endpoint" | "master")
}

/// The option of a flag or job-file key of the media layer.
#[must_use]
pub fn find(name: &str) -> Option<&'static OptionDef> {
    find_in(Layer::Media, name)
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
        Some(option) => (option.apply)(spec, text),
        None => Err(unknown(spec.layer, key)),
    }
}

/// The refusal of an option that a layer does not have.
#[must_use]
pub fn unknown(layer: Layer, key: &str) -> ParseError {
    let flag = key.replace('_', "-");
    match layer {
        Layer::Network => match network::instead_of(&flag) {
            Some(instead) => ParseError::new("an option of the network layer", key, instead),
            None => ParseError::new("an option", key, nearest(layer, &flag)),
        },
        Layer::Media if NETWORK.iter().any(|option| option.name == flag) => {
            ParseError::new("an option of the media layer", key, "it for the network layer alone")
        }
        Layer::Media => ParseError::new("an option", key, nearest(layer, &flag)),
    }
}

fn nearest(layer: Layer, flag: &str) -> String {
    match units::nearest(flag, of(layer).map(|option| option.name)) {
        Some(name) => format!("{name} (the nearest there is)"),
        None => {
            let command = if layer == Layer::Network { "net" } else { "media" };
            format!("an option of `strata {command} --help`")
        }
    }
}
