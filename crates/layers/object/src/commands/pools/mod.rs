//! `strata pool` and `strata container`: what stores hold, made, listed, queried and destroyed by name.

mod check;
mod cli;
mod directory;
mod engine;
mod text;

use clap::ArgMatches;
use driver::{Error, ErrorKind};
use layer::Console;
use vos::Checksum;
use vos::ContainerInfo;
use vos::{PoolOptions, PoolUsage};

pub(super) use cli::{container, pool};

use crate::load::directory_of;
use object_service::PoolFacts;

/// Operations of a store on its pools and containers.
trait Admin {
    /// Its pools.
    fn pools(&mut self) -> Result<Vec<PoolFacts>, Error>;

    /// The pool that the target names.
    fn pool(&mut self) -> Result<PoolFacts, Error>;

    /// Usage of the space of the pool.
    fn usage(&mut self) -> Result<PoolUsage, Error>;

    /// Makes a pool.
    fn create_pool(&mut self, options: &PoolOptions) -> Result<PoolFacts, Error>;

    /// Contents that would go with the pool.
    fn held(&mut self) -> Result<Held, Error>;

    /// Destroys the pool with all that is in it.
    fn destroy_pool(&mut self) -> Result<(), Error>;

    /// Containers of the pool.
    fn containers(&mut self) -> Result<Vec<ContainerInfo>, Error>;

    /// One of them.
    fn container(&mut self, label: &str) -> Result<ContainerInfo, Error>;

    /// Makes a container.
    fn create_container(&mut self, label: &str, checksum: Checksum) -> Result<ContainerInfo, Error>;

    /// Destroys a container with all that is in it.
    fn destroy_container(&mut self, label: &str) -> Result<(), Error>;

    /// Makes a snapshot of a container: its epoch.
    fn create_snapshot(&mut self, label: &str) -> Result<u64, Error>;

    /// Destroys a snapshot.
    fn destroy_snapshot(&mut self, label: &str, epoch: u64) -> Result<(), Error>;

    /// Ends it in order.
    fn close(self: Box<Self>) -> Result<(), Error>;
}

/// Contents of a pool, as far as can be told without opening it.
struct Held {
    name: String,
    /// None: their table cannot be read.
    containers: Option<usize>,
}

/// The store of a target, and the container that the target names too.
fn open(matches: &ArgMatches) -> Result<(Box<dyn Admin>, Option<String>), Error> {
    let target = matches.get_one::<String>("target").map_or("", String::as_str);
    if let Some(directory) = directory_of(target) {
        return Ok((Box::new(directory::Directory::new(directory)), None));
    }
    if target.starts_with("engine:") || target.starts_with("engine+") {
        let token_file = matches.get_one::<String>("token-file").map(|file| units::path_of(file));
        let (engine, container) = engine::Remote::connect(target, token_file.as_deref())?;
        return Ok((Box::new(engine), container));
    }
    Err(not_managed(target))
}

fn not_managed(target: &str) -> Error {
    Error::usage("target", format!("strata does not manage the pools of {target:?}")).remedy(
        "accepted: vos:DIR and engine://HOST:PORT[/POOL[/CONTAINER]]; clusters have their own tools (dmg, ceph, aws)",
    )
}

/// `strata pool ...`.
///
/// # Errors
/// A request that is refused, or an operation that could not be done.
pub(super) fn run_pool(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let Some((what, matches)) = matches.subcommand() else { return Ok(2) };
    if what == "check" {
        return check::run(matches, console);
    }
    let (mut store, container) = open(matches)?;
    if let Some(container) = container {
        return Err(Error::usage("pool", "the target also names a container")
            .with("container", container)
            .remedy("leave it out, or use strata container"));
    }
    let shows_json = matches.get_flag("json");
    let result = match what {
        "create" => store
            .create_pool(&cli::pool_options(matches)?)
            .and_then(|facts| show(console, &facts, shows_json, text::pool)),
        "list" => {
            store.pools().and_then(|pools| show(console, &pools, shows_json, |pools| text::pools(pools)))
        }
        "query" => store.pool().and_then(|mut facts| {
            facts.usage = Some(store.usage()?);
            show(console, &facts, shows_json, text::pool)
        }),
        _ => destroy_pool(store.as_mut(), matches, console),
    };
    let closed = store.close();
    result.and(closed).map(|()| 0)
}

