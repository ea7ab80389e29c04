//! Options of single hosts in a run that several carry out together (`--host-options`): what differs from host to host.

use units::ParseError;

use crate::options;
use crate::spec::Spec;

/// The name by which a target is given.
const TARGET: &str = "target";
/// Options that a host may have of its own: they say where and by how many workers the load is carried out there, and not which load it is.
const OF_HOST: [&str; 12] = [
    "threads",
    "cores",
    "cores-policy",
    "numa",
    "numa-memory",
    "nice",
    "priority",
    "scheduler",
    "sqpoll-core",
    "provider",
    "interface",
    "domain",
];

/// Options of some hosts, as typed: `node[03-04]:threads=8,target=/dev/nvme1n1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// The hosts: names and ranges as in `--hosts`, or `rank:N` and `rank:N-M`.
    pub hosts: String,
    options: Vec<(String, String)>,
}

impl HostOptions {
    /// Parses `HOSTS:NAME=VALUE[,NAME=VALUE...]`. What follows a comma and is no `NAME=` belongs to the value before it: `cores=0,2,target=/dev/sda`.
    ///
    /// # Errors
    /// Another form, and options that are none of single hosts.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let bad = || {
            let form = "HOSTS:NAME=VALUE[,NAME=VALUE...], such as node[03-04]:threads=8 or rank:1:target=/dev/nvme1n1";
            ParseError::new("a list of options of hosts", text, form)
        };
        let (before, _) = text.split_once('=').ok_or_else(bad)?;
        let (hosts, _) = before.rsplit_once(':').filter(|(hosts, _)| !hosts.is_empty()).ok_or_else(bad)?;
        let mut options: Vec<(String, String)> = Vec::new();
        for part in text[hosts.len() + 1..].split(',') {
            match (part.split_once('=').filter(|(name, _)| is_name(name)), options.last_mut()) {
                (Some((name, value)), _) => options.push((name.replace('_', "-"), value.to_owned())),
                (None, Some((_, value))) => *value = format!("{value},{part}"),
                (None, None) => return Err(bad()),
            }
        }
        match options.iter().find(|(name, _)| name != TARGET && !OF_HOST.contains(&&**name)) {
            None => Ok(Self { hosts: hosts.to_owned(), options }),
            Some((name, _)) => {
                let accepted = format!("{TARGET}, {}", OF_HOST.join(", "));
                Err(ParseError::new("an option of single hosts", name, accepted))
            }
        }
    }

    /// The options and their values.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Makes a spec that of such a host. Its targets, if it has any of its own, are in place of all others.
    ///
    /// # Errors
    /// Options that its layer does not have, and bad values.
    pub fn apply(&self, spec: &mut Spec) -> Result<(), ParseError> {
        let targets: Vec<String> =
            self.options().filter(|(name, _)| *name == TARGET).map(|(_, target)| target.to_owned()).collect();
        if !targets.is_empty() {
            if spec.targets.is_empty() {
                let accepted = "a load on files, devices or stores";
                return Err(ParseError::new("a load with targets", spec.layer.name, accepted));
            }
            spec.targets = targets;
        }
        let mut others = self.options().filter(|(name, _)| *name != TARGET);
        others.try_for_each(|(name, value)| options::apply(spec, name, value))
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<(String, Vec<(String, String)>), String> {
        let found = HostOptions::parse(text).map_err(|error| error.to_string())?;
        let options = found.options().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok((found.hosts, options))
    }

    #[test]
    fn hosts_stand_before_the_last_colon_and_values_may_have_commas() {
        let of = |hosts: &str, options: &[(&str, &str)]| {
            let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Ok((hosts.to_owned(), options.collect()))
        };
        assert_eq!(parsed("node3:threads=8"), of("node3", &[("threads", "8")]));
        assert_eq!(
            parsed("node[03-04,7]:1700:cores=0,2,4-7,target=/dev/nvme1n1,target=/a=b"),
            of("node[03-04,7]:1700", &[("cores", "0,2,4-7"), ("target", "/dev/nvme1n1"), ("target", "/a=b")])
        );
        assert_eq!(
            parsed("[2001:db8::1]:cores_policy=shared"),
            of("[2001:db8::1]", &[("cores-policy", "shared")])
        );
        assert_eq!(parsed("rank:1-3:nice=5"), of("rank:1-3", &[("nice", "5")]));
    }

    #[test]
    fn other_forms_and_options_of_the_load_are_refused() {
        for text in ["", "node3", "threads=8", ":threads=8", "node3:8", "node3:=8"] {
            let error = parsed(text).expect_err(text);
            assert!(error.contains("HOSTS:NAME=VALUE"), "{text}: {error}");
        }
        let error = parsed("node3:threads=2,block-size=4k").expect_err("an option of the load");
        assert!(error.contains("block-size") && error.contains("target, threads, cores"), "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,40}") {
            let _ = HostOptions::parse(&text);
        }

        #[test]
        fn values_come_back_as_they_were_typed(
            hosts in "[a-z0-9.:\\[\\]-]{1,20}",
            values in prop::collection::vec((0..OF_HOST.len(), "[0-9a-z:/-]{0,8}(,[0-9a-z:/-]{0,8})?"), 1..4),
        ) {
            let options: Vec<(String, String)> =
                values.into_iter().map(|(name, value)| (OF_HOST[name].to_owned(), value)).collect();
            let said: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            prop_assert_eq!(parsed(&format!("{hosts}:{}", said.join(","))), Ok((hosts, options)));
        }
    }
}
