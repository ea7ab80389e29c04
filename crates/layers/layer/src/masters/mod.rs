//! Masters: other processes that drive a phase. Each gets the plan and its own number in it over its control channel, all begin together, and what
//! they measured is merged.

mod coordinator;
mod job;

use driver::Error;
use fleet::HostAddress;
use workload::plan::MasterPlan;
use workload::spec::Spec;

use crate::Control;
use crate::secret;

pub use coordinator::{Driven, DrivenOutcome, drive};
pub use job::{MasterJob, MasterPart, MasterSettings, prepare};

/// Port of control addresses that have none: that of elbencho's services.
pub const CONTROL_PORT: u16 = 1611;

/// Addresses of hosts that an option names.
///
/// # Errors
/// Bad usage: words that are no addresses.
pub fn addresses(option: &'static str, words: &[String]) -> Result<Vec<HostAddress>, Error> {
    fleet::parse_hosts(&words.join(","), CONTROL_PORT).map_err(|error| error.with("option", option))
}

/// Masters that a spec names by the control addresses of their hosts (`--clients`); none where this process drives.
///
/// # Errors
/// Bad usage: words that are no addresses.
pub fn clients(spec: &Spec) -> Result<Vec<MasterPlan>, Error> {
    if spec.clients.is_empty() {
        return Ok(Vec::new());
    }
    let master = |host: HostAddress| MasterPlan {
        label: host.to_string(),
        control: host.to_string(),
        rank: None,
        tag: None,
        endpoints: Vec::new(),
    };
    Ok(addresses("clients", &spec.clients)?.into_iter().map(master).collect())
}

/// Secrets of the way to the masters of a spec.
///
/// # Errors
/// When the file with the secret cannot be read, or others can read it.
pub fn control(spec: &Spec) -> Result<Control, Error> {
    Ok(Control {
        secret: secret::shared_or_environment(spec.token_file.as_deref())?,
        tls: spec.tls,
        domain: None,
    })
}
