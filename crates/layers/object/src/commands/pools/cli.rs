//! The words of `strata pool` and `strata container`.

use crate::plan::ObjectSpec;
use clap::{Arg, ArgAction, ArgMatches, Command};
use driver::Error;
use vos::Checksum;
use vos::PoolOptions;
use workload::options;
use workload::spec::Spec;

const TARGETS: &str = "vos:DIR, or engine://HOST:PORT[/POOL[/CONTAINER]]";
/// Options of loads that mean the same when a pool is made.
const OF_POOLS: &[&str] = &["scm", "nvme", "threshold", "store-targets"];

fn word(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn target() -> Arg {
    Arg::new("target").value_name("TARGET").required(true).help(TARGETS)
}

fn label() -> Arg {
    Arg::new("label").value_name("LABEL").help("Container, if the target does not name it")
}

fn destroy_data() -> Arg {
    Arg::new("destroy-data")
        .long("destroy-data")
        .action(ArgAction::SetTrue)
        .help("Destroy it with all its contents")
}

fn verb(name: &'static str, about: &'static str) -> Command {
    Command::new(name)
        .about(about)
        .arg(target())
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("As JSON"))
        .arg(word("token-file", "FILE", "File with the secret; required by engines that are not on loopback"))
}

/// `strata pool`.
pub(in crate::commands) fn pool() -> Command {
    Command::new("pool")
        .about("Create, list, query, check or destroy pools of embedded stores and engines")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            verb("create", "Create a pool in a directory")
                .arg(word("scm", "SIZE", "Mapped memory, in total for all targets [default: 2g]"))
                .arg(word("nvme", "SIZE", "Data file size, in total for all targets [default: 0, none]"))
                .arg(word("threshold", "SIZE", "Store values from this size on in the data file [default: 4k]"))
                .arg(word("store-targets", "N", "Number of targets that objects are spread over [default: 1]")),
        )
        .subcommand(verb("list", "List the pools there"))
        .subcommand(verb("query", "Show a pool: space, index, containers and the findings of its opening"))
        .subcommand(
            verb("check", "Verify every checksum and reference of a pool that no process has open; compare copies with each other and parity with data")
                .arg(
                    Arg::new("repair")
                        .long("repair")
                        .action(ArgAction::SetTrue)
                        .help("Repair what can be repaired, then check again; by default nothing is changed"),
                ),
        )
        .subcommand(verb("destroy", "Destroy a pool").arg(destroy_data()))
}

/// `strata container`.
pub(in crate::commands) fn container() -> Command {
    Command::new("container")
        .about("Create, list, query or destroy containers of a pool")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            verb("create", "Make a container").arg(label()).arg(word(
                "checksum",
                "KIND",
                "off, crc16, crc32, crc64, sha1, sha256, sha512 or adler32, verified on every read [default: crc32]",
            )),
        )
        .subcommand(verb("list", "List the containers of a pool"))
        .subcommand(verb("query", "Show a container").arg(label()))
        .subcommand(
            verb("snapshot", "Create or destroy a snapshot of a container")
                .arg(label())
                .arg(word("destroy", "EPOCH", "Destroy the snapshot with this epoch"))
                .arg(destroy_data()),
        )
        .subcommand(verb("destroy", "Destroy a container").arg(label()).arg(destroy_data()))
}

/// Applies options that loads have too.
fn spec_of(matches: &ArgMatches, names: &[&str]) -> Result<Spec, Error> {
    let mut spec = Spec { layer: crate::LAYER, ..Spec::default() };
    for name in names {
        if let Some(text) = matches.get_one::<String>(name) {
            options::apply(&mut spec, name, text)
                .map_err(|error| Error::usage("options", format!("--{name}: {error}")))?;
        }
    }
    Ok(spec)
}

/// Options that a pool is made with.
pub(super) fn pool_options(matches: &ArgMatches) -> Result<PoolOptions, Error> {
    let spec = spec_of(matches, OF_POOLS)?;
    let spec = ObjectSpec::of(&spec);
    let default = PoolOptions::default();
    Ok(PoolOptions {
        targets: spec.targets.unwrap_or(default.targets),
        scm_bytes: spec.scm.map_or(default.scm_bytes, |size| size.0),
        nvme_bytes: spec.nvme.map_or(default.nvme_bytes, |size| size.0),
        threshold_bytes: spec.threshold.map_or(default.threshold_bytes, |size| size.0),
        open: default.open,
        uuid: None,
    })
}

/// The checksum of a container that is made.
pub(super) fn checksum(matches: &ArgMatches) -> Result<Checksum, Error> {
    Ok(ObjectSpec::of(&spec_of(matches, &["checksum"])?).checksum.unwrap_or_default())
}
