//! Objects of the server, kept in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use hyper::body::Bytes;

/// An object. Values are shared, never copied.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) data: Bytes,
    /// With its quotes.
    pub(crate) etag: String,
    /// Value of `x-amz-meta-strata-run` when it was put.
    pub(crate) mark: Option<String>,
}

#[derive(Debug)]
struct Upload {
    bucket: String,
    key: String,
    mark: Option<String>,
    parts: BTreeMap<u32, Object>,
}

type Objects = BTreeMap<String, Object>;

/// Buckets, their objects, and uploads that are not put together yet.
#[derive(Debug, Default)]
pub struct Store {
    buckets: RwLock<HashMap<String, Arc<RwLock<Objects>>>>,
    uploads: RwLock<HashMap<String, Upload>>,
    next_upload: AtomicU64,
}

/// A page of a list.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<(String, Object)>,
    pub(crate) is_truncated: bool,
}

/// Why parts are not put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoSuchUpload,
    InvalidPart,
    NoSuchBucket,
}

/// An ETag for data: opaque to clients, as that of an encrypted object is.
pub(crate) fn etag(data: &[u8]) -> String {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, data);
    format!("\"{sum:016x}{:016x}\"", data.len())
}

impl Store {
    fn bucket(&self, name: &str) -> Option<Arc<RwLock<Objects>>> {
        self.buckets.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Whether there is such a bucket.
    #[must_use]
    pub fn has_bucket(&self, name: &str) -> bool {
        self.bucket(name).is_some()
    }

    /// Makes a bucket; false where it is there.
    pub fn create_bucket(&self, name: &str) -> bool {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        if buckets.contains_key(name) {
            return false;
        }
        buckets.insert(name.to_owned(), Arc::default());
        true
    }

    /// Removes a bucket with all that is in it.
    pub fn remove_bucket(&self, name: &str) {
        self.buckets.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// Keys of a bucket's objects, in order.
    #[must_use]
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        let objects = self.bucket(bucket).unwrap_or_default();
        objects.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Data of an object.
    #[must_use]
    pub fn data(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        self.get(bucket, key).map(|object| object.data.to_vec())
    }

    /// Puts an object, past all requests. False where there is no such bucket.
    pub fn insert(&self, bucket: &str, key: &str, data: Vec<u8>) -> bool {
        self.put(bucket, key, Bytes::from(data), None).is_some()
    }

    /// Uploads that are neither put together nor given up.
    #[must_use]
    pub fn open_uploads(&self) -> usize {
        self.uploads.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn get(&self, bucket: &str, key: &str) -> Option<Object> {
        self.bucket(bucket)?.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// The ETag; none where there is no such bucket.
    pub(crate) fn put(&self, bucket: &str, key: &str, data: Bytes, mark: Option<String>) -> Option<String> {
        let objects = self.bucket(bucket)?;
        let etag = etag(&data);
        let object = Object { data, etag: etag.clone(), mark };
        objects.write().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), object);
        Some(etag)
    }

    /// Removes an object, past all requests.
    pub fn delete(&self, bucket: &str, key: &str) {
        if let Some(objects) = self.bucket(bucket) {
            objects.write().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }

    pub(crate) fn list(&self, bucket: &str, prefix: &str, after: &str, max: usize) -> Page {
        let mut page = Page::default();
        let Some(objects) = self.bucket(bucket) else { return page };
        let objects = objects.read().unwrap_or_else(PoisonError::into_inner);
        // A key that was listed is not listed again; the prefix itself may be a key.
        let from = if after.is_empty() { Bound::Included(prefix) } else { Bound::Excluded(after) };
        let from = if after < prefix { Bound::Included(prefix) } else { from };
        let mut all = objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, object)| (key.clone(), object.clone()));
        page.objects.extend(all.by_ref().take(max));
        page.is_truncated = all.next().is_some();
        page
    }

    /// Ids and keys of uploads in a bucket that are neither put together nor given up, by key.
    #[must_use]
    pub fn uploads(&self, bucket: &str, prefix: &str) -> Vec<(String, String)> {
        let uploads = self.uploads.read().unwrap_or_else(PoisonError::into_inner);
        let is_meant = |upload: &&Upload| upload.bucket == bucket && upload.key.starts_with(prefix);
        let all = uploads.iter().filter(|(_, upload)| is_meant(upload));
        let mut all: Vec<_> = all.map(|(id, upload)| (id.clone(), upload.key.clone())).collect();
        all.sort_by(|one, other| (&one.1, &one.0).cmp(&(&other.1, &other.0)));
        all
    }

    /// Begins an upload in parts; its id.
    pub fn begin_upload(&self, bucket: &str, key: &str, mark: Option<String>) -> String {
        let number = self.next_upload.fetch_add(1, Ordering::Relaxed);
        // Characters that must be escaped in a query: ids of real servers have them.
        let id = format!("up/{number:08x}+x==");
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let upload = Upload { bucket, key, mark, parts: BTreeMap::new() };
        self.uploads.write().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), upload);
        id
    }

    pub(crate) fn put_part(&self, id: &str, key: &str, number: u32, data: Bytes) -> Option<String> {
        let etag = etag(&data);
        let mut uploads = self.uploads.write().unwrap_or_else(PoisonError::into_inner);
        let upload = uploads.get_mut(id).filter(|upload| upload.key == key)?;
        upload.parts.insert(number, Object { data, etag: etag.clone(), mark: None });
        Some(etag)
    }

    /// Puts parts together. `named`: their numbers and ETags, in the order of the request.
    pub(crate) fn complete(&self, id: &str, named: &[(u32, String)]) -> Result<String, Refusal> {
        let mut uploads = self.uploads.write().unwrap_or_else(PoisonError::into_inner);
        let upload = uploads.get(id).ok_or(Refusal::NoSuchUpload)?;
        let mut data = Vec::new();
        let mut last = 0;
        for (number, etag) in named {
            let part = upload.parts.get(number).filter(|part| part.etag == *etag && *number > last);
            data.extend_from_slice(&part.ok_or(Refusal::InvalidPart)?.data);
            last = *number;
        }
        if named.is_empty() {
            return Err(Refusal::InvalidPart);
        }
        let (bucket, key, mark) = (upload.bucket.clone(), upload.key.clone(), upload.mark.clone());
        uploads.remove(id);
        drop(uploads);
        self.put(&bucket, &key, Bytes::from(data), mark).ok_or(Refusal::NoSuchBucket)
    }

    pub(crate) fn abort(&self, id: &str) -> bool {
        self.uploads.write().unwrap_or_else(PoisonError::into_inner).remove(id).is_some()
    }
}
