//! Capabilities of a driver, and how they are listed.

use crate::{Driver, Error};

/// Capabilities of a driver. Help, `strata list`, the docs page and the conformance suite follow from them.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Classes of the layer that it carries out, by name.
    pub classes: &'static [&'static str],
    /// Whether several operations can be in flight for one worker. Where not, only depth 1 is accepted.
    pub asynchronous: bool,
    /// Largest queue depth that it takes.
    pub depth_max: u32,
    /// Whether it measures the tool or the memory and needs no target path.
    pub targetless: bool,
    /// Whether `--direct` means something to it.
    pub direct: bool,
    /// Options of the layer that only this driver (or some) honours, by flag name. Any other such option is refused.
    pub options: &'static [&'static str],
}

impl Capabilities {
    /// Capabilities of a driver without options that takes several operations at once and needs no path.
    #[must_use]
    pub const fn plain(classes: &'static [&'static str], depth_max: u32) -> Self {
        Self { classes, asynchronous: true, depth_max, targetless: true, direct: false, options: &[] }
    }
}

/// A driver that was opened for one worker.
pub struct Opened<Op> {
    /// The driver.
    pub driver: Box<dyn Driver<Op>>,
    /// Notes on requests that had to be done otherwise (a fall-back), or were granted and are worth knowing: for the record.
    pub notes: Vec<String>,
}

/// One line of a layer's table of drivers.
pub struct Registration<Op, Request> {
    /// The name users type (`--engine io_uring`).
    pub name: &'static str,
    /// One line for `strata list` and the docs.
    pub summary: &'static str,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// Opens it for one worker, on that worker's thread.
    pub open: fn(&Request) -> Result<Opened<Op>, Error>,
}

/// Looks a driver up by name.
///
/// # Errors
/// Bad usage that lists the drivers there are.
pub fn find<'a, Op, Request>(
    table: &'a [Registration<Op, Request>],
    name: &str,
) -> Result<&'a Registration<Op, Request>, Error> {
    table.iter().find(|registration| registration.name == name).ok_or_else(|| {
        let names: Vec<_> = table.iter().map(|registration| registration.name).collect();
        Error::usage("engine", format!("there is no engine \"{name}\""))
            .remedy(format!("use one of {}", names.join(", ")))
    })
}
