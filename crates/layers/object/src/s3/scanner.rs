//! Bodies in XML: lists, errors, answers of multipart uploads. They are read as they come and never held whole.

/// Longest text of an element that is kept, in bytes: three times the longest key, for keys that are escaped.
const TEXT_BYTES_MAX: usize = 3 * 1024;
const NAME_BYTES_MAX: usize = 48;

/// Elements that were found in a body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Name of the outermost element; empty where there was none.
    pub root: Vec<u8>,
    /// The outermost element has ended, and nothing but space stood around it.
    pub is_whole: bool,
    /// Objects that a list names.
    pub keys: u64,
    /// A list goes on after these.
    pub is_truncated: bool,
    /// Where it goes on.
    pub token: Vec<u8>,
    /// A list of uploads goes on behind this upload of that key.
    pub upload_marker: Vec<u8>,
    /// The names of a list are escaped as in a URL.
    pub is_escaped: bool,
    /// Id of a multipart upload.
    pub upload: Vec<u8>,
    /// ETag of what an upload made.
    pub etag: Vec<u8>,
    /// Code of an error, such as `NoSuchKey`; empty where the body tells of none.
    pub code: Vec<u8>,
    /// Its message.
    pub message: Vec<u8>,
    /// The names of a list, where they are asked for.
    pub names: Vec<Vec<u8>>,
    /// Ids of uploads that a list names, where names are asked for.
    pub uploads: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    Text,
    Tag,
    /// Inside the quotes of an attribute, or of a declaration.
    Quoted(u8),
}

