//! Services that a layer brings to engines.

use driver::Error;
use rpc::engine::ServiceFactory;

use super::EngineSpec;

/// Service that engines of this build can offer besides measuring.
pub trait EngineService: Sync {
    /// Opens the data that the options of an engine name, or makes them; none where they name none. `log` tells the user of the engine a line.
    ///
    /// # Errors
    /// Options that need data where none are named, and data that cannot be opened or made.
    fn open(&self, spec: &EngineSpec, log: &dyn Fn(&str)) -> Result<Option<Box<dyn Served>>, Error>;
}

/// Data that an engine serves.
pub trait Served {
    /// Targets of the data: each has a service thread.
    fn targets(&self) -> u32;

    /// The data in the engine's first line, after a comma.
    fn words(&self) -> String;

    /// Faults that opening found.
    fn findings(&self) -> Vec<String>;

    /// Exposure that a token does not protect from.
    fn exposure(&self) -> Option<String>;

    /// Services of the engine's tags.
    ///
    /// # Errors
    /// Data that cannot be served.
    fn services(&self) -> Result<ServiceFactory, Error>;

    /// Closes the data once nobody serves them any more.
    ///
    /// # Errors
    /// Data that were not saved.
    fn close(self: Box<Self>) -> Result<(), Error>;
}
