//! A container of its own in the one-node Ceph of the tests.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Harness, Stand};

pub(super) struct Rados;

impl Harness for Rados {
    fn name(&self) -> &'static str {
        "rados"
    }

    fn driver(&self) -> &'static str {
        "rados"
    }

    fn start(&self) -> Result<Stand, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let node =
            testkit::ceph_node(env!("CARGO_TARGET_TMPDIR")).ok_or("ceph: its packages are not installed")?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut stand = Stand::new(format!("rados://strata/conformance-{}-{number}", std::process::id()), ());
        stand.options.rados_conf = Some(node.conf.display().to_string());
        Ok(stand)
    }
}
