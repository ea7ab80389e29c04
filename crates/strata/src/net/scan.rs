//! `strata net scan`: interfaces, and which one a load would go through.

use clap::ArgMatches;
use driver::Error;
use host::topology;
use rpc::interface::{Cache, Machine, Overrides, Want, choose, report, table, targets};

use crate::output::{page, print};

/// Scans and shows.
///
/// # Errors
/// When the kernel does not list its interfaces, or an interface was asked for that does not fit.
pub(crate) fn scan(matches: &ArgMatches) -> Result<u8, Error> {
    let word = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let provider = word("provider").unwrap_or("tcp");
    let cache = Cache::from_environment();
    if matches.get_flag("refresh") {
        match std::fs::remove_file(cache.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::system("scan", "cannot remove what was kept of the last scan", error)
                    .with("path", cache.path().display()));
            }
            _ => {}
        }
    }
    let found = cache.find(&Machine::default(), &network::providers)?;
    let place = topology::current_place();
    let overrides = Overrides::from_environment(word("interface"), word("domain"));
    let named: Vec<&str> =
        matches.get_many::<String>("to").into_iter().flatten().map(String::as_str).collect();
    let targets = targets(named);
    let want = Want { provider, place, targets: &targets, overrides: &overrides };
    // Looking takes nobody's turn.
    let decision = choose(&found.scan, &want, &mut cache.turns(false))?;
    if matches.get_flag("json") {
        print(&format!("{:#}\n", report(&found, provider, place, &decision)))?;
    } else {
        print(&table(&found, provider, place, &decision, page().0))?;
    }
    Ok(0)
}
