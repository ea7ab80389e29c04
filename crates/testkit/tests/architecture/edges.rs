//! Which crate may use which.

use std::collections::BTreeSet;

use toml::{Table, Value};

/// Crate, and the crates of the workspace that it may depend on. What only its tests use is free.
const ALLOWED: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("statistics", &[]),
    ("driver", &[]),
    ("host", &["units"]),
    ("vos", &["driver", "host", "units"]),
    ("workload", &["units"]),
    ("ceph", &["driver"]),
    ("gpu", &["driver", "units"]),
    ("hdf5", &["driver"]),
    ("runner", &["driver", "host", "statistics", "units", "workload"]),
    ("rpc", &["driver", "host", "units", "workload"]),
    ("object_service", &["driver", "rpc", "units", "vos"]),
    ("dfs", &["driver", "object_service", "rpc", "units", "vos"]),
    ("intercept", &["dfs", "driver"]),
    ("fleet", &["driver", "statistics"]),
    (
        "layer",
        &["driver", "fleet", "gpu", "hdf5", "host", "rpc", "runner", "statistics", "units", "workload"],
    ),
    ("mount", &["dfs", "driver", "layer", "units", "workload"]),
    ("report", &["driver", "gpu", "host", "layer", "statistics", "units", "workload"]),
    (
        "filesystem",
        &["dfs", "driver", "gpu", "hdf5", "host", "layer", "mount", "report", "runner", "units", "workload"],
    ),
    (
        "media",
        &["ceph", "driver", "gpu", "host", "layer", "report", "runner", "statistics", "units", "workload"],
    ),
    (
        "network",
        &[
            "driver",
            "fleet",
            "gpu",
            "host",
            "layer",
            "report",
            "rpc",
            "runner",
            "statistics",
            "units",
            "workload",
        ],
    ),
    (
        "object",
        &[
            "ceph",
            "driver",
            "gpu",
            "host",
            "layer",
            "object_service",
            "report",
            "rpc",
            "runner",
            "statistics",
            "units",
            "vos",
            "workload",
        ],
    ),
    (
        "application",
        &["driver", "gpu", "host", "layer", "report", "runner", "statistics", "units", "workload"],
    ),
    ("registry", &["application", "filesystem", "layer", "media", "network", "object", "report"]),
    ("live", &["statistics", "units"]),
    ("history", &["driver", "report"]),
    ("dialects", &["driver", "report", "statistics", "units", "workload"]),
    ("testkit", &["dfs", "driver", "runner", "statistics", "workload"]),
    (
        "strata",
        &[
            "dialects",
            "driver",
            "fleet",
            "history",
            "host",
            "layer",
            "live",
            "registry",
            "report",
            "runner",
            "statistics",
            "units",
            "workload",
        ],
    ),
];

/// Crates of the folder of layers that are none: the side that all have in common, and the list of them.
#[cfg(test)]
const NO_LAYERS: &[&str] = &["layer", "registry"];

/// Crates that compute: a clock, a file or a socket would make their results depend on more than their arguments.
pub(crate) const PURE: &[&str] = &["units", "workload", "statistics", "dialects"];

/// Complaints about the manifests, given as (name, text).
pub(crate) fn complaints(manifests: &[(String, String)]) -> Vec<String> {
    let names: BTreeSet<&str> = manifests.iter().map(|(name, _)| name.as_str()).collect();
    let mut complaints = Vec::new();
    for (name, text) in manifests {
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) else {
            complaints.push(format!("crate {name} is not in the table of allowed edges"));
            continue;
        };
        let manifest: Table = match text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                complaints.push(format!("crate {name}: {error}"));
                continue;
            }
        };
        let used = dependencies(&manifest);
        let inner =
            used.iter().filter(|used| names.contains(used.as_str()) && !allowed.contains(&used.as_str()));
        complaints.extend(inner.map(|used| format!("crate {name} may not depend on {used}")));
        let inherits =
            manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool);
        if inherits != Some(true) {
            complaints.push(format!("crate {name} does not inherit the lints of the workspace"));
        }
    }
    complaints
}

/// Names of all packages that are built into a crate, on any platform.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let platforms = manifest.get("target").and_then(Value::as_table);
    let tables = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table).chain([manifest]);
    for table in tables {
        for kind in ["dependencies", "build-dependencies"] {
            for (name, value) in table.get(kind).and_then(Value::as_table).into_iter().flatten() {
                let package = value.get("package").and_then(Value::as_str);
                used.insert(package.unwrap_or(name).to_owned());
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Repository;

    fn found(manifests: &[(&str, &str)]) -> Vec<String> {
        let owned: Vec<_> =
            manifests.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        complaints(&owned)
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn the_table_has_no_circle() {
        for (index, (name, allowed)) in ALLOWED.iter().enumerate() {
            assert!(ALLOWED[..index].iter().all(|(known, _)| known != name), "{name} stands twice");
            for used in *allowed {
                let above = ALLOWED[..index].iter().any(|(known, _)| known == used);
                assert!(above, "{name} -> {used}: the table lists a crate after those that it uses");
            }
        }
    }

    #[test]
    fn no_layer_stands_on_another() {
        let mut layers = Repository::open().layers();
        layers.retain(|name| !NO_LAYERS.contains(&name.as_str()));
        assert!(layers.len() >= 3, "crates/layers was not found as it should be: {layers:?}");
        for layer in &layers {
            let (_, allowed) = ALLOWED.iter().find(|(known, _)| known == layer).expect("it is in the table");
            let others: Vec<_> =
                allowed.iter().filter(|used| layers.iter().any(|other| other == *used)).collect();
            assert!(others.is_empty(), "{layer} -> {others:?}: what two layers need is a crate below them");
        }
    }

    #[test]
    fn an_edge_upwards_is_found() {
        let bad = format!("{LINTS}[dependencies]\nworkload.workspace = true\n");
        assert_eq!(
            found(&[("units", &bad), ("workload", LINTS)]),
            ["crate units may not depend on workload"]
        );
    }

    #[test]
    fn an_edge_is_found_under_another_name_and_for_one_platform() {
        let bad = format!(
            "{LINTS}[target.'cfg(unix)'.dependencies]\nw = {{ path = \"x\", package = \"workload\" }}\n"
        );
        assert_eq!(
            found(&[("statistics", &bad), ("workload", LINTS)]),
            ["crate statistics may not depend on workload"]
        );
    }

    #[test]
    fn what_tests_use_is_free() {
        let good = format!("{LINTS}[dev-dependencies]\nrunner.workspace = true\n");
        assert!(found(&[("media", &good), ("runner", LINTS)]).is_empty());
    }

    #[test]
    fn a_crate_without_lints_or_outside_the_table_is_found() {
        let complaints = found(&[("units", ""), ("attic", LINTS)]);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
    }
}
