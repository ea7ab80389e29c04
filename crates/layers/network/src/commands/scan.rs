//! `strata net scan`: interfaces, and which one a load would go through.

use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::Error;
use host::topology;
use layer::Console;
use rpc::interface::{Cache, Machine, Overrides, Want, choose, report, table, targets};

use crate::providers;

/// The command.
pub(super) fn command() -> Command {
    let word = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    Command::new("scan")
        .about(
            "Show network interfaces, their speeds, NUMA nodes and providers, and which one a load would use",
        )
        .arg(
            Arg::new("to")
                .value_name("TARGET")
                .num_args(0..)
                .help("Target of the load: tcp://HOST:PORT, or a host"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON"))
        .arg(
            Arg::new("refresh")
                .long("refresh")
                .action(ArgAction::SetTrue)
                .help("Scan again and ignore the cached scan"),
        )
        .arg(word("provider", "NAME", "For this provider: tcp, ofi+tcp, ofi+verbs, ... [default: tcp]"))
        .arg(word("interface", "NAME", "If this interface is requested [default: $OFI_INTERFACE]"))
        .arg(word("domain", "NAME", "If this domain is requested [default: $OFI_DOMAIN]"))
}

/// Scans and shows.
///
/// # Errors
/// When the kernel does not list its interfaces, or an interface was asked for that does not fit.
pub(super) fn run(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let word = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let provider = word("provider").unwrap_or("tcp");
    let cache = Cache::from_environment();
    if matches.get_flag("refresh") {
        match std::fs::remove_file(cache.path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::system("scan", "cannot remove the cached scan", error)
                    .with("path", cache.path().display()));
            }
            _ => {}
        }
    }
    let found = cache.find(&Machine::default(), &providers)?;
    let place = topology::current_place();
    let overrides = Overrides::from_environment(word("interface"), word("domain"));
    let named: Vec<&str> =
        matches.get_many::<String>("to").into_iter().flatten().map(String::as_str).collect();
    let targets = targets(named);
    let want = Want { provider, place, targets: &targets, overrides: &overrides };
    // Looking takes nobody's turn.
    let decision = choose(&found.scan, &want, &mut cache.turns(false))?;
    if matches.get_flag("json") {
        console.print(&format!("{:#}\n", report(&found, provider, place, &decision)))?;
    } else {
        console.print(&table(&found, provider, place, &decision, console.width()))?;
    }
    Ok(0)
}
