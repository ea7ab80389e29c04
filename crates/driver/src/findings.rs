//! Findings of a driver or a store: few, and kept without cost.

/// Most findings that are kept of one driver or store: what comes after them is of the same kinds.
pub const FINDINGS_MAX: usize = 16;

/// The first [`FINDINGS_MAX`] findings. They have their room from the start: to add one grows no list within the measured window.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings<T = String>(Vec<T>);

impl<T> Default for Findings<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Findings<T> {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Vec::with_capacity(FINDINGS_MAX))
    }

    /// Keeps one more, while there is room; it is made only then.
    #[cold]
    pub fn add(&mut self, finding: impl FnOnce() -> T) {
        if self.0.len() < FINDINGS_MAX {
            self.0.push(finding());
        }
    }

    /// Those that are kept, in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Gives out those that are kept, and begins anew.
    #[must_use]
    pub fn take(&mut self) -> Vec<T> {
        self.0.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_and_the_rest_is_not_made() {
        let mut findings = Findings::new();
        let mut made = 0;
        for number in 0..100 {
            findings.add(|| {
                made += 1;
                number
            });
        }
        assert_eq!((made, findings.iter().count()), (FINDINGS_MAX, FINDINGS_MAX));
        assert_eq!(findings.take(), (0..FINDINGS_MAX).collect::<Vec<_>>());
        findings.add(|| 7);
        assert_eq!((findings.take(), findings.take()), (vec![7], vec![]));
    }
}
