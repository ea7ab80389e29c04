//! Faults of a command line or a job file, and their origins.

use std::fmt;
use std::rc::Rc;

use driver::Error;

/// Where an option was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// On the command line, for a job or for all.
    Line {
        /// Job that it belongs to; none before the first `--name`.
        job: Option<Rc<str>>,
    },
    /// In a job file.
    File {
        path: Rc<str>,
        /// Counted from 1.
        line: usize,
        /// None outside of all sections.
        section: Option<Rc<str>>,
    },
    /// Nowhere: the job lacks it, or has it from several places.
    Job(Rc<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { job: None } => out.write_str("command line"),
            Self::Line { job: Some(job) } => write!(out, "command line, job {}", shown(job)),
            Self::Job(name) => write!(out, "job {}", shown(name)),
            Self::File { path, line, section } => {
                write!(out, "job file {}, line {line}", shown(path))?;
                section.as_ref().map_or(Ok(()), |section| write!(out, ", section [{}]", shown(section)))
            }
        }
    }
}

/// A text of the user for a message of one line: cut, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    let mut characters = text.chars();
    let mut cut: String =
        characters.by_ref().take(CHARACTERS_MAX).map(|c| if c.is_control() { '?' } else { c }).collect();
    if characters.next().is_some() {
        cut.push_str("...");
    }
    cut
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) place: Option<Origin>,
    /// Option that it is about.
    pub(crate) key: Option<String>,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { place: None, key: None, message: message.into() }
    }

    /// About an option, wherever it was given.
    pub(crate) fn of(key: &str, message: impl Into<String>) -> Self {
        Self { place: None, key: Some(key.to_owned()), message: message.into() }
    }

    pub(crate) fn at(mut self, place: &Origin) -> Self {
        self.place.get_or_insert_with(|| place.clone());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(out, "{place}, ")?;
        }
        if let Some(key) = &self.key {
            write!(out, "{}: ", shown(key))?;
        }
        out.write_str(&self.message)
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::usage("fio", fault.to_string())
    }
}
