//! The error of every layer: kind, operation, context, source, and the remedy.

use std::fmt;

/// Kind of failure; decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line or job file asks for something that cannot be: exit code 2, nothing was touched.
    Usage,
    /// Refused to keep the user's data safe: exit code 2, nothing was touched.
    Unsafe,
    /// The system or the target does not offer what was asked for.
    Unsupported,
    /// The operating system refused or failed an operation.
    System,
    /// The run failed in the middle.
    Run,
}

/// One failure. Prints as one line: `operation: message (key=value, ...): source; remedy`.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    operation: &'static str,
    message: String,
    context: Vec<(&'static str, String)>,
    source: Option<std::io::Error>,
    remedy: Option<String>,
}

impl Error {
    /// An error of `kind` while doing `operation`.
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self { kind, operation, message: message.into(), context: Vec::new(), source: None, remedy: None }
    }

    /// Bad input: exit code 2.
    pub fn usage(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, operation, message)
    }

    /// A failed system call.
    pub fn system(
        operation: &'static str,
        message: impl Into<String>,
        source: impl Into<std::io::Error>,
    ) -> Self {
        let mut error = Self::new(ErrorKind::System, operation, message);
        error.source = Some(source.into());
        error
    }

    /// Adds a key and its value.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((key, value.to_string()));
        self
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same failure in other words: `words` makes message and remedy anew.
    #[must_use]
    pub fn reworded(mut self, words: impl Fn(&str) -> String) -> Self {
        self.message = words(&self.message);
        self.remedy = self.remedy.map(|remedy| words(&remedy));
        self
    }

    /// The operation that failed.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The sort of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The operating system's error number, where there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.source.as_ref().and_then(std::io::Error::raw_os_error)
    }

    /// 2 for bad usage and safety refusals, 1 for the rest.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage | ErrorKind::Unsafe => 2,
            ErrorKind::Unsupported | ErrorKind::System | ErrorKind::Run => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)?;
        if !self.context.is_empty() {
            let pairs: Vec<_> = self.context.iter().map(|(key, value)| format!("{key}={value}")).collect();
            write!(f, " ({})", pairs.join(", "))?;
        }
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_one_line_with_everything() {
        let error = Error::system("open", "cannot open the target", std::io::Error::from_raw_os_error(2))
            .with("path", "/x")
            .remedy("give --size to create it");
        assert_eq!(
            error.to_string(),
            "open: cannot open the target (path=/x): No such file or directory (os error 2); give --size to create it"
        );
        assert_eq!((error.exit_code(), error.errno()), (1, Some(2)));
        assert_eq!(Error::usage("x", "y").exit_code(), 2);
    }
}
