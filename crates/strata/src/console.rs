//! The console at which commands of layers run: standard output and error, signals, and the words of the process.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::{Error, ErrorKind};
use layer::{Bench, BenchRequest, Console, Ending, Phase, Ranks, RunContext, Runs, ServicePolicy, Tell};
use workload::spec::Spec;

use crate::hosts::{Carriers, ThisHost, launcher};
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

    /// Begins the run of this number.
    fn session(&self, request: &BenchRequest<'_>, run: u64) -> Result<Session, Error> {
        let BenchRequest { paths, seed, keep, phase_count, record } = *request;
        let mut output = self.output.clone();
        if output.json.is_none() {
            output.json = record.map(|path| units::label_of(path.as_os_str()));
        }
        let mut session = Session::begin_run(run, self.words, &output, paths, seed, keep, None)?;
        session.phase_count = phase_count;
        Ok(session)
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
        let session = self.session(request, session::draw_run(request.seed))?;
        Ok(Box::new(SessionBench { session, manifest: Arc::clone(&self.manifest), by_ranks: Vec::new() }))
    }

    fn ranks(&self) -> Ranks {
        Ranks { count: launcher::ranks(), are_here: launcher::are_here() }
    }

    fn bench_of_ranks(&self, request: &BenchRequest<'_>, specs: &[Spec]) -> Result<Box<dyn Bench>, Error> {
        let run = session::draw_run(request.seed);
        let (programme, carriers) = Carriers::plan(specs, run, request.seed, None)?;
        let mut session = self.session(request, run)?;
        carriers.join(&mut session)?;
        let manifest = Arc::clone(&self.manifest);
        Ok(Box::new(SessionBench { session, manifest, by_ranks: programme.phases }))
    }
}

/// Session of a command that measures.
struct SessionBench {
    session: Session,
    manifest: Arc<Manifest>,
    /// Phases that the processes of a launch have planned.
    by_ranks: Vec<Planned>,
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

    fn run_by_ranks(&mut self, number: usize) -> Result<usize, Error> {
        let planned = self.by_ranks.iter().find(|planned| planned.request == number).cloned();
        let planned = planned.ok_or_else(|| {
            Error::new(ErrorKind::Run, "stage", "a phase that the ranks have not planned")
                .with("spec", number)
        })?;
        self.session.run_phase(&planned)
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