/// Reads elements that hold text.
#[derive(Clone, Debug)]
pub struct Scanner {
    place: Context,
    name: Vec<u8>,
    /// The name has ended; attributes follow.
    is_named: bool,
    last: u8,
    open: Vec<u8>,
    text: Vec<u8>,
    is_too_long: bool,
    /// Elements that are open.
    depth: u32,
    collects_names: bool,
    found: Found,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Scanner {
    /// A new one; it keeps the names of a list or counts them alone.
    #[must_use]
    pub fn new(collects_names: bool) -> Self {
        Self {
            place: Context::Text,
            name: Vec::with_capacity(NAME_BYTES_MAX),
            is_named: false,
            last: 0,
            open: Vec::with_capacity(NAME_BYTES_MAX),
            text: Vec::with_capacity(256),
            is_too_long: false,
            depth: 0,
            collects_names,
            found: Found::default(),
        }
    }

    /// Begins with another body; keeps its memory.
    pub fn reset(&mut self) {
        (self.place, self.is_named, self.last, self.is_too_long) = (Context::Text, false, 0, false);
        self.depth = 0;
        let found = &mut self.found;
        (found.keys, found.is_truncated, found.is_whole, found.is_escaped) = (0, false, false, false);
        for kept in [
            &mut self.name,
            &mut self.open,
            &mut self.text,
            &mut found.root,
            &mut found.token,
            &mut found.upload_marker,
            &mut found.upload,
            &mut found.etag,
            &mut found.code,
            &mut found.message,
        ] {
            kept.clear();
        }
        found.names.clear();
        found.uploads.clear();
    }

    /// Elements that it has found so far.
    #[must_use]
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Whether the body is one whole element of this name: HTML, and XML that was cut, are none.
    #[must_use]
    pub fn is(&self, root: &str) -> bool {
        self.found.is_whole && self.found.root == root.as_bytes()
    }

    /// Takes the next bytes of the body.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            match self.place {
                Context::Text if byte == b'<' => {
                    self.place = Context::Tag;
                    (self.is_named, self.last) = (false, 0);
                    self.name.clear();
                }
                Context::Text => self.keep(byte),
                Context::Tag => self.tag_byte(byte),
                Context::Quoted(quote) if byte == quote => self.place = Context::Tag,
                Context::Quoted(_) => {}
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 0 && !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf) {
            // Text outside of the outermost element (a byte order mark is none).
            self.found.is_whole = false;
        }
        if self.text.len() < TEXT_BYTES_MAX {
            self.text.push(byte);
        } else {
            self.is_too_long = true;
        }
    }

    fn tag_byte(&mut self, byte: u8) {
        match byte {
            b'>' => self.tag_end(),
            // A comment may hold an apostrophe.
            b'"' | b'\'' if self.name.first() != Some(&b'!') => self.place = Context::Quoted(byte),
            b' ' | b'\t' | b'\r' | b'\n' => self.is_named = true,
            b'/' if !self.name.is_empty() => self.is_named = true,
            _ if self.is_named => {}
            // A namespace's prefix says nothing here.
            b':' => self.name.retain(|&byte| byte == b'/'),
            _ if self.name.len() < NAME_BYTES_MAX => self.name.push(byte),
            _ => {}
        }
        self.last = byte;
    }

    fn tag_end(&mut self) {
        self.place = Context::Text;
        self.count_depth();
        match self.name.first() {
            Some(b'/') => {
                if self.name[1..] == self.open[..] && !self.is_too_long {
                    self.element();
                }
                self.open.clear();
            }
            // Declarations and comments.
            Some(b'?' | b'!') | None => return,
            Some(_) if self.last_before_end_is_slash() => self.open.clear(),
            Some(_) => std::mem::swap(&mut self.open, &mut self.name),
        }
        self.text.clear();
        self.is_too_long = false;
    }

    /// A tag has ended: how deep it is now, and whether the outermost element is whole.
    fn count_depth(&mut self) {
        let found = &mut self.found;
        match self.name.first() {
            Some(b'?' | b'!') | None => {}
            Some(b'/') => {
                self.depth = self.depth.saturating_sub(1);
                found.is_whole = self.depth == 0 && self.name[1..] == found.root[..];
            }
            Some(_) => {
                let is_outermost = self.depth == 0 && found.root.is_empty();
                if is_outermost {
                    found.root.extend_from_slice(&self.name);
                }
                let is_empty = self.last == b'/';
                self.depth += u32::from(!is_empty);
                found.is_whole = is_outermost && is_empty;
            }
        }
    }

    fn last_before_end_is_slash(&self) -> bool {
        self.last == b'/'
    }

    /// An element without others in it has ended.
    fn element(&mut self) {
        let found = &mut self.found;
        let into = match self.open.as_slice() {
            b"Key" => {
                found.keys += 1;
                if self.collects_names {
                    found.names.push(plain(&self.text));
                }
                return;
            }
            b"IsTruncated" => {
                found.is_truncated = self.text.trim_ascii() == b"true";
                return;
            }
            b"EncodingType" => {
                found.is_escaped = self.text.trim_ascii() == b"url";
                return;
            }
            b"UploadId" => {
                if self.collects_names {
                    found.uploads.push(plain(&self.text));
                }
                &mut found.upload
            }
            b"NextContinuationToken" | b"NextKeyMarker" => &mut found.token,
            b"NextUploadIdMarker" => &mut found.upload_marker,
            b"ETag" => &mut found.etag,
            b"Code" => &mut found.code,
            b"Message" => &mut found.message,
            _ => return,
        };
        into.clear();
        unescape_into(into, &self.text);
    }
}

fn plain(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    unescape_into(&mut out, text);
    out
}

