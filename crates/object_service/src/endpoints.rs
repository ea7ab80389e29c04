//! Where a pool is: `engine://host:port/pool/container`.

use driver::Error;
use rpc::EndpointPlan;
use rpc::address::Address;

/// A target URL in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Address of the engine, as the network layer takes it.
    pub uri: String,
    /// Label of the pool; none where the URL names none.
    pub pool: Option<String>,
    /// Label of the container, likewise.
    pub container: Option<String>,
}

const FORM: &str = "engine://HOST:PORT/POOL/CONTAINER";

impl Location {
    /// Reads `engine://host:port[/pool[/container]]`. Objects go over tcp: `engine+PROVIDER://` is refused.
    ///
    /// # Errors
    /// Bad usage that says the form.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let refuse = |why: &str| {
            let shown = units::without_password(url);
            Error::usage("engine", format!("{shown:?} is not a target: {why}")).remedy(format!("use {FORM}"))
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refuse("it is not a URL"))?;
        match scheme.strip_prefix("engine") {
            Some("") => {}
            Some(provider) if provider.starts_with('+') => {
                return Err(Error::usage("engine", format!("objects require tcp, not {}", &provider[1..]))
                    .remedy(format!("start the engine with the provider tcp and use {FORM}")));
            }
            _ => return Err(refuse("it has another scheme")),
        }
        let mut parts = rest.splitn(3, '/');
        let uri = format!("tcp://{}", parts.next().unwrap_or_default());
        Address::parse(&uri).map_err(|error| refuse(&error.to_string()))?;
        let mut label = || match parts.next() {
            None | Some("") => Ok(None),
            Some(label) if label.len() > 255 => Err(refuse("a label is longer than 255 bytes")),
            Some(label) => Ok(Some(label.to_owned())),
        };
        let (pool, container) = (label()?, label()?);
        if container.as_ref().is_some_and(|label| label.contains('/')) {
            return Err(refuse("it contains one slash too many"));
        }
        Ok(Self { uri, pool, container })
    }

    /// The endpoint of a tag, whatever the engine's rank.
    #[must_use]
    pub fn endpoint(&self, tag: u32) -> EndpointPlan {
        EndpointPlan { rank: u32::MAX, tag, uri: self.uri.clone(), label: format!("{}#{tag}", self.uri) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_the_form() {
        let parse = |url: &str| Location::parse(url).expect(url);
        let whole = parse("engine://10.0.0.1:31416/tank/data");
        assert_eq!(whole.uri, "tcp://10.0.0.1:31416");
        assert_eq!((whole.pool.as_deref(), whole.container.as_deref()), (Some("tank"), Some("data")));
        assert_eq!(parse("engine://[::1]:5/tank").container, None);
        assert_eq!(parse("engine://h:5/").pool, None);
        for url in
            ["engine:", "engine://", "engine://h/p/c", "engines://h:1/p/c", "engine://h:1/p/c/d", "vos:x"]
        {
            let error = Location::parse(url).expect_err(url);
            assert!(error.exit_code() == 2 && error.to_string().contains(FORM), "{error}");
        }
        for provider in ["verbs", "ofi+tcp"] {
            let error = Location::parse(&format!("engine+{provider}://h:1/p/c")).expect_err("no sockets");
            assert!(error.to_string().contains(&format!("require tcp, not {provider}")), "{error}");
            assert_eq!((error.exit_code(), error.to_string().lines().count()), (2, 1));
        }
    }
}
