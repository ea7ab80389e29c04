//! The console at which commands of layers run: standard output and error, signals, and the words of the process.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Error;
use layer::{Console, Ending, RunContext, Tell};

use crate::planning::Layers;
use crate::signals::Attention;
use crate::{lifetime, output};

/// Terminal of this process.
pub(crate) struct Terminal<'a> {
    /// Words that it was called with.
    pub(crate) words: &'a [String],
}

impl Console for Terminal<'_> {
    fn words(&self) -> &[String] {
        self.words
    }

    fn print(&self, text: &str) -> Result<(), Error> {
        output::print(text)
    }

    fn tell(&self) -> Tell {
        |line| output::tell(line)
    }

    fn width(&self) -> usize {
        output::page().0
    }

    fn interrupts(&self, flag: &Arc<AtomicBool>) -> Result<Box<dyn Any>, Error> {
        Ok(Box::new(Attention::begin(flag)?))
    }

    fn ending(&self, until_stdin_closes: bool) -> Result<Ending, Error> {
        lifetime::begin(until_stdin_closes)
    }

    fn context(&self) -> RunContext {
        Layers::new(false).runs.context().clone()
    }
}
