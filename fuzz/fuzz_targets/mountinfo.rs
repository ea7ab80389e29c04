//! Mount tables: any text is survived, and nothing is listed that has no line.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mounts = host::mounts::parse_mountinfo(text);
    assert!(mounts.len() <= text.lines().count());
    for mount in &mounts {
        let found = host::mounts::mount_of(&mounts, &mount.mount_point);
        assert!(found.is_some_and(|found| mount.mount_point.starts_with(&found.mount_point)));
    }
    let _ = host::mounts::mount_of(&mounts, Path::new("/"));
    let _ = host::mounts::parse_swaps(text);
});