/// Appends text with its references (`&amp;`, `&#x41;`) resolved; what is no reference stays.
fn unescape_into(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'&') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let end = rest.iter().take(12).position(|&byte| byte == b';');
        match end.and_then(|end| Some((reference(&rest[1..end])?, end))) {
            Some((character, end)) => {
                let mut encoded = [0; 4];
                out.extend_from_slice(character.encode_utf8(&mut encoded).as_bytes());
                rest = &rest[end + 1..];
            }
            None => {
                out.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
}

fn reference(name: &[u8]) -> Option<char> {
    match name {
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(code_point(digits, 16)?),
        [b'#', digits @ ..] => char::from_u32(code_point(digits, 10)?),
        _ => None,
    }
}

fn code_point(digits: &[u8], radix: u32) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(text: &[u8], cut: usize) -> Found {
        let mut scanner = Scanner::new(true);
        for piece in text.chunks(cut.max(1)) {
            scanner.feed(piece);
        }
        scanner.found().clone()
    }

    #[test]
    fn errors_and_uploads_are_found() {
        let text = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchBucket</Code>\
            <Message>The &quot;x&quot; bucket &amp; all</Message><Empty/><RequestId a='>'>4</RequestId></Error>";
        for cut in [1, 7, 1000] {
            let found = scan(text, cut);
            assert_eq!(found.code, b"NoSuchBucket");
            assert_eq!(found.message, b"The \"x\" bucket & all");
        }
        let text =
            b"<s3:InitiateMultipartUploadResult xmlns:s3=\"x\"><s3:Bucket>b</s3:Bucket><s3:Key>k</s3:Key>\
            <s3:UploadId>VX+/=</s3:UploadId></s3:InitiateMultipartUploadResult>";
        assert_eq!(scan(text, 3).upload, b"VX+/=");
    }

    #[test]
    fn what_is_cut_or_something_else_is_not_whole() {
        let list =
            b"<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\"><Contents><Key>k</Key></Contents>\
            <Prefix/></ListBucketResult>\n";
        let is = |text: &[u8], cut| {
            let mut scanner = Scanner::new(false);
            text.chunks(cut).for_each(|piece| scanner.feed(piece));
            scanner.is("ListBucketResult")
        };
        assert!(is(list, 1) && is(list, 1000) && is(b"<a:ListBucketResult/>", 5));
        for end in 0..list.len() - 2 {
            assert!(!is(&list[..end], 7), "{end}");
        }
        for other in [
            b"<!DOCTYPE html><html><body>ListBucketResult</body></html>".as_slice(),
            b"<html><ListBucketResult></ListBucketResult></html>",
            b"<ListBucketResult></ListBucketResult><html></html>",
            b"<ListBucketResult></ListBucketResult>and more",
            b"{\"ListBucketResult\": []}",
            b"",
        ] {
            assert!(!is(other, 3), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn text_that_is_too_long_is_not_taken_for_a_part_of_it() {
        let text = [b"<a><Code>".as_slice(), &[b'x'; 5000], b"</Code><Message>m</Message></a>"].concat();
        let found = scan(&text, 100);
        assert!(found.code.is_empty());
        assert_eq!(found.message, b"m");
    }

    #[test]
    fn a_scanner_forgets_the_body_before() {
        let mut scanner = Scanner::new(true);
        scanner.feed(b"<Error><Code>X</Code><Ke");
        scanner.reset();
        assert_eq!(scanner.found(), &Found::default());
        scanner.feed(b"<A><Key>k</Key></A>");
        assert_eq!((scanner.found().keys, scanner.found().code.is_empty()), (1, true));
    }

    fn escaped(text: &str) -> String {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#x22;")
    }

    proptest! {
        #[test]
        fn lists_are_those_of_a_parser_of_xml(
            keys in prop::collection::vec("[ -~äß€]{1,30}", 0..6),
            token in prop::option::of("[ -~]{1,40}"),
            cut in 1..64_usize,
        ) {
            let mut text = String::from("<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3/\"><Name>b</Name><Prefix/>");
            for key in &keys {
                text += &format!("<Contents><Key>{}</Key><Size>4</Size></Contents>", escaped(key));
            }
            text += &format!("<IsTruncated>{}</IsTruncated>", token.is_some());
            if let Some(token) = &token {
                text += &format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(token));
            }
            text += "</ListBucketResult>";
            let document = roxmltree::Document::parse(&text).expect("well-formed");
            let oracle: Vec<_> = document
                .descendants()
                .filter(|node| node.has_tag_name(("http://s3/", "Key")))
                .map(|node| node.text().unwrap_or_default().as_bytes().to_vec())
                .collect();
            let found = scan(text.as_bytes(), cut);
            prop_assert_eq!(found.keys, oracle.len() as u64);
            prop_assert_eq!(&found.names, &oracle);
            prop_assert_eq!(found.is_truncated, token.is_some());
            prop_assert_eq!(found.token, token.unwrap_or_default().into_bytes());
        }

        #[test]
        fn no_bytes_make_it_panic_or_grow(bytes: Vec<u8>, cut in 1..9_usize) {
            let found = scan(&bytes, cut);
            prop_assert!(found.keys <= bytes.len() as u64);
        }
    }
}
