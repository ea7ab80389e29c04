//! Claims of runs in a container of RADOS: they lie in an attribute of its mark, and are replaced only where nobody has changed them.

use std::ffi::CStr;

use driver::{Error, ErrorKind};

use vos::claims::{Asked, Claims, Ending, Found};

use crate::rados::cluster::{List, Pool, refused};
use crate::rados::layout::{MARKER, object_of};

/// How often claims are read again where others change them.
const ATTEMPTS_MAX: u32 = 100;

/// The claims, and the text that they were read from.
fn read(pool: &Pool) -> Result<(Claims, String), Error> {
    let text = pool.claims()?.unwrap_or_default();
    if text.is_empty() {
        return Ok((Claims::default(), text));
    }
    let claims = serde_json::from_str(&text).map_err(|error| {
        Error::new(ErrorKind::Run, "rados", format!("the mark of the container cannot be read: {error}"))
            .remedy("it was written by another version of strata: use another container")
    })?;
    Ok((claims, text))
}

/// Changes the claims by what `act` says, as often as others change them in between. `act` answers what to return, and whether there is
/// anything to write.
fn change<T>(pool: &Pool, mut act: impl FnMut(&mut Claims) -> Result<(T, bool), Error>) -> Result<T, Error> {
    for _ in 0..ATTEMPTS_MAX {
        let (mut claims, before) = read(pool)?;
        let (value, is_changed) = act(&mut claims)?;
        if !is_changed || pool.replace_claims(&before, Some(&text_of(&claims)?))? {
            return Ok(value);
        }
    }
    Err(Error::new(ErrorKind::Run, "rados", "other processes keep changing the mark of the container"))
}

fn text_of(claims: &Claims) -> Result<String, Error> {
    serde_json::to_string(claims).map_err(|error| Error::new(ErrorKind::Run, "rados", error.to_string()))
}

/// Claims objects for a run, which has made the container (`is_made`) or not; what is in the way.
pub(super) fn claim(pool: &Pool, is_made: bool, asked: &Asked) -> Result<Option<Found>, Error> {
    change(pool, |claims| {
        if claims.has(asked) {
            return Ok((None, false));
        }
        let collision = claims.collision(asked);
        if collision.is_some() && !asked.destroys {
            return Ok((collision, false));
        }
        let (mut is_there, mut others) = (false, None);
        let look = |name: &CStr| {
            let Some(object) = object_of(name.to_bytes()).filter(|object| asked.ids.has(*object)) else {
                return;
            };
            is_there |= !claims.is_fresh(asked.run, object);
            if !claims.leaves(object, asked) {
                others.get_or_insert_with(|| name.to_string_lossy().into_owned());
            }
        };
        // Nobody stores in a container of this run's own without a claim.
        if !is_made {
            each(pool, look)?;
        }
        if let (Some(object), false) = (&others, asked.destroys) {
            let found = Found { object: Some(object.clone()), run: None, is_kept: false };
            return Ok((Some(found), false));
        }
        claims.enter(asked, is_there);
        Ok((None, true))
    })
}

/// Notes that what a run stored stays.
pub(super) fn keep(pool: &Pool, run: u64) -> Result<(), Error> {
    change(pool, |claims| Ok(((), claims.keep(run))))
}

/// Ends a run in the container: as [`vos::Pool::end_run`].
pub(super) fn end_run(pool: &Pool, run: u64, only_looks: bool) -> Result<Ending, Error> {
    let is_made = pool.maker()?.as_deref() == Some(format!("{run:016x}").as_str());
    let (claims, before) = read(pool)?;
    if !is_made && !claims.names(run) {
        return Ok(Ending::Nothing);
    }
    let is_own = |name: &CStr| object_of(name.to_bytes()).is_some_and(|object| claims.is_fresh(run, object));
    let mut objects = 0;
    let count = |name: &CStr| objects += u64::from(is_own(name));
    each(pool, count)?;
    let why = if is_made { others(pool, &claims, run)? } else { None };
    if only_looks {
        let goes = is_made && why.is_none();
        return Ok(if goes { Ending::Destroyed } else { Ending::Cleared { objects, why } });
    }
    pool.clear(is_own).map_err(|code| refused("objects of the container cannot be removed", code))?;
    // Looked at again, because others may have come meanwhile; who claims something changes the mark, which then stays.
    let why = if is_made { others(pool, &claims, run)? } else { None };
    if is_made && why.is_none() && pool.replace_claims(&before, None)? {
        return Ok(Ending::Destroyed);
    }
    let why = why.or_else(|| is_made.then(|| "another run has started to store data in it".to_owned()));
    change(pool, |claims| Ok((claims.release(run), true)))?;
    Ok(Ending::Cleared { objects, why })
}

/// Objects of others in the container, in words.
fn others(pool: &Pool, claims: &Claims, run: u64) -> Result<Option<String>, Error> {
    if let Some(other) = claims.other(run) {
        return Ok(Some(format!("run {other:016x} has stored data in it")));
    }
    let mut found = None;
    each(pool, |name| {
        if !object_of(name.to_bytes()).is_some_and(|object| claims.is_of(run, object)) {
            found.get_or_insert_with(|| name.to_string_lossy().into_owned());
        }
    })?;
    Ok(found.map(|name| format!("it holds {name}, which this run did not store")))
}

/// Shows the names of all objects of the container but its mark.
fn each(pool: &Pool, mut visit: impl FnMut(&CStr)) -> Result<(), Error> {
    let failed = |code| refused("the container cannot be listed", code);
    let mut list = List::open(pool).map_err(failed)?;
    while let Some(name) = list.next().map_err(failed)? {
        if name != MARKER {
            visit(name);
        }
    }
    Ok(())
}
