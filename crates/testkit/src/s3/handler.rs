//! From a request to its answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};

use super::Shared;
use super::answer::{Answer, Draft, Refused, escaped};
use super::faults::Fault;
use super::requests::{Parts, decode, encode};
use super::signature;
use super::store::{Object, Refusal, Store};

const NO_BUCKET: Refused = Refused(404, "NoSuchBucket", "The specified bucket does not exist");
const NO_KEY: Refused = Refused(404, "NoSuchKey", "The specified key does not exist.");
const NO_UPLOAD: Refused = Refused(404, "NoSuchUpload", "The specified multipart upload does not exist.");
const BAD_PART: Refused =
    Refused(400, "InvalidPart", "One or more of the specified parts could not be found.");
/// Keys of a page at most.
const PAGE_MAX: usize = 1000;

/// Answers a request. An error cuts the connection.
pub(crate) async fn handle(
    shared: &Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, io::Error> {
    let parts = Parts::new(&request);
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let fault = shared.faults.next();
    match fault {
        Fault::Cut => return Err(io::Error::other("cut on purpose")),
        Fault::Slow => tokio::time::sleep(Duration::from_secs(1)).await,
        Fault::Silence => std::future::pending().await,
        _ => {}
    }
    let is_head = parts.as_ref().is_some_and(|parts| parts.method == Method::HEAD);
    let draft = match parts {
        Some(parts) => answer(shared, &parts, body, fault).unwrap_or_else(Draft::from),
        None => Refused(400, "InvalidURI", "Couldn't parse the specified URI.").into(),
    };
    if fault == Fault::CutBody && draft.data.is_empty() {
        return Err(io::Error::other("cut on purpose"));
    }
    let length = is_head.then_some(draft.data.len());
    let draft = if is_head { Draft { data: Bytes::new(), ..draft } } else { draft };
    draft.finish(fault, length).map_err(|never| match never {})
}

fn answer(shared: &Shared, parts: &Parts, body: Bytes, fault: Fault) -> Result<Draft, Refused> {
    match fault {
        Fault::SlowDown => return Err(Refused(503, "SlowDown", "Please reduce your request rate.")),
        Fault::InternalError => {
            return Err(Refused(500, "InternalError", "We encountered an internal error."));
        }
        Fault::Full => return Err(Refused(403, "QuotaExceeded", "The quota is used up.")),
        // A head that promises in a form that is none.
        Fault::Garbage => return Ok(Draft::empty(299).with("transfer-encoding", "gzip")),
        _ => {}
    }
    signature::check(&shared.options, parts, &body)?;
    let store = &shared.store;
    if parts.key.is_empty() {
        return of_bucket(store, parts);
    }
    if !store.has_bucket(&parts.bucket) {
        return Err(NO_BUCKET);
    }
    of_object(store, parts, body, fault)
}

fn of_bucket(store: &Store, parts: &Parts) -> Result<Draft, Refused> {
    let bucket = &parts.bucket;
    let is_there = store.has_bucket(bucket);
    match parts.method {
        Method::PUT if store.create_bucket(bucket) => Ok(Draft::empty(200)),
        Method::PUT => Err(Refused(409, "BucketAlreadyOwnedByYou", "You already own this bucket.")),
        _ if !is_there => Err(NO_BUCKET),
        Method::HEAD => Ok(Draft::empty(200)),
        Method::GET if parts.asked("uploads").is_some() => Ok(uploads(store, parts)),
        Method::GET => list(store, parts),
        Method::DELETE if store.keys(bucket).is_empty() => {
            store.remove_bucket(bucket);
            Ok(Draft::empty(204))
        }
        Method::DELETE => Err(Refused(409, "BucketNotEmpty", "The bucket you tried to delete is not empty.")),
        _ => Err(Refused(405, "MethodNotAllowed", "The specified method is not allowed.")),
    }
}

fn list(store: &Store, parts: &Parts) -> Result<Draft, Refused> {
    if parts.asked("list-type") != Some("2") {
        return Err(Refused(501, "NotImplemented", "Only ListObjectsV2 is implemented."));
    }
    let prefix = parts.asked("prefix").unwrap_or_default();
    let max = parts.asked("max-keys").map_or(Ok(PAGE_MAX), str::parse);
    let max = max.map_err(|_| Refused(400, "InvalidArgument", "max-keys is no number."))?;
    let bad_token = Refused(400, "InvalidArgument", "The continuation token provided is incorrect");
    let after = match parts.asked("continuation-token") {
        // With characters that must be escaped.
        Some(token) => {
            let inner = token.strip_prefix("1+/").and_then(|token| token.strip_suffix('='));
            inner.and_then(decode).ok_or(bad_token)?
        }
        None => parts.asked("start-after").unwrap_or_default().to_owned(),
    };
    let page = store.list(&parts.bucket, prefix, &after, max.min(PAGE_MAX));
    let is_url = parts.asked("encoding-type") == Some("url");
    let name = |key: &str| if is_url { encode(key, true) } else { escaped(key) };
    let mut body = format!(
        "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>{}</Name><Prefix>{}</Prefix>\
         <KeyCount>{}</KeyCount><MaxKeys>{max}</MaxKeys><IsTruncated>{}</IsTruncated>{}",
        parts.bucket,
        name(prefix),
        page.objects.len(),
        page.is_truncated,
        if is_url { "<EncodingType>url</EncodingType>" } else { "" },
    );
    for (key, object) in &page.objects {
        body += &format!(
            "<Contents><Key>{}</Key><LastModified>2026-11-01T00:00:00.000Z</LastModified><ETag>{}</ETag>\
             <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
            name(key),
            object.etag.replace('"', "&quot;"),
            object.data.len(),
        );
    }
    if let Some((last, _)) = page.objects.last().filter(|_| page.is_truncated) {
        let token = format!("1+/{}=", encode(last, false));
        body += &format!("<NextContinuationToken>{token}</NextContinuationToken>");
    }
    Ok(Draft::xml(&(body + "</ListBucketResult>")))
}

fn uploads(store: &Store, parts: &Parts) -> Draft {
    let all = store.uploads(&parts.bucket, parts.asked("prefix").unwrap_or_default());
    let rows: Vec<String> = all
        .iter()
        .map(|(id, key)| format!("<Upload><Key>{}</Key><UploadId>{id}</UploadId></Upload>", escaped(key)))
        .collect();
    Draft::xml(&format!(
        "<ListMultipartUploadsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Bucket>{}</Bucket>\
         <IsTruncated>false</IsTruncated>{}</ListMultipartUploadsResult>",
        parts.bucket,
        rows.concat()
    ))
}

/// Refuses what its condition forbids.
fn check_condition(store: &Store, parts: &Parts) -> Result<(), Refused> {
    let there = store.get(&parts.bucket, &parts.key);
    let is_absent = parts.header("if-none-match").is_none_or(|_| there.is_none());
    let is_same = |wanted: &str| there.as_ref().is_none_or(|object| object.etag == wanted);
    if is_absent && parts.header("if-match").is_none_or(is_same) {
        return Ok(());
    }
    Err(Refused(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"))
}

fn of_object(store: &Store, parts: &Parts, body: Bytes, fault: Fault) -> Result<Draft, Refused> {
    let (bucket, key) = (parts.bucket.as_str(), parts.key.as_str());
    let upload = parts.asked("uploadId");
    let mark = || parts.header("x-amz-meta-strata-run").map(str::to_owned);
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        check_condition(store, parts)?;
    }
    match (parts.method.clone(), upload) {
        (Method::PUT, Some(id)) => {
            let number = parts.asked("partNumber").and_then(|number| number.parse().ok());
            let number = number.filter(|number| (1..=10_000).contains(number)).ok_or(BAD_PART)?;
            let etag = store.put_part(id, key, number, body).ok_or(NO_UPLOAD)?;
            let etag = if fault == Fault::WrongEtag { "\"0\"".to_owned() } else { etag };
            Ok(Draft::empty(200).with("etag", etag))
        }
        (Method::PUT, None) => {
            let etag = store.put(bucket, key, body, mark()).ok_or(NO_BUCKET)?;
            Ok(Draft::empty(200).with("etag", etag))
        }
        (Method::GET | Method::HEAD, _) => get(parts, store.get(bucket, key).ok_or(NO_KEY)?, fault),
        (Method::DELETE, Some(id)) if store.abort(id) => Ok(Draft::empty(204)),
        (Method::DELETE, Some(_)) => Err(NO_UPLOAD),
        (Method::DELETE, None) => {
            store.delete(bucket, key);
            Ok(Draft::empty(204))
        }
        (Method::POST, Some(id)) => complete(store, parts, id, &body, fault),
        (Method::POST, None) if parts.asked("uploads").is_some() => {
            let id = store.begin_upload(bucket, key, mark());
            Ok(Draft::xml(&format!(
                "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <Bucket>{bucket}</Bucket><Key>{}</Key><UploadId>{id}</UploadId></InitiateMultipartUploadResult>",
                escaped(key)
            )))
        }
        _ => Err(Refused(405, "MethodNotAllowed", "The specified method is not allowed.")),
    }
}

fn get(parts: &Parts, object: Object, fault: Fault) -> Result<Draft, Refused> {
    let length = object.data.len();
    let past = Refused(416, "InvalidRange", "The requested range is not satisfiable");
    let range = if fault == Fault::NoRanges { None } else { parts.range(length).map_err(|()| past)? };
    let mut draft = Draft { status: 200, headers: vec![("etag", object.etag)], data: object.data };
    if let Some(mark) = object.mark {
        draft = draft.with("x-amz-meta-strata-run", mark);
    }
    if let Some((first, last)) = range {
        draft.status = 206;
        draft.data = draft.data.slice(first..=last);
        draft = draft.with("content-range", format!("bytes {first}-{last}/{length}"));
    }
    if fault == Fault::Short && !draft.data.is_empty() {
        draft.data = draft.data.slice(..draft.data.len() - 1);
    }
    Ok(draft)
}

fn complete(store: &Store, parts: &Parts, id: &str, body: &[u8], fault: Fault) -> Result<Draft, Refused> {
    if fault == Fault::CompleteFails {
        let refused = Refused(200, "InternalError", "We encountered an internal error. Please try again.");
        return Err(refused);
    }
    let body = std::str::from_utf8(body).map_err(|_| BAD_PART)?;
    let inner = |text: &str, name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner.replace("&quot;", "\""))
    };
    let named: Option<Vec<(u32, String)>> = body
        .split("<Part>")
        .skip(1)
        .map(|part| Some((inner(part, "PartNumber")?.parse().ok()?, inner(part, "ETag")?)))
        .collect();
    match store.complete(id, &named.ok_or(Refused(400, "MalformedXML", "The XML is not well-formed."))?) {
        Ok(etag) => Ok(Draft::xml(&format!(
            "<CompleteMultipartUploadResult><Bucket>{}</Bucket><Key>{}</Key><ETag>{}</ETag>\
             </CompleteMultipartUploadResult>",
            parts.bucket,
            escaped(&parts.key),
            etag.replace('"', "&quot;"),
        ))),
        Err(Refusal::NoSuchUpload) => Err(NO_UPLOAD),
        Err(Refusal::InvalidPart) => Err(BAD_PART),
        Err(Refusal::NoSuchBucket) => Err(NO_BUCKET),
    }
}
