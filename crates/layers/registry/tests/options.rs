//! Job files and options of several layers.

use media::LAYER as MEDIA;
use network::LAYER as NETWORK;
use object::plan::ObjectSpec;
use units::Span;
use workload::job::{self, parse};
use workload::options::{SHARED, unknown};
use workload::spec::{LadderDimension, Layer, Spec};

#[test]
fn phases_of_several_layers_take_their_own_options() {
    registry::register();
    let specs = parse(
        "threads = 2\nblock_size = '4k'\ntimeout = '5s'\n[[phase]]\ntargets = ['/a']\nop = 'write'\n[[phase]]\nlayer = 'network'\n\
         targets = ['loopback:']\nmessage_sizes = '0 b1m'\nendpoint = ['0:2', '1:2-3']\n",
    )
    .expect("a job");
    assert_eq!((specs[0].layer, specs[1].layer), (MEDIA, NETWORK));
    assert!(specs.iter().all(|spec| spec.threads == Some(2)));
    assert_eq!((specs[0].block_size.as_deref(), specs[1].block_size.as_deref()), (Some("4k"), None));
    assert_eq!(
        (network::of(&specs[0]).timeout, network::of(&specs[1]).timeout.map(|span| span.ns())),
        (None, Some(5_000_000_000))
    );
    let endpoints: Vec<_> = network::of(&specs[1]).endpoints.iter().map(ToString::to_string).collect();
    assert_eq!(endpoints, ["0:2", "1:2", "1:3"]);
}

#[test]
fn a_phase_replaces_what_holds_for_all() {
    registry::register();
    let specs = parse(
        "layer = 'network'\nendpoint = '0:2'\n[[phase]]\n[[phase]]\nendpoint = '1:3'\n[[phase]]\nlayer = 'media'\nop = 'read'\n",
    )
    .expect("a job");
    let of = |spec: &Spec| network::of(spec).endpoints.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        (of(&specs[0]), of(&specs[1]), of(&specs[2])),
        (vec!["0:2".to_owned()], vec!["1:3".to_owned()], vec![])
    );
    assert_eq!(network::of(&parse("layer = 'network'\ninflight = 4\n").expect("a job")[0]).inflight, Some(4));
}

#[test]
fn layers_refuse_the_options_of_others() {
    registry::register();
    let message = |text: &str| parse(text).expect_err("refused").to_string();
    assert_eq!(
        message("[[phase]]\nlayer = 'network'\nblock_size = '4k'\n"),
        "job: phase 1: block_size: \"block_size\" is not an option of the network layer: use --message-sizes: each pair is a phase"
    );
    assert!(
        message("layer = 'network'\nop = 'read'\n")
            .contains("job: op: \"op\" is not an option of the network layer")
    );
    assert!(message("[[phase]]\ninflight = 4\n").contains("use it only for the network layer"));
    assert!(message("timeout = '5s'\n[[phase]]\nop = 'read'\n").contains("job: timeout: "));
    assert!(message("layer = 'objects'\n").contains("use one of media, network, object, filesystem"));
    assert!(message("depth = 0\n[[phase]]\ndepth = 3\n").contains("job: depth: "));
}

#[test]
fn phases_of_several_layers_run_at_the_same_time() {
    registry::register();
    let specs =
        parse("[[phase]]\nop = 'read'\n[[phase]]\nlayer = 'network'\nconcurrent = true\n").expect("a job");
    let found: Vec<_> = specs.iter().map(|spec| (spec.layer, spec.concurrent)).collect();
    assert_eq!(found, [(MEDIA, false), (NETWORK, true)]);
}

#[test]
fn phases_of_all_layers_take_their_own_options() {
    registry::register();
    let specs = job::parse(
        "threads = 2\ntimeout = '5s'\n[[phase]]\ntargets = ['/a']\nop = 'readwrite'\nmix = '70'\n[[phase]]\n\
         layer = 'network'\ntargets = ['loopback:']\n[[phase]]\nlayer = 'object'\ntargets = ['vos:p']\nmix = 'get=70,put=30'\nladder = 'value-size=4k,8k'\n",
    )
    .expect("a job");
    let layers: Vec<_> = specs.iter().map(|spec| spec.layer.name).collect();
    assert_eq!(layers, ["media", "network", "object"]);
    assert!(specs.iter().all(|spec| spec.threads == Some(2)));
    let timeout = Some(Span(5_000_000_000));
    assert_eq!(
        (
            ObjectSpec::of(&specs[0]).timeout,
            network::of(&specs[1]).timeout,
            ObjectSpec::of(&specs[2]).timeout
        ),
        (None, timeout, timeout)
    );
    let reads_of_media = |spec| media::of(spec).mix.map(|mix| mix.read_percent);
    assert_eq!(
        (reads_of_media(&specs[0]), reads_of_media(&specs[2]), ObjectSpec::of(&specs[2]).mix.as_deref()),
        (Some(70), None, Some("get=70,put=30"))
    );
    assert_eq!(specs[2].ladder.as_ref().map(|ladder| ladder.dimension), Some(LadderDimension::BlockSize));
    let steps = workload::plan::expand_ladder(&specs[2]);
    let sizes: Vec<_> = steps.iter().map(|step| ObjectSpec::of(step).value_size.as_deref()).collect();
    assert_eq!(sizes, [Some("4KiB"), Some("8KiB")]);
    assert!(steps.iter().all(|step| step.block_size.is_none()));
}

#[test]
fn an_option_of_other_layers_is_refused_with_their_names() {
    registry::register();
    let elsewhere = |layer, name: &str| unknown(layer, name).to_string();
    assert_eq!(
        elsewhere(object::LAYER, "inflight"),
        "\"inflight\" is not an option of the object layer: use it only for the network layer"
    );
    assert!(elsewhere(NETWORK, "akeys").ends_with("of the network layer: use it only for the object layer"));
    assert!(elsewhere(MEDIA, "zero-copy").ends_with("use it only for the network and object layers"));
}

#[test]
fn a_layer_of_another_name_is_refused_with_those_that_there_are() {
    registry::register();
    let unknown = Spec::of_layer("objects").expect_err("no layer").to_string();
    assert_eq!(
        unknown,
        "\"objects\" is not a value of layer: use one of media, network, object, filesystem, application"
    );
}

#[test]
fn what_a_layer_takes_over_is_there() {
    registry::register();
    let shared: Vec<&str> = SHARED.iter().copied().flatten().map(|option| option.name).collect();
    for layer in Layer::all() {
        let missing: Vec<_> = layer.common.iter().filter(|name| !shared.contains(name)).collect();
        assert!(missing.is_empty(), "{layer:?}: {missing:?}");
    }
}
