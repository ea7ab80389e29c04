//! Client libraries that are loaded at run time.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::path::PathBuf;

pub use libloading::Error as LoadError;
pub use libloading::os::unix::Library;
use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};

use crate::{Error, ErrorKind};

/// Opens a library of `layer` by its name, or the file that an environment variable names instead.
///
/// # Errors
/// When there is none: one line that names the package that brings it.
pub fn open(
    layer: &'static str,
    name: &'static str,
    variable: &str,
    package: &str,
) -> Result<Library, Error> {
    let other = std::env::var_os(variable).filter(|value| !value.is_empty());
    let file = PathBuf::from(other.clone().unwrap_or_else(|| OsString::from(name)));
    // SAFETY: loading runs the library's constructors, which set up its own tables.
    unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_LOCAL) }.map_err(|cause| {
        let message = format!("{name} is missing: install {package}");
        let error = Error::new(ErrorKind::Unsupported, layer, message).with("cause", cause);
        if other.is_some() { error.with("file", file.display()) } else { error }
    })
}

/// A function that a library lacks.
#[must_use]
pub fn lacks(layer: &'static str, name: &'static str, cause: &LoadError) -> Error {
    let message = format!("{name} is of another version than this driver knows");
    Error::new(ErrorKind::Unsupported, layer, message).with("cause", cause)
}

/// Declares what is used of a library: a structure of its functions, and how it is filled. The types are those of the library's header.
#[macro_export]
macro_rules! foreign_functions {
    ($(#[$doc:meta])* $api:ident { $($name:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
        $(#[$doc])*
        pub(crate) struct $api {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Keeps the functions where they are.
            _library: $crate::foreign::Library,
        }

        impl std::fmt::Debug for $api {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($api))
            }
        }

        impl $api {
            fn of(library: $crate::foreign::Library) -> Result<Self, $crate::foreign::LoadError> {
                // SAFETY: the types are those of the library's header.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}
pub use crate::foreign_functions as functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_names_its_package() {
        let error = open("object", "libstrata-absent.so.9", "STRATA_LIB_ABSENT", "strata-absent")
            .expect_err("missing");
        let text = error.to_string();
        assert!(
            text.starts_with("object: libstrata-absent.so.9 is missing: install strata-absent (cause="),
            "{text}"
        );
        assert_eq!((error.exit_code(), text.lines().count()), (1, 1));
    }
}
