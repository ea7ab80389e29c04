//! Checks signatures (AWS Signature Version 4).

use std::time::{SystemTime, UNIX_EPOCH};

use ring::{digest, hmac};

use super::S3Options;
use super::answer::Refused;
use super::requests::{Parts, encode};

/// How far a client's clock may be off, in seconds.
const SKEW_SECONDS: u64 = 15 * 60;

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)] as char, DIGITS[usize::from(byte & 15)] as char])
        .collect()
}

fn sign(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

/// Whether the request may be carried out.
pub(crate) fn check(options: &S3Options, parts: &Parts, body: &[u8]) -> Result<(), Refused> {
    let Some(header) = parts.header("authorization") else {
        let refused = Refused(403, "AccessDenied", "Access Denied");
        return if options.is_anonymous { Ok(()) } else { Err(refused) };
    };
    let malformed = || Refused(400, "AuthorizationHeaderMalformed", "The authorization header is malformed");
    let fields = header.strip_prefix("AWS4-HMAC-SHA256 ").ok_or_else(malformed)?;
    let field = |name: &str| {
        fields
            .split(',')
            .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='))
            .ok_or_else(malformed)
    };
    let scope: Vec<&str> = field("Credential")?.split('/').collect();
    let [access, day, region, "s3", "aws4_request"] = scope[..] else { return Err(malformed()) };
    if access != options.access {
        let message = "The AWS Access Key Id you provided does not exist in our records.";
        return Err(Refused(403, "InvalidAccessKeyId", message));
    }
    let date = parts.header("x-amz-date").ok_or_else(malformed)?;
    if region != options.region || !date.starts_with(day) {
        return Err(malformed());
    }
    check_time(date)?;
    let claimed = parts.header("x-amz-content-sha256").ok_or_else(malformed)?;
    if claimed != "UNSIGNED-PAYLOAD" && claimed != hex(digest::digest(&digest::SHA256, body).as_ref()) {
        let message = "The provided 'x-amz-content-sha256' header does not match what was computed.";
        return Err(Refused(400, "XAmzContentSHA256Mismatch", message));
    }
    let names = field("SignedHeaders")?;
    let own = parts.headers.keys().map(|name| name.as_str()).filter(|name| name.starts_with("x-amz-"));
    for needed in own.chain(["host", "x-amz-content-sha256", "x-amz-date"]) {
        if !names.split(';').any(|name| name == needed) {
            return Err(Refused(403, "AccessDenied", "There were headers present which were not signed"));
        }
    }
    let canonical = canonical(parts, names, claimed);
    let hash = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{day}/{region}/s3/aws4_request\n{hash}");
    let mut key = sign(format!("AWS4{}", options.secret).as_bytes(), day);
    for part in [region, "s3", "aws4_request"] {
        key = sign(key.as_ref(), part);
    }
    if hex(sign(key.as_ref(), &text).as_ref()) == field("Signature")? {
        return Ok(());
    }
    let message = "The request signature we calculated does not match the signature you provided.";
    Err(Refused(403, "SignatureDoesNotMatch", message))
}

fn canonical(parts: &Parts, names: &str, payload: &str) -> String {
    let mut query: Vec<(String, String)> =
        parts.query.iter().map(|(name, value)| (encode(name, false), encode(value, false))).collect();
    query.sort();
    let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let path = super::requests::decode(&parts.path).unwrap_or_default();
    let mut text = format!("{}\n{}\n{}\n", parts.method, encode(&path, true), query.join("&"));
    for name in names.split(';') {
        text += &format!("{name}:{}\n", parts.header(name).unwrap_or_default().trim());
    }
    text + &format!("\n{names}\n{payload}")
}

/// `20130524T000000Z` must be about now.
fn check_time(date: &str) -> Result<(), Refused> {
    let digits = |from: usize, to: usize| date.get(from..to).and_then(|text| text.parse::<i64>().ok());
    let parsed = (|| {
        let (year, month, day) = (digits(0, 4)?, digits(4, 6)?, digits(6, 8)?);
        let seconds = digits(9, 11)? * 3600 + digits(11, 13)? * 60 + digits(13, 15)?;
        // Days since 1970 (the months of a year that begins in March).
        let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
        u64::try_from(days * 86_400 + seconds).ok()
    })();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match parsed {
        Some(then) if then.abs_diff(now) <= SKEW_SECONDS => Ok(()),
        _ => {
            let message = "The difference between the request time and the server's time is too large.";
            Err(Refused(403, "RequestTimeTooSkewed", message))
        }
    }
}
