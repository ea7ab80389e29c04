//! Live mode that the user asked for.

use std::path::PathBuf;
use std::str::FromStr;

use units::{ParseError, path_of};

/// Which view of the running work is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LiveMode {
    /// The view that fits where standard error leads: the progress line on a terminal, plain lines elsewhere; none
    /// where CSV rows already run over the terminal.
    #[default]
    Auto,
    /// The progress line; plain lines where standard error is no terminal.
    Line,
    /// The full screen; falls back to [`LiveMode::Line`], saying so, where standard error is no terminal.
    Full,
    /// Nothing.
    None,
}

impl LiveMode {
    /// All modes by the name that a user types.
    pub const NAMES: &[(&str, LiveMode)] =
        &[("auto", Self::Auto), ("line", Self::Line), ("full", Self::Full), ("none", Self::None)];
}

impl FromStr for LiveMode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let known = Self::NAMES.iter().find(|(name, _)| *name == text);
        known
            .map(|(_, mode)| *mode)
            .ok_or_else(|| ParseError::new("a live view", text, "auto, line, full or none"))
    }
}

/// Where CSV rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CsvTarget {
    /// Standard output.
    Stdout,
    /// A file, made or emptied before the run begins.
    File(PathBuf),
}

impl FromStr for CsvTarget {
    type Err = ParseError;

    /// Reads `-` or `stdout` as standard output and anything else as a path (`./stdout` for a file of that name).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "" => Err(ParseError::new("a target of CSV rows", text, "a path, or - for standard output")),
            "-" | "stdout" => Ok(Self::Stdout),
            path => Ok(Self::File(path_of(path).into_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_read_by_its_name() {
        assert_eq!("auto".parse(), Ok(LiveMode::Auto));
        assert_eq!("line".parse(), Ok(LiveMode::Line));
        assert_eq!("full".parse(), Ok(LiveMode::Full));
        assert_eq!("none".parse(), Ok(LiveMode::None));
    }

    #[test]
    fn an_unknown_mode_is_one_line_with_what_is_possible() {
        let error = "Full\n".parse::<LiveMode>().unwrap_err().to_string();
        assert_eq!(error, r#""Full\n" is not a live view: use auto, line, full or none"#);
    }

    #[test]
    fn rows_go_to_standard_output_or_a_file() {
        assert_eq!("-".parse(), Ok(CsvTarget::Stdout));
        assert_eq!("stdout".parse(), Ok(CsvTarget::Stdout));
        assert_eq!("./stdout".parse(), Ok(CsvTarget::File("./stdout".into())));
        let error = "".parse::<CsvTarget>().unwrap_err().to_string();
        assert_eq!(error, r#""" is not a target of CSV rows: use a path, or - for standard output"#);
    }
}
