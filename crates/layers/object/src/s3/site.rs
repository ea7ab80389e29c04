//! Site of a run, which all its workers know: servers, bucket, keys of the user, and how objects are named.

use std::path::Path;
use std::sync::Arc;

use driver::Error;
use rustls::ClientConfig;

use crate::plan::{ObjectOptions, ObjectPlan, S3Key, Scope, Signing};

use vos::model::Key;

use super::endpoint::{Endpoint, client_config};
use super::request::Writer;
use super::text::{self, Keep};

/// Where the objects are.
pub(crate) struct Site {
    pub(crate) bucket: String,
    /// Prefix of the names of all objects.
    pub(crate) prefix: Vec<u8>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) region: String,
    pub(crate) retries: u32,
    pub(crate) timeout_ns: u64,
    credentials: Option<S3Key>,
    signing: Signing,
}

/// Bucket and prefix of `s3://bucket/prefix`.
fn parse(target: &str) -> Option<(&str, &str)> {
    let rest = target.strip_prefix("s3://")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
    (!bucket.is_empty() && bucket.len() <= 255 && bucket.bytes().all(is_good)).then_some((bucket, prefix))
}

impl Site {
    /// The site of a target. Nothing is asked of a server; names are resolved.
    ///
    /// # Errors
    /// A target or an endpoint of another form, no endpoint, no credentials.
    pub(crate) fn new(
        target: &str,
        options: &ObjectOptions,
        credentials: Option<&S3Key>,
        bundle: Option<&Path>,
    ) -> Result<Self, Error> {
        let (bucket, prefix) = parse(target).ok_or_else(|| {
            Error::usage("s3", format!("{target:?} is not an s3 target"))
                .remedy("accepted: s3://BUCKET and s3://BUCKET/PREFIX, such as s3://bench/run1/")
        })?;
        if options.s3_endpoints.is_empty() {
            return Err(Error::usage("s3", "no server is specified")
                .remedy("use --s3-endpoint http://host:port; separate several with commas"));
        }
        if credentials.is_none() && options.s3_signing != Signing::None {
            return Err(Error::usage("s3", "no access key is specified").remedy(
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or use --s3-key-file, or --s3-signing none for anonymous access",
            ));
        }
        let mut config: Option<Arc<ClientConfig>> = None;
        let mut endpoints = Vec::new();
        for name in &options.s3_endpoints {
            let tls = || {
                if config.is_none() {
                    config = Some(client_config(bundle)?);
                }
                config.clone().ok_or_else(|| Error::usage("s3", "TLS is not configured"))
            };
            endpoints.push(Endpoint::new(name, bucket, options.s3_addressing, tls)?);
        }
        let region = if options.s3_region.is_empty() { "us-east-1" } else { &options.s3_region };
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: prefix.as_bytes().to_vec(),
            endpoints,
            region: region.to_owned(),
            retries: options.retries,
            timeout_ns: options.timeout_ns,
            credentials: credentials.cloned(),
            signing: options.s3_signing,
        })
    }

    /// Writes requests.
    pub(crate) fn writer(&self) -> Writer {
        Writer::new(self.credentials.as_ref(), &self.region, self.signing)
    }
}

/// How the objects of a phase are named: prefix, `oN/` where there is more than one object, and the dkey. What is read as an array and has
/// no dkey is named `oN`.
#[derive(Clone)]
pub(crate) struct Names {
    /// Escaped.
    prefix: Vec<u8>,
    names_objects: bool,
    integer_dkeys: bool,
}

impl Names {
    pub(crate) fn new(site: &Site, plan: &ObjectPlan) -> Self {
        Self::of(&site.prefix, names_objects(plan), plan.dataset.integer_dkeys)
    }

    fn of(prefix: &[u8], names_objects: bool, integer_dkeys: bool) -> Self {
        let mut escaped = Vec::new();
        text::escape(&mut escaped, prefix, Keep::Slashes);
        Self { prefix: escaped, names_objects, integer_dkeys }
    }

    /// Writes the escaped name of an object in place of what `out` held.
    pub(crate) fn write(&self, out: &mut Vec<u8>, object: u64, dkey: &Key) {
        out.clear();
        out.extend_from_slice(&self.prefix);
        let dkey = dkey.as_bytes();
        if self.names_objects || dkey.is_empty() {
            out.push(b'o');
            text::decimal(out, object);
        }
        if self.names_objects && !dkey.is_empty() {
            out.push(b'/');
        }
        match dkey.try_into() {
            // Names are text: numbers are written as such.
            Ok(number) if self.integer_dkeys => text::decimal(out, u64::from_le_bytes(number)),
            _ => text::escape(out, dkey, Keep::Slashes),
        }
    }

    /// Writes what the names of an object's keys begin with, escaped for a query.
    pub(crate) fn write_query_prefix(&self, out: &mut Vec<u8>, object: u64) {
        for &byte in &self.prefix {
            if byte == b'/' {
                out.extend_from_slice(b"%2F");
            } else {
                out.push(byte);
            }
        }
        if self.names_objects {
            out.push(b'o');
            text::decimal(out, object);
            out.extend_from_slice(b"%2F");
        }
    }
}

/// Whether names tell objects apart.
pub(crate) fn names_objects(plan: &ObjectPlan) -> bool {
    plan.dataset.objects > 1 || plan.object_scope == Scope::Private
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_taken_apart() {
        assert_eq!(parse("s3://b"), Some(("b", "")));
        assert_eq!(parse("s3://b/a/b-"), Some(("b", "a/b-")));
        for bad in ["s3://", "s3:b", "s3:///x", "s3://a b", "s3://b?x"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let refused = |target: &str, options: &ObjectOptions| {
            Site::new(target, options, None, None).err().expect("refused").to_string()
        };
        let mut options = ObjectOptions::default();
        assert!(refused("s3:x", &options).contains("s3://BUCKET/PREFIX"));
        assert!(refused("s3://b", &options).contains("--s3-endpoint"));
        options.s3_endpoints = vec!["http://127.0.0.1:9".to_owned()];
        assert!(refused("s3://b", &options).contains("AWS_ACCESS_KEY_ID"));
        options.s3_signing = Signing::None;
        assert!(Site::new("s3://b", &options, None, None).is_ok());
    }

    #[test]
    fn names_are_prefix_object_and_key() {
        let mut out = Vec::new();
        let key = Key::new(b"a b/1").expect("short");
        Names::of(b"p /", false, false).write(&mut out, 7, &key);
        assert_eq!(out, b"p%20/a%20b/1");
        let several = Names::of(b"", true, true);
        several.write(&mut out, 7, &Key::integer(258));
        assert_eq!(out, b"o7/258");
        several.write(&mut out, 7, &Key::EMPTY);
        assert_eq!(out, b"o7");
        out.clear();
        Names::of(b"p/", true, false).write_query_prefix(&mut out, 3);
        assert_eq!(out, b"p%2Fo3%2F");
    }
}
