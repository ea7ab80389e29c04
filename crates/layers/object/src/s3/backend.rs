//! The bucket of a run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use driver::{Error, ErrorKind, Opened};
use parking_lot::Mutex;

use super::cleaning::{PAGE, Seen, Sweep};
use super::client::{Client, Upload, Walk};
use super::names::{NameSet, Own, PutByRun, mark};
use super::site::Site;
use crate::backend::{Backend, BackendFacts, ConnectRequest, OpenRequest, Removing};
use crate::operation::ObjectOperation;
use crate::plan::{Made, ObjectOp, ObjectPlan, Scope};

/// Name of an object that is put to see what the server does, before the number of the run.
const PROBE: &str = ".strata-probe-";
/// Most parts of an upload (API reference of Amazon S3, "Multipart upload limits").
const PARTS_MAX: u64 = 10_000;
/// Bytes of an object that one request stores at most (S3, PutObject).
const PUT_BYTES_MAX: u64 = 5 << 30;

/// State of the bucket in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not looked yet.
    Unknown,
    /// It was there.
    Found,
    /// It asked for it, and its answer is not known.
    Asked,
    /// It made it.
    Made,
}

/// Names that a load of the run gives.
struct Load {
    names: NameSet,
    /// Ids of uploads under these names that were under way before; none where the load has none of its own, or the server does not list them.
    uploads_of_others: Option<Vec<Vec<u8>>>,
}

/// A bucket that is open.
struct Bucket {
    site: Arc<Site>,
    request: ConnectRequest,
    state: Mutex<State>,
    loads: Mutex<Vec<Load>>,
    put: PutByRun,
    /// Whether the server keeps to `If-None-Match`; none before it was tried.
    takes_conditions: Mutex<Option<bool>>,
    /// Uploads whose end is not known.
    lost: Arc<Mutex<Vec<Upload>>>,
}

/// Opens the bucket of a target. `bundle`: certificates to trust (PEM) in place of the system's.
///
/// # Errors
/// Bad usage: a target, an endpoint or keys that are not there or of another form. Servers are asked in [`Backend::prepare`].
pub fn connect_with(request: &ConnectRequest, bundle: Option<&Path>) -> Result<Arc<dyn Backend>, Error> {
    let site = Site::new(&request.target, &request.options, request.s3_key.as_ref(), bundle)?;
    Ok(Arc::new(Bucket {
        site: Arc::new(site),
        request: request.clone(),
        state: Mutex::new(State::Unknown),
        loads: Mutex::default(),
        put: PutByRun::default(),
        takes_conditions: Mutex::default(),
        lost: Arc::default(),
    }))
}

