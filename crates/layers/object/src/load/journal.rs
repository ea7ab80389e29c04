//! Objects, containers, pools and buckets that a run made, in the list of all that it made.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use driver::{Error, ErrorKind};
use layer::Journal;

use crate::plan::{Made, MadeInStore};
use crate::{ConnectRequest, backend};

/// Key of the list under which objects, containers, pools and buckets stand.
pub const JOURNAL_KEY: &str = "made";

/// The part of a run's list that is about stores.
#[derive(Clone)]
pub struct StoreJournal {
    journal: Arc<dyn Journal>,
    /// One store after the other changes the list.
    turn: Arc<Mutex<()>>,
}

impl StoreJournal {
    /// The part of this list.
    #[must_use]
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, turn: Arc::default() }
    }
}

impl fmt::Debug for StoreJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreJournal").finish_non_exhaustive()
    }
}

impl backend::Journal for StoreJournal {
    fn run(&self) -> u64 {
        self.journal.run()
    }

    fn owner(&self) -> u64 {
        self.journal.owner()
    }

    fn note(&self, request: &ConnectRequest, made: &[Made]) -> Result<(), Error> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = self.journal.noted(JOURNAL_KEY);
        let failed = |error: serde_json::Error| {
            Error::new(
                ErrorKind::Run,
                "manifest",
                format!("the list of objects created in stores is invalid: {error}"),
            )
        };
        let mut all: Vec<MadeInStore> =
            if noted.is_null() { Vec::new() } else { serde_json::from_value(noted).map_err(failed)? };
        all.retain(|store| store.target != request.target);
        if !made.is_empty() {
            let (target, options) = (request.target.clone(), request.options.clone());
            all.push(MadeInStore { target, options, made: made.to_vec() });
        }
        self.journal.note(JOURNAL_KEY, serde_json::to_value(all).map_err(failed)?)
    }
}
