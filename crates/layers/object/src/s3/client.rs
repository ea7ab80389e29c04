//! One request after the other, outside the measured loop: checks and makes buckets, lists, deletes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use driver::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::answers::{errno_of_loss, is_temporary, phrase, words_of_loss};
use super::link::{Expected, Link, Progress, Trouble};
use super::request::{Ask, Condition, Writer};
use super::response::Etag;
use super::scanner::{Found, Scanner};
use super::site::Site;
use super::text::{self, Keep};

/// Outermost elements of answers.
pub(crate) const LIST: &str = "ListBucketResult";
const UPLOADS: &str = "ListMultipartUploadsResult";
/// Fault of an answer.
pub(crate) const NO_LIST: &str = "it is not a bucket listing, or it was truncated";
pub(crate) const NO_TOKEN: &str = "the listing continues, but has no continuation token";
pub(crate) const TOKEN_AGAIN: &str = "the listing repeats a continuation token and would never end";

/// First pause before a request is sent again; it doubles.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait in one go: interrupts are seen after it.
const TICK: Duration = Duration::from_millis(100);

/// A connection of its own, and what is needed to use it.
pub(crate) struct Client<'a> {
    site: &'a Site,
    endpoint: usize,
    writer: Writer,
    link: Option<Link>,
    scanner: Scanner,
    head: Vec<u8>,
    /// Of the last answer.
    run: Option<u64>,
    etag: Etag,
    interrupt: Arc<AtomicBool>,
}

/// An upload in parts that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) key: Vec<u8>,
    pub(crate) id: Vec<u8>,
}

/// Outcome of a request for deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// There is no such object any more.
    Gone,
    /// Somebody has put another in its place.
    IsAnother,
}

/// A list, page after page.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    token: Vec<u8>,
    has_ended: bool,
    circle: Circle,
}

/// Notices tokens that come again, whatever the length of their circle, with the memory of one (R. P. Brent).
#[derive(Clone, Debug, Default)]
pub(crate) struct Circle {
    kept: Vec<u8>,
    count: u64,
    limit: u64,
}

impl Circle {
    /// Begins anew.
    pub(crate) fn reset(&mut self) {
        self.kept.clear();
        (self.count, self.limit) = (0, 1);
    }

    /// Takes the next token; true where it has come before.
    pub(crate) fn closes(&mut self, token: &[u8]) -> bool {
        if token == self.kept && !token.is_empty() {
            return true;
        }
        self.count += 1;
        if self.count >= self.limit {
            self.kept.clear();
            self.kept.extend_from_slice(token);
            (self.count, self.limit) = (0, self.limit.max(1) * 2);
        }
        false
    }
}

impl Walk {
    /// The names of the next page; none at the end.
    ///
    /// # Errors
    /// Why it cannot be had, and an answer that is no list.
    pub(crate) fn next(
        &mut self,
        client: &mut Client<'_>,
        prefix: &[u8],
        max: u32,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        if self.has_ended {
            return Ok(None);
        }
        let names = client.list(prefix, &self.token, max)?;
        let found = client.found();
        self.has_ended = !found.is_truncated;
        self.token.clone_from(&found.token);
        if !self.has_ended && self.circle.closes(&self.token) {
            return Err(client.malformed(TOKEN_AGAIN));
        }
        Ok(Some(names))
    }
}

impl<'a> Client<'a> {
    pub(crate) fn new(site: &'a Site, endpoint: usize, interrupt: Arc<AtomicBool>) -> Self {
        Self {
            site,
            endpoint: endpoint % site.endpoints.len(),
            writer: site.writer(),
            link: None,
            scanner: Scanner::new(true),
            head: Vec::new(),
            run: None,
            etag: Etag::default(),
            interrupt,
        }
    }

    /// Whether the bucket is there and may be used.
    ///
    /// # Errors
    /// Credentials that are not accepted, or a server that does not answer.
    pub(crate) fn has_bucket(&mut self) -> Result<bool, Error> {
        // A list, not a HEAD: only an answer with a body tells why it is refused.
        match self.call(&Ask::plain("GET", None, b"list-type=2&max-keys=1"))? {
            200 if self.scanner.is(LIST) => Ok(true),
            200 if self.found().code.is_empty() => Err(self.malformed(NO_LIST)),
            404 => Ok(false),
            status => Err(self.refused("the bucket cannot be accessed", status)),
        }
    }