impl Bucket {
    fn client(&self, endpoint: usize) -> Client<'_> {
        Client::new(&self.site, endpoint, self.request.interrupt.clone())
    }

    /// Notes what was made, or is about to be.
    fn note(&self, state: State, loads: &[Load]) -> Result<(), Error> {
        let is_certain = state == State::Made;
        let bucket = (is_certain || state == State::Asked)
            .then(|| Made::Bucket { bucket: self.site.bucket.clone(), is_certain });
        let objects = loads.iter().map(|load| load.names.noted(load.uploads_of_others.as_ref()));
        let made: Vec<Made> = bucket.into_iter().chain(objects).collect();
        self.request.journal.note(&self.request, &made)
    }

    fn prepare_bucket(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        if *state != State::Unknown {
            return Ok(());
        }
        let mut new = State::Found;
        if !self.client(0).has_bucket()? {
            if !self.request.creates {
                return Err(Error::usage(
                    "s3",
                    format!("bucket {:?} does not exist (404 NoSuchBucket)", self.site.bucket),
                )
                .with("endpoint", &self.site.endpoints[0].name)
                .remedy("create it, or run an operation that stores data, which also creates the bucket"));
            }
            *state = State::Asked;
            self.note(State::Asked, &[])?;
            match self.client(0).create_bucket() {
                Ok(true) => new = State::Made,
                Ok(false) => {}
                Err(error) => {
                    if self.client(0).has_bucket().is_ok_and(|is_there| !is_there) {
                        *state = State::Unknown;
                        self.note(State::Unknown, &[])?;
                    }
                    return Err(error);
                }
            }
        }
        // Each server must know it, and accept the keys.
        for (index, endpoint) in self.site.endpoints.iter().enumerate().skip(1) {
            if !self.client(index).has_bucket()? {
                return Err(Error::usage(
                    "s3",
                    format!("bucket {:?} does not exist at one of the servers", self.site.bucket),
                )
                .with("endpoint", &endpoint.name)
                .remedy("all endpoints must belong to one cluster"));
            }
        }
        let has_asked = *state == State::Asked;
        *state = new;
        if has_asked { self.note(new, &[]) } else { Ok(()) }
    }

    /// Remembers the names that a phase stores or removes under, before it does. Without leave to destroy, nothing of others may be there.
    fn remember(&self, plan: &ObjectPlan) -> Result<(), Error> {
        let names = NameSet::of(&self.site, plan);
        let in_parts = plan.options.s3_part_size_bytes > 0 && plan.any(ObjectOp::stores);
        let ids = |uploads: Vec<Upload>| uploads.into_iter().map(|upload| upload.id).collect();
        let mut loads = self.loads.lock();
        if let Some(load) = loads.iter_mut().find(|load| load.names == names) {
            if !in_parts || load.uploads_of_others.is_some() {
                return Ok(());
            }
            load.uploads_of_others = self.client(0).uploads(&names.head()).ok().map(ids);
            return self.note(*self.state.lock(), &loads);
        }
        let is_new = *self.state.lock() == State::Made;
        if !self.request.destroys && !is_new {
            self.refuse_others(&names)?;
        }
        if plan.any(ObjectOp::stores) {
            self.try_conditions(&mut loads)?;
        }
        let others = in_parts.then(|| self.client(0).uploads(&names.head()).ok()).flatten();
        loads.push(Load { names, uploads_of_others: others.map(ids) });
        self.note(*self.state.lock(), &loads)
    }

    /// Tries whether the server refuses to put what is there, with an object of its own that goes at once.
    fn try_conditions(&self, loads: &mut Vec<Load>) -> Result<(), Error> {
        let mut known = self.takes_conditions.lock();
        if known.is_some() || self.request.destroys {
            return Ok(());
        }
        let run = self.request.journal.run();
        let prefix = String::from_utf8_lossy(&self.site.prefix).into_owned();
        let names = NameSet { prefix, names_objects: false, key: PROBE.to_owned() };
        let name = [self.site.prefix.as_slice(), PROBE.as_bytes(), run.to_string().as_bytes()].concat();
        loads.push(Load { names, uploads_of_others: None });
        self.note(*self.state.lock(), loads)?;
        let mut client = self.client(0);
        let first = client.put_new(&name, &mark(run))?;
        *known = Some(!(first && client.put_new(&name, &mark(run))?));
        client.delete(&name, b"")?;
        loads.pop();
        Ok(())
    }

    fn refuse_others(&self, names: &NameSet) -> Result<(), Error> {
        let (mut pages, mut client) = (self.client(0), self.client(0));
        let mut walk = Walk::default();
        while let Some(page) = walk.next(&mut pages, &names.head(), PAGE)? {
            for name in page.iter().filter(|name| names.covers(name)) {
                let owner = client.owner(name)?;
                if owner.is_some_and(|(run, _)| run != Some(self.request.journal.run())) {
                    let message =
                        "the bucket contains objects with names of this load that this run did not create";
                    return Err(Error::new(ErrorKind::Unsafe, "s3", message)
                        .with("bucket", &self.site.bucket)
                        .with("object", String::from_utf8_lossy(name))
                        .remedy(
                            "use other names, s3://BUCKET/PREFIX, or --destroy-data to overwrite and remove them",
                        ));
                }
            }
        }
        Ok(())
    }

    fn sweep<'a>(&'a self, deletes: bool, removing: Removing<'a>, seen: &'a Seen) -> Sweep<'a> {
        Sweep { site: &self.site, run: self.request.journal.run(), deletes, removing, seen }
    }

    /// Finds uploads of the run whose beginning was not answered, and gives up all whose end is not known.
    fn settle_uploads(&self) -> Result<(), Error> {
        let lost = std::mem::take(&mut *self.lost.lock());
        let (nothing, seen) = (|_| (), Seen::default());
        let sweep = self.sweep(true, &nothing, &seen);
        for upload in lost {
            if !upload.id.is_empty() {
                sweep.give_up(&upload)?;
                continue;
            }
            let loads = self.loads.lock();
            let load = loads.iter().find(|load| load.names.covers(&upload.key));
            let others = load.and_then(|load| load.uploads_of_others.as_ref());
            let left = || {
                Error::new(
                    ErrorKind::Run,
                    "s3",
                    "a multipart upload may remain, because the request that began it was not answered",
                )
                .with("bucket", &self.site.bucket)
                .with("object", String::from_utf8_lossy(&upload.key))
            };
            let Some(others) = others else { return Err(left()) };
            let mut found = Client::new(&self.site, 0, Arc::default()).uploads(&upload.key)?;
            found.retain(|other| other.key == upload.key && !others.contains(&other.id));
            match found.as_slice() {
                [] => {}
                [one] => sweep.give_up(one)?,
                // Which of them is this run's nobody can tell.
                _ => return Err(left()),
            }
        }
        Ok(())
    }
}

