//! Where `ioengine=http` has its objects: fio joins host and file name to a URL, and knows of no bucket.

use crate::World;
use crate::fio::draft::{Draft, HttpMode, Https};
use crate::fio::fault::{Fault, shown};

/// A bucket, and what names in it begin with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) endpoint: String,
    /// Where the bucket stands, in the words of the load's option.
    pub(super) addressing: &'static str,
    pub(super) bucket: String,
    /// fio's file within the bucket.
    pub(super) object: String,
}

impl Bucket {
    /// The bucket of a job with this file.
    ///
    /// # Errors
    /// Services that are not spoken, and names without a bucket.
    pub(super) fn of(draft: &Draft, file: &str) -> Result<Self, Fault> {
        check_service(draft)?;
        let host = draft.http_host.as_deref().unwrap_or("localhost");
        let scheme = match draft.https.unwrap_or(Https::Off) {
            Https::Off => "http",
            Https::On => "https",
            Https::Insecure => {
                return Err(Fault::of(
                    "https",
                    "insecure is not supported: strata always checks certificates; alternative: on, with AWS_CA_BUNDLE=FILE that contains the server's certificate",
                ));
            }
        };
        let Some(path) = file.strip_prefix('/') else {
            return Err(Fault::of(
                "filename",
                format!(
                    "{}: must begin with / for ioengine=http, as in /BUCKET/OBJECT: fio appends it directly to the host",
                    shown(file)
                ),
            ));
        };
        // As Amazon names them, BUCKET.s3.REGION.amazonaws.com, and services that follow it.
        let of_host = [".s3.", ".s3-"].iter().filter_map(|mark| host.find(mark)).min();
        let (endpoint, addressing, bucket, object) = match of_host.filter(|&at| at > 0) {
            Some(at) => (&host[at + 1..], "virtual-host", &host[..at], path),
            None => match path.split_once('/') {
                Some((bucket, object)) => (host, "path", bucket, object),
                None => {
                    return Err(Fault::of(
                        "filename",
                        format!(
                            "{} names no bucket: use /BUCKET/OBJECT, or http_host=BUCKET.s3.REGION.DOMAIN",
                            shown(file)
                        ),
                    ));
                }
            },
        };
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if bucket.is_empty() || !bucket.bytes().all(is_good) {
            return Err(Fault::of("filename", format!("{} is not a valid bucket name", shown(bucket))));
        }
        Ok(Self {
            endpoint: format!("{scheme}://{endpoint}"),
            addressing,
            bucket: bucket.to_owned(),
            object: object.to_owned(),
        })
    }

    /// The one object of the file: the target, and the end of its name, which is its key there.
    ///
    /// # Errors
    /// No name, or one whose end cannot stand in a pattern of names.
    pub(super) fn object(&self) -> Result<(String, String), Fault> {
        let end = self.object.char_indices().next_back();
        let Some((at, _)) = end.filter(|(_, last)| !matches!(last, '{' | '}' | '/')) else {
            return Err(Fault::of("filename", "names no object: use /BUCKET/OBJECT"));
        };
        let (head, tail) = self.object.split_at(at);
        Ok((format!("s3://{}/{head}", self.bucket), tail.to_owned()))
    }
}

fn check_service(draft: &Draft) -> Result<(), Fault> {
    let why = match draft.http_mode {
        Some(HttpMode::S3) => {
            let of_others = [("http_user", &draft.http_user), ("http_pass", &draft.http_pass)];
            return match of_others.iter().find(|(_, text)| text.is_some()) {
                Some((key, _)) => Err(Fault::of(
                    key,
                    "is not supported with http_mode=s3, whose requests are signed with keys; alternative: http_s3_keyid and http_s3_key",
                )),
                None => Ok(()),
            };
        }
        None => "defaults to webdav, and strata does not support WebDAV",
        Some(HttpMode::WebDav) => "webdav is not supported",
        Some(HttpMode::Swift) => "swift is not supported",
    };
    Err(Fault::of("http_mode", format!("{why}; alternative: s3, which most object stores support")))
}

/// Access key and secret key of a job; none leaves them to the environment.
///
/// # Errors
/// One without the other, or none at all.
pub(super) fn key(draft: &Draft, world: &dyn World) -> Result<Option<(String, String)>, Fault> {
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let has = |name: &str| world.variable(name).is_some_and(|value| !value.is_empty());
    match (given(&draft.http_s3_keyid), given(&draft.http_s3_key)) {
        (Some(access), Some(secret)) => Ok(Some((access, secret))),
        (None, None) if has("AWS_ACCESS_KEY_ID") && has("AWS_SECRET_ACCESS_KEY") => Ok(None),
        (None, None) => Err(Fault::of(
            "http_s3_keyid",
            "http_mode=s3 requires it and http_s3_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
        )),
        (Some(_), None) => Err(Fault::of("http_s3_key", "http_s3_keyid requires http_s3_key: give both")),
        (None, Some(_)) => Err(Fault::of("http_s3_keyid", "http_s3_key requires http_s3_keyid: give both")),
    }
}
