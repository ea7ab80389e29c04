use units::ByteSize;

use super::*;
use crate::zoned::ZonedChoice;

#[test]
fn what_is_asked_for_is_read() {
    let plain: ZonedChoice = "zbd".parse().unwrap();
    assert_eq!(plain, ZonedChoice::default());
    let all: ZonedChoice = "zbd,size=64m, capacity=48m,skip=128m,max-open=8,thread-max-open=2,ignore-limits,depth=4,read-beyond-wp,reset-threshold=0.8,reset-frequency=.25,round"
        .parse()
        .unwrap();
    let expected = ZonedChoice {
        size: Some(ByteSize(64 << 20)),
        capacity: Some(ByteSize(48 << 20)),
        skip: Some(ByteSize(128 << 20)),
        open_max: Some(8),
        worker_open_max: Some(2),
        ignores_limits: true,
        depth: Some(4),
        reads_beyond: true,
        reset_threshold: Some(0.8),
        reset_frequency: Some(0.25),
        rounds: true,
    };
    assert_eq!(all, expected);
}

#[test]
fn what_is_not_is_refused_with_what_would_be() {
    for text in [
        "zbd,",
        "zbd,size=0",
        "zbd,size",
        "zbd,capacity=0",
        "zbd,depth=0",
        "zbd,reset-threshold=1.1",
        "zbd,reset-frequency=-1",
        "zbd,max-open=x",
        "zbd,open=3",
        "zbd,round=1",
        "strided",
        "zbd:size=1m",
    ] {
        let error = text.parse::<ZonedChoice>().unwrap_err().to_string();
        assert!(error.contains("max-open=8"), "{text}: {error}");
    }
}

#[test]
fn the_lower_of_a_devices_limits_holds() {
    let facts = |open_zones_max, active_zones_max| ZonedFacts {
        model: ZoneModel::HostManaged,
        zone_size_bytes: 1 << 20,
        capacity_bytes: 1 << 20,
        zones: 8,
        conventional_zones: 0,
        conventional_until_bytes: 0,
        open_zones_max,
        active_zones_max,
        keeps_write_order: false,
    };
    let most = |open, active| facts(open, active).write_zones_max();
    assert_eq!([most(0, 0), most(4, 0), most(0, 6), most(4, 6), most(8, 6)], [0, 4, 6, 4, 6]);
}
