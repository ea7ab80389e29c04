//! Overlay file systems: the file that a file on one really is.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::mounts::{self, Mount};

/// Overlays over overlays that are followed.
const LAYERS_MAX: usize = 8;

/// The directories that an overlay is made of, from its options: the one that takes changes first, where there is one.
#[must_use]
pub fn directories(options: &str) -> Vec<PathBuf> {
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    for option in split(options, ',') {
        if let Some(path) = option.strip_prefix("upperdir=") {
            upper.push(unescaped(path));
        } else if let Some(paths) = option.strip_prefix("lowerdir=") {
            lower
                .extend(split(paths, ':').iter().filter(|path| !path.is_empty()).map(|path| unescaped(path)));
        } else if let Some(path) = option.strip_prefix("lowerdir+=") {
            lower.push(unescaped(path));
        }
    }
    upper.extend(lower);
    upper
}

/// Splits at separators that no backslash stands before.
fn split(text: &str, separator: char) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_escaped = false;
    for letter in text.chars() {
        match parts.last_mut() {
            Some(part) if letter != separator || is_escaped => part.push(letter),
            _ => parts.push(String::new()),
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    parts
}

fn unescaped(path: &str) -> PathBuf {
    let mut plain = String::with_capacity(path.len());
    let mut letters = path.chars();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    PathBuf::from(plain)
}

/// Path below every overlay that an absolute path without symbolic links lies on, and the mount that it lies on: the path itself where it
/// lies on no overlay. `None` where the directories of an overlay are not to be seen from here, as in most containers, or are not those of
/// this overlay.
#[must_use]
pub fn real_place<'a>(mounts: &'a [Mount], path: &Path) -> Option<(PathBuf, &'a Mount)> {
    let mut place = path.to_owned();
    for _ in 0..LAYERS_MAX {
        let mount = mounts::mount_of(mounts, &place)?;
        if mount.filesystem != "overlay" {
            return Some((place, mount));
        }
        place = std::fs::canonicalize(below(mount, &place)?).ok()?;
    }
    None
}

/// The path in the first directory of the overlay that holds it.
fn below(mount: &Mount, path: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(&mount.mount_point).ok()?;
    let inside = mount.root.join(inside);
    let inside = inside.strip_prefix("/").unwrap_or(&inside);
    let seen = std::fs::metadata(path).ok()?;
    for directory in directories(&mount.options) {
        let candidate = directory.join(inside);
        let Ok(found) = std::fs::symlink_metadata(&candidate) else { continue };
        // A device with the number 0:0 hides what lies below it.
        if found.file_type().is_char_device() && found.rdev() == 0 {
            return None;
        }
        // In another mount namespace the same path may be something else.
        let is_same = seen.is_dir() && found.is_dir() || (seen.is_file() && seen.len() == found.len());
        return is_same.then_some(candidate);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn options_known_answers() {
        let told = |options| directories(options);
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(told("rw,lowerdir=/l1:/l2,upperdir=/u,workdir=/w,uuid=on"), paths(&["/u", "/l1", "/l2"]));
        assert_eq!(told("ro,lowerdir+=/a,lowerdir+=/b,datadir+=/c"), paths(&["/a", "/b"]));
        assert_eq!(told("lowerdir=/a\\:b:/c\\,d"), paths(&["/a:b", "/c,d"]));
        assert_eq!(told("rw"), paths(&[]));
    }

    #[test]
    fn a_path_on_no_overlay_is_itself() {
        let directory = tempfile::tempdir().unwrap();
        let path = std::fs::canonicalize(directory.path()).unwrap();
        let mount = |filesystem: &str, options: String| Mount {
            id: 1,
            parent_id: 0,
            device: "0:1".parse().unwrap(),
            root: "/".into(),
            mount_point: "/".into(),
            options,
            filesystem: filesystem.to_owned(),
            source: "x".into(),
        };
        let plain = [mount("ext4", String::new())];
        assert_eq!(real_place(&plain, &path).unwrap().0, path);
        let unseen = [mount("overlay", "upperdir=/nonexistent/upper,lowerdir=/nonexistent".to_owned())];
        assert_eq!(real_place(&unseen, &path), None, "as in a container");
    }

    #[test]
    fn the_first_directory_that_holds_a_file_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(directory.path()).unwrap();
        for (file, text) in
            [("upper/both", "12"), ("lower/both", "1"), ("lower/old", "1"), ("merged/old", "1")]
        {
            std::fs::create_dir_all(base.join(file).parent().unwrap()).unwrap();
            std::fs::write(base.join(file), text).unwrap();
        }
        std::fs::write(base.join("merged/both"), "12").unwrap();
        let mount = |point: &str, filesystem: &str, options: String| Mount {
            id: 1,
            parent_id: 0,
            device: "0:1".parse().unwrap(),
            root: "/".into(),
            mount_point: point.into(),
            options,
            filesystem: filesystem.to_owned(),
            source: "x".into(),
        };
        let base_text = base.display();
        let mounts = [
            mount("/", "ext4", String::new()),
            mount(
                base.join("merged").to_str().unwrap(),
                "overlay",
                format!("rw,lowerdir={base_text}/lower,upperdir={base_text}/upper"),
            ),
        ];
        let real = |file: &str| real_place(&mounts, &base.join("merged").join(file)).unwrap();
        assert_eq!(real("both").0, base.join("upper/both"));
        assert_eq!(real("old").0, base.join("lower/old"));
        assert_eq!(real("old").1.filesystem, "ext4");
        assert_eq!(real("").0, base.join("upper"), "where new files come to lie");
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "\\PC{0,80}") {
            let _ = directories(&text);
        }
    }
}