impl Backend for Bucket {
    fn facts(&self) -> BackendFacts {
        let mut notes = Vec::new();
        if self.site.endpoints.len() > 1 {
            notes.push(format!(
                "{} endpoints, distributed over workers and connections",
                self.site.endpoints.len()
            ));
        }
        if *self.takes_conditions.lock() == Some(false) {
            notes.push(
                "the server does not honour If-None-Match: objects that other clients put under the names of the \
                 load during the run are overwritten"
                    .to_owned(),
            );
        }
        BackendFacts { targets: 1, durable_by: "as configured in the cluster".to_owned(), notes }
    }

    fn check(&self, plan: &ObjectPlan) -> Result<(), Error> {
        if plan.containers == Scope::Private {
            return Err(Error::usage("s3", "the workers of a run must share its bucket")
                .remedy("use --containers shared (the only accepted value)"));
        }
        if let Some(other) = plan.operations().find(|&op| !crate::drivers::s3::can(op)) {
            return Err(Error::usage("s3", format!("S3 does not support {}", other.name()))
                .remedy(format!("accepted: {}", crate::drivers::s3::CLASSES.join(", "))));
        }
        let (largest, part) = (plan.dataset.value_size_bytes_max, plan.options.s3_part_size_bytes);
        if part > 0 && largest.div_ceil(part) > PARTS_MAX {
            return Err(Error::usage(
                "s3",
                format!("{largest} bytes in parts of {part} need {} parts", largest.div_ceil(part)),
            )
            .remedy(format!(
                "an upload has at most {PARTS_MAX} parts: use parts of {} bytes or more",
                largest.div_ceil(PARTS_MAX)
            )));
        }
        if part == 0 && largest > PUT_BYTES_MAX && plan.any(ObjectOp::stores) {
            return Err(Error::usage("s3", format!("{largest} bytes exceed the limit of one request"))
                .remedy(format!("use at most {PUT_BYTES_MAX} bytes, or parts: --s3-part-size 64m")));
        }
        Ok(())
    }

    fn prepare(&self, plan: &ObjectPlan) -> Result<(), Error> {
        self.check(plan)?;
        self.prepare_bucket()?;
        let changes = plan.any(ObjectOp::stores) || plan.any(ObjectOp::takes_away);
        // The first host has looked whether others' objects are there, and removes what all hosts have put.
        if changes && !plan.load.is_guest() { self.remember(plan) } else { Ok(()) }
    }

