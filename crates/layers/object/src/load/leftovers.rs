//! Objects, containers, pools and buckets that runs made and left.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::{Error, ErrorKind};
use layer::{CleanRequest, Leftovers, Tell};
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;
use units::path_of;

use super::progress::Told;
use super::secret::of_files;
use super::stores::directory_of;
use super::{JOURNAL_KEY, StoreJournal};
use crate::backend::{Journal as _, driver_of};
use crate::plan::{Made, MadeInStore};
use crate::{Backend, ConnectRequest};

/// Things in stores.
pub(super) struct InStores;

impl Leftovers for InStores {
    fn key(&self) -> &'static str {
        JOURNAL_KEY
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<MadeInStore>())
    }

    fn words(&self, made: &Value) -> Vec<String> {
        let stores: Vec<MadeInStore> = serde_json::from_value(made.clone()).unwrap_or_default();
        let words = |store: &MadeInStore| {
            let target = store.target.clone();
            let names = store.made.iter().map(move |made| format!("{} of {target}", made.name()));
            names.collect::<Vec<_>>()
        };
        stores.iter().flat_map(words).collect()
    }

    fn clean(&self, made: &Value, request: &CleanRequest<'_>) -> Result<(), Error> {
        let stores: Vec<MadeInStore> = serde_json::from_value(made.clone()).map_err(|error| {
            Error::new(
                ErrorKind::Usage,
                "clean",
                format!("the list of objects created in stores is invalid: {error}"),
            )
        })?;
        let journal = StoreJournal::new(Arc::clone(&request.journal));
        // A store that cannot be reached does not keep those behind it from being cleaned.
        let clean = |store: &MadeInStore| {
            clean(store, &journal, request).map_err(|error| error.with("target", &store.target))
        };
        stores.iter().map(clean).fold(Ok(()), Result::and)
    }
}

/// Shows, or removes, what was made in one store.
fn clean(store: &MadeInStore, journal: &StoreJournal, clean: &CleanRequest<'_>) -> Result<(), Error> {
    let CleanRequest { removes, print, .. } = clean;
    let request = request(store, journal, clean)?;
    if let Some(directory) = unfinished(store) {
        if !*removes {
            return print(&format!("  {}: unfinished pool\n", store.target));
        }
        vos::Pool::destroy_begun(&directory)?;
        journal.note(&request, &[])?;
        return print(&format!("  {}: removed 1\n", store.target));
    }
    if is_gone(store)? {
        print(&format!("  {}: no longer exists\n", store.target))?;
        return if *removes { journal.note(&request, &[]) } else { Ok(()) };
    }
    let backend = crate::connect(&request)?;
    backend.take_over(&store.made)?;
    for line in backend.look()? {
        print(&format!("  {}: {line}\n", store.target))?;
    }
    if !*removes {
        return Ok(());
    }
    let removed = AtomicU64::new(0);
    let left = remove(&*backend, &removed, clean.tell);
    backend.close()?;
    for line in left? {
        print(&format!("  {}: left: {line}\n", store.target))?;
    }
    print(&format!("  {}: removed {}\n", store.target, removed.into_inner()))
}

fn remove(backend: &dyn Backend, removed: &AtomicU64, tell: Tell) -> Result<Vec<String>, Error> {
    let told = Told::new(tell);
    backend.clean(&|count| {
        removed.store(count, Ordering::Relaxed);
        told.tell(count);
    })
}

fn request(
    store: &MadeInStore,
    journal: &StoreJournal,
    clean: &CleanRequest<'_>,
) -> Result<ConnectRequest, Error> {
    let driver = driver_of(&store.target)?.name;
    let (keys, token) = ((clean.file)("s3-key-file"), (clean.file)("token-file"));
    let (s3_key, secret) = of_files(driver, keys.as_deref(), token.as_deref())?;
    Ok(ConnectRequest {
        target: store.target.clone(),
        options: store.options.clone(),
        s3_key,
        secret,
        journal: Arc::new(journal.clone()),
        ..ConnectRequest::default()
    })
}

/// The directory of a pool that the run was making when it was killed.
fn unfinished(store: &MadeInStore) -> Option<PathBuf> {
    let directory = path_of(directory_of(&store.target)?).into_owned();
    let is_own = |made: &Made| match made {
        Made::Pool { id: Some(id), .. } => vos::Pool::is_begun(&directory, id),
        _ => false,
    };
    store.made.iter().any(is_own).then_some(directory)
}

/// Whether the pool in this machine that a run made, or used, is not there any more.
fn is_gone(store: &MadeInStore) -> Result<bool, Error> {
    let Some(directory) = directory_of(&store.target).map(path_of) else {
        return Ok(false);
    };
    if vos::Pool::exists(&directory) {
        return Ok(false);
    }
    let was_making = store.made.iter().any(|made| matches!(made, Made::Pool { .. }));
    if was_making && directory.exists() {
        return Err(Error::new(
            ErrorKind::Run,
            "clean",
            "the run was killed while creating the pool, and the directory does not show whether it holds that pool",
        )
        .with("directory", directory.display())
        .remedy(format!("strata pool destroy vos:{} --destroy-data", directory.display())));
    }
    Ok(true)
}
