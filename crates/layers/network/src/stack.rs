//! Rows of the stack: RPCs over the way that an engine's clients take.

use driver::Error;
use layer::stack::{loads, spec};
use layer::{StackCarrier, StackKind, StackRequest, StackRowSpec, StackServed};
use workload::options;
use workload::spec::Spec;

use crate::LAYER;

/// Name of the layer's rows.
pub(crate) const ROW: &str = "network";

/// Message sizes of each load, and operations in flight: those of the rows that go over it.
const LOADS: &[(&str, &str, &str)] = &[
    (loads::WRITE_LARGE, "b1m 0", "8"),
    (loads::READ_LARGE, "0 b1m", "8"),
    (loads::WRITE_SMALL, "4k 0", "16"),
    (loads::READ_SMALL, "0 4k", "16"),
];

/// Warnings of rows whose engine is the run's own: it has no link, so that CPUs are its limit, and the only segments that are sent again are those which
/// the buffer of a busy receiver had no room for.
const ON_LOOPBACK: &[&str] = &["loopback", "cpu_bound", "retransmits"];

/// Rows of the network: to the engine that the user named, that of the user's store, or the one that the run serves.
pub(crate) fn rows(request: &StackRequest<'_>) -> Vec<StackRowSpec> {
    let is_named = is_named(request);
    let is_local = !is_named || engine(request).is_ok_and(|engine| is_loopback(&engine));
    let rows = LOADS.iter().map(|(load, sizes, depth)| {
        // A round trip of a small message is no use of the link that could be compared with memory.
        let is_link = !is_local && sizes.contains("b1m");
        StackRowSpec {
            called: if is_local { "loopback".to_owned() } else { "the network".to_owned() },
            kind: if is_link { StackKind::Hardware } else { StackKind::Carrier },
            stands_on: if is_link { vec![StackCarrier::new("memory", load)] } else { Vec::new() },
            by_design: if is_named { &[] } else { ON_LOOPBACK },
            window_share: 0.6,
            is_named,
            one_host: (!is_named && request.loopback_is_out_of_reach())
                .then_some("the engine of the run is only on loopback: use --engine"),
            ..StackRowSpec::new(ROW, *load, planned(request, load, sizes, depth))
        }
    });
    rows.collect()
}

/// Whether the user named the engine, by itself or with a store.
fn is_named(request: &StackRequest<'_>) -> bool {
    request.engine.is_some() || address_of_store(request).is_some()
}

/// Address in the URL of the user's store, where an engine serves it.
fn address_of_store<'a>(request: &StackRequest<'a>) -> Option<&'a str> {
    request.object?.strip_prefix("engine://")?.split('/').next()
}

/// Engine that is measured: a URI, or a control address.
fn engine(request: &StackRequest<'_>) -> Result<String, Error> {
    match (request.engine, address_of_store(request)) {
        (Some(engine), _) => Ok(engine.to_owned()),
        (None, Some(address)) => Ok(format!("tcp://{address}")),
        (None, None) => request.served(StackServed::ENGINE).map(str::to_owned),
    }
}

/// Whether an address is of this machine's loopback.
fn is_loopback(engine: &str) -> bool {
    let host = engine.split_once("://").map_or(engine, |(_, rest)| rest);
    ["127.", "localhost", "[::1]"].iter().any(|start| host.starts_with(start))
}

fn planned(request: &StackRequest<'_>, load: &str, sizes: &str, depth: &str) -> Result<Spec, Error> {
    let engine = engine(request)?;
    let words = [("message-sizes", sizes), ("depth", depth)];
    let mut made = spec(LAYER, &engine, format!("{ROW}: {load}"), &words)?;
    if !engine.contains("://") {
        made.targets.clear();
        options::apply(&mut made, "servers", &engine)
            .map_err(|error| Error::usage("stack", error.to_string()))?;
    }
    // The engine of the run has no secret.
    made.token_file = request.token_file.filter(|_| is_named(request)).map(Into::into);
    Ok(made)
}
