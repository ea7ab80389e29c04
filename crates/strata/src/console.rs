//! The console at which commands of layers run: standard output and error, signals, and the words of the process.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Error;
use layer::{Bench, BenchRequest, Console, Ending, Phase, RunContext, Runs, ServicePolicy, Tell};

use crate::hosts::ThisHost;
use crate::manifest::Manifest;
use crate::options::OutputSpec;
use crate::planning::{self, Layers, Planned};
use crate::session::{self, Session};
use crate::signals::Attention;
use crate::{lifetime, output};

/// Terminal of this process.
pub(crate) struct Terminal<'a> {
    /// Words that it was called with.
    words: &'a [String],
    /// Output of a run of the command.
    output: OutputSpec,
    /// List of what a run of the command makes.
    manifest: Arc<Manifest>,
}

impl<'a> Terminal<'a> {
    /// The terminal of this process, which was called with these words.
    pub(crate) fn new(words: &'a [String], output: OutputSpec) -> Self {
        Self { words, output, manifest: Arc::default() }
    }
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

    fn context(&self, keep: bool) -> RunContext {
        planning::context(&self.manifest, keep)
    }

    fn host(&self) -> Arc<dyn fleet::SessionHost> {
        Arc::new(ThisHost { policy: Some(ServicePolicy::default()), confinement: None })
    }

    fn draw_seed(&self) -> u64 {
        session::draw_seed()
    }

    fn bench(&self, request: &BenchRequest<'_>) -> Result<Box<dyn Bench>, Error> {
        let BenchRequest { paths, seed, keep, phase_count, record } = *request;
        let mut output = self.output.clone();
        if output.json.is_none() {
            output.json = record.map(|path| units::label_of(path.as_os_str()));
        }
        let mut session = Session::begin(self.words, &output, paths, seed, keep, None)?;
        session.phase_count = phase_count;
        Ok(Box::new(SessionBench { session, manifest: Arc::clone(&self.manifest) }))
    }
}

/// Session of a command that measures.
struct SessionBench {
    session: Session,
    manifest: Arc<Manifest>,
}

impl Bench for SessionBench {
    fn adopt(&mut self, runs: Runs) -> Result<(), Error> {
        self.session.adopt(Layers { runs, manifest: Arc::clone(&self.manifest) })
    }

    fn record(&mut self) -> &mut dyn Any {
        &mut self.session.record
    }

    fn fill(&mut self, phase: &Phase) -> Result<(), Error> {
        self.session.fill(&Planned::of(phase.clone()))
    }

    fn run_phase(&mut self, phase: &Phase) -> Result<usize, Error> {
        self.session.run_phase(&Planned::of(phase.clone()))
    }

    fn show(&mut self, text: &str) -> Result<(), Error> {
        self.session.show(text)
    }

    fn is_interrupted(&self) -> bool {
        self.session.is_interrupted()
    }

    fn finish(self: Box<Self>, result: Result<(), Error>) -> Result<u8, Error> {
        self.session.finish(result)
    }
}
