//! The rules of a service against the options and targets of all layers.

use std::path::{Path, PathBuf};

use layer::{NetworkPolicy, ServicePolicy};
use workload::layers::Layer;
use workload::options;
use workload::spec::Spec;

fn policy() -> ServicePolicy {
    registry::register();
    ServicePolicy::new(&[std::env::temp_dir()]).expect("it is there")
}

#[test]
fn every_option_that_names_a_path_is_held_to_the_roots() {
    let policy = policy();
    let inside = std::env::temp_dir().join("file").display().to_string();
    let mut paths = Vec::new();
    for layer in Layer::all() {
        for option in options::of(layer) {
            // Addresses are looked at below.
            if option.value.starts_with("HOST") || option.value.starts_with("URL") {
                continue;
            }
            let refused = policy.check_option(layer.name, option.name, "/etc/shadow");
            if let Err(error) = &refused {
                assert_eq!(error.exit_code(), 2, "{} --{}: {error}", layer.name, option.name);
                paths.push((layer.name, option.name));
                let is_closed = matches!(option.name, "program" | "destroy-data");
                assert_eq!(
                    policy.check_option(layer.name, option.name, &inside).is_err(),
                    is_closed,
                    "{}",
                    option.name
                );
            }
        }
    }
    for known in [
        ("media", "program"),
        ("media", "destroy-data"),
        ("object", "s3-key-file"),
        ("object", "acknowledged"),
        ("object", "token-file"),
        ("filesystem", "tree-file"),
        ("network", "path"),
    ] {
        assert!(paths.contains(&known), "{known:?} is not among {paths:?}");
    }
    assert!(policy.check_option("media", "block-size", "4k").is_ok());
    for (layer, name, value) in [
        ("network", "servers", "127.0.0.1:9"),
        ("object", "s3-endpoint", "http://127.0.0.1:9"),
        ("application", "target-options", "direct=true,token-file=/etc/shadow"),
        ("application", "target-options", "s3-endpoint=http://127.0.0.1:9"),
    ] {
        assert!(policy.check_option(layer, name, value).is_err(), "{layer} --{name} {value}");
    }
    assert!(policy.check_option("application", "target-options", "direct=true,durability=batch").is_ok());
    let mut open = policy;
    open.allow_destroy = true;
    assert!(open.check_option("media", "destroy-data", "true").is_ok());
    assert!(open.check_option("media", "program", &inside).is_err(), "never");
}

#[test]
fn specs_of_all_layers_are_held_to_the_roots() {
    let mut policy = policy();
    let spec = |layer: &str, target: &str| {
        let mut spec = Spec::of_layer(layer).expect("a layer");
        spec.targets = vec![target.to_owned()];
        spec
    };
    let inside = std::env::temp_dir().display().to_string();
    for layer in ["media", "object", "filesystem"] {
        let prefix = if layer == "object" { "vos:" } else { "" };
        let (good, bad) = (format!("{prefix}{inside}/x"), format!("{prefix}/etc/x"));
        policy.check(&[spec(layer, &good)]).unwrap_or_else(|error| panic!("{layer}: {error}"));
        let refused = policy.check(&[spec(layer, &good), spec(layer, &bad)]).expect_err(layer);
        assert!(refused.exit_code() == 2 && refused.to_string().contains("/etc/x"), "{refused}");
    }
    assert!(policy.check(&[spec("filesystem", "dfs+vos:/etc/x")]).is_err());
    assert!(policy.check(&[spec("media", "null:")]).is_ok());
    assert!(policy.check(&[spec("media", "rbd:pool/image")]).is_err());
    let destroying = Spec { destroy_data: true, ..spec("media", &format!("{inside}/x")) };
    let said = policy.check(std::slice::from_ref(&destroying)).expect_err("it destroys").to_string();
    assert!(said.contains("--allow-destroy"), "{said}");
    policy.allow_destroy = true;
    policy.check(&[destroying]).expect("it may");
    let with_token = Spec { token_file: Some(PathBuf::from("/etc/shadow")), ..spec("media", "null:") };
    assert!(policy.check(&[with_token]).is_err());
    let driven = Spec { clients: vec!["node:1".to_owned()], ..spec("media", "null:") };
    assert!(policy.check(std::slice::from_ref(&driven)).is_err());
    policy.network = NetworkPolicy::All;
    policy.check(&[driven]).expect("networks are open");
    assert_eq!(policy.roots(), [Path::new(&inside).canonicalize().expect("it is there")]);
}

#[test]
fn applications_are_held_to_the_roots_by_targets_and_descriptions() {
    let policy = policy();
    let inside = std::env::temp_dir().display().to_string();
    let check = |targets: &[&str], options: &[(&str, &str)]| {
        let mut spec = Spec::of_layer("application").expect("a layer");
        spec.targets = targets.iter().map(|target| target.replace('@', &inside)).collect();
        for (name, value) in options {
            workload::options::apply(&mut spec, name, &value.replace('@', &inside)).expect("read");
        }
        policy.check(&[spec])
    };
    for (targets, options) in [
        (&["vpic", "@/x"][..], &[][..]),
        (&["fdb-hammer", "vos:@/x"], &[]),
        (&["@/own.toml", "@/x"], &[]),
        (&["@/x"], &[("app", "vpic")]),
        (&["dlio", "@/x"], &[("set", "workload=unet3d")]),
        (&["dlio", "@/x"], &[("set", "workload=@/own.yaml")]),
        (&["vpic"], &[("on", "a:@/x,b:@/y")]),
        (&["vpic", "null:"], &[]),
    ] {
        check(targets, options).unwrap_or_else(|error| panic!("{targets:?} {options:?}: {error}"));
    }
    for (targets, options) in [
        (&["vpic", "/etc/x"][..], &[][..]),
        (&["fdb-hammer", "vos:/etc/x"], &[]),
        (&["/etc/own.toml", "@/x"], &[]),
        (&["own.toml", "@/x"], &[]),
        (&["@/x"], &[("app", "/etc/passwd")]),
        (&["dlio", "@/x"], &[("set", "workload=/etc/own.yaml")]),
        (&["vpic"], &[("on", "a:@/x,b:/etc/y")]),
        (&["vpic"], &[("on", "@/x,s3://bucket")]),
        (&["vpic", "s3://bucket"], &[]),
    ] {
        let refused = check(targets, options).expect_err(targets[0]);
        assert_eq!(refused.exit_code(), 2, "{targets:?} {options:?}: {refused}");
    }
}

#[test]
fn plans_take_no_more_than_the_service_gives() {
    registry::register();
    let plan = report::sample::plan(&report::sample::DRIVE);
    let load = plan.load();
    let time_ns = load.limit.time_ns.expect("it ends by time");
    let limits = |threads_max, time_ns_max| {
        let mut policy = ServicePolicy::default();
        (policy.threads_max, policy.time_ns_max) = (threads_max, time_ns_max);
        policy
    };
    assert!(limits(None, None).check_plans(&[&plan]).is_ok());
    assert!(limits(Some(load.threads), Some(time_ns)).check_plans(&[&plan]).is_ok());
    let said = limits(Some(load.threads - 1), None).check_plans(&[&plan]).expect_err("too many").to_string();
    assert!(said.contains("at most"), "{said}");
    assert_eq!(limits(None, Some(time_ns - 1)).check_plans(&[&plan]).expect_err("too long").exit_code(), 2);
    let mut endless = plan.clone();
    endless.load_mut().limit.time_ns = None;
    let said = limits(None, Some(time_ns)).check_plans(&[&endless]).expect_err("no time").to_string();
    assert!(said.contains("--time"), "{said}");
}
