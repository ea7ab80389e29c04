//! Secrets of stores: keys of S3, and the secret shared with engines.

use std::path::Path;

use driver::{Error, Secret};
use layer::secret::{read_guarded, shared};

use crate::plan::S3Key;

/// The access key and the secret key of S3: the two words of a file, else `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`; none where
/// neither is there.
///
/// # Errors
/// A file that cannot be read, that others can read, or that holds no two words.
pub fn s3_key(path: Option<&Path>) -> Result<Option<S3Key>, Error> {
    let Some(path) = path else {
        let word = |name: &str| std::env::var(name).ok().filter(|word| !word.is_empty());
        let pair = word("AWS_ACCESS_KEY_ID").zip(word("AWS_SECRET_ACCESS_KEY"));
        return Ok(pair.map(|(access, secret)| S3Key { access, secret }));
    };
    let text = String::from_utf8(read_guarded(path, "S3 key")?).unwrap_or_default();
    let mut words = text.split_whitespace().map(str::to_owned);
    match (words.next(), words.next(), words.next()) {
        (Some(access), Some(secret), None) => Ok(Some(S3Key { access, secret })),
        _ => Err(Error::usage("token", "the S3 key file does not contain two words")
            .with("path", path.display())
            .remedy("write the access key and the secret key on two lines")),
    }
}

/// The keys of S3, where the driver needs them, and the shared secret, from the files that a command line names.
///
/// # Errors
/// As for [`shared`] and [`s3_key`].
pub fn of_files(
    driver: &str,
    s3_key_file: Option<&Path>,
    token_file: Option<&Path>,
) -> Result<(Option<S3Key>, Option<Secret>), Error> {
    let secret = shared(token_file)?;
    let s3_key = if driver == "s3" { s3_key(s3_key_file)? } else { None };
    Ok((s3_key, secret))
}