    fn open(&self, request: &OpenRequest) -> Result<Opened<ObjectOperation>, Error> {
        let own = Own {
            put: self.put.of(&self.site, &request.plan, self.request.threads),
            run: self.request.journal.run(),
            destroys: self.request.destroys,
            takes_conditions: *self.takes_conditions.lock() != Some(false),
            lost: Arc::clone(&self.lost),
        };
        crate::drivers::s3::open(&self.site, request, self.request.threads, own)
    }

    fn clean(&self, removing: Removing<'_>) -> Result<Vec<String>, Error> {
        // Objects go also where an upload cannot be found.
        let settled = self.settle_uploads();
        let mut loads = self.loads.lock();
        let seen = Seen::default();
        while let Some(load) = loads.last() {
            self.sweep(true, removing, &seen).objects(&load.names)?;
            loads.pop();
        }
        let mut left = Vec::new();
        match seen.others.load(Ordering::Relaxed) {
            0 => {}
            count => left.push(format!(
                "bucket {}: {count} objects with names of this run belong to other clients and are kept",
                self.site.bucket
            )),
        }
        let mut state = self.state.lock();
        let bucket = &self.site.bucket;
        match *state {
            State::Made if !Client::new(&self.site, 0, Arc::default()).delete_bucket()? => {
                left.push(format!("bucket {bucket}: kept, because it contains objects of other clients (created by this run)"));
            }
            State::Asked => left.push(format!(
                "bucket {bucket}: kept, because the answer to this run's create request was lost and another client may have created it"
            )),
            State::Made | State::Found | State::Unknown => {}
        }
        *state = State::Unknown;
        drop(state);
        settled?;
        self.note(State::Unknown, &[])?;
        Ok(left)
    }

    fn take_over(&self, made: &[Made]) -> Result<(), Error> {
        for made in made {
            match made {
                Made::Bucket { bucket, is_certain } if *bucket == self.site.bucket => {
                    *self.state.lock() = if *is_certain { State::Made } else { State::Asked };
                }
                Made::Objects { prefix, names_objects, key, uploads_of_others } => {
                    let (prefix, key) = (prefix.clone(), key.clone());
                    let ids = |ids: &Vec<String>| -> Vec<Vec<u8>> {
                        ids.iter().map(|id| id.clone().into_bytes()).collect()
                    };
                    self.loads.lock().push(Load {
                        names: NameSet { prefix, names_objects: *names_objects, key },
                        uploads_of_others: uploads_of_others.as_ref().map(ids),
                    });
                }
                other => return Err(Error::usage("s3", format!("a bucket has no {}", other.name()))),
            }
        }
        let loads = self.loads.lock();
        let mut lost = self.lost.lock();
        for load in loads.iter() {
            let Some(others) = &load.uploads_of_others else { continue };
            let uploads = Client::new(&self.site, 0, Arc::default()).uploads(&load.names.head())?;
            let is_own = |upload: &Upload| load.names.covers(&upload.key) && !others.contains(&upload.id);
            lost.extend(uploads.into_iter().filter(is_own));
        }
        Ok(())
    }

    fn look(&self) -> Result<Vec<String>, Error> {
        let bucket = &self.site.bucket;
        let mut lines = Vec::new();
        for load in self.loads.lock().iter() {
            let (nothing, seen) = (|_| (), Seen::default());
            self.sweep(false, &nothing, &seen).objects(&load.names)?;
            let what = load.names.noted(None).name();
            let (own, others) = (seen.own.into_inner(), seen.others.into_inner());
            lines.push(format!(
                "bucket {bucket}: {own} {what}; {others} objects with these names belong to other clients and are kept"
            ));
        }
        for upload in self.lost.lock().iter() {
            let key = String::from_utf8_lossy(&upload.key);
            lines.push(format!("bucket {bucket}: an unfinished multipart upload of {key}"));
        }
        if *self.state.lock() == State::Made {
            lines.push(format!("bucket {bucket}, if it is empty afterwards"));
        }
        Ok(lines)
    }

    fn close(&self) -> Result<(), Error> {
        self.settle_uploads()
    }
}
