//! Short help of commands: the options that most users need, and examples.

/// A command line that shows how a command is used.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// Purpose in a few words: `4 KiB random reads, queue depth 32`.
    pub about: &'static str,
    /// The command line without the name of the program.
    pub words: &'static str,
}

impl Example {
    /// An example of this purpose.
    #[must_use]
    pub const fn new(about: &'static str, words: &'static str) -> Self {
        Self { about, words }
    }
}

/// Short help of a command (`-h`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Help {
    /// Names of the options that it shows; the others are in `--help` alone.
    pub options: &'static [&'static str],
    /// Examples, the most common first.
    pub examples: &'static [Example],
}

impl Help {
    /// No options and no examples.
    pub const NONE: Self = Self { options: &[], examples: &[] };
}
