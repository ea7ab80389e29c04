//! The files of the repository, as git lists them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A path from the root of the repository, and the text of the file.
pub(crate) type Text = (String, String);

/// All files that belong to the repository: tracked, or new and not ignored.
pub(crate) struct Repository {
    root: PathBuf,
    paths: Vec<String>,
}

impl Repository {
    pub(crate) fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .canonicalize()
            .expect("the root of the workspace");
        let mut paths = listed_by_git(&root).unwrap_or_else(|| walked(&root));
        paths.retain(|path| root.join(path).is_file());
        paths.sort_unstable();
        paths.dedup();
        Self { root, paths }
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The text of one file; none where there is no such file.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// Puts a file that is made from the sources into the repository.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("the directory of the file");
        fs::write(path, text).expect("the file");
    }

    /// All files that are text.
    pub(crate) fn texts(&self) -> Vec<Text> {
        self.read(|_| true)
    }

    /// Rust sources of the crates.
    pub(crate) fn sources(&self) -> Vec<Text> {
        self.read(|path| path.starts_with("crates/") && path.ends_with(".rs"))
    }

    /// Documents for people.
    pub(crate) fn documents(&self) -> Vec<Text> {
        self.read(|path| path.ends_with(".md"))
    }

    /// Name of a crate's directory, and its manifest.
    pub(crate) fn manifests(&self) -> Vec<Text> {
        let manifests = self.read(|path| path.starts_with("crates/") && path.ends_with("/Cargo.toml"));
        manifests
            .into_iter()
            .map(|(path, text)| (path.rsplit('/').nth(1).unwrap_or_default().to_owned(), text))
            .collect()
    }

    /// Names of the layers: the crates in `crates/layers`.
    pub(crate) fn layers(&self) -> Vec<String> {
        let name = |path: &String| {
            path.strip_prefix("crates/layers/")?.strip_suffix("/Cargo.toml").map(str::to_owned)
        };
        self.paths.iter().filter_map(name).collect()
    }

    /// Directories of drivers, each with the files that lie in it.
    pub(crate) fn driver_directories(&self) -> Vec<(String, Vec<Text>)> {
        let tables = self.read(|path| path.ends_with("/src/drivers/mod.rs"));
        let directory = |path: &str| path.strip_suffix("mod.rs").unwrap_or_default().to_owned();
        tables
            .iter()
            .map(|(path, _)| directory(path))
            .map(|layer| (layer.clone(), self.files_in(&layer)))
            .collect()
    }

    fn files_in(&self, directory: &str) -> Vec<Text> {
        let inside = |path: &str| {
            path.strip_prefix(directory).is_some_and(|name| !name.contains('/') && name.ends_with(".rs"))
        };
        self.read(inside).into_iter().map(|(path, text)| (path[directory.len()..].to_owned(), text)).collect()
    }

    fn read(&self, wanted: impl Fn(&str) -> bool) -> Vec<Text> {
        let wanted = self.paths.iter().filter(|path| wanted(path));
        wanted
            .filter_map(|path| Some((path.clone(), fs::read_to_string(self.root.join(path)).ok()?)))
            .collect()
    }
}

fn listed_by_git(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard", "-z"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let listing = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| listing.split_terminator('\0').map(str::to_owned).collect())
}

/// For a source tree without git.
fn walked(root: &Path) -> Vec<String> {
    let mut directories = vec![root.to_path_buf()];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a directory of the source tree").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && name != ".git" && !path.ends_with("fuzz/corpus") {
                directories.push(path);
            } else if let Ok(below) = path.strip_prefix(root) {
                files.push(below.to_string_lossy().into_owned());
            }
        }
    }
    files
}

#[test]
fn a_tree_without_git_is_walked() {
    let root = Repository::open().root;
    let walked = walked(&root);
    assert!(walked.iter().any(|path| path == "Cargo.toml"));
    assert!(walked.iter().any(|path| path == "crates/testkit/tests/architecture/repository.rs"));
    assert!(!walked.iter().any(|path| path.starts_with("target/")));
}
