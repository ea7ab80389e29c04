//! Targets that one process alone can have open, for an application of several processes of one machine.

use driver::Error;
use layer::server::SharedStores;
use layer::storage;
use units::{path_of, without_password};
use workload::options;
use workload::plan::ServedStore;
use workload::spec::Spec;

use crate::beside;
use crate::spec::{self, AppSpec};

/// Has a spec use its targets by engines of the run, where one process alone could have them open. What it says is changed with it: it goes to the
/// hosts as it was said.
///
/// # Errors
/// A directory without a store, an engine that does not serve, and options of a store that a process opens itself.
pub(crate) fn share(spec: &mut Spec, stores: &mut SharedStores) -> Result<(), Error> {
    let served = match spec::of(spec).on.is_empty() {
        true => share_only(spec, stores)?,
        false => share_beside(spec, stores)?,
    };
    if served.is_empty() {
        return Ok(());
    }
    let token_file = stores.token_file()?;
    for (number, served) in served {
        let number = number.map_or_else(String::new, |number| format!("{number}:"));
        apply(spec, "target-options", &format!("{number}token-file={}", token_file.display()))?;
        spec.served.push(served);
    }
    Ok(())
}

fn apply(spec: &mut Spec, name: &str, value: &str) -> Result<(), Error> {
    options::apply(spec, name, value).map_err(|error| Error::usage("options", error.to_string()))
}

/// How several processes use a target; none where they can as it is.
fn shared(target: &str, stores: &mut SharedStores) -> Result<Option<ServedStore>, Error> {
    storage::find(target).map_or(Ok(None), |layer| layer.shared_storage(target, stores))
}

/// Changes the only target. Each store with its number among several targets: none here.
fn share_only(
    spec: &mut Spec,
    stores: &mut SharedStores,
) -> Result<Vec<(Option<usize>, ServedStore)>, Error> {
    // The name of the application may stand before it.
    let Some(target) = spec.targets.last().cloned() else { return Ok(Vec::new()) };
    let Some(served) = shared(&target, stores)? else { return Ok(Vec::new()) };
    check_options(&spec::of(spec).target_options, (&target, &served.target))?;
    spec.targets.pop();
    spec.targets.push(served.target.clone());
    Ok(vec![(None, served)])
}

/// Changes the targets of `--on`, and calls those that are served by the name of their directory, where they have no label. Each store with its
/// number, from 1.
fn share_beside(
    spec: &mut Spec,
    stores: &mut SharedStores,
) -> Result<Vec<(Option<usize>, ServedStore)>, Error> {
    let mut targets = beside::targets(&spec::of(spec).on)?;
    let mut all = Vec::new();
    for (number, target) in (1..).zip(targets.iter_mut()) {
        let Some(served) = shared(&target.target, stores)? else { continue };
        let label = target.label.take().unwrap_or_else(|| label(&target.target, number));
        (target.label, target.target) = (Some(label), served.target.clone());
        all.push((Some(number), served));
    }
    if !all.is_empty() {
        spec.said.leave_out("on");
        spec.own.get_mut::<AppSpec>().on.clear();
        targets.iter().try_for_each(|target| apply(spec, "on", &target.said()))?;
    }
    Ok(all)
}

/// A label for a store in a directory: the last part of its path, as far as labels can be that.
fn label(target: &str, number: usize) -> String {
    let path = target.rsplit(':').next().unwrap_or_default();
    let name = path_of(path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = name.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.')).collect();
    let form = target.split(':').next().unwrap_or_default().replace('+', " ");
    format!("{form} {}", if name.is_empty() { number.to_string() } else { name }).chars().take(32).collect()
}

/// Refuses options that a store has which a process opens itself, and an engine has not.
fn check_options(options: &[(String, String)], (target, shared): (&str, &str)) -> Result<(), Error> {
    let takes = |target: &str, option: &str| {
        storage::find(target).is_ok_and(|layer| layer.takes_storage_option(target, option))
    };
    match options.iter().find(|(name, _)| takes(target, name) && !takes(shared, name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::usage(
            "options",
            format!("{name} requires a store that one process opens, but this store is served to several processes"),
        )
        .with("target", without_password(target))
        .remedy(format!(
            "omit {name}, or start the engine with it (strata engine --help) and use engine://HOST:PORT/POOL/CONTAINER"
        ))),
    }
}
