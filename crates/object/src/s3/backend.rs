//! The bucket of a run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use driver::{Error, ErrorKind, Opened};
use parking_lot::Mutex;
use workload::object::{ObjectOp, ObjectPlan, Scope};

use super::client::Client;
use super::site::{Site, names_objects};
use crate::backend::{Backend, BackendFacts, ConnectRequest, OpenRequest};
use crate::operation::ObjectOperation;

/// Connections that delete what a run made.
const CLEANERS: usize = 16;
/// Names that one page of a list brings; servers bring no more.
const PAGE: u32 = 1000;
/// Most parts of an upload (API reference of Amazon S3, "Multipart upload limits").
const PARTS_MAX: u64 = 10_000;

/// Names of objects that a run makes, and whether there were any before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    /// What they begin with.
    prefix: Vec<u8>,
    /// A number stands between the prefix and the rest.
    names_objects: bool,
    /// What a key begins with, before its number.
    key: Vec<u8>,
    /// None was there when the run began: all that are there now are its own.
    is_own: bool,
}

impl Made {
    /// Whether a name is one that the run gives.
    fn covers(&self, name: &[u8]) -> bool {
        let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let Some(rest) = name.strip_prefix(self.prefix.as_slice()) else { return false };
        let key = if self.names_objects {
            let Some(slash) = rest.iter().position(|&byte| byte == b'/') else { return false };
            if !rest[..slash].strip_prefix(b"o").is_some_and(is_number) {
                return false;
            }
            &rest[slash + 1..]
        } else {
            rest
        };
        key.strip_prefix(self.key.as_slice()).is_some_and(is_number)
    }
}

/// A bucket that is open.
struct Bucket {
    site: Arc<Site>,
    creates: bool,
    threads: u32,
    interrupt: Arc<AtomicBool>,
    /// Whether the bucket was made by this run; none before the first phase.
    is_made: Mutex<Option<bool>>,
    made: Mutex<Vec<Made>>,
}

/// Opens the bucket of a target. `bundle`: certificates to trust (PEM) in place of the system's.
///
/// # Errors
/// Bad usage: a target, an endpoint or keys that are not there or of another form. Servers are asked in [`Backend::prepare`].
pub fn connect_with(request: &ConnectRequest, bundle: Option<&Path>) -> Result<Arc<dyn Backend>, Error> {
    let site = Site::new(&request.target, &request.options, &request.secrets, bundle)?;
    Ok(Arc::new(Bucket {
        site: Arc::new(site),
        creates: request.creates,
        threads: request.threads,
        interrupt: request.interrupt.clone(),
        is_made: Mutex::new(None),
        made: Mutex::new(Vec::new()),
    }))
}

impl Bucket {
    fn client(&self, endpoint: usize) -> Client<'_> {
        Client::new(&self.site, endpoint, self.interrupt.clone())
    }

    fn prepare_bucket(&self) -> Result<(), Error> {
        let mut is_made = self.is_made.lock();
        if is_made.is_some() {
            return Ok(());
        }
        let is_there = self.client(0).has_bucket()?;
        if !is_there {
            if !self.creates {
                return Err(Error::usage(
                    "s3",
                    format!("there is no bucket {:?} (404 NoSuchBucket)", self.site.bucket),
                )
                .with("endpoint", &self.site.endpoints[0].name)
                .remedy("create it, or let this run store something: what stores also creates"));
            }
            self.client(0).create_bucket()?;
        }
        // Each server must know it, and accept the keys.
        for (index, endpoint) in self.site.endpoints.iter().enumerate().skip(1) {
            if !self.client(index).has_bucket()? {
                return Err(Error::usage(
                    "s3",
                    format!("there is no bucket {:?} at one of the servers", self.site.bucket),
                )
                .with("endpoint", &endpoint.name)
                .remedy("endpoints must be of one cluster"));
            }
        }
        *is_made = Some(!is_there);
        Ok(())
    }

    /// Remembers the names that a phase stores under.
    fn remember(&self, plan: &ObjectPlan) -> Result<(), Error> {
        let dataset = &plan.dataset;
        let key = if dataset.integer_dkeys { Vec::new() } else { dataset.dkey_prefix.clone().into_bytes() };
        let mut made =
            Made { prefix: self.site.prefix.clone(), names_objects: names_objects(plan), key, is_own: true };
        let mut all = self.made.lock();
        let is_known = all.iter().any(|known| {
            (&known.prefix, known.names_objects, &known.key) == (&made.prefix, made.names_objects, &made.key)
        });
        if is_known {
            return Ok(());
        }
        if *self.is_made.lock() != Some(true) {
            let mut prefix = made.prefix.clone();
            prefix.extend_from_slice(if made.names_objects { b"o" } else { &made.key });
            let mut token = None;
            loop {
                let page = self.client(0).list(&prefix, token.as_deref(), PAGE)?;
                made.is_own = !page.names.iter().any(|name| made.covers(name));
                token = page.token;
                if !made.is_own || token.is_none() {
                    break;
                }
            }
        }
        all.push(made);
        Ok(())
    }

    /// Deletes all objects whose names are `covered`.
    fn delete_all(&self, prefix: &[u8], covered: impl Fn(&[u8]) -> bool) -> Result<(), Error> {
        let mut token = None;
        loop {
            let mut page = self.client(0).list(prefix, token.as_deref(), PAGE)?;
            page.names.retain(|name| covered(name));
            self.delete_page(&page.names)?;
            token = page.token;
            if token.is_none() {
                return Ok(());
            }
        }
    }

    fn delete_page(&self, names: &[Vec<u8>]) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let cleaners: Vec<_> = (0..CLEANERS.min(names.len()))
                .map(|index| {
                    let next = &next;
                    scope.spawn(move || {
                        // An interrupt ends the load; what it made goes all the same.
                        let mut client = Client::new(&self.site, index, Arc::default());
                        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                            client.delete(name)?;
                        }
                        Ok(())
                    })
                })
                .collect();
            cleaners.into_iter().try_for_each(|cleaner| match cleaner.join() {
                Ok(deleted) => deleted,
                Err(_) => Err(Error::new(ErrorKind::Run, "s3", "a thread that deletes has failed")),
            })
        })
    }
}

