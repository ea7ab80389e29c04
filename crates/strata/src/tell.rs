//! Messages to server processes over their control addresses.

use std::time::Duration;

use dialects::{Tell, Told};
use driver::Error;
use fleet::{ConnectRequest, Fleet};
use layer::masters::CONTROL_PORT;
use layer::secret;

use crate::output::{self, print};

/// Longest wait for a connection.
const WAIT: Duration = Duration::from_secs(10);

/// Tells all hosts; one line a host. 1 when one of them was not reached or refused, else 0.
///
/// # Errors
/// Hosts that are none, and a secret that cannot be read.
pub(crate) fn tell(tell: &Tell) -> Result<u8, Error> {
    let hosts = fleet::parse_hosts(&tell.hosts.join(","), CONTROL_PORT)?;
    let secret = secret::shared_or_environment(tell.token_file.as_deref())?;
    let fleet = Fleet::connect(ConnectRequest { hosts, secret, tls: false, timeout: WAIT })?;
    let answers: Vec<Result<String, Error>> = match tell.what {
        Told::Interrupt => {
            let interrupted = |job: Option<String>| match job {
                Some(name) => format!("interrupted {name}"),
                None => "no phase ran".to_owned(),
            };
            fleet.interrupt().into_iter().map(|answer| answer.map(interrupted)).collect()
        }
        Told::Quit => fleet.quit().into_iter().map(|answer| answer.map(|()| "ends".to_owned())).collect(),
        Told::Ping => fleet
            .describe()
            .into_iter()
            .map(|answer| answer.map(|it| format!("lives: strata {} on {}", it.strata_version, it.host_name)))
            .collect(),
    };
    let mut has_failed = false;
    for (host, answer) in fleet.addresses().zip(answers) {
        match answer {
            Ok(line) => print(&format!("{host}: {line}\n"))?,
            Err(error) => {
                has_failed = true;
                output::tell(format_args!("strata: {host}: {error}"));
            }
        }
    }
    Ok(u8::from(has_failed))
}
