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
    of_program!("program", "PATH", "none", "exec: the program that an operation runs", path, |text| {
        some_text("program", text)
    }),
    of_program!(
        "program-arguments",
        "WORDS",
        "none",
        "exec: its arguments, parted by white space; no shell reads them",
        arguments,
        |text: &str| Ok::<String, ParseError>(text.to_owned())
    ),
    of_program!(
        "program-output",
        "PREFIX",
        "where strata's own goes",
        "exec: its output goes to PREFIX.stdout and PREFIX.stderr",
        output,
        |text| some_text("program-output", text).map(Some)
    ),
    of_program!(
        "program-time",
        "DURATION",
        "until it ends by itself",
        "exec: it is told to end after this time",
        time_ns,
        |text| above_zero("program-time", text, "5s").map(|span| Some(span.ns()))
    ),
    of_program!(
        "program-grace",
        "DURATION",
        "1s",
        "exec: it is killed this long after it was told to end; 0s kills it at once",
        grace_ns,
        |text: &str| text.parse::<Span>().map(|span| Some(span.ns()))
    ),
    option!(
        "cpu-chunk",
        None,
        "DURATION",
        "50ms",
        Engine,
        "cpu: how long an operation keeps the processor busy",
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
        "cpu: sort numbers in memory instead of turning round and round",
        |spec, text| {
            spec::of_mut(spec).options.burn.get_or_insert_default().sorts = switch("cpu-sort", text)?;
            given(spec, "cpu-sort");
            Ok(())
        }
    ),
];