    /// Makes the bucket; false where somebody else has just done so. Asked for once: a second answer would not tell who made it.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn create_bucket(&mut self) -> Result<bool, Error> {
        let body = match self.site.region.as_str() {
            // The region that goes without saying must not be said (CreateBucket).
            "" | "us-east-1" => String::new(),
            region => format!(
                "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
            ),
        };
        let ask = Ask { payload: body.as_bytes(), ..Ask::plain("PUT", None, b"") };
        let mut status = self.once(&ask)?;
        if status == 400 && self.found().code == b"InvalidLocationConstraint" {
            // Stores of other makers know no regions.
            status = self.once(&Ask::plain("PUT", None, b""))?;
        }
        if status == 409 {
            return Ok(false);
        }
        self.succeed("the bucket cannot be created", status).map(|()| true)
    }

    /// Deletes the bucket; false where it is not empty.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn delete_bucket(&mut self) -> Result<bool, Error> {
        match self.call(&Ask::plain("DELETE", None, b""))? {
            404 => Ok(true),
            409 => Ok(false),
            status => self.succeed("the bucket cannot be deleted", status).map(|()| true),
        }
    }

    /// The next names that begin with `prefix`, behind the token where it is not empty.
    ///
    /// # Errors
    /// Why it cannot, and an answer that is no list.
    fn list(&mut self, prefix: &[u8], token: &[u8], max: u32) -> Result<Vec<Vec<u8>>, Error> {
        let mut query = Vec::new();
        if !token.is_empty() {
            query.extend_from_slice(b"continuation-token=");
            text::escape(&mut query, token, Keep::Unreserved);
            query.push(b'&');
        }
        query.extend_from_slice(format!("encoding-type=url&list-type=2&max-keys={max}&prefix=").as_bytes());
        text::escape(&mut query, prefix, Keep::Unreserved);
        let status = self.call(&Ask::plain("GET", None, &query))?;
        self.succeed("the bucket cannot be listed", status)?;
        self.check_list(LIST)?;
        let found = self.found();
        let plain = |name: &Vec<u8>| if found.is_escaped { text::unescape(name) } else { name.clone() };
        Ok(found.names.iter().map(plain).collect())
    }

    /// An answer of 200 must be a whole list that says where it goes on.
    fn check_list(&self, root: &str) -> Result<(), Error> {
        let found = self.found();
        if !self.scanner.is(root) {
            return Err(self.malformed(NO_LIST));
        }
        if found.is_truncated && found.token.is_empty() {
            return Err(self.malformed(NO_TOKEN));
        }
        Ok(())
    }

    /// Uploads in parts that are under way for keys that begin with `prefix`.
    ///
    /// # Errors
    /// Why it cannot, and an answer that is no list.
    pub(crate) fn uploads(&mut self, prefix: &[u8]) -> Result<Vec<Upload>, Error> {
        let mut all = Vec::new();
        let (mut key, mut id) = (Vec::new(), Vec::new());
        let mut circle = Circle::default();
        loop {
            let mut query = Vec::new();
            if !key.is_empty() {
                query.extend_from_slice(b"key-marker=");
                text::escape(&mut query, &key, Keep::Unreserved);
                query.push(b'&');
            }
            query.extend_from_slice(b"prefix=");
            text::escape(&mut query, prefix, Keep::Unreserved);
            if !key.is_empty() {
                query.extend_from_slice(b"&upload-id-marker=");
                text::escape(&mut query, &id, Keep::Unreserved);
            }
            query.extend_from_slice(b"&uploads=");
            let status = self.call(&Ask::plain("GET", None, &query))?;
            self.succeed("uploads cannot be listed", status)?;
            self.check_list(UPLOADS)?;
            let found = self.found();
            if found.names.len() != found.uploads.len() {
                return Err(self.malformed("an upload has no key or no id"));
            }
            let pairs = found.names.iter().zip(&found.uploads);
            all.extend(pairs.map(|(key, id)| Upload { key: key.clone(), id: id.clone() }));
            if !found.is_truncated {
                return Ok(all);
            }
            (key, id) = (found.token.clone(), found.upload_marker.clone());
            if circle.closes(&[key.as_slice(), b"\0", &id].concat()) {
                return Err(self.malformed(TOKEN_AGAIN));
            }
        }
    }

    /// The run that an object carries the mark of, and its ETag; none where there is no object.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub(crate) fn owner(&mut self, name: &[u8]) -> Result<Option<(Option<u64>, Etag)>, Error> {
        let mut key = Vec::with_capacity(name.len() + 16);
        text::escape(&mut key, name, Keep::Slashes);
        match self.call(&Ask::plain("HEAD", Some(&key), b""))? {
            200 => Ok(Some((self.run, self.etag))),
            404 => Ok(None),
            status => Err(self.refused("the owner of an object cannot be determined", status)),
        }
    }

    /// Puts an empty object with the mark of a run where there is none; false where there is one. True also where the server does not know such
    /// a condition.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn put_new(&mut self, name: &[u8], mark: &[u8; 16]) -> Result<bool, Error> {
        let mut key = Vec::with_capacity(name.len() + 16);
        text::escape(&mut key, name, Keep::Slashes);
        let ask = Ask { mark: Some(mark), ..Ask::plain("PUT", Some(&key), b"") };
        match self.call(&Ask { condition: Condition::Absent, ..ask })? {
            409 | 412 => Ok(false),
            501 => {
                let status = self.call(&ask)?;
                self.succeed("an object cannot be stored", status).map(|()| true)
            }
            status => self.succeed("an object cannot be stored", status).map(|()| true),
        }
    }

    /// Deletes an object as long as it has this ETag, where the server knows such a condition.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn delete(&mut self, name: &[u8], etag: &[u8]) -> Result<Deleted, Error> {
        let mut key = Vec::with_capacity(name.len() + 16);
        text::escape(&mut key, name, Keep::Slashes);
        let plain = Ask::plain("DELETE", Some(&key), b"");
        let condition = if etag.is_empty() { Condition::Always } else { Condition::Matches(etag) };
        let mut status = self.call(&Ask { condition, ..plain })?;
        if status == 501 {
            status = self.call(&plain)?;
        }
        match status {
            404 => Ok(Deleted::Gone),
            412 => Ok(Deleted::IsAnother),
            _ => self.succeed("an object cannot be deleted", status).map(|()| Deleted::Gone),
        }
    }

    /// Gives up a multipart upload; `key` is escaped.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn abort(&mut self, key: &[u8], upload: &[u8]) -> Result<(), Error> {
        let mut query = b"uploadId=".to_vec();
        text::escape(&mut query, upload, Keep::Unreserved);
        let status = self.call(&Ask::plain("DELETE", Some(key), &query))?;
        if status == 404 { Ok(()) } else { self.succeed("an upload cannot be aborted", status) }
    }

    pub(crate) fn found(&self) -> &Found {
        self.scanner.found()
    }

    fn succeed(&self, what: &str, status: u16) -> Result<(), Error> {
        if (200..300).contains(&status) && self.found().code.is_empty() {
            return Ok(());
        }
        Err(self.refused(what, status))
    }

    fn refused(&self, what: &str, status: u16) -> Error {
        let found = self.found();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(|c: char| c.is_control(), " ");
        let code = if found.code.is_empty() { phrase(status).to_owned() } else { text(&found.code) };
        let message =
            if found.message.is_empty() { String::new() } else { format!(": {}", text(&found.message)) };
        let error = Error::new(ErrorKind::Run, "s3", format!("{what}: {status} {code}{message}"))
            .with("endpoint", &self.site.endpoints[self.endpoint].name)
            .with("bucket", &self.site.bucket);
        match (status, code.as_str()) {
            (301 | 307, _) | (400, "AuthorizationHeaderMalformed") => {
                error.remedy("the bucket may be in another region: use --s3-region")
            }
            (403, "RequestTimeTooSkewed") => error.remedy("correct this machine's clock"),
            (401 | 403, _) => error.remedy(
                "check the access key and the secret key (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or --s3-key-file)",
            ),
            _ => error,
        }
    }

    /// Sends a request, again where the answer says so, and returns the status of the last answer.
    fn call(&mut self, ask: &Ask<'_>) -> Result<u16, Error> {
        self.call_up_to(ask, self.site.retries)
    }

    /// Sends a request again only where the server has said that it did nothing.
    fn once(&mut self, ask: &Ask<'_>) -> Result<u16, Error> {
        // What lies at rest may be closed while the request is on its way.
        self.link = None;
        for _ in 0..self.site.retries {
            let status = self.call_up_to(ask, 0)?;
            if !matches!(status, 429 | 503) {
                return Ok(status);
            }
            std::thread::sleep(PAUSE);
            self.link = None;
        }
        self.call_up_to(ask, 0)
    }

    fn call_up_to(&mut self, ask: &Ask<'_>, retries: u32) -> Result<u16, Error> {
        let begin = Instant::now();
        let limit = Duration::from_nanos(self.site.timeout_ns);
        let mut pause = PAUSE;
        let mut tries = 0;
        loop {
            let answer = self.exchange(ask, begin + limit);
            let is_last = tries >= retries || begin.elapsed() + pause > limit;
            match answer {
                Ok(status) if is_last || !is_temporary(status, self.found()) => return Ok(status),
                Ok(_) => {}
                Err(Trouble::Lost(error)) if is_last || errno_of_loss(&error) == libc::EPROTO => {
                    return Err(self.lost(&error));
                }
                Err(Trouble::Lost(_)) => {}
                Err(Trouble::Malformed(why)) => return Err(self.malformed(why)),
                Err(Trouble::TooLong(_)) => return Err(self.malformed("it is too long")),
            }
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Run, "s3", "interrupted"));
            }
            std::thread::sleep(pause);
            (tries, pause) = (tries + 1, pause * 2);
        }
    }

    fn lost(&self, error: &std::io::Error) -> Error {
        let endpoint = &self.site.endpoints[self.endpoint];
        Error::new(ErrorKind::Run, "s3", format!("no answer: {}", words_of_loss(error)))
            .with("endpoint", &endpoint.name)
    }

    pub(crate) fn malformed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Run, "s3", format!("the answer is invalid: {why}"))
            .with("endpoint", &self.site.endpoints[self.endpoint].name)
            .remedy("check that this is an S3 server, and whether it expects http or https")
    }

    fn exchange(&mut self, ask: &Ask<'_>, deadline: Instant) -> Result<u16, Trouble> {
        let endpoint = &self.site.endpoints[self.endpoint];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.writer.set_time(now);
        self.writer.write(&mut self.head, endpoint, ask);
        let mut link = match self.link.take().and_then(|mut link| (!link.is_over()).then_some(link)) {
            Some(link) => link,
            None => Link::connect(endpoint.addresses[0], endpoint.tls.as_ref())?,
        };
        link.begin();
        self.scanner.reset();
        while link.send(&self.head, ask.payload)? == Progress::Blocked {
            self.wait(&link, true, deadline)?;
        }
        loop {
            let expected = Expected { value: None, is_head_only: ask.method == "HEAD" };
            if link.receive(expected, &mut self.scanner)? == Progress::Done {
                break;
            }
            self.wait(&link, false, deadline)?;
        }
        let reply = link.reply();
        let status = reply.map_or(0, |reply| reply.status);
        (self.run, self.etag) = reply.map_or((None, Etag::default()), |reply| (reply.run, reply.etag));
        if link.can_go_on() {
            self.link = Some(link);
        }
        Ok(status)
    }

    fn wait(&self, link: &Link, is_sending: bool, deadline: Instant) -> Result<(), Trouble> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || self.interrupt.load(Ordering::Relaxed) {
            return Err(std::io::Error::from_raw_os_error(libc::ETIMEDOUT).into());
        }
        let wanted = link.wanted(is_sending);
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, wanted.read);
        flags.set(PollFlags::OUT, wanted.write);
        let left = left.min(TICK);
        let span = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match rustix::event::poll(&mut [PollFd::new(link.socket(), flags)], Some(&span)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(Trouble::Lost(errno.into())),
        }
    }
}
