//! Claims survive a kill, what nobody claims is others', and a pool says what is not of one run.

use crate::Checksum;

use super::support::{Fixture, Ground, MIB};
use crate::claims::{Asked, Ending, Ids};
use crate::{Ack, ContainerProperties, Pool, StoreError, Write};

const RUN: u64 = 7;

fn asked(run: u64, first: u64, last: u64) -> Asked {
    Asked { run, owner: run, ids: Ids { first, last }, destroys: false }
}

fn put(fixture: &Fixture, object: u64) {
    let place = fixture.place(object, b"d", b"a");
    fixture.target().update(&place, Write::Single, b"value", Ack::AsConfigured).expect("stored");
}

fn is_there(fixture: &Fixture, object: u64) -> bool {
    match fixture.target().size_of(&fixture.place(object, b"d", b"a"), None) {
        Ok(_) => true,
        Err(StoreError::NotFound) => false,
        Err(error) => panic!("{error}"),
    }
}

fn claim(pool: &Pool, asked: &Asked) -> Option<String> {
    let found = pool.claim("strata", asked).expect("asked")?;
    Some(found.object.unwrap_or_else(|| format!("run {:?}", found.run)))
}

#[test]
fn objects_that_nobody_claims_are_others_and_stay() {
    let mut fixture = Fixture::new(Ground::Memory, 8 * MIB, 0, Checksum::Crc32);
    put(&fixture, 5);
    assert_eq!(claim(fixture.pool(), &asked(RUN, 1, 10)).as_deref(), Some("0.5"));
    assert_eq!(claim(fixture.pool(), &asked(RUN, 6, 10)), None);
    // All of it, and nothing beside it.
    assert_eq!(claim(fixture.pool(), &asked(RUN, 0, u64::MAX)).as_deref(), Some("0.5"));
    put(&fixture, 6);
    fixture.reopen(false);
    assert_eq!(claim(fixture.pool(), &asked(8, 10, 20)).as_deref(), Some("run Some(7)"));
    let leave = Asked { destroys: true, ..asked(8, 5, 20) };
    assert_eq!(claim(fixture.pool(), &leave), None);
    put(&fixture, 20);
    // Others were under its ids before: all of them stay.
    let ended = fixture.pool().end_run("strata", 8, false).expect("ended");
    assert_eq!(ended, Ending::Cleared { objects: 0, why: None });
    assert!([5, 6, 20].into_iter().all(|object| is_there(&fixture, object)));
    let ended = fixture.pool().end_run("strata", RUN, true).expect("looked");
    assert_eq!((ended.clone(), is_there(&fixture, 6)), (Ending::Cleared { objects: 1, why: None }, true));
    assert_eq!(fixture.pool().end_run("strata", RUN, false).expect("ended"), ended);
    assert_eq!(fixture.pool().end_run("strata", RUN, false).expect("nothing"), Ending::Nothing);
    fixture.reopen(false);
    assert!(is_there(&fixture, 5) && !is_there(&fixture, 6));
}

#[test]
fn a_pool_is_of_one_run_only_where_all_in_it_is() {
    let mut fixture = Fixture::new(Ground::Memory, 8 * MIB, 0, Checksum::Crc32);
    let why = fixture.pool().of_others(RUN).expect("listed");
    assert_eq!(why, ["container strata: this run did not create it"]);
    fixture.pool().destroy_container("strata").expect("destroyed");
    let properties = ContainerProperties { maker: Some(RUN), ..ContainerProperties::default() };
    fixture.container = fixture.pool().create_container("strata", &properties).expect("made");
    assert_eq!(claim(fixture.pool(), &asked(RUN, 1, 2)), None);
    put(&fixture, 1);
    fixture.reopen(false);
    assert!(fixture.pool().of_others(RUN).expect("listed").is_empty());
    assert_eq!(fixture.pool().end_run("strata", RUN, true).expect("looked"), Ending::Destroyed);
    put(&fixture, 3);
    let why = fixture.pool().of_others(RUN).expect("listed");
    assert_eq!(why, ["container strata: it holds object 0.3, which this run did not store"]);
    let ended = fixture.pool().end_run("strata", RUN, false).expect("ended");
    assert!(matches!(ended, Ending::Cleared { objects: 1, why: Some(_) }), "{ended:?}");
    assert!(is_there(&fixture, 3) && !is_there(&fixture, 1));
}
