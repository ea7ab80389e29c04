//! Options of access paths.

use units::parse_u64_in;
use workload::options::OptionDef;
use workload::own_of;
use workload::spec::choice;

use super::AccessPath;
use crate::spec::FsSpec;

/// The options.
pub(crate) static ACCESS_PATHS: &[OptionDef] = &[
    own_of!(
        FsSpec,
        "door",
        None,
        "library|mount|intercept|all",
        "the library only",
        Engine,
        "Access path to a file system over objects: its library, a mount that the run creates, that mount with the interception library, or all three in turn for comparison",
        door,
        |text| {
            let [library, mount, intercept] =
                AccessPath::ALL.each_ref().map(|door| (door.name(), std::slice::from_ref(door)));
            let all: (&str, &[AccessPath]) = ("all", &AccessPath::ALL);
            choice("door", text, &[library, mount, intercept, all]).map(<[AccessPath]>::to_vec)
        }
    ),
    own_of!(
        FsSpec,
        "door-turns",
        None,
        "N",
        "3 with --door all, else 1",
        Run,
        "Turns per door: each turn runs the whole load once and removes its files",
        door_turns,
        |text| parse_u64_in("door-turns", text, 1..=1000).map(|turns| turns as u32)
    ),
];
