//! A Ceph cluster of one node (`scripts/ceph-node.sh`), shared by the tests of a target directory: the first starts it, and it ends by
//! itself when no process that asked for it is left.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// A cluster that is up. Its pools are `strata` and `other`.
#[derive(Clone, Debug)]
pub struct CephNode {
    /// Configuration file, with the keyring of `client.admin`.
    pub conf: PathBuf,
    /// URL of the gateway that speaks S3.
    pub s3_endpoint: String,
    /// Access key of its user.
    pub s3_access_key: String,
    /// Secret key of its user.
    pub s3_secret_key: String,
}

/// Status of the script where packages are missing.
const MISSING: i32 = 3;

/// The cluster below `tmp` (`CARGO_TARGET_TMPDIR`). None, and a line that says so, where Ceph is not installed.
///
/// # Panics
/// When it is installed and does not come up.
pub fn ceph_node(tmp: &str) -> Option<&'static CephNode> {
    // A failed start is kept: tests that follow say the same at once instead of waiting for it again.
    static NODE: OnceLock<Result<Option<CephNode>, String>> = OnceLock::new();
    let node = NODE.get_or_init(|| CephNode::try_start(&Path::new(tmp).join("ceph-node")));
    node.as_ref().unwrap_or_else(|said| panic!("{said}")).as_ref()
}

fn script(command: &str, directory: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ceph-node.sh");
    let mut bash = Command::new("bash");
    bash.arg(&script).arg(command).arg(directory).arg(std::process::id().to_string());
    bash.stdin(Stdio::null()).output().expect("bash runs")
}

impl CephNode {
    /// Starts a cluster below a directory, or joins the one that is there. None, and a line that says so, where Ceph is not installed.
    ///
    /// # Panics
    /// When it is installed and does not come up.
    #[must_use]
    pub fn start(directory: &Path) -> Option<Self> {
        Self::try_start(directory).unwrap_or_else(|said| panic!("{said}"))
    }

    fn try_start(directory: &Path) -> Result<Option<Self>, String> {
        let output = script("start", directory);
        if output.status.code() == Some(MISSING) {
            println!("skipped: ceph: its packages are not installed (scripts/setup-tests.sh)");
            return Ok(None);
        }
        if !output.status.success() {
            return Err(format!(
                "the Ceph node did not come up: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ));
        }
        let keys = std::fs::read_to_string(directory.join("s3.env")).expect("the script writes it");
        let key = |name: &str| {
            let line = keys.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_else(|| panic!("{name} is not in {keys}")).to_owned()
        };
        Ok(Some(Self {
            conf: directory.join("ceph.conf"),
            s3_endpoint: key("ENDPOINT"),
            s3_access_key: key("ACCESS_KEY"),
            s3_secret_key: key("SECRET_KEY"),
        }))
    }

    /// Ends it now, for all who use it.
    pub fn stop(&self) {
        if let Some(directory) = self.conf.parent() {
            script("stop", directory);
        }
    }
}
