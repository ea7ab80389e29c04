//! Removes what a run made in a bucket: objects that carry its mark, uploads that it began, and the bucket where it is empty then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use driver::{Error, ErrorKind};
use parking_lot::Mutex;

use super::client::{Client, Deleted, Upload};
use super::names::NameSet;
use super::site::Site;
use crate::backend::Removing;

/// Connections that delete what a run made.
const CLEANERS: usize = 16;
/// Names that one page of a list brings; servers bring no more.
pub(super) const PAGE: u32 = 1000;

/// Counts of the objects that were looked at.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Objects with the mark of the run.
    pub(super) own: AtomicU64,
    /// Objects under names of the run without it.
    pub(super) others: AtomicU64,
}

/// One go over the objects of a set of names.
pub(super) struct Sweep<'a> {
    pub(super) site: &'a Arc<Site>,
    /// Number that objects of the run are marked with.
    pub(super) run: u64,
    /// Deletes what is the run's own; else it is counted alone.
    pub(super) deletes: bool,
    pub(super) removing: Removing<'a>,
    pub(super) seen: &'a Seen,
}

impl Sweep<'_> {
    /// A connection of its own: an interrupt ends the load; what it made goes all the same.
    fn client(&self, endpoint: usize) -> Client<'_> {
        Client::new(self.site, endpoint, Arc::default())
    }

    /// All objects of these names.
    pub(super) fn objects(&self, names: &NameSet) -> Result<(), Error> {
        let mut pages = self.client(0);
        let mut walk = super::client::Walk::default();
        while let Some(mut page) = walk.next(&mut pages, &names.head(), PAGE)? {
            page.retain(|name| names.covers(name));
            self.page(&page)?;
        }
        Ok(())
    }

    fn page(&self, names: &[Vec<u8>]) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let first_error: Mutex<Option<Error>> = Mutex::new(None);
        std::thread::scope(|scope| {
            let cleaners: Vec<_> = (0..CLEANERS.min(names.len()))
                .map(|index| {
                    let (next, first_error) = (&next, &first_error);
                    scope.spawn(move || {
                        let mut client = self.client(index);
                        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                            if let Err(error) = self.one(&mut client, name) {
                                first_error.lock().get_or_insert(error);
                                return;
                            }
                        }
                    })
                })
                .collect();
            for cleaner in cleaners {
                if cleaner.join().is_err() {
                    let lost = || Error::new(ErrorKind::Run, "s3", "a thread that deletes has failed");
                    first_error.lock().get_or_insert_with(lost);
                }
            }
        });
        first_error.into_inner().map_or(Ok(()), Err)
    }

    fn one(&self, client: &mut Client<'_>, name: &[u8]) -> Result<(), Error> {
        let is_own = match client.owner(name)? {
            None => return Ok(()),
            Some((run, etag)) if run == Some(self.run) => {
                !self.deletes || client.delete(name, etag.as_bytes())? == Deleted::Gone
            }
            Some(_) => false,
        };
        let count = if is_own { &self.seen.own } else { &self.seen.others };
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        if is_own && self.deletes {
            (self.removing)(count);
        }
        Ok(())
    }

    /// Gives an upload up.
    pub(super) fn give_up(&self, upload: &Upload) -> Result<(), Error> {
        let mut key = Vec::with_capacity(upload.key.len() + 16);
        super::text::escape(&mut key, &upload.key, super::text::Keep::Slashes);
        self.client(0).abort(&key, &upload.id)
    }
}
