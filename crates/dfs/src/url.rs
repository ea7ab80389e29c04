//! Where a file system is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use driver::Error;
use object_service::Location;

/// Accepted forms, for refusals.
const FORMS: &str = "dfs+vos:DIR, dfs+engine://HOST:PORT/POOL/CONTAINER or dfs+daos://POOL/CONTAINER";
/// Longest label of a pool or a container, in bytes.
const LABEL_BYTES_MAX: usize = 255;

/// URL of a file system in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Url {
    /// `dfs+vos:DIR`: the embedded store in this process.
    Vos {
        /// Directory of the pool.
        directory: PathBuf,
    },
    /// `dfs+engine://host:port/pool/container`: the same store behind an engine.
    Engine {
        /// `host:port`.
        address: String,
        /// Label of the pool.
        pool: String,
        /// Label of the container.
        container: String,
    },
    /// `dfs+daos://pool/container`: DAOS.
    Daos {
        /// Label or UUID of the pool.
        pool: String,
        /// Label or UUID of the container.
        container: String,
    },
}

impl Url {
    /// Whether a text begins as the URL of a file system does.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.starts_with("dfs+")
    }
}

/// Pool and container of the rest of a URL.
fn labels(rest: &str) -> Result<(String, String), &'static str> {
    let (pool, container) = rest.split_once('/').ok_or("it names no container")?;
    let container = container.strip_suffix('/').unwrap_or(container);
    match (pool, container) {
        ("", _) => Err("it names no pool"),
        (_, "") => Err("it names no container"),
        _ if container.contains('/') => Err("it has too many slashes"),
        _ if pool.len().max(container.len()) > LABEL_BYTES_MAX => Err("a label has more than 255 bytes"),
        _ if [pool, container].iter().any(|label| label.contains('\0')) => Err("a label contains a NUL byte"),
        _ => Ok((pool.to_owned(), container.to_owned())),
    }
}

impl FromStr for Url {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            let shown = units::without_password(text);
            Error::usage("dfs", format!("{shown:?} is not a file system: {why}"))
                .remedy(format!("use {FORMS}"))
        };
        let store = text.strip_prefix("dfs+").ok_or_else(|| refuse("it does not begin with dfs+"))?;
        if let Some(directory) = store.strip_prefix("vos:") {
            let directory = directory.strip_prefix("//").unwrap_or(directory);
            if directory.is_empty() {
                return Err(refuse("it names no directory"));
            }
            return Ok(Self::Vos { directory: units::path_of(directory).into_owned() });
        }
        if store.starts_with("engine") {
            let location = Location::parse(store).map_err(|error| {
                error.reworded(|words| {
                    words.replace("engine://HOST", "dfs+engine://HOST").replace("\"engine", "\"dfs+engine")
                })
            })?;
            let rest = store.strip_prefix("engine://").ok_or_else(|| refuse("it is not a URL"))?;
            let (address, rest) = rest.split_once('/').ok_or_else(|| refuse("it names no pool"))?;
            let (pool, container) = labels(rest).map_err(refuse)?;
            debug_assert_eq!(location.pool.as_deref(), Some(pool.as_str()));
            return Ok(Self::Engine { address: address.to_owned(), pool, container });
        }
        if let Some(rest) = store.strip_prefix("daos://") {
            let (pool, container) = labels(rest).map_err(refuse)?;
            return Ok(Self::Daos { pool, container });
        }
        Err(refuse("the store type is unknown"))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vos { directory } => write!(f, "dfs+vos:{}", units::label_of(directory.as_os_str())),
            Self::Engine { address, pool, container } => {
                write!(f, "dfs+engine://{address}/{pool}/{container}")
            }
            Self::Daos { pool, container } => write!(f, "dfs+daos://{pool}/{container}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_the_forms() {
        let url: Url = "dfs+engine://10.0.0.1:31416/tank/home".parse().expect("whole");
        let (address, pool, container) = ("10.0.0.1:31416".to_owned(), "tank".to_owned(), "home".to_owned());
        assert_eq!(url, Url::Engine { address, pool, container });
        assert_eq!(
            "dfs+vos:/dev/shm/p".parse::<Url>().expect("whole"),
            Url::Vos { directory: "/dev/shm/p".into() }
        );
        for text in [
            "",
            "vos:/x",
            "dfs+",
            "dfs+vos:",
            "dfs+nfs://a/b",
            "dfs+engine://h:1",
            "dfs+engine://h:1/p",
            "dfs+engine://h/p/c",
            "dfs+engine+verbs://h:1/p/c",
            "dfs+daos://p",
            "dfs+daos:///c",
            "dfs+daos://p/c/d",
            "dfs+daos://p/",
        ] {
            let error = text.parse::<Url>().expect_err(text);
            assert_eq!((error.exit_code(), error.to_string().lines().count()), (2, 1), "{error}");
            assert!(error.to_string().contains("dfs+"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_url_that_is_written_again_or_refused(
            scheme in prop::sample::select(vec!["dfs+vos:", "dfs+engine://h:1/", "dfs+daos://", ""]), rest in "\\PC{0,40}",
        ) {
            let text = format!("{scheme}{rest}");
            if let Ok(url) = text.parse::<Url>() {
                let again: Url = url.to_string().parse().expect("written as it is read");
                prop_assert_eq!(again, url);
            }
        }

        #[test]
        fn labels_are_kept(pool in "[a-z0-9_.-]{1,40}", container in "[a-z0-9_.-]{1,40}") {
            let url: Url = format!("dfs+daos://{pool}/{container}").parse().expect("whole");
            prop_assert_eq!(url, Url::Daos { pool, container });
        }
    }
}
