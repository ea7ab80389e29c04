//! One request after the other, outside the measured loop: checks and makes buckets, lists, deletes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use driver::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::answers::{errno_of_loss, is_temporary, phrase, words_of_loss};
use super::link::{Expected, Link, Progress, Trouble};
use super::request::{Ask, Writer};
use super::scanner::{Found, Scanner};
use super::site::Site;
use super::text::{self, Keep};

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
    interrupt: Arc<AtomicBool>,
}

/// A page of a list.
pub(crate) struct Page {
    pub(crate) names: Vec<Vec<u8>>,
    /// Where it goes on; none at the end.
    pub(crate) token: Option<Vec<u8>>,
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
            200 => Ok(true),
            404 => Ok(false),
            status => Err(self.refused("the bucket cannot be used", status)),
        }
    }

    /// Makes the bucket.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn create_bucket(&mut self) -> Result<(), Error> {
        let body = match self.site.region.as_str() {
            // The region that goes without saying must not be said (CreateBucket).
            "" | "us-east-1" => String::new(),
            region => format!(
                "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <LocationConstraint>{region}</LocationConstraint></CreateBucketConfiguration>"
            ),
        };
        let ask = Ask { payload: body.as_bytes(), ..Ask::plain("PUT", None, b"") };
        let mut status = self.call(&ask)?;
        if status == 400 && self.found().code == b"InvalidLocationConstraint" {
            // Stores of other makers know no regions.
            status = self.call(&Ask::plain("PUT", None, b""))?;
        }
        self.succeed("the bucket cannot be made", status)
    }

    /// Deletes the bucket, which must be empty.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn delete_bucket(&mut self) -> Result<(), Error> {
        let status = self.call(&Ask::plain("DELETE", None, b""))?;
        self.succeed("the bucket cannot be deleted", status)
    }

    /// The next names that begin with `prefix`.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn list(&mut self, prefix: &[u8], from: Option<&[u8]>, max: u32) -> Result<Page, Error> {
        let mut query = Vec::new();
        if let Some(token) = from {
            query.extend_from_slice(b"continuation-token=");
            text::escape(&mut query, token, Keep::Unreserved);
            query.push(b'&');
        }
        query.extend_from_slice(format!("encoding-type=url&list-type=2&max-keys={max}&prefix=").as_bytes());
        text::escape(&mut query, prefix, Keep::Unreserved);
        let status = self.call(&Ask::plain("GET", None, &query))?;
        self.succeed("the bucket cannot be listed", status)?;
        let found = self.found();
        let names = found.names.iter().map(|name| text::unescape(name)).collect();
        let token = (found.is_truncated && !found.token.is_empty()).then(|| found.token.clone());
        Ok(Page { names, token })
    }

    /// Deletes an object; one that is not there is no error.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn delete(&mut self, name: &[u8]) -> Result<(), Error> {
        let mut key = Vec::with_capacity(name.len() + 16);
        text::escape(&mut key, name, Keep::Slashes);
        let status = self.call(&Ask::plain("DELETE", Some(&key), b""))?;
        if status == 404 { Ok(()) } else { self.succeed("an object cannot be deleted", status) }
    }

    /// Gives up a multipart upload; `key` is escaped.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn abort(&mut self, key: &[u8], upload: &[u8]) -> Result<(), Error> {
        let mut query = b"uploadId=".to_vec();
        text::escape(&mut query, upload, Keep::Unreserved);
        let status = self.call(&Ask::plain("DELETE", Some(key), &query))?;
        if status == 404 { Ok(()) } else { self.succeed("an upload cannot be given up", status) }
    }

    fn found(&self) -> &Found {
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
                error.remedy("the bucket may be in another region: --s3-region")
            }
            (403, "RequestTimeTooSkewed") => error.remedy("set this machine's clock"),
            (401 | 403, _) => error.remedy(
                "check the access key and the secret key (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or --s3-key-file)",
            ),
            _ => error,
        }
    }

    /// Sends a request, again where the answer says so, and returns the status of the last answer.
    fn call(&mut self, ask: &Ask<'_>) -> Result<u16, Error> {
        let begin = Instant::now();
        let limit = Duration::from_nanos(self.site.timeout_ns);
        let mut pause = PAUSE;
        let mut tries = 0;
        loop {
            let answer = self.exchange(ask, begin + limit);
            let is_last = tries >= self.site.retries || begin.elapsed() + pause > limit;
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

    fn malformed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Run, "s3", format!("the answer cannot be understood: {why}"))
            .with("endpoint", &self.site.endpoints[self.endpoint].name)
            .remedy("is this an S3 server, and http or https as it wants?")
    }

    fn exchange(&mut self, ask: &Ask<'_>, deadline: Instant) -> Result<u16, Trouble> {
        let endpoint = &self.site.endpoints[self.endpoint];
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.writer.set_time(now);
        self.writer.write(&mut self.head, endpoint, ask);
        let mut link = match self.link.take() {
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
        let status = link.reply().map_or(0, |reply| reply.status);
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
