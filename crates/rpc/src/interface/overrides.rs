//! Overrides: names that a person asked for instead of the choice.

/// A name that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The name.
    pub name: String,
    /// Where it was asked for: `--interface`, `OFI_INTERFACE`.
    pub by: &'static str,
    /// Whether on the command line: the environment may be meant for other programs.
    pub is_option: bool,
}

/// The interface and the domain that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The interface.
    pub interface: Option<Asked>,
    /// The domain.
    pub domain: Option<Asked>,
}

impl Overrides {
    /// Values of `--interface` and `--domain`, and where one is not given that of `OFI_INTERFACE` or `OFI_DOMAIN`.
    #[must_use]
    pub fn from_environment(interface: Option<&str>, domain: Option<&str>) -> Self {
        Self::from_parts(interface, domain, |name| std::env::var(name).ok())
    }

    /// The same with another environment. An empty variable counts as none.
    #[must_use]
    pub fn from_parts(
        interface: Option<&str>,
        domain: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let asked = |option: Option<&str>, by_option, by_variable| {
            let given = option.map(|name| Asked { name: name.to_owned(), by: by_option, is_option: true });
            let set = || variable(by_variable).filter(|name| !name.is_empty());
            given.or_else(|| set().map(|name| Asked { name, by: by_variable, is_option: false }))
        };
        Self {
            interface: asked(interface, "--interface", "OFI_INTERFACE"),
            domain: asked(domain, "--domain", "OFI_DOMAIN"),
        }
    }
}
