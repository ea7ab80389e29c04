//! Answers of an S3 server: heads, chunks, and XML, in whatever pieces they come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use object::s3::response::{Chunked, Malformed, parse_head};
use object::s3::scanner::Scanner;
use object::s3::text::{Keep, escape, unescape};

fuzz_target!(|data: &[u8]| {
    let Some((&cut, bytes)) = data.split_first() else { return };
    if let Ok(Some(head)) = parse_head(bytes) {
        assert!(head.length <= bytes.len());
        for end in 0..head.length.min(64) {
            assert_eq!(parse_head(&bytes[..end]), Ok(None));
        }
    }

    let pieces = |cut: usize| {
        let (mut chunked, mut body) = (Chunked::default(), Vec::new());
        let mut taken = 0;
        for piece in bytes.chunks(cut) {
            let took = chunked.take(piece, |data| {
                body.extend_from_slice(data);
                Ok::<_, Malformed>(())
            });
            match took {
                Ok(took) => taken += took,
                Err(why) => return (Err(why), body),
            }
            if chunked.is_done() {
                break;
            }
        }
        (Ok(taken), body)
    };
    let whole = pieces(bytes.len().max(1));
    assert_eq!(whole, pieces(usize::from(cut).max(1)));

    let scan = |cut: usize| {
        let mut scanner = Scanner::new(true);
        bytes.chunks(cut).for_each(|piece| scanner.feed(piece));
        scanner.found().clone()
    };
    assert_eq!(scan(bytes.len().max(1)), scan(usize::from(cut).max(1)));

    let mut escaped = Vec::new();
    escape(&mut escaped, bytes, Keep::Unreserved);
    assert_eq!(unescape(&escaped), bytes);
});