impl Backend for Bucket {
    fn facts(&self) -> BackendFacts {
        let mut notes = Vec::new();
        if self.site.endpoints.len() > 1 {
            notes.push(format!(
                "{} endpoints, dealt out to workers and connections",
                self.site.endpoints.len()
            ));
        }
        BackendFacts { targets: 1, durable_by: "the cluster's own means".to_owned(), notes }
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        if plan.containers == Scope::Private {
            return Err(Error::usage("s3", "the workers of a run share its bucket")
                .remedy("use --containers shared; accepted are shared"));
        }
        if let Some(other) = plan.operations().find(|&op| !crate::drivers::s3::can(op)) {
            return Err(Error::usage("s3", format!("there is no {} on S3", other.name()))
                .remedy(format!("accepted are {}", crate::drivers::s3::CLASSES.join(", "))));
        }
        let (largest, part) = (plan.dataset.value_size_bytes_max, plan.options.s3_part_size_bytes);
        if part > 0 && largest.div_ceil(part) > PARTS_MAX {
            return Err(Error::usage(
                "s3",
                format!("{largest} bytes in parts of {part} are {} parts", largest.div_ceil(part)),
            )
            .remedy(format!(
                "an upload has {PARTS_MAX} parts at most: parts of {} bytes or more",
                largest.div_ceil(PARTS_MAX)
            )));
        }
        self.prepare_bucket()?;
        if plan.any(ObjectOp::stores) { self.remember(plan) } else { Ok(()) }
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        crate::drivers::s3::open(&self.site, request, self.threads)
    }

    fn clean(&self) -> Result<(), Error> {
        let made = std::mem::take(&mut *self.made.lock());
        let is_made = *self.is_made.lock() == Some(true);
        if is_made {
            self.delete_all(b"", |_| true)?;
            self.client(0).delete_bucket()?;
            *self.is_made.lock() = None;
            return Ok(());
        }
        for made in made.iter().filter(|made| made.is_own) {
            self.delete_all(&made.prefix, |name| made.covers(name))?;
        }
        Ok(())
    }

    fn close(&self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_run_are_its_own() {
        let one =
            Made { prefix: b"p/".to_vec(), names_objects: false, key: b"blade-".to_vec(), is_own: true };
        assert!(one.covers(b"p/blade-0") && one.covers(b"p/blade-17"));
        for other in ["p/blade-", "p/blade-x", "blade-1", "p/blade-1/2", "p/o1/blade-1"] {
            assert!(!one.covers(other.as_bytes()), "{other}");
        }
        let several = Made { names_objects: true, ..one };
        assert!(several.covers(b"p/o12/blade-3"));
        for other in ["p/blade-1", "p/o/blade-1", "p/ox/blade-1", "p/o1"] {
            assert!(!several.covers(other.as_bytes()), "{other}");
        }
    }
}
