//! Which tag of an engine serves what.

use std::fmt;

use driver::Error;

/// Most tags of one engine.
pub const TAGS_MAX: u32 = 1024;

/// Role of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagRole {
    /// Metadata of pools and containers.
    Metadata,
    /// Monitoring: who is a member of the group.
    Monitoring,
    /// A target, by its number.
    Target(u32),
    /// A helper of the targets, by its number.
    Helper(u32),
}

impl fmt::Display for TagRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metadata => f.write_str("metadata"),
            Self::Monitoring => f.write_str("monitoring"),
            Self::Target(number) => write!(f, "target {number}"),
            Self::Helper(number) => write!(f, "helper {number}"),
        }
    }
}

/// The tags of an engine: 0 metadata, 1 monitoring, then the targets, then the helpers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagMap {
    targets: u32,
    helpers: u32,
}

impl Default for TagMap {
    /// One target, no helper.
    fn default() -> Self {
        Self { targets: 1, helpers: 0 }
    }
}

impl TagMap {
    /// The map for so many targets and helpers.
    ///
    /// # Errors
    /// When there would be more than [`TAGS_MAX`] tags.
    pub fn new(targets: u32, helpers: u32) -> Result<Self, Error> {
        let tags = u64::from(targets) + u64::from(helpers) + 2;
        if tags > u64::from(TAGS_MAX) {
            return Err(Error::usage("engine", "too many targets and helpers")
                .with("targets", targets)
                .with("helpers", helpers)
                .remedy(format!("together they may be at most {}", TAGS_MAX - 2)));
        }
        Ok(Self { targets, helpers })
    }

    /// Number of targets.
    #[must_use]
    pub fn targets(self) -> u32 {
        self.targets
    }

    /// Number of helpers.
    #[must_use]
    pub fn helpers(self) -> u32 {
        self.helpers
    }

    /// Number of tags.
    #[must_use]
    pub fn tags(self) -> u32 {
        self.targets + self.helpers + 2
    }

    /// Role of a tag; none where the engine has no such tag.
    #[must_use]
    pub fn role(self, tag: u32) -> Option<TagRole> {
        match tag {
            0 => Some(TagRole::Metadata),
            1 => Some(TagRole::Monitoring),
            _ if tag < self.targets + 2 => Some(TagRole::Target(tag - 2)),
            _ if tag < self.tags() => Some(TagRole::Helper(tag - 2 - self.targets)),
            _ => None,
        }
    }
}

impl fmt::Display for TagMap {
    /// `22 tags: 0 metadata, 1 monitoring, 2-17 targets, 18-21 helpers`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tags: 0 metadata, 1 monitoring", self.tags())?;
        for (first, count, one, many) in
            [(2, self.targets, "target", "targets"), (2 + self.targets, self.helpers, "helper", "helpers")]
        {
            match count {
                0 => {}
                1 => write!(f, ", {first} {one}")?,
                _ => write!(f, ", {first}-{} {many}", first + count - 1)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_the_table() {
        let map = TagMap::new(16, 4).expect("a map");
        assert_eq!(map.to_string(), "22 tags: 0 metadata, 1 monitoring, 2-17 targets, 18-21 helpers");
        let roles: Vec<_> = [0, 1, 2, 17, 18, 21].into_iter().filter_map(|tag| map.role(tag)).collect();
        let names: Vec<_> = roles.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["metadata", "monitoring", "target 0", "target 15", "helper 0", "helper 3"]);
        assert_eq!(map.role(22), None);
        assert_eq!(
            TagMap::new(1, 0).expect("a map").to_string(),
            "3 tags: 0 metadata, 1 monitoring, 2 target"
        );
        assert_eq!(TagMap::new(0, 0).expect("a map").to_string(), "2 tags: 0 metadata, 1 monitoring");
    }

    #[test]
    fn too_many_tags_are_refused() {
        assert!(TagMap::new(1022, 0).is_ok());
        let error = TagMap::new(u32::MAX, u32::MAX).expect_err("too many").to_string();
        assert!(error.contains("at most 1022"), "{error}");
    }
}
