//! The console at which commands of layers run: standard output and error, signals, and the words of the process.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Error;
use layer::{Console, Tell};

use crate::output;
use crate::signals::Attention;

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
}
