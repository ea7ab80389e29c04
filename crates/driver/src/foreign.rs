//! Client libraries that are loaded at run time.
#![allow(unsafe_code)]

use std::ffi::{OsString, c_void};
use std::path::{Path, PathBuf};

pub use libloading::Error as LoadError;
pub use libloading::os::unix::Library;
use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};

use crate::{Error, ErrorKind};

/// A library: where it is looked for, and what is said where it is not there.
#[derive(Clone, Copy, Debug)]
pub struct ClientLibrary {
    /// Beginning of its errors.
    pub layer: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Environment variable that names another file to load.
    pub variable: &'static str,
    /// Package that brings it.
    pub package: &'static str,
}

impl ClientLibrary {
    /// Loads it.
    ///
    /// # Errors
    /// When there is none: one line that names the package.
    pub fn open(&self) -> Result<Library, Error> {
        self.open_any(&[]).map(|(library, _)| library)
    }

    /// Loads it under its name, or else under the first of these names that there is; and the name that it was.
    ///
    /// # Errors
    /// When there is none: one line that names the package.
    pub fn open_any(&self, others: &[&str]) -> Result<(Library, String), Error> {
        let Self { layer, name, variable, package } = *self;
        let other = std::env::var_os(variable).filter(|value| !value.is_empty());
        let file = PathBuf::from(other.clone().unwrap_or_else(|| OsString::from(name)));
        // SAFETY: loading runs the library's constructors, which set up its own tables.
        let load = |file: &Path| unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) };
        let missing = match load(&file) {
            Ok(library) => return Ok((library, file.display().to_string())),
            Err(missing) => missing,
        };
        let further = others.iter().filter(|_| other.is_none());
        for name in further {
            if let Ok(library) = load(Path::new(name)) {
                return Ok((library, (*name).to_owned()));
            }
        }
        let message = format!("{name} is missing: install {package}");
        let error = Error::new(ErrorKind::Unsupported, layer, message).with("cause", missing);
        Err(if other.is_some() { error.with("file", file.display()) } else { error })
    }

    /// A function that it lacks.
    #[must_use]
    pub fn lacks(&self, cause: &LoadError) -> Error {
        let message = format!("this driver does not support the installed version of {}", self.name);
        Error::new(ErrorKind::Unsupported, self.layer, message).with("cause", cause)
    }
}

/// Address of a symbol whose name ends in a zero byte, for the caller to give a type. One function for all types: a library has dozens of functions, and each type
/// would be compiled by itself.
///
/// # Errors
/// When the library lacks the symbol.
pub fn address(library: &Library, name: &str) -> Result<*mut c_void, LoadError> {
    // SAFETY: only the address is taken; the type is none that anything is read through.
    unsafe { library.get::<*mut c_void>(name.as_bytes()) }.map(|symbol| *symbol)
}

/// Declares the functions in use of a library, a [`ClientLibrary`]: a structure of them, which the first who asks fills. The types are those of the
/// library's header.
#[macro_export]
macro_rules! foreign_functions {
    ($(#[$doc:meta])* $api:ident of $library:path { $($name:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
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
            /// The library; loaded by the first who asks.
            ///
            /// # Errors
            /// When it cannot be loaded: one line that names the package.
            pub(crate) fn get() -> Result<&'static Self, $crate::Error> {
                static API: std::sync::OnceLock<$api> = std::sync::OnceLock::new();
                if let Some(api) = API.get() {
                    return Ok(api);
                }
                let api = Self::of($library.open()?).map_err(|cause| $library.lacks(&cause))?;
                Ok(API.get_or_init(|| api))
            }

            fn of(library: $crate::foreign::Library) -> Result<Self, $crate::foreign::LoadError> {
                Ok(Self {
                    $($name: {
                        let address = $crate::foreign::address(&library, concat!(stringify!($name), "\0"))?;
                        // SAFETY: it is the function of that name, whose type is that of the library's header.
                        unsafe {
                            std::mem::transmute::<
                                *mut std::ffi::c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(address)
                        }
                    },)*
                    _library: library,
                })
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
        let library = ClientLibrary {
            layer: "object",
            name: "libstrata-absent.so.9",
            variable: "STRATA_LIB_ABSENT",
            package: "strata-absent",
        };
        let error = library.open().expect_err("missing");
        let text = error.to_string();
        assert!(
            text.starts_with("object: libstrata-absent.so.9 is missing: install strata-absent (cause="),
            "{text}"
        );
        assert_eq!((error.exit_code(), text.lines().count()), (1, 1));
    }
}