fn destroy_pool(store: &mut dyn Admin, matches: &ArgMatches, console: &dyn Console) -> Result<(), Error> {
    let Held { name, containers } = store.held()?;
    if containers != Some(0) && !matches.get_flag("destroy-data") {
        let what = "the pool holds containers that this command did not create";
        let containers = containers.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        return Err(Error::new(ErrorKind::Unsafe, "pool", what)
            .with("pool", &name)
            .with("containers", containers)
            .remedy("add --destroy-data to destroy them too"));
    }
    store.destroy_pool()?;
    console.print(&format!("destroyed pool {name}\n"))
}

/// `strata container ...`.
///
/// # Errors
/// A request that is refused, or an operation that could not be done.
pub(super) fn run_container(matches: &ArgMatches, console: &dyn Console) -> Result<u8, Error> {
    let Some((what, matches)) = matches.subcommand() else { return Ok(2) };
    let (mut store, named) = open(matches)?;
    let shows_json = matches.get_flag("json");
    let given = matches.try_get_one::<String>("label").ok().flatten().cloned();
    let label = || match (&given, &named) {
        (Some(given), Some(named)) if given != named => {
            Err(Error::usage("container", "the target names a different container")
                .with("label", given)
                .with("target_names", named)
                .remedy("use only one of them"))
        }
        (Some(label), _) | (None, Some(label)) => Ok(label.clone()),
        (None, None) => Err(Error::usage("container", "no label").remedy("add it after the target")),
    };
    let result = match what {
        "list" => {
            store.containers().and_then(|all| show(console, &all, shows_json, |all| text::containers(all)))
        }
        "create" => {
            let checksum = cli::checksum(matches)?;
            label()
                .and_then(|label| store.create_container(&label, checksum))
                .and_then(|info| show(console, &info, shows_json, text::container))
        }
        "query" => label()
            .and_then(|label| store.container(&label))
            .and_then(|info| show(console, &info, shows_json, text::container)),
        "snapshot" => label().and_then(|label| snapshot(store.as_mut(), &label, matches, console)),
        _ => label().and_then(|label| destroy_container(store.as_mut(), &label, matches, console)),
    };
    let closed = store.close();
    result.and(closed).map(|()| 0)
}

/// Makes a snapshot, or destroys one. What snapshots there are, a query shows.
fn snapshot(
    store: &mut dyn Admin,
    label: &str,
    matches: &ArgMatches,
    console: &dyn Console,
) -> Result<(), Error> {
    let Some(text) = matches.get_one::<String>("destroy") else {
        let epoch = store.create_snapshot(label)?;
        return if matches.get_flag("json") {
            console.print(&format!("{}\n", serde_json::json!({ "label": label, "epoch": epoch })))
        } else {
            console.print(&format!("snapshot {epoch} of container {label}\n"))
        };
    };
    let epoch: u64 = text.parse().map_err(|_| {
        Error::usage("container", format!("--destroy {text}: an epoch must be a whole number"))
    })?;
    let known = store.container(label)?.snapshots;
    if !known.contains(&epoch) {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        let there =
            if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        let error = Error::usage("container", "the container has no snapshot with this epoch");
        return Err(error.with("label", label).with("epoch", epoch).remedy(there));
    }
    if !matches.get_flag("destroy-data") {
        let what = "this command did not create the snapshot";
        return Err(Error::new(ErrorKind::Unsafe, "container", what)
            .with("label", label)
            .with("epoch", epoch)
            .remedy(
                "add --destroy-data to destroy it: the next aggregation then removes data that only this snapshot shows",
            ));
    }
    store.destroy_snapshot(label, epoch)?;
    console.print(&format!("destroyed snapshot {epoch} of container {label}\n"))
}

fn destroy_container(
    store: &mut dyn Admin,
    label: &str,
    matches: &ArgMatches,
    console: &dyn Console,
) -> Result<(), Error> {
    let info = store.container(label)?;
    if !matches.get_flag("destroy-data") {
        return Err(Error::new(ErrorKind::Unsafe, "container", "this command did not create the container")
            .with("label", &info.label)
            .remedy("add --destroy-data to destroy it with all its contents"));
    }
    store.destroy_container(label)?;
    console.print(&format!("destroyed container {label}\n"))
}

/// Prints a thing as JSON or as text.
fn show<T: serde::Serialize + ?Sized>(
    console: &dyn Console,
    thing: &T,
    as_json: bool,
    text: fn(&T) -> String,
) -> Result<(), Error> {
    if as_json {
        let json = serde_json::to_string_pretty(thing)
            .map_err(|error| Error::new(ErrorKind::Run, "output", error.to_string()))?;
        console.print(&format!("{json}\n"))
    } else {
        console.print(&text(thing))
    }
}
