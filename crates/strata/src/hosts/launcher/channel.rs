//! Where ranks tell each other where they are: the launcher's own key-value store (PMI, PMIx), files, or addresses that are known beforehand.

use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

use driver::{Error, ErrorKind, Secret};
use fleet::HostAddress;
use layer::masters::CONTROL_PORT;
use layer::secret;

use super::files::{self, Files};
use super::pmi::Pmi;
use super::pmix::{self, Pmix};
use super::{ADDRESS, DIRECTORY, Launched, TOKEN_FILE, bad};

/// Said by rank 0 where it leads a run.
pub(super) const LEADS: &str = "leads";
/// Said by rank 0 where there is no run to take part in.
pub(super) const LEAVES: &str = "leaves";
/// Longest text that ranks tell each other: PMI-1 takes 1024 bytes.
pub(super) const TEXT_BYTES_MAX: usize = 512;

/// A way on which each rank says one text, and reads those of others.
pub(super) trait Channel {
    /// Says the text of this rank.
    ///
    /// # Errors
    /// When the launcher, or the file system, does not take it.
    fn say(&mut self, text: &str, until: Instant) -> Result<(), Error>;

    /// Text of a rank; none where it has said nothing yet.
    ///
    /// # Errors
    /// When the channel is broken, or its user is not the one of this process.
    fn heard(&mut self, rank: u32, until: Instant) -> Result<Option<String>, Error>;

    /// Ends the use of it, when all that matters was said and heard.
    fn end(&mut self);
}

/// The way to reach the others of a launch.
pub(super) enum Way {
    Channel(Box<dyn Channel>),
    /// All know beforehand where each is, and the secret of all of them.
    Known {
        secret: Secret,
    },
}

impl Way {
    /// Chooses the way: what the user names, the launcher's own, files of this machine.
    ///
    /// # Errors
    /// Where there is none that keeps a secret.
    pub(super) fn of(launched: &Launched) -> Result<Self, Error> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if launched.launcher == "kubernetes" {
            let path = set(TOKEN_FILE).map(PathBuf::from).ok_or_else(|| {
                bad("pods require a shared secret")
                    .remedy(format!("mount a Secret, and set {TOKEN_FILE} to its file"))
            })?;
            let secret = secret::shared(Some(&path))?.ok_or_else(|| bad("the secret is empty"))?;
            return Ok(Self::Known { secret });
        }
        if let Some(directory) = set(DIRECTORY) {
            return Ok(Self::Channel(Box::new(Files::new(launched, PathBuf::from(directory)))));
        }
        if launched.launcher != "openmpi" && (set("PMI_FD").is_some() || set("PMI_PORT").is_some()) {
            return Ok(Self::Channel(Box::new(Pmi::new(launched))));
        }
        let has_pmix = set("PMIX_NAMESPACE").is_some() && set("PMIX_RANK").is_some();
        let lacks_pmix = match (has_pmix, pmix::is_there()) {
            (true, Ok(())) => return Ok(Self::Channel(Box::new(Pmix::new(launched)))),
            (true, Err(error)) => Some(error),
            (false, _) => None,
        };
        if launched.is_one_machine {
            return Ok(Self::Channel(Box::new(Files::new(launched, files::of_this_machine()))));
        }
        let error = bad(format!("{} offers its processes no way to exchange a secret", launched.launcher));
        let error = match lacks_pmix {
            Some(cause) => error.with("cause", cause),
            None => error,
        };
        Err(error.remedy(format!(
            "give srun --mpi=pmi2 or --mpi=pmix, or {DIRECTORY}=DIR with a directory that all processes see"
        )))
    }
}

/// Message of a rank to rank 0: where it serves, and the secret that it has drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) address: String,
    pub(super) token: String,
}

impl Offer {
    /// An offer with a secret drawn for it.
    ///
    /// # Errors
    /// When there are no random bytes.
    pub(super) fn at(address: String) -> Result<Self, Error> {
        let mut bytes = [0; 32];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut bytes))
            .map_err(|error| Error::system("launcher", "cannot read random bytes", error))?;
        let mut token = String::new();
        for byte in bytes {
            let _ = write!(token, "{byte:02x}");
        }
        Ok(Self { address, token })
    }

    pub(super) fn to_text(&self) -> String {
        format!("1,{},{}", self.address, self.token)
    }

    /// Reads what another rank has said.
    ///
    /// # Errors
    /// What is no offer of this version.
    pub(super) fn read(text: &str) -> Result<(HostAddress, Secret), Error> {
        let wrong = || Error::new(ErrorKind::Run, "launcher", "a rank sent an invalid offer");
        let parts: Vec<&str> = text.trim_end().split(',').collect();
        let [version, address, token] = parts[..] else { return Err(wrong()) };
        if version != "1" || token.len() != 64 || !token.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong().remedy("use the same version of strata on all hosts"));
        }
        let secret = Secret::new(token.as_bytes()).ok_or_else(wrong)?;
        Ok((HostAddress::parse(address, CONTROL_PORT)?, secret))
    }
}

/// Where a rank is reached by the address that the user gives for all of them; none where there is none.
///
/// # Errors
/// What is no address.
pub(super) fn told_address(rank: u32) -> Result<Option<HostAddress>, Error> {
    let Some(pattern) = std::env::var(ADDRESS).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let text = pattern.replace("{rank}", &rank.to_string()).replace("{host}", &name);
    HostAddress::parse(&text, CONTROL_PORT).map(Some).map_err(|error| bad(format!("{ADDRESS}: {error}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_offer_is_read_as_it_was_told() {
        let offer = Offer::at("node1:7".to_owned()).unwrap();
        let text = offer.to_text();
        assert!(text.len() < TEXT_BYTES_MAX && !text.contains([' ', '=', '\n']), "{text}");
        let (address, _) = Offer::read(&text).unwrap();
        assert_eq!(address.to_string(), "node1:7");
        assert_ne!(Offer::at("node1:7".to_owned()).unwrap().token, offer.token);
        for wrong in ["", "1,node1:7,ab", "2,node1:7,", LEAVES, &text[..text.len() - 1]] {
            assert!(Offer::read(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let _ = Offer::read(&text);
        }
    }
}
