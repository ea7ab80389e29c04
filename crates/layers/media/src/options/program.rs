//! Options of the engines that move no data: exec and cpu.

use units::{ParseError, Span};
use workload::option;
use workload::options::OptionDef;
use workload::options::value::{above_zero, some_text, switch};

use super::given;
use crate::spec;

macro_rules! of_program {
    ($name:literal, $value:literal, $default:literal, $help:literal, $field:ident, $parse:expr) => {
        option!($name, None, $value, $default, Engine, $help, |spec, text| {
            let value = $parse(text)?;
            spec::of_mut(spec).options.program.get_or_insert_default().$field = value;
            given(spec, $name);
            Ok(())
        })
    };
}

/// Options of exec and cpu.
pub(super) static PROGRAM: &[OptionDef] = &[
    of_program!("program", "PATH", "none", "exec: the program that each operation runs", path, |text| {
        some_text("program", text)
    }),
    of_program!(
        "program-arguments",
        "WORDS",
        "none",
        "exec: its arguments, separated by white space and not interpreted by a shell",
        arguments,
        |text: &str| Ok::<String, ParseError>(text.to_owned())
    ),
    of_program!(
        "program-output",
        "PREFIX",
        "where strata's output goes",
        "exec: its output goes to PREFIX.stdout and PREFIX.stderr",
        output,
        |text| some_text("program-output", text).map(Some)
    ),
    of_program!(
        "program-time",
        "DURATION",
        "no limit",
        "exec: send SIGTERM to it after this time",
        time_ns,
        |text| above_zero("program-time", text, "5s").map(|span| Some(span.ns()))
    ),
    of_program!(
        "program-grace",
        "DURATION",
        "1s",
        "exec: kill it this long after SIGTERM; 0s kills it at once",
        grace_ns,
        |text: &str| text.parse::<Span>().map(|span| Some(span.ns()))
    ),
    option!(
        "cpu-chunk",
        None,
        "DURATION",
        "50ms",
        Engine,
        "cpu: how long an operation keeps a CPU busy",
        |spec, text| {
            spec::of_mut(spec).options.burn.get_or_insert_default().chunk_ns =
                above_zero("cpu-chunk", text, "10ms")?.ns();
            given(spec, "cpu-chunk");
            Ok(())
        }
    ),
    option!(
        "cpu-sort",
        None,
        "",
        "off",
        Engine,
        "cpu: sort numbers in memory instead of spinning in a loop",
        |spec, text| {
            spec::of_mut(spec).options.burn.get_or_insert_default().sorts = switch("cpu-sort", text)?;
            given(spec, "cpu-sort");
            Ok(())
        }
    ),
];
