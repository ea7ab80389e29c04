//! Names of images.

use std::str::FromStr;

use driver::Error;

use super::PREFIX;

/// How an image is named: `rbd:POOL[/NAMESPACE]/IMAGE[@SNAPSHOT][:id=USER][:conf=FILE]`, as QEMU names it (qemu-block-drivers(7)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImageName {
    pub(crate) pool: String,
    /// Empty: the pool's own.
    pub(crate) namespace: String,
    pub(crate) image: String,
    /// Reads what a snapshot holds.
    pub(crate) snapshot: Option<String>,
    /// User of the cluster; none: `client.admin`.
    pub(crate) user: Option<String>,
    /// Configuration file of the cluster; none: where Ceph's own clients look.
    pub(crate) conf: Option<String>,
}

/// Form that is accepted.
const ACCEPTED: &str = "use rbd:POOL[/NAMESPACE]/IMAGE[@SNAPSHOT][:id=USER][:conf=FILE]";

impl FromStr for ImageName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |message: &'static str| {
            Error::usage("rbd", message).with("target", text.escape_debug()).remedy(ACCEPTED)
        };
        let rest = text.strip_prefix(PREFIX).ok_or_else(|| bad("not an image name"))?;
        if rest.contains('\0') {
            return Err(bad("not an image name"));
        }
        let mut words = rest.split(':');
        let place = words.next().unwrap_or_default();
        let (place, snapshot) = match place.split_once('@') {
            Some((place, snapshot)) => (place, Some(snapshot)),
            None => (place, None),
        };
        let parts: Vec<&str> = place.split('/').collect();
        let (pool, namespace, image) = match parts[..] {
            [pool, image] => (pool, "", image),
            [pool, namespace, image] if !namespace.is_empty() => (pool, namespace, image),
            _ => return Err(bad("not an image name")),
        };
        if pool.is_empty()
            || image.is_empty()
            || snapshot.is_some_and(|name| name.is_empty() || name.contains('@'))
        {
            return Err(bad("not an image name"));
        }
        let mut name = Self {
            pool: pool.to_owned(),
            namespace: namespace.to_owned(),
            image: image.to_owned(),
            snapshot: snapshot.map(str::to_owned),
            ..Self::default()
        };
        for word in words {
            let place = match word.split_once('=') {
                Some(("id", value)) if !value.is_empty() => (&mut name.user, value),
                Some(("conf", value)) if !value.is_empty() => (&mut name.conf, value),
                _ => {
                    return Err(bad("unknown word after the image name").with("word", word.escape_debug()));
                }
            };
            if place.0.replace(place.1.to_owned()).is_some() {
                return Err(bad("a word after the image name is given twice"));
            }
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_read() {
        let named = |pool: &str, image: &str| ImageName {
            pool: pool.to_owned(),
            image: image.to_owned(),
            ..ImageName::default()
        };
        let some = |text: &str| Some(text.to_owned());
        let cases = [
            ("rbd:pool/image", named("pool", "image")),
            ("rbd:p/n/i@s", ImageName { namespace: "n".into(), snapshot: some("s"), ..named("p", "i") }),
            (
                "rbd:p/i:id=tester:conf=/a/b.conf",
                ImageName { user: some("tester"), conf: some("/a/b.conf"), ..named("p", "i") },
            ),
        ];
        for (text, name) in cases {
            assert_eq!(text.parse::<ImageName>().expect(text), name);
        }
    }

    #[test]
    fn what_is_no_name_is_refused_with_what_is() {
        for bad in [
            "rbd:",
            "rbd:pool",
            "rbd:/image",
            "rbd:pool/",
            "rbd:p//i",
            "rbd:a/b/c/d",
            "rbd:p/i@",
            "rbd:p/i@a@b",
            "rbd:p/i:",
            "rbd:p/i:id",
            "rbd:p/i:id=",
            "rbd:p/i:user=x",
            "rbd:p/i:id=a:id=b",
            "rbd:p/i\0",
            "pool/image",
        ] {
            let error = bad.parse::<ImageName>().expect_err(bad).to_string();
            assert!(error.contains(ACCEPTED) && !error.contains('\0'), "{bad}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            let _ = format!("rbd:{text}").parse::<ImageName>();
            let _ = text.parse::<ImageName>();
        }
    }
}
