//! Open files of a leader: it has a connection to each host, and two pipes to each process that it starts.

use driver::{Error, ErrorKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files besides those of hosts: libraries, records, logs, and what the runtime opens.
const OTHER_FILES: u64 = 64;

/// Raises the process's limit of open files to what so many hosts need, `started` of which are processes of this one.
///
/// # Errors
/// The hard limit is below that.
pub(super) fn make_room(hosts: usize, started: usize) -> Result<(), Error> {
    let limit = getrlimit(Resource::Nofile);
    let Some(needed) = raised(hosts as u64, started as u64, limit.current, limit.maximum)? else {
        return Ok(());
    };
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum }).map_err(|error| {
        Error::system("hosts", "the limit of open files cannot be raised", std::io::Error::from(error))
            .with("needed", needed)
    })
}

/// The limit to set; none where that which there is suffices.
fn raised(hosts: u64, started: u64, soft: Option<u64>, hard: Option<u64>) -> Result<Option<u64>, Error> {
    let needed = hosts + 2 * started + OTHER_FILES;
    if soft.is_none_or(|soft| soft >= needed) {
        return Ok(None);
    }
    match hard {
        Some(hard) if hard < needed => {
            let message = format!("{} require {needed} open files", units::counted(hosts, "host"));
            Err(Error::new(ErrorKind::System, "hosts", message)
                .with("hard_limit", hard)
                .remedy("raise it (ulimit -Hn), or give fewer hosts"))
        }
        _ => Ok(Some(needed)),
    }
}

#[cfg(test)]
mod tests {
    use super::raised;

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        assert_eq!(raised(4, 4, Some(1024), Some(4096)).expect("good"), None);
        assert_eq!(raised(10_000, 0, None, None).expect("good"), None);
        assert_eq!(raised(2000, 0, Some(1024), Some(4096)).expect("good"), Some(2064));
        assert_eq!(raised(500, 500, Some(1024), None).expect("good"), Some(1564));
        let refused =
            raised(5000, 0, Some(1024), Some(4096)).expect_err("more than the hard limit").to_string();
        for part in ["5000 hosts require 5064 open files", "hard_limit=4096", "ulimit -Hn"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
}
