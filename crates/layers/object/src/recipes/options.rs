//! Options of `strata object recipes`.

use crate::options::DRIVER_OPTIONS;
use units::{ParseError, Span, parse_u64_in};
use workload::options::value::names;
use workload::options::{self, Group, OptionDef};

use super::table::RECIPES;

/// Options of the recipes' load.
#[derive(Clone, Debug, Default)]
pub(super) struct RecipesSpec {
    /// Pairs of phases a recipe.
    pub(super) rounds: Option<u32>,
    /// Length of a phase.
    pub(super) time: Option<Span>,
    /// Names of those that are measured; all where none are given.
    pub(super) only: Vec<String>,
}

/// Options of a load that hold for all phases.
const OF_LOADS: &[&str] = &["threads", "depth", "seed", "cores", "numa", "keep"];
/// Options that recipes set themselves.
const OF_RECIPES: &[&str] = &["class", "containers", "object-names", "reopen"];

/// The options of loads that hold here too.
pub(super) fn of_loads() -> impl Iterator<Item = &'static OptionDef> {
    let is_shared = |name: &str| OF_LOADS.contains(&name) || DRIVER_OPTIONS.contains(&name);
    options::of(crate::LAYER)
        .filter(move |option| is_shared(option.name) && !OF_RECIPES.contains(&option.name))
}

/// Options of its own.
pub(super) static OWN: &[OptionDef<RecipesSpec>] = &[
    OptionDef {
        name: "rounds",
        short: None,
        value: "N",
        default: "8",
        help: "Number of phase pairs (without and with) per recipe; 2 to 100",
        group: Group::Load,
        apply: |spec, text| {
            spec.rounds = Some(parse_u64_in("rounds", text, 2..=100)? as u32);
            Ok(())
        },
    },
    OptionDef {
        name: "time",
        short: None,
        value: "DURATION",
        default: "300ms",
        help: "Length of one phase",
        group: Group::Load,
        apply: |spec, text| {
            let time: Span = text.parse()?;
            if time.ns() == 0 {
                return Err(ParseError::new("a length of a phase", text, "more than 0, such as 300ms"));
            }
            spec.time = Some(time);
            Ok(())
        },
    },
    OptionDef {
        name: "only",
        short: None,
        value: "NAME[,NAME...]",
        default: "all recipes",
        help: "Recipes to measure, by name",
        group: Group::Workload,
        apply: |spec, text| {
            spec.only.extend(names("a recipe", text, RECIPES.iter().map(|recipe| recipe.name))?);
            Ok(())
        },
    },
];
