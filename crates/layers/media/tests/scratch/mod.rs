//! Loop devices and mounts that go away by themselves.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Runs a command; its output, or `None` when it is missing or fails.
pub(crate) fn run(command: &[&str]) -> Option<String> {
    let output = Command::new(command[0])
        .args(&command[1..])
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Says which test cannot run here. Loop devices and mounts take root.
pub(crate) fn skipped(test: &str) {
    eprintln!("skipped: {test}: cannot set up a loop device or a mount here");
}

/// A loop device over a sparse file.
pub(crate) struct Loop {
    pub(crate) device: String,
    _directory: Option<TempDir>,
}

impl Loop {
    /// `None` where loop devices cannot be set up.
    pub(crate) fn new(size: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("backing");
        File::create(&file).unwrap().set_len(size).unwrap();
        let mut made = Self::over(file.to_str().unwrap())?;
        made._directory = Some(directory);
        Some(made)
    }

    /// Over a file or a device that exists.
    pub(crate) fn over(backing: &str) -> Option<Self> {
        let device = run(&["losetup", "--find", "--show", "--partscan", backing])?;
        Some(Self { device, _directory: None })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run(&["losetup", "--detach", &self.device]);
    }
}

/// A mounted file system.
pub(crate) struct Mounted {
    directory: TempDir,
}

impl Mounted {
    /// Mounts with these arguments of mount(8); `None` where it is not allowed.
    pub(crate) fn new(arguments: &[&str]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let command = [&["mount"], arguments, &[directory.path().to_str().unwrap()]].concat();
        run(&command).map(|_| Self { directory })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(&["umount", self.directory.path().to_str().unwrap()]);
    }
}
